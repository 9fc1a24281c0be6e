"""One job in each state, brought there by the product itself: rows to copy. Plays the workers by hand."""

from datetime import timedelta
from typing import NamedTuple

from bench.dashboard.shop import QUEUES, tasks
from duly.core.control import LimitPolicy
from duly.core.fingerprint import ErrorRecord
from duly.core.job import (
    ClaimedJob,
    ClaimRequest,
    Counters,
    Ended,
    Incarnation,
    JobId,
    NewJob,
    QueueClaim,
    WorkerInfo,
)
from duly.core.lifecycle import Event, State
from duly.core.registration import QueuePolicy, Registration, TaskPolicy
from duly.stores.protocol import Store

QUEUE = "queue-00"
TASK = "task_00"
ARGS = b'{"order_id":0}'
WORKERS = 8
RUNNING = 25
"""So many jobs are run by each of them."""
_LONG = timedelta(hours=9)
_WAIT_TARGET = timedelta(seconds=30)
_ERROR = ErrorRecord("ConnectionError", "copied", "copied", "00000000")


class Templates(NamedTuple):
    """The numbers of jobs that stay as they are while others are copied from them."""

    completed: int
    cancelled: int
    dead: int
    blocked: int
    scheduled: int
    ready: int


def make(store: Store) -> Templates:
    """In an empty store, which has all queues, tasks and workers then."""
    queues = [f"queue-{number:02}" for number in range(QUEUES)]
    release = Registration(
        "bench",
        "release 1",
        tuple(QueuePolicy(name, f"{name}@shop.example", wait_target=_WAIT_TARGET) for name in queues),
        tuple(TaskPolicy(task, queue, 100) for task, queue in tasks()),
        limits=(LimitPolicy("gateway", 40),),
    )
    assert store.schema.declare(release)
    workers = [_registered(store, place, tuple(queues)) for place in range(WORKERS)]
    me = workers[0]
    _put(store)
    completed = _ended(store, me, _claimed(store, me), Event.complete, State.completed)
    _put(store)
    dead = _ended(store, me, _claimed(store, me), Event.fail, State.dead, error=_ERROR)
    cancelled = _put(store)
    store.operator.cancel([JobId(cancelled)], "bench", "a copy is made of it")
    for worker in workers:
        for _ in range(RUNNING):
            _put(store)
        claimed = store.jobs.exchange(
            worker, (), ClaimRequest((QueueClaim(QUEUE, RUNNING),), RUNNING)
        ).claimed
        assert len(claimed) == RUNNING
    _put(store, ordering_key="copied")
    _claimed(store, me)
    blocked = _put(store, ordering_key="copied")
    store.jobs.exchange(me, (), ClaimRequest((QueueClaim(QUEUE, 1),), 1))
    scheduled = _put(store, delay=timedelta(days=300))
    return Templates(completed, cancelled, dead, blocked, scheduled, _put(store))


def _registered(store: Store, place: int, queues: tuple[str, ...]) -> Incarnation:
    return store.leases.register(
        WorkerInfo(
            f"worker-{place}",
            100 + place,
            f"worker-{place}:1",
            queues,
            {task: _LONG for task, _ in tasks()},
            _LONG,
            timedelta(hours=1),
            50,
            "0",
        )
    )


def _put(store: Store, *, delay: timedelta | None = None, ordering_key: str | None = None) -> int:
    job = NewJob(QUEUE, TASK, ARGS, delay=delay, tenant="tenant-000", ordering_key=ordering_key)
    return int(store.jobs.enqueue([job])[0].id)


def _claimed(store: Store, me: Incarnation) -> ClaimedJob:
    (job,) = store.jobs.exchange(me, (), ClaimRequest((QueueClaim(QUEUE, 1),), 1)).claimed
    return job


def _ended(
    store: Store,
    me: Incarnation,
    job: ClaimedJob,
    event: Event,
    to: State,
    *,
    error: ErrorRecord | None = None,
) -> int:
    counters = Counters(failed=1 if error else 0)
    ended = Ended(
        job.id,
        job.run,
        event,
        to,
        counters,
        result=None if error else b'"sent"',
        error=error,
        elapsed=_WAIT_TARGET,
    )
    assert store.jobs.exchange(me, [ended], None).acked
    return int(job.id)
