"""The bench that every conformance case works on: one empty store, a clock that only the case moves, and short verbs.

Knows the store protocols and nothing of how any store keeps them.
"""

import threading
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Protocol, TypedDict, TypeVar, Unpack

from msgspec.structs import replace

from duly.core.control import LimitPolicy, LimitRecord, TaskLimit
from duly.core.filters import Filter
from duly.core.fingerprint import ErrorRecord
from duly.core.job import (
    AttemptRecord,
    ClaimedJob,
    ClaimRequest,
    Counters,
    Ended,
    Incarnation,
    JobId,
    JobRecord,
    NewJob,
    QueueClaim,
    Stored,
    Token,
    UniqueKey,
    WorkerInfo,
)
from duly.core.keys import idempotency_digest, unique_digest
from duly.core.leases import Beat
from duly.core.lifecycle import Event, Outcome, State
from duly.core.registration import QueuePolicy, Registration
from duly.stores.protocol import Clock, Store, Swept
from duly.testing.clock import FakeClock

T = TypeVar("T")
A = TypeVar("A")
B = TypeVar("B")

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)

LEASE = 30 * SECOND
POISON = 3
NO_SUCH_JOB = JobId(4_000_000_000_000_000)
# Longer than any interval at which a store skips a sweep that is not due.
SWEEP_EVERY = 2 * MINUTE
PATIENCE = 45.0
# So often a lone worker is asked to come again at once, at most.
ROUNDS = 60
BOOM = ErrorRecord("ValueError", "boom", "Traceback: boom at line 7\n", "0badcafe")


class JobOptions(TypedDict, total=False):
    """Any field of NewJob but the task."""

    queue: str
    args: bytes
    priority: int
    delay: timedelta | None
    run_at: datetime | None
    expires: timedelta | None
    timeout: timedelta | None
    attempts: int | None
    tenant: str
    tags: tuple[str, ...]
    correlation_id: str | None
    holder: Token | None
    idempotency: bytes | None
    unique: UniqueKey | None
    version: int | None
    then: tuple[NewJob, ...]
    on_dead: tuple[NewJob, ...]
    trigger: str | None
    blobs: tuple[str, ...]
    ordering_key: str | None
    serialise: bool
    fair: bool
    batch: int | None


class EndOptions(TypedDict, total=False):
    """What the end of an attempt may carry beside its event and state."""

    counters: Counters
    delay: timedelta | None
    result: bytes | None
    reason: str | None
    note: str | None
    error: ErrorRecord | None
    elapsed: timedelta | None
    cursors: tuple[tuple[str, int], ...]


class ClaimOptions(TypedDict, total=False):
    """What a claim may ask beside how many."""

    queues: tuple[str, ...]
    suspects: bool
    unparked: tuple[str, ...]
    chain: int
    fair: bool
    reserved: int


class Database(Protocol):
    """One empty place for a store; the caller of the suite makes a new one for each case and removes it after."""

    def open(self, clock: Clock) -> Store:
        """Another handle on this place, as another process would open it. The schema is there."""

    def forget_worker(self, incarnation: Incarnation) -> None:
        """Delete this worker's row behind the store's back, as a careless clean-up or a partial restore does."""

    def next_id(self, at_least: int) -> None:
        """Let the store go on counting ids from here, as after years of use."""

    def wish_cancel(self, id: JobId, by: str, reason: str) -> None:
        """Commit only the wish, as an operator who dies before the second half of a cancel."""

    def forget_heads(self) -> None:
        """Forget who owns each ordering key, behind the store's back."""

    def mislead_heads(self) -> None:
        """Let each ordering key belong to a job that does not exist, behind the store's back."""

    def leak_hold(self, limit: str, id: JobId) -> None:
        """Let a job that does not run hold this limit, behind the store's back."""

    def rewrite_entry(self, id: int, reason: str) -> None:
        """Change an entry of the audit, behind the store's back."""

    def remove_entry(self, id: int) -> None:
        """Delete an entry of the audit, behind the store's back."""


