"""The values that pass between callers, worker and stores: one job on its way in, claimed, ended, and as read.

Plain immutable data; knows nothing of handlers, leases in memory, or how a store keeps any of it.
"""

from datetime import datetime, timedelta
from typing import Final, NamedTuple, NewType

from msgspec import Struct

from .fingerprint import ErrorRecord
from .lifecycle import Event, Outcome, State

JobId = NewType("JobId", int)
Incarnation = NewType("Incarnation", int)


class Token(NamedTuple):
    """Proof of one attempt: who holds which job in which run. Never valid again once the attempt ended."""

    incarnation: Incarnation
    job: JobId
    run: int


class UniqueKey(Struct, frozen=True):
    """A unique key as a store keeps it."""

    digest: bytes
    """16 bytes, of core.keys.unique_digest."""
    live: bool = False
    """True: taken until the job has ended; False: until it is claimed for the first time."""
    replace: bool = False
    """A new job takes the place of one that waits under the key, which ends as skipped."""


RESULT_MARK: Final = b"\x01"
"""Where the parent's result goes in a follow-up's arguments. JSON text never holds this byte by itself."""


class NewJob(Struct, frozen=True):
    """One job as `enqueue` hands it to a store."""

    queue: str
    task: str
    args: bytes
    """A JSON object {parameter: value} in UTF-8, at most max_payload bytes."""
    priority: int = 100
    """Lower is more urgent; 32 bits, signed."""
    delay: timedelta | None = None
    """From the moment the store writes the job; excludes run_at."""
    run_at: datetime | None = None
    """Aware. In the past means ready at once."""
    expires: timedelta | None = None
    """Counted from the due time: not started by then, it is skipped as expired."""
    timeout: timedelta | None = None
    """Time to run of one attempt; None leaves it to the task as the worker knows it."""
    attempts: int | None = None
    """Failed attempts before dead; None leaves it to the task as the worker knows it."""
    tenant: str = ""
    tags: tuple[str, ...] = ()
    correlation_id: str | None = None
    """None: the job's own id, as text."""
    holder: Token | None = None
    """Set for an enqueue from a handler: stored only while this attempt is still live, else LeaseLost."""
    idempotency: bytes | None = None
    """16 bytes, of core.keys.idempotency_digest: a repeat with the same arguments answers `duplicate` with the first
    job's id, one with other arguments KeyReused; for `core.defaults.KEEP_KEYS`, whatever becomes of the job."""
    unique: UniqueKey | None = None
    version: int | None = None
    """With `unique`: not run once a job of the same key with a higher version has completed, but skipped("stale"). Of
    two versions that wait the newer one stays: it takes the other's place, or answers `duplicate` to it."""
    then: tuple["NewJob", ...] = ()
    """Enqueued in the transaction that completes this job, RESULT_MARK in their arguments replaced by its result
    (null when it has none). Without a correlation id they inherit this job's. Not for follow-ups: `holder`."""
    on_dead: tuple["NewJob", ...] = ()
    """Enqueued in the transaction in which this job goes dead, whoever decides that; each time it does."""
    trigger: str | None = None
    """What caused it, as "schedule:NAME@2030-05-01T09:00:00Z", or what core.trace writes; None for a plain enqueue."""
    blobs: tuple[str, ...] = ()
    """References of the blobs in `args`: kept as long as this job."""
    ordering_key: str | None = None
    """Jobs of one key in one (queue, tenant) run one at a time, in the order of their ids; `delay` delays the key."""
    serialise: bool = False
    """With `ordering_key`: enqueues of one key by concurrent transactions wait for each other."""
    fair: bool = False
    """The queue goes round its tenants: the job waits in its tenant's lane."""
    batch: int | None = None
    """The batch that it is a member of, which must not have ended. Its `then` and `on_dead` become members, too."""


class Stored(Struct, frozen=True):
    """What a store answers for one NewJob, in the order asked."""

    id: JobId
    """The new job's, or with the outcome `duplicate` the one's that holds the key."""
    outcome: Outcome
    run_at: datetime | None = None
    """None when the job is ready at once."""
    pending: bool = False
    """Stored in a caller's transaction that has yet to commit."""


class Counters(Struct, frozen=True):
    """How earlier attempts ended since the enqueue or the last redrive. Start at 0; a redrive sets them back to 0."""

    failed: int = 0
    """Failures; dead when they reach `attempts`."""
    lost: int = 0
    """Attempts whose worker vanished; dead as poison at the limit. A job with one runs alone in its process."""
    interrupted: int = 0
    """Hand-backs by a shutdown in a row; any other ending sets it back to 0."""
    snoozed: int = 0


class ClaimedJob(Struct, frozen=True):
    """A job that this incarnation now holds. `run` is already the number of this attempt's token."""

    id: JobId
    run: int
    queue: str
    task: str
    args: bytes | None
    """None when larger than INLINE_PAYLOAD: read with `JobStore.arguments` when the slot starts."""
    priority: int
    tenant: str
    tags: tuple[str, ...]
    correlation_id: str
    counters: Counters
    attempts: int | None
    timeout: timedelta | None
    enqueued_at: datetime
    claimed_at: datetime
    trigger: str | None = None
    has_steps: bool = False
    """Earlier runs have left steps or cursors: read with `StepStore.steps` before the handler starts."""
    ordering_key: str | None = None
    follows: bool = False
    """Claimed together with the job before it of the same ordering key: it starts when that one has completed here, and
    goes back, at no cost, when that one has not."""
    in_batch: bool = False
    """Once its end is stored, `BatchStore.finish` has to be called: set only by stores that need it."""

    @property
    def attempt(self) -> int:
        """What the handler sees: 1 the first time; failures and losses raise it, snoozes and interrupts do not."""
        return 1 + self.counters.failed + self.counters.lost


