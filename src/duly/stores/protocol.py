"""What a store of jobs promises, in state words. Every sentence here has a conformance test on every store.

Small protocols over one set of tables, and `Store`, which holds them. All methods block and may be called from
any thread; each is one transaction of the store's own unless it takes a connection. Times come from the database's
clock unless the store was opened with `clock`. Every method may raise `faults.Transient`; batch writes may raise
`faults.DataFault`. Lock order: worker row, then claimed, then the waiting tables, then finished and dead.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from datetime import datetime, timedelta
from typing import Any, Protocol

from duly.core.batch import BatchAct
from duly.core.filters import Filter
from duly.core.fingerprint import ErrorRecord
from duly.core.job import (
    AttemptRecord,
    ClaimRequest,
    Cursor,
    Ended,
    Exchange,
    FinishedStep,
    Incarnation,
    JobId,
    JobRecord,
    KeptAnswer,
    NewJob,
    Progress,
    Steps,
    Stored,
    WorkerInfo,
)
from duly.core.leases import Beat
from duly.core.lifecycle import Event, State
from duly.core.registration import Registration, Schedule, ScheduleRecord
from duly.core.share import DatabaseLoad
from duly.stores.alerts import AlertStore
from duly.stores.answers import AnswerStore
from duly.stores.audits import AuditStore
from duly.stores.batches import BatchStore
from duly.stores.control import ControlStore, PressingStore
from duly.stores.facts import FactStore
from duly.stores.records import (
    Capabilities,
    DeadGroup,
    OperationRecord,
    Page,
    Pause,
    QueueCount,
    Swept,
    WorkerRecord,
)
from duly.stores.sealed import SealedStore
from duly.stores.tallies import TallyStore
from duly.stores.tokens import TokenStore
from duly.stores.triage import TriageStore

Clock = Callable[[], datetime]


class JobStore(Protocol):
    """Jobs in, jobs claimed, attempts ended."""

    def enqueue(self, jobs: Sequence[NewJob]) -> list[Stored]:
        """- -> ready, or scheduled when due later. All or nothing; one round trip per 1,000; answers in order.

        LeaseLost when a `holder` is no longer live. Wakes waiting workers after the commit. Keys (idempotency first):
        a key that a live job or a record holds answers `duplicate` with that job's id, or KeyReused; also within one
        call, in order. A unique key whose job has ended, has expired, or (scope queued) was claimed is free. With
        `replace` a waiting holder of the key ends as skipped("replaced by job N") and the new job is created; a
        running one (scope live) answers `duplicate`. Another transaction's uncommitted key is waited for.
        """

    def exchange(
        self, incarnation: Incarnation, ended: Sequence[Ended], request: ClaimRequest | None
    ) -> Exchange:
        """Apply ends and claim more, in one transaction and one round trip.

        running -> Ended.to for each live token; a token that is not live changes nothing and is missing from `acked`,
        unless its end was applied by an earlier try of the same call. ready -> running for at most `request.most`
        jobs, in queue order, by (priority, position) within a queue; expired ones become skipped("expired") and are
        not counted; tasks unknown to the incarnation or paused go ready -> blocked; paused queues give nothing.
        An incarnation whose row is gone claims nothing. Claimed for the first time, a job gives back a unique key of
        scope queued; an end in a final state gives back any; neither waits for a caller's transaction, and what was
        left is free for the next enqueue and removed by the sweep. A job with a version below the newest completed
        of its key becomes skipped("stale") instead of running. Whatever makes a job completed enqueues its `then`,
        whatever makes it dead its `on_dead`, in the same transaction.
        """

    def arguments(self, ids: Sequence[JobId]) -> dict[JobId, bytes]:
        """The stored arguments, byte for byte."""

    def extend(self, incarnation: Incarnation, id: JobId, run: int, by: timedelta) -> bool:
        """Move the attempt's deadline; False when the token is not live."""

    def report(
        self, incarnation: Incarnation, progress: Sequence[Progress], cursors: Sequence[Cursor] = ()
    ) -> tuple[list[tuple[JobId, int]], list[JobId]]:
        """Write progress and cursors of live attempts; answer (each (job, run) that the store says is held, jobs with a
        cancel wish)."""


class KeyStore(Protocol):
    """What idempotency keys and `once` remember beside the jobs."""

    def answer(self, id: JobId) -> KeptAnswer | None:
        """How a job ended that an idempotency key still stands for, though the job itself is no longer kept."""

    def once(self, digest: bytes, keep: timedelta) -> bool:
        """True the first time within `keep`; another transaction's uncommitted key is waited for."""

    def unused_blobs(self, references: Sequence[str]) -> list[str]:
        """Those that no stored job uses."""