class Bench:
    """A store under test. Every handle made here is closed with it."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.clock = FakeClock()
        self.releases = 0
        self._opened: list[Store] = []
        self.store = self.another()

    def close(self) -> None:
        """Close all handles, the last opened first."""
        while self._opened:
            self._opened.pop().close()

    def another(self, clock: Clock | None = None) -> Store:
        """A further handle on the same database, by the same clock unless told otherwise."""
        store = self.database.open(clock or self.clock)
        self._opened.append(store)
        return store

    def worker(
        self,
        *tasks: str,
        timeout: timedelta = 15 * MINUTE,
        lease: timedelta = LEASE,
        queues: tuple[str, ...] = ("default",),
        store: Store | None = None,
    ) -> Incarnation:
        """Register a worker that knows `tasks` (or just "ok")."""
        info = WorkerInfo(
            host="host-1",
            pid=4711,
            supervisor="host-1:4700",
            queues=queues,
            tasks=dict.fromkeys(tasks or ("ok",), timeout),
            lease=lease,
            heartbeat=lease / 6,
            slots=10,
            version="1.0",
        )
        return (store or self.store).leases.register(info)

    def put(self, task: str = "ok", **options: Unpack[JobOptions]) -> JobId:
        """Enqueue one job and return its id."""
        return self.put_all([new_job(task, **options)])[0]

    def put_many(self, count: int, task: str = "ok", **options: Unpack[JobOptions]) -> list[JobId]:
        """Enqueue `count` equal jobs in one call."""
        return self.put_all([new_job(task, **options)] * count)

    def put_all(self, jobs: Sequence[NewJob]) -> list[JobId]:
        return [stored.id for stored in self.store.jobs.enqueue(jobs)]

    def ask(self, task: str = "ok", **options: Unpack[JobOptions]) -> Stored:
        """Enqueue one job and return the whole answer."""
        return self.store.jobs.enqueue([new_job(task, **options)])[0]

    def must_be_free(self, key: UniqueKey) -> JobId:
        """Take a unique key that nobody may hold any more."""
        stored = self.ask("other", unique=key, queue="elsewhere")
        assert stored.outcome is Outcome.created, f"job {stored.id} still holds the key"
        return stored.id

    def must_hold(self, id: JobId, key: UniqueKey) -> None:
        """Ask for a unique key that this job must still hold."""
        stored = self.ask(unique=key)
        assert (stored.id, stored.outcome) == (id, Outcome.duplicate)

    def work(
        self,
        worker: Incarnation,
        event: Event = Event.complete,
        to: State | None = None,
        **fields: Unpack[EndOptions],
    ) -> JobId:
        """Claim exactly one job and end it at once."""
        claimed = self.claim_one(worker)
        assert self.end(worker, ended(claimed, event, to, **fields)) == {(claimed.id, claimed.run)}
        return claimed.id

    def followers(self, trigger: str) -> list[JobRecord]:
        """Every job that says it was caused by this, oldest first."""
        found: list[JobRecord] = []
        after: int | None = 0
        while after is not None:
            page = self.store.inspection.page(Filter(), after=after, limit=200)
            found += [row for row in page.jobs if row.trigger == trigger]
            after = page.next
        return found

    def retain(self, keep: timedelta = timedelta(0)) -> None:
        """Delete all ended jobs but dead letters, and whatever else is past its time."""
        while self.store.upkeep.retain({}, {}, keep, 900 * DAY):
            pass

    def claim(
        self,
        worker: Incarnation,
        most: int = 1,
        *,
        queues: tuple[str, ...] = ("default",),
        suspects: bool = False,
        unparked: tuple[str, ...] = (),
        store: Store | None = None,
    ) -> tuple[ClaimedJob, ...]:
        """Claim up to `most` jobs from the queues in the order given."""
        asked = request(most, *queues, suspects=suspects, unparked=unparked)
        return (store or self.store).jobs.exchange(worker, [], asked).claimed

    def claim_one(
        self, worker: Incarnation, *, queues: tuple[str, ...] = ("default",), suspects: bool = False
    ) -> ClaimedJob:
        """Claim exactly one job."""
        claimed = self.claim(worker, 1, queues=queues, suspects=suspects)
        assert len(claimed) == 1, f"one job should have been claimed, not {len(claimed)}"
        return claimed[0]

    def start(
        self,
        worker: Incarnation,
        most: int = 1,
        *,
        ends: Sequence[Ended] = (),
        store: Store | None = None,
        **asked: Unpack[ClaimOptions],
    ) -> list[ClaimedJob]:
        """Everything that a worker is given which comes back as often as it is asked to at once."""
        found: list[ClaimedJob] = []
        queues = asked.get("queues", ("default",))
        fair, reserved = asked.get("fair", False), asked.get("reserved", 0)
        for _ in range(ROUNDS):
            rest = most - len(found)
            request = ClaimRequest(
                tuple(QueueClaim(queue, rest, fair, reserved) for queue in queues),
                rest,
                asked.get("suspects", False),
                asked.get("unparked", ()),
                asked.get("chain", 1),
            )
            answer = (store or self.store).jobs.exchange(worker, ends, request)
            assert answer.acked == {(end.id, end.run) for end in ends}
            ends = ()
            found += answer.claimed
            if len(found) >= most or answer.again != timedelta(0):
                return found
        raise AssertionError("the store asks to come again at once, for ever")

    def start_ids(
        self,
        worker: Incarnation,
        most: int = 10,
        *,
        ends: Sequence[Ended] = (),
        **asked: Unpack[ClaimOptions],
    ) -> list[JobId]:
        """As `start`, which jobs."""
        return [job.id for job in self.start(worker, most, ends=ends, **asked)]

    def declare(
        self,
        *limits: LimitPolicy,
        takes: Sequence[TaskLimit] = (),
        queues: Sequence[QueuePolicy] = (),
    ) -> None:
        """One more release of the suite's App: what it does not declare any more is gone."""
        self.releases += 1
        release = Registration(
            "suite", f"release {self.releases}", tuple(queues), limits=limits, task_limits=tuple(takes)
        )
        assert self.store.schema.declare(release)

    def limit(self, name: str) -> LimitRecord | None:
        return next((one for one in self.store.control.limits([name]) if one.name == name), None)

    def running(self, name: str) -> int:
        """How many hold a limit."""
        found = self.limit(name)
        return 0 if found is None else found.running

    def pass_time(self, by: timedelta) -> None:
        """Let time pass, and what waited for it be noticed."""
        self.clock.advance(by)
        self.store.upkeep.promote()

    def end(self, worker: Incarnation, *ended: Ended) -> frozenset[tuple[JobId, int]]:
        """Hand in ends without a claim; what was acknowledged."""
        return self.store.jobs.exchange(worker, ended, None).acked

    def row(self, id: JobId) -> JobRecord:
        """The job, which must exist."""
        found = self.store.inspection.lookup([id])[0]
        assert found is not None, f"job {id} has vanished"
        return found

    def state(self, id: JobId) -> State:
        return self.row(id).state

    def states(self, ids: Sequence[JobId]) -> list[State | None]:
        return [row.state if row else None for row in self.store.inspection.lookup(ids)]

    def history(self, id: JobId) -> list[AttemptRecord]:
        return self.store.inspection.attempts(id)

    def picture(self, id: JobId) -> tuple[JobRecord | None, list[AttemptRecord]]:
        """All that can be read of a job: two equal pictures mean that nothing has changed."""
        return self.store.inspection.lookup([id])[0], self.history(id)

    def sweep(
        self, *, unknown_after: timedelta = HOUR, poison: int = POISON, grace: timedelta = timedelta(0)
    ) -> Swept:
        """One sweep, after so long a wait that it is due."""
        self.clock.advance(SWEEP_EVERY)
        swept = self.store.upkeep.sweep(unknown_after, poison, grace)
        assert swept.ran, "a sweep that was due did not run"
        return swept

    def beat_of(self, worker: Incarnation) -> Beat:
        """The worker's row as a reaper reads it."""
        return next(beat for beat in self.store.leases.beats() if beat.incarnation == worker)

    def reap(self, worker: Incarnation, poison: int = POISON) -> int:
        """What a reaper does once it has watched this worker for a whole lease."""
        return self.store.leases.reap([self.beat_of(worker)], poison)

    def lose_once(self, id: JobId) -> None:
        """Let a worker die with this one job, so that it is a suspect."""
        worker = self.worker()
        claimed = self.claim_one(worker)
        assert claimed.id == id
        self.reap(worker)


