"""The store as a model: the same promises over dicts, deliberately simple, to compare real stores with.

One lock around everything, no index, no batch; whatever it answers can be checked by reading it. It passes the suite.
"""

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from duly.core.budget import StoreUse
from duly.core.control import LimitPolicy, Override, Permit, TaskLimit, TenantPlan
from duly.core.defaults import KEEP_VERSIONS
from duly.core.fingerprint import ErrorRecord
from duly.core.job import (
    AttemptRecord,
    Counters,
    Incarnation,
    JobId,
    JobRecord,
    KeptAnswer,
    NewJob,
    Progress,
    WorkerInfo,
)
from duly.core.lifecycle import Event, State
from duly.core.operating import (
    AlertChange,
    AlertDelivery,
    AlertRecord,
    AuditEntry,
    AuditSeal,
    DeadMark,
    KeptReply,
    SecretKey,
    Silence,
    Tally,
    TokenRecord,
)
from duly.core.registration import QueuePolicy, ScheduleRecord
from duly.stores.protocol import Clock, OperationRecord, Pause
from duly.stores.tallies import Grain

from .model_batches import Batch

EXPIRED, STALE = "expired", "stale"
UNKNOWN, PAUSED = "unknown", "paused"
BEHIND_KEY = "key"


class OrderingKey(NamedTuple):
    """One ordering key in its scope."""

    queue: str
    tenant: str
    key: str


@dataclass
class Entry:
    """One job."""

    id: JobId
    new: NewJob
    enqueued_at: datetime
    priority: int
    state: State = State.ready
    pos: int = 0
    counters: Counters = field(default_factory=Counters)
    run: int = 0
    expires_at: datetime | None = None
    run_at: datetime | None = None
    waiting_since: datetime | None = None
    parked: str = ""
    incarnation: Incarnation | None = None
    started_at: datetime | None = None
    deadline: datetime | None = None
    finished_at: datetime | None = None
    reason: str | None = None
    note: str | None = None
    result: bytes | None = None
    error: ErrorRecord | None = None
    progress: Progress | None = None
    wish: str | None = None
    announced_at: datetime | None = None
    successor: JobId | None = None
    attempts: list[AttemptRecord] = field(default_factory=list)
    steps: dict[str, bytes] = field(default_factory=dict)
    cursors: dict[str, int] = field(default_factory=dict)
    lane: str = ""
    """The tenant it waits for its turn with, in a fair queue."""
    holds: frozenset[str] = frozenset()
    """Limits that its attempt has taken."""
    reserved: frozenset[str] = frozenset()
    """Limits that it keeps from others while it waits for the rest of its own."""
    limited_at: datetime | None = None
    """Since when it waits for a limit."""
    let_go: bool = False
    """Ready again after it was behind something."""
    keeps_key: bool = False
    """Dead, and its ordering key waits for it."""

    @property
    def key(self) -> OrderingKey | None:
        key = self.new.ordering_key
        return None if key is None else OrderingKey(self.new.queue, self.new.tenant, key)

    @property
    def bounded(self) -> bool:
        """Blocked behind a key, a limit or a block."""
        return self.state is State.blocked and self.parked not in {UNKNOWN, PAUSED}

    def record(self) -> JobRecord:
        new = self.new
        return JobRecord(
            id=self.id,
            state=self.state,
            queue=new.queue,
            task=new.task,
            tenant=new.tenant,
            priority=self.priority,
            tags=new.tags,
            correlation_id=new.correlation_id or str(self.id),
            args=new.args,
            counters=self.counters,
            run=self.run,
            attempts=new.attempts,
            timeout=new.timeout,
            enqueued_at=self.enqueued_at,
            expires_at=self.expires_at,
            run_at=self.run_at,
            started_at=self.started_at,
            deadline=self.deadline,
            finished_at=self.finished_at,
            incarnation=self.incarnation,
            reason=self.reason,
            note=self.note,
            result=self.result,
            error=self.error,
            progress=self.progress,
            cancel_wished=self.state is State.running and self.wish is not None,
            trigger=new.trigger,
            ordering_key=new.ordering_key,
            waits_for=self._waits_for(),
        )

    def _waits_for(self) -> str | None:
        if self.state is not State.blocked:
            return None
        return self.parked if self.bounded else "task"