class StepStore(Protocol):
    """What a job has done of itself, for its next attempt. Kept as long as the job's record."""

    def steps(self, id: JobId) -> Steps: ...

    def keep_steps(self, incarnation: Incarnation, steps: Sequence[FinishedStep]) -> list[bool | None]:
        """Store finished steps of live attempts, all of them in one transaction; the first value of a name stays.

        For each one: False when its token is not live, None when an open transaction holds its attempt and nothing was
        written: ask again. DataFault when one cannot be stored: then none is.
        """

    def refuse_inside(self, *, thread: bool, searching: bool = False) -> None:
        """UsageError when a step written by another thread would wait for a transaction that is open right here.

        `thread`: in one of this thread, else of this context alone. `searching`: also on a connection that we were
        never told of, at some milliseconds.
        """


class ScheduleStore(Protocol):
    """When what is due next. Whoever moves `next_at` on enqueues for it, in one transaction."""

    def due(self, most: int = 100) -> tuple[datetime, list[ScheduleRecord], datetime | None]:
        """(the database's clock, those due and not paused, the earliest due time of the others)."""

    def fire(
        self,
        name: str,
        expected: datetime,
        next_at: datetime,
        last_at: datetime,
        jobs: Sequence[NewJob],
        missed: int,
    ) -> list[Stored] | None:
        """If `next_at` still is `expected`: move it on, count, and enqueue; None when another worker was faster, or it
        was paused, edited or removed. `last_id` becomes the last job's. A duplicate by its key counts as missed."""

    def fail(self, name: str, expected: datetime, failure: str) -> bool:
        """If `next_at` still is `expected`: keep what went wrong, and count it; False when another worker was faster or
        is at it, or it was paused, edited or removed. A success (`fire`, `advance_on`) and an edit forget it."""

    def put(self, schedule: Schedule, first: datetime) -> ScheduleRecord:
        """Store or replace one at run time (origin ""); the same definition again changes nothing. UsageError, and
        nothing is changed, when an App declares one of this name."""

    def all(self) -> list[ScheduleRecord]:
        """By name."""

    def pause(self, name: str, by: str, reason: str) -> bool: ...

    def resume(self, name: str, next_at: datetime, by: str, reason: str) -> bool:
        """`next_at` is the first due time from now: what was due meanwhile does not fire."""

    def remove(self, name: str, by: str, reason: str) -> bool: ...


class LeaseStore(Protocol):
    """Worker incarnations: the row's existence is the lease."""

    def register(self, info: WorkerInfo) -> Incarnation:
        """A new incarnation, never used before."""

    def beat(self, incarnations: Sequence[Incarnation]) -> frozenset[Incarnation]:
        """Count one heartbeat for each; those missing in the answer were reaped. No clock test."""

    def beats(self) -> list[Beat]:
        """Every worker row with its beat, for a reaper's watch."""

    def reap(self, overdue: Sequence[Beat], poison: int) -> int:
        """Two statements: delete the rows whose beat still is as watched; then running -> ready with lost + 1 (dead
        as poison when lost reaches `poison` and the job had run alone; cancelled when wished). How many jobs moved."""

    def disown(
        self, incarnation: Incarnation, started: Sequence[tuple[JobId, int]], reason: str, poison: int
    ) -> int:
        """A supervisor saw its child die: delete the row; started attempts are lost (dead as poison at the limit), the
        others interrupted. The number of jobs moved."""

    def retire(self, incarnation: Incarnation) -> int:
        """A clean end: delete the row; what is still claimed goes back as interrupted. The number of jobs moved."""


class UpkeepStore(Protocol):
    """What some worker must do from time to time; safe from any number of workers at once."""

    def promote(self, most: int = 1000) -> tuple[int, timedelta | None]:
        """scheduled -> ready for due jobs (skipped when expired, cancelled when wished): (how many, time to next)."""

    def sweep(self, unknown_after: timedelta, poison: int, grace: timedelta) -> Swept:
        """Under a try-lock and not more often than due: orphans (claimed, no worker row) -> ready as lost; attempts
        past their deadline + grace -> ready as lost; expired waiting jobs -> skipped; parked jobs that no live worker
        knows for `unknown_after` -> dead; paused-then-resumed parked jobs -> ready; what a queue with
        `when_full` "shed" has ready above its `max_depth` -> shed, the least urgent and latest first; late commits
        behind marks found."""

    def parked_tasks(self) -> tuple[str, ...]:
        """Tasks that have jobs parked as unknown."""

    def retain(
        self,
        keep: Mapping[str, timedelta],
        keep_dead: Mapping[str, timedelta],
        default: timedelta,
        default_dead: timedelta,
        most: int = 2000,
    ) -> int:
        """Delete one chunk of finished jobs past their queue's retention, oldest first; 0 means nothing is left to do.
        Dead letters only when past `keep_dead` and announced at least 7 days before (see `announce_dead`)."""

    def announce_dead(
        self, keep_dead: Mapping[str, timedelta], default_dead: timedelta, ahead: timedelta
    ) -> list[tuple[str, int, datetime]]:
        """Per queue: how many dead letters will be purged within `ahead` and from when; marks them as announced."""