class Ended(Struct, frozen=True):
    """The end of one attempt as the worker decided it (core/decide.py); a store only applies it, fenced by the token.

    A store turns `to` ready or scheduled into cancelled when a cancel was wished for the job.
    """

    id: JobId
    run: int
    event: Event
    """complete, fail, snooze, skip, bury, interrupt, lose or cancel."""
    to: State
    """completed, skipped, dead, cancelled, scheduled (after `delay`) or ready (at the tail)."""
    counters: Counters
    """The new values, stored with the waiting or final row."""
    delay: timedelta | None = None
    result: bytes | None = None
    """JSON; None where there is none."""
    reason: str | None = None
    """Why skipped, dead, snoozed, interrupted or lost."""
    note: str | None = None
    """Something a reader must know of a stored outcome, as "result not storable: ..."."""
    error: ErrorRecord | None = None
    elapsed: timedelta | None = None
    """From the handler's first line to its end; None when it never started."""
    cursors: tuple[tuple[str, int], ...] = ()
    """(name, items done) of `job.each`, kept where the job may run again."""
    transient: bool = False
    """A failure that another attempt might not meet: what a breaker counts."""
    guard: str | None = None
    """The guard that said no; `reason` names it, too."""


class QueueClaim(NamedTuple):
    """At most `most` jobs of this queue."""

    queue: str
    most: int
    fair: bool = False
    """Tenants in turn, priority inside a tenant."""
    reserved: int = 0
    """So many of them only for tenants of which nothing runs."""


class ClaimRequest(Struct, frozen=True):
    """What a worker asks for: queues in the order to try, capped each and in all."""

    queues: tuple[QueueClaim, ...]
    most: int
    suspects: bool = False
    """True: only jobs with a loss behind them (each runs alone); False: only jobs without."""
    unparked: tuple[str, ...] = ()
    """Tasks this worker knows that others have parked as unknown: taken from `blocked` first."""
    chain: int = 1
    """At most so many jobs of one ordering key, to be run one after another."""


class Exchange(Struct, frozen=True):
    """The answer to one fused acknowledge-and-claim."""

    acked: frozenset[tuple[JobId, int]]
    """The (job, run) pairs whose end was applied, now or by an earlier try with a lost reply. Missing = lease lost."""
    claimed: tuple[ClaimedJob, ...] = ()
    wishes: tuple[JobId, ...] = ()
    """Jobs held by this incarnation for which a cancel was wished."""
    again: timedelta | None = None
    """Ask again after this long: a rate opens then, or something was left to do (0). None: nothing is known."""
    batches: bool = False
    """Somebody else has ended jobs of batches: `BatchStore.finish` has to be called. Only of stores that need it."""


class WorkerInfo(Struct, frozen=True):
    """What a process tells the store when it registers; one registration = one incarnation, never reused."""

    host: str
    pid: int
    supervisor: str
    """Groups the children of one `duly worker`."""
    queues: tuple[str, ...]
    tasks: dict[str, timedelta]
    """Every task the process knows, with its time to run; claims of any other task are parked."""
    lease: timedelta
    heartbeat: timedelta
    slots: int
    version: str


class Progress(Struct, frozen=True):
    """A handler's latest word on how far it is."""

    id: JobId
    run: int
    done: int
    of: int | None = None
    note: str | None = None


class Cursor(Struct, frozen=True):
    """How many items of a `job.each` are done, while the attempt runs."""

    id: JobId
    run: int
    name: str
    position: int


class FinishedStep(Struct, frozen=True):
    """What a `job.step` came to, as JSON, while the attempt runs."""

    id: JobId
    run: int
    name: str
    value: bytes


class Steps(Struct, frozen=True):
    """What earlier runs of a job have left: finished steps with their values, and cursors."""

    finished: dict[str, bytes] = {}
    """Step name -> JSON."""
    cursors: dict[str, int] = {}


class KeptAnswer(Struct, frozen=True):
    """What an idempotency record still knows of a job that is no longer kept."""

    id: JobId
    state: State
    ended_at: datetime
    result: bytes | None = None
    """JSON, when it was at most KEPT_RESULT bytes."""
    reason: str | None = None


class AttemptRecord(Struct, frozen=True):
    """One ended attempt as stored; a job completed in its first run has none."""

    run: int
    event: Event
    incarnation: Incarnation
    started_at: datetime | None
    """None when the attempt was claimed and never started."""
    ended_at: datetime
    reason: str | None
    error: ErrorRecord | None


class JobRecord(Struct, frozen=True):
    """One job as read: whatever state it is in, from one statement."""

    id: JobId
    state: State
    queue: str
    task: str
    tenant: str
    priority: int
    tags: tuple[str, ...]
    correlation_id: str
    args: bytes
    counters: Counters
    run: int
    """Claims so far, redrives included."""
    attempts: int | None
    timeout: timedelta | None
    enqueued_at: datetime
    expires_at: datetime | None = None
    run_at: datetime | None = None
    """Due time while scheduled."""
    started_at: datetime | None = None
    """Claim time while running; the last attempt's start when ended."""
    deadline: datetime | None = None
    """While running: when any sweep may take the job back."""
    finished_at: datetime | None = None
    incarnation: Incarnation | None = None
    reason: str | None = None
    note: str | None = None
    result: bytes | None = None
    error: ErrorRecord | None = None
    progress: Progress | None = None
    cancel_wished: bool = False
    trigger: str | None = None
    ordering_key: str | None = None
    waits_for: str | None = None
    """While blocked: "task" (unknown or paused), the name of a limit, or "key" for an ordering key."""