@dataclass
class LimitState:
    """What a limit remembers beside who holds it."""

    due: datetime | None = None
    """The time that its rate has used up."""
    held_until: datetime | None = None
    held_by: str | None = None
    held_reason: str | None = None
    opened: bool = False
    open_until: datetime | None = None
    """Of its breaker; None while `opened`: until a person says otherwise."""
    forced: bool = False
    calls: int = 0
    failures: int = 0
    window_at: datetime | None = None


@dataclass
class Worker:
    """One registered incarnation."""

    info: WorkerInfo
    beat_at: datetime
    started_at: datetime
    progress_at: datetime
    beat: int = 0
    draining: bool = False


@dataclass
class Kept:
    """What is remembered under an idempotency key."""

    id: JobId
    args_hash: bytes
    until: datetime
    answer: KeptAnswer | None = None
    """How the job ended, once the job itself is gone."""


@dataclass
class Tables:
    """All that is stored; shared by every handle on it."""

    lock: AbstractContextManager[object] = field(default_factory=threading.RLock)
    last: int = 0
    entries: dict[JobId, Entry] = field(default_factory=dict)
    workers: dict[Incarnation, Worker] = field(default_factory=dict)
    paused: dict[str, Pause] = field(default_factory=dict)
    swept_at: datetime | None = None
    operations: dict[int, OperationRecord] = field(default_factory=dict)
    queues: dict[str, str] = field(default_factory=dict)
    tasks: dict[str, str] = field(default_factory=dict)
    acts: list[AuditEntry] = field(default_factory=list)
    """Who acted, and why."""
    audited: dict[JobId, int | None] = field(default_factory=dict)
    """Jobs whose end is yet to be written among them, with the run of the death that was."""
    tallied: datetime | None = None
    """Up to when ends are counted."""
    tallies: dict[tuple[Grain, datetime, str, str], Tally] = field(default_factory=dict)
    """By grain, time, queue and task."""
    looked_at: datetime | None = None
    """When somebody looked at the rules of alerts last."""
    alerts: dict[tuple[str, str], AlertRecord] = field(default_factory=dict)
    """By rule and target."""
    changes: dict[int, AlertChange] = field(default_factory=dict)
    deliveries: dict[tuple[int, str], AlertDelivery] = field(default_factory=dict)
    """By change and sink."""
    silences: dict[int, Silence] = field(default_factory=dict)
    seals: list[AuditSeal] = field(default_factory=list)
    tokens: dict[bytes, TokenRecord] = field(default_factory=dict)
    """By digest."""
    secrets: dict[str, list[SecretKey]] = field(default_factory=dict)
    """By kind, the newest last."""
    marks: dict[tuple[str, str, str], DeadMark] = field(default_factory=dict)
    """By fingerprint, queue and task."""
    replies: dict[bytes, KeptReply] = field(default_factory=dict)
    """By key."""
    kept: dict[bytes, Kept] = field(default_factory=dict)
    """By idempotency key."""
    taken: dict[bytes, JobId] = field(default_factory=dict)
    """Who holds a unique key."""
    newest: dict[bytes, tuple[int, datetime]] = field(default_factory=dict)
    """By unique key: the highest version that has completed, and until when that is remembered."""
    once: dict[bytes, datetime] = field(default_factory=dict)
    """Until when each of these keys is spent."""
    following: list[tuple[Entry, NewJob]] = field(default_factory=list)
    """Follow-ups of the act that is under way, with what each follows; empty between two acts."""
    schedules: dict[str, ScheduleRecord] = field(default_factory=dict)
    releases: dict[str, list[str]] = field(default_factory=dict)
    """By origin, in the order in which they were first seen."""
    policies: dict[str, QueuePolicy] = field(default_factory=dict)
    limits: dict[str, LimitPolicy] = field(default_factory=dict)
    limits_of: dict[str, frozenset[str]] = field(default_factory=dict)
    """By origin, the limits that it declares."""
    task_limits: dict[str, tuple[TaskLimit, ...]] = field(default_factory=dict)
    """By origin."""
    limit_states: dict[str, LimitState] = field(default_factory=dict)
    permits: dict[int, Permit] = field(default_factory=dict)
    overrides: dict[int, Override] = field(default_factory=dict)
    plans: dict[str, TenantPlan] = field(default_factory=dict)
    heads: dict[OrderingKey, JobId] = field(default_factory=dict)
    """Who owns an ordering key."""
    heads_since: dict[OrderingKey, datetime] = field(default_factory=dict)
    paused_keys: set[OrderingKey] = field(default_factory=set)
    batches: dict[int, Batch] = field(default_factory=dict)
    turned_away: dict[tuple[str, str], tuple[int, datetime]] = field(default_factory=dict)
    """Jobs by (queue, "refused" or "shed"), and when the last was."""
    uses: list[tuple[datetime, StoreUse]] = field(default_factory=list)
    late: set[str] = field(default_factory=set)
    """Queues of which somebody was told so."""
    """Samples of what the store took."""
    measured: tuple[datetime, int] | None = None
    """When the bytes that it takes were counted last."""