class InspectionStore(FactStore, Protocol):
    """Reads. Any answer about a job is one statement over all state tables."""

    def lookup(self, ids: Sequence[JobId]) -> list[JobRecord | None]: ...

    def attempts(self, id: JobId) -> list[AttemptRecord]: ...

    def page(
        self, filter: Filter, *, before: int | None = None, after: int | None = None, limit: int = 50
    ) -> Page:
        """Jobs by id, newest first (or oldest first with `after`), by the indexed parts of the filter (queue, task,
        tenant, state, tag, correlation, fingerprint, since, until); `where` is the caller's. Bounded work: a page
        may be short while `next` is not None."""

    def counts(self) -> list[QueueCount]: ...

    def workers(self) -> list[WorkerRecord]: ...

    def dead_groups(self, filter: Filter) -> list[DeadGroup]: ...

    def pauses(self) -> list[Pause]: ...

    def operations(self) -> list[OperationRecord]: ...

    def now(self) -> datetime:
        """The database's clock."""

    def load(self) -> DatabaseLoad | None:
        """What the database does a second and what of it is ours; None where the database is ours alone."""

    def describe(self) -> dict[str, str]:
        """Facts for `status` and `check`: where (absolute path or host), server version, journal mode, sync, schema."""

    def warnings(self) -> list[str]:
        """Findings for `check`, each with its fix."""


class OperatorStore(Protocol):
    """Acts of a person. Each names who and why; each reports what it really moved."""

    def cancel(self, ids: Sequence[JobId], by: str, reason: str) -> dict[JobId, State]:
        """Commits the wish first, then waiting -> cancelled; running keeps running with the wish set. Ids that are
        final or unknown are absent from the answer."""

    def redrive(self, ids: Sequence[JobId], by: str, reason: str, priority: int | None = None) -> list[JobId]:
        """dead, cancelled, skipped -> ready, counters 0, run kept; those really moved. Twice moves once."""

    def purge(self, ids: Sequence[JobId], by: str, reason: str) -> list[JobId]:
        """Delete dead letters for good."""

    def run_now(self, ids: Sequence[JobId], by: str, reason: str) -> list[JobId]: ...

    def run_at(self, ids: Sequence[JobId], at: datetime, by: str, reason: str) -> list[JobId]: ...

    def reprioritise(self, ids: Sequence[JobId], priority: int, by: str, reason: str) -> list[JobId]: ...

    def pause(self, target: str, lasting: timedelta | None, by: str, reason: str) -> Pause: ...

    def resume(self, target: str, by: str, reason: str) -> bool: ...

    def drain_worker(self, incarnation: Incarnation, by: str, reason: str) -> bool:
        """Ask one worker to stop claiming and end; it sees the wish with its next heartbeat."""

    def draining(self, incarnations: Sequence[Incarnation]) -> frozenset[Incarnation]: ...

    def start_operation(
        self,
        verb: str,
        filter: Filter,
        rate: float | None,
        priority: int | None,
        total: int,
        by: str,
        reason: str,
    ) -> OperationRecord: ...

    def set_operation(self, id: int, state: str, by: str, reason: str) -> OperationRecord | None:
        """running, paused or cancelled; None when unknown or already ended."""

    def advance_operation(self, id: int, cursor: int, done: int, skipped: int, ended: bool) -> bool:
        """Under a lock: move the cursor on; False when it is no longer running or another worker was faster."""


class SchemaStore(Protocol):
    def version(self) -> int:
        """0 when nothing of ours is there."""

    def wanted(self) -> int: ...

    def migrate(self) -> list[str]:
        """Apply what is missing, under a lock; the names of those applied. Safe from many processes at once."""

    def sql(self) -> str:
        """The text that `migrate` would run from nothing."""

    def grant_roles(self) -> tuple[str, ...]:
        """Make a database role for each kind of program, with no more rights than it calls; their names. Takes every
        right that anybody else was given away. () where a database knows no roles."""

    def roles_sql(self) -> str:
        """The text that `grant` would run; "" where a database knows no roles."""

    def declare(self, registration: Registration) -> bool:
        """Record what a release of an App declares, for producers in SQL, `status` and schedules; False when a release
        of the same origin that was first seen later has declared before: then nothing changes. Queues and tasks are
        never removed; schedules of the origin that are no longer declared are. A schedule whose definition has not
        changed keeps its `next_at` and its pause; an edited one goes on from its given first due time. One of the same
        name that was stored at run time, or by another origin, is this origin's from then on."""

    def declared(self) -> tuple[dict[str, str], dict[str, str]]: ...


