"""Jobs in every state, with hostile text in all that a job may carry, on whatever store the test has."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from duly.core.classify import Verdict
from duly.core.decide import Policy, failed
from duly.core.fingerprint import told
from duly.core.job import ClaimedJob, ClaimRequest, Ended, Incarnation, JobId, NewJob, QueueClaim, WorkerInfo
from duly.core.lifecycle import Event, State
from tests.web.conftest import Place

SCRIPT = "<script>alert(1)</script><img src=x onerror=alert(1)>'\"&"
HOSTILE = f"{SCRIPT}\u202eevil\u2066 {{{{ 7*7 }}}} ]]>"


def args(**values: object) -> bytes:
    return json.dumps(values).encode()


def put(
    place: Place, *, queue: str = "mail", task: str = "send_receipt", count: int = 1, **more: object
) -> list[int]:
    """Jobs straight into the store, as no declared task need take such arguments."""
    given = {"args": args(order_id=7), **more}
    jobs = [NewJob(queue, task, **given) for _ in range(count)]  # type: ignore[arg-type]
    return [int(one.id) for one in place.app.store.jobs.enqueue(jobs)]


def begin(
    place: Place, count: int = 1, queue: str = "mail", tasks: Sequence[str] = ("send_receipt",)
) -> tuple[Incarnation, list[ClaimedJob]]:
    """A worker that has claimed so many jobs."""
    store = place.app.store
    spans = dict.fromkeys(tasks, timedelta(minutes=1))
    info = WorkerInfo(
        "here", 1, "here:1", (queue,), spans, timedelta(seconds=30), timedelta(seconds=5), count, "0"
    )
    owner = store.leases.register(info)
    claimed = store.jobs.exchange(owner, [], ClaimRequest((QueueClaim(queue, count),), count)).claimed
    assert len(claimed) == count
    return owner, list(claimed)


def kill(
    place: Place,
    count: int = 1,
    *,
    message: str = "no such account",
    error: str = "UnknownAccount",
    traceback: str = "",
    queue: str = "mail",
    task: str = "send_receipt",
    **more: object,
) -> list[int]:
    """So many dead letters."""
    ids = put(place, count=count, queue=queue, task=task, **more)
    owner, claimed = begin(place, count, queue, [task])
    policy = Policy(10, place.app.client.backoff, 10)
    died = told(error, message, traceback)
    ends = [failed(job, Verdict("permanent"), policy, 0.5, died, timedelta(0)) for job in claimed]
    place.app.store.jobs.exchange(owner, ends, None)
    place.app.store.leases.retire(owner)
    return ids


def complete(place: Place, result: bytes | None = None, **more: object) -> int:
    """A job that has completed."""
    (id,) = put(place, **more)  # type: ignore[arg-type]
    owner, (job,) = begin(place)
    ended = Ended(
        JobId(id),
        job.run,
        Event.complete,
        State.completed,
        job.counters,
        result=result,
        elapsed=timedelta(milliseconds=1),
    )
    place.app.store.jobs.exchange(owner, [ended], None)
    place.app.store.leases.retire(owner)
    return id


def in_an_hour() -> datetime:
    return datetime.now(UTC) + timedelta(hours=1)