class Model:
    """The tables of the model and the moves between its states. Subclasses add whoever asks for a move."""

    def __init__(self, clock: Clock, tables: Tables | None = None) -> None:
        self.clock = clock
        self.tables = tables or Tables()

    def number(self) -> int:
        self.tables.last += 1
        return self.tables.last

    def note(self, verb: str, target: str, by: str, reason: str, detail: str = "{}") -> int:
        """Write an entry of the audit; its id."""
        id = self.number()
        self.tables.acts.append(AuditEntry(id, self.clock(), by, verb, target, reason, detail))
        return id

    def note_jobs(self, verb: str, ids: Sequence[JobId], by: str, reason: str) -> None:
        """Write an entry about jobs, if there are any."""
        named = list(dict.fromkeys(ids))
        if named:
            target = f"job:{named[0]}" if len(named) == 1 else ""
            self.note(verb, target, by, reason, json.dumps({"jobs": len(named), "ids": named}))

    @contextmanager
    def act(self) -> Iterator[None]:
        """One transaction: what follows from its moves is enqueued at its end."""
        with self.tables.lock:
            yield
            self._follow_all()
            while following := self.settle_batches():
                for new in following:
                    self.follow_batch(new)
                self._follow_all()
            self.let_go()

    def duties(self) -> None:
        """What whoever sweeps does for those who operate the store."""

    def _follow_all(self) -> None:
        while self.tables.following:
            self.follow(*self.tables.following.pop(0))

    def settle_batches(self) -> list[NewJob]:
        """What follows batches whose counts the act has changed."""
        return []

    def follow_batch(self, new: NewJob) -> None:
        """Enqueue what follows a batch."""
        raise AssertionError(f"a batch ended in a model that enqueues nothing, not even {new}")

    def count(self, entry: Entry, state: State, by: int = 1) -> None:
        """A member of a batch has ended, or with -1 is about to run again."""
        batch = None if entry.new.batch is None else self.tables.batches.get(entry.new.batch)
        if batch is not None:
            batch.count(state.value, by)

    def follow(self, parent: Entry, new: NewJob) -> None:
        """Enqueue what follows the end of `parent`."""
        raise AssertionError(f"job {parent.id} ended in a model that enqueues nothing, not even {new}")

    def pass_on(self, entry: Entry) -> None:
        """A job has ended for good: its ordering key goes on, or waits."""
        assert entry.key is None, f"job {entry.id} ended in a model that knows no ordering keys"

    def let_go(self) -> int:
        """Whatever was behind something that is free now goes on; how many jobs."""
        return 0

    def is_paused(self, target: str) -> bool:
        pause = self.tables.paused.get(target)
        return pause is not None and (pause.until is None or pause.until > self.clock())

    def holder(self, incarnation: Incarnation, id: JobId, run: int) -> Entry | None:
        """The job, if this token is live."""
        entry = self.tables.entries.get(id)
        if entry is None or entry.state is not State.running:
            return None
        return entry if (entry.incarnation, entry.run) == (incarnation, run) else None

    def held_by(self, incarnation: Incarnation) -> list[Entry]:
        return [
            entry
            for entry in self.tables.entries.values()
            if entry.state is State.running and entry.incarnation == incarnation
        ]

    def leave(self, entry: Entry) -> None:
        """Take an entry out of the state it is in."""
        if entry.state is State.running:
            permits = self.tables.permits
            self.tables.permits = {at: one for at, one in permits.items() if one.id != entry.id}
        entry.run_at = entry.deadline = entry.started_at = entry.finished_at = None
        entry.waiting_since = entry.incarnation = entry.progress = entry.announced_at = None
        entry.reason = entry.note = entry.result = entry.error = None
        entry.parked, entry.let_go, entry.holds = "", False, frozenset()

    def to_ready(self, entry: Entry) -> None:
        self.leave(entry)
        entry.state, entry.pos, entry.waiting_since = State.ready, self.number(), self.clock()

    def to_scheduled(self, entry: Entry, run_at: datetime) -> None:
        self.leave(entry)
        entry.state, entry.run_at = State.scheduled, run_at

    def to_final(
        self,
        entry: Entry,
        state: State,
        reason: str | None,
        *,
        incarnation: Incarnation | None = None,
        started_at: datetime | None = None,
        result: bytes | None = None,
    ) -> None:
        self.leave(entry)
        entry.state, entry.reason, entry.wish, entry.result = state, reason, None, result
        entry.finished_at, entry.incarnation, entry.started_at = self.clock(), incarnation, started_at
        # A person's later choice of priority was about this waiting; a redrive begins with the job's own.
        entry.priority = entry.new.priority
        entry.reserved, entry.limited_at = frozenset(), None
        self.free(entry)
        self.pass_on(entry)
        self.count(entry, state)
        follow_ups: Sequence[NewJob] = ()
        if state is State.completed:
            self._complete_version(entry)
            follow_ups = entry.new.then
        elif state is State.dead:
            follow_ups = entry.new.on_dead
        self.tables.following += [(entry, new) for new in follow_ups]

    def free(self, entry: Entry) -> None:
        """Give the unique key back, if this job is the one that holds it."""
        unique = entry.new.unique
        if unique is not None and self.tables.taken.get(unique.digest) == entry.id:
            del self.tables.taken[unique.digest]

    def _complete_version(self, entry: Entry) -> None:
        unique, version = entry.new.unique, entry.new.version
        if unique is not None and version is not None:
            newest = max(version, self.newest_version(unique.digest) or version)
            self.tables.newest[unique.digest] = (newest, self.clock() + KEEP_VERSIONS)

    def newest_version(self, digest: bytes) -> int | None:
        """The highest version of a unique key that has completed."""
        version, until = self.tables.newest.get(digest, (None, self.clock()))
        return version if until > self.clock() else None

    def has_expired(self, entry: Entry) -> bool:
        """A waiting job that may not start any more, whether or not someone has noticed."""
        return entry.expires_at is not None and entry.expires_at <= self.clock()

    def expire(self, entry: Entry) -> bool:
        """Skip a waiting job whose time is over."""
        if not self.has_expired(entry):
            return False
        self.to_final(entry, State.skipped, EXPIRED)
        return True

    def record_attempt(
        self,
        entry: Entry,
        event: Event,
        started: datetime | None,
        reason: str | None,
        error: ErrorRecord | None = None,
    ) -> None:
        assert entry.incarnation is not None
        entry.attempts.append(
            AttemptRecord(entry.run, event, entry.incarnation, started, self.clock(), reason, error)
        )

    def grant(self, entry: Entry, started: datetime | None) -> bool:
        """Cancel instead of running again, where that was wished."""
        if entry.wish is None:
            return False
        self.to_final(entry, State.cancelled, entry.wish, incarnation=entry.incarnation, started_at=started)
        return True

    def back(self, entry: Entry) -> None:
        """To the tail, with the wish spent."""
        entry.wish = None
        self.to_ready(entry)