def new_job(task: str = "ok", **options: Unpack[JobOptions]) -> NewJob:
    """A job of `task` on the queue "default" without arguments, unless told otherwise."""
    return replace(NewJob("default", task, b"{}"), **options)


def unique(key: str = "k", *, live: bool = False, replacing: bool = False) -> UniqueKey:
    """A unique key of the task "ok"."""
    return UniqueKey(unique_digest("ok", "", key), live=live, replace=replacing)


def request_key(key: str = "r") -> bytes:
    """An idempotency key of the task "ok"."""
    return idempotency_digest("ok", "", key)


def request(most: int, *queues: str, suspects: bool = False, unparked: tuple[str, ...] = ()) -> ClaimRequest:
    """Ask for `most` jobs in all and from each of `queues`."""
    asked = tuple(QueueClaim(queue, most) for queue in queues or ("default",))
    return ClaimRequest(asked, most, suspects=suspects, unparked=unparked)


USUAL = {
    Event.complete: State.completed,
    Event.fail: State.scheduled,
    Event.snooze: State.scheduled,
    Event.skip: State.skipped,
    Event.bury: State.dead,
    Event.interrupt: State.ready,
    Event.lose: State.ready,
    Event.cancel: State.cancelled,
}


def counted(before: Counters, event: Event) -> Counters:
    """The counters after one end, as the worker would send them."""
    return Counters(
        failed=before.failed + (event is Event.fail),
        lost=before.lost + (event is Event.lose),
        interrupted=before.interrupted + 1 if event is Event.interrupt else 0,
        snoozed=before.snoozed + (event is Event.snooze),
    )