class Listener(Protocol):
    """Calls back, from its own thread, when there may be work. Missing a call is harmless: everyone polls."""

    def idle(self, yes: bool) -> None:
        """The worker has nothing to do and free slots (or the contrary): producers then need (not) ring."""

    def found(self) -> None:
        """A claim has brought jobs."""

    def close(self) -> None: ...


class Store(Protocol):
    """One opened store. Opening is lazy: the first call connects; a fork must open anew."""

    url: str
    capabilities: Capabilities
    jobs: JobStore
    keys: KeyStore
    steps: StepStore
    schedules: ScheduleStore
    control: ControlStore
    batches: BatchStore
    pressing: PressingStore
    leases: LeaseStore
    upkeep: UpkeepStore
    inspection: InspectionStore
    operator: OperatorStore
    schema: SchemaStore
    tokens: TokenStore
    answers: AnswerStore
    triage: TriageStore
    audits: AuditStore
    sealed: SealedStore
    alerts: AlertStore
    tallies: TallyStore

    def listen(self, on_work: Callable[[], None]) -> Listener: ...

    def transaction(self, *, kept: bool = False) -> AbstractContextManager[Any]:
        """A connection of the store inside a transaction that commits at the block's end.

        `kept`: for one who opens many and leaves the connection as it was: a store may use it again for the next."""

    def atransaction(self) -> AbstractAsyncContextManager[Any]: ...

    def enqueue_on(self, connection: Any, jobs: Sequence[NewJob]) -> list[Stored]:
        """As JobStore.enqueue, in the transaction that is open on the caller's connection; never commits it.
        ConnectionMismatch for one of another kind, of another database, without an open transaction, or async."""

    async def aenqueue_on(self, connection: Any, jobs: Sequence[NewJob]) -> list[Stored]: ...

    def batch_on(self, connection: Any, act: BatchAct) -> int:
        """As BatchStore.apply, in the caller's transaction."""

    async def abatch_on(self, connection: Any, act: BatchAct) -> int: ...

    def complete_on(self, connection: Any, incarnation: Incarnation, ended: Ended) -> bool:
        """Apply one end in the caller's transaction, fenced; False when the token is not live."""

    async def acomplete_on(self, connection: Any, incarnation: Incarnation, ended: Ended) -> bool: ...

    def cancel_on(self, connection: Any, ids: Sequence[JobId], by: str, reason: str) -> dict[JobId, State]:
        """As OperatorStore.cancel, in the caller's transaction: wish and cancellation commit together."""

    async def acancel_on(
        self, connection: Any, ids: Sequence[JobId], by: str, reason: str
    ) -> dict[JobId, State]: ...

    def lookup_on(self, connection: Any, ids: Sequence[JobId]) -> list[JobRecord | None]:
        """As InspectionStore.lookup, as the caller's transaction sees it."""

    async def alookup_on(self, connection: Any, ids: Sequence[JobId]) -> list[JobRecord | None]: ...

    def once_on(self, connection: Any, digest: bytes, keep: timedelta) -> bool:
        """As KeyStore.once, in the caller's transaction: rolled back, the key is free again."""

    async def aonce_on(self, connection: Any, digest: bytes, keep: timedelta) -> bool: ...

    def advance_on(
        self, connection: Any, name: str, expected: datetime, next_at: datetime, last_at: datetime, fired: int
    ) -> bool:
        """Move a tick's schedule on in the transaction that enqueues for it, first of all its statements: it locks the
        schedule. False when another worker was faster, or it was paused, edited or removed. Where others may hold a
        key of its jobs, the rest of the transaction waits for them a few seconds only, then fails."""

    def close(self) -> None: ...


__all__ = [
    "AlertStore",
    "AnswerStore",
    "AuditStore",
    "BatchStore",
    "Capabilities",
    "Clock",
    "ControlStore",
    "DeadGroup",
    "ErrorRecord",
    "Event",
    "InspectionStore",
    "JobStore",
    "KeyStore",
    "LeaseStore",
    "Listener",
    "OperationRecord",
    "OperatorStore",
    "Page",
    "Pause",
    "PressingStore",
    "QueueCount",
    "ScheduleStore",
    "SchemaStore",
    "SealedStore",
    "StepStore",
    "Store",
    "Swept",
    "TallyStore",
    "TokenStore",
    "TriageStore",
    "UpkeepStore",
    "WorkerRecord",
]