def ended(job: ClaimedJob, event: Event, to: State | None = None, **fields: Unpack[EndOptions]) -> Ended:
    """The end of a claimed job: where the event usually leads, after 10 s where that is a waiting time."""
    to = to or USUAL[event]
    delay = 10 * SECOND if to is State.scheduled else None
    usual = Ended(job.id, job.run, event, to, counted(job.counters, event), delay=delay)
    return replace(usual, **fields)


def together(*acts: Callable[[], T]) -> list[T]:
    """Run the acts in a thread each, let go at one barrier; their answers in order. Raises what the first raised."""
    barrier = threading.Barrier(len(acts))
    answers: dict[int, T] = {}
    errors: list[BaseException] = []

    def run(number: int, act: Callable[[], T]) -> None:
        try:
            barrier.wait(PATIENCE)
            answers[number] = act()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=pair, daemon=True) for pair in enumerate(acts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive(), "an act has not ended; the store blocks for ever"
    if errors:
        raise errors[0]
    return [answers[number] for number in range(len(acts))]


def beside(first: Callable[[], A], second: Callable[[], B]) -> tuple[A, B]:
    """Run two acts of different kinds as `together` does."""
    left: list[A] = []
    right: list[B] = []
    together(lambda: left.append(first()), lambda: right.append(second()))
    return left[0], right[0]
