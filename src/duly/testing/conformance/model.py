"""The store as a model: the same promises over dicts, deliberately simple, to compare real stores with.

One lock around everything, no index, no batch; whatever it answers can be checked by reading it. It passes the suite.
"""

import threading
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from duly.core.defaults import INLINE_PAYLOAD
from duly.core.errors import LeaseLost
from duly.core.fingerprint import ErrorRecord
from duly.core.job import (
    AttemptRecord,
    ClaimedJob,
    ClaimRequest,
    Counters,
    Ended,
    Exchange,
    Incarnation,
    JobId,
    JobRecord,
    NewJob,
    Progress,
    Stored,
    WorkerInfo,
)
from duly.core.leases import Beat
from duly.core.lifecycle import Event, Outcome, State
from duly.stores.faults import DataFault
from duly.stores.protocol import Clock, OperationRecord, Pause

EXPIRED = "expired"
UNKNOWN, PAUSED = "unknown", "paused"


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
    attempts: list[AttemptRecord] = field(default_factory=list)

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
        )


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
    acts: list[tuple[str, str]] = field(default_factory=list)
    """Who acted, and why."""


class Model:
    """The tables of the model and the moves between its states. Subclasses add reading, upkeep and operators."""

    def __init__(self, clock: Clock, tables: Tables | None = None) -> None:
        self.clock = clock
        self.tables = tables or Tables()

    def number(self) -> int:
        self.tables.last += 1
        return self.tables.last

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
        entry.run_at = entry.deadline = entry.started_at = entry.finished_at = None
        entry.waiting_since = entry.incarnation = entry.progress = entry.announced_at = None
        entry.reason = entry.note = entry.result = entry.error = None
        entry.parked = ""

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
    ) -> None:
        self.leave(entry)
        entry.state, entry.reason, entry.wish = state, reason, None
        entry.finished_at, entry.incarnation, entry.started_at = self.clock(), incarnation, started_at
        # A person's later choice of priority was about this waiting; a redrive begins with the job's own.
        entry.priority = entry.new.priority

    def expire(self, entry: Entry) -> bool:
        """Skip a waiting job whose time is over."""
        if entry.expires_at is None or entry.expires_at > self.clock():
            return False
        self.to_final(entry, State.skipped, EXPIRED)
        return True

    def enqueue(self, jobs: Sequence[NewJob]) -> list[Stored]:
        with self.tables.lock:
            for job in jobs:
                if job.holder is not None:
                    token = job.holder
                    if self.holder(token.incarnation, token.job, token.run) is None:
                        raise LeaseLost("not the holder", job_id=token.job)
            return [self._enqueue(job) for job in jobs]

    def _enqueue(self, job: NewJob) -> Stored:
        now = self.clock()
        due = now + job.delay if job.delay is not None else job.run_at or now
        due = max(due, now).astimezone(UTC)
        entry = Entry(JobId(self.number()), job, now, job.priority)
        entry.expires_at = None if job.expires is None else due + job.expires
        self.tables.entries[entry.id] = entry
        if due > now:
            self.to_scheduled(entry, due)
            return Stored(entry.id, Outcome.created, due)
        self.to_ready(entry)
        return Stored(entry.id, Outcome.created)

    def exchange(
        self, incarnation: Incarnation, ended: Sequence[Ended], request: ClaimRequest | None
    ) -> Exchange:
        with self.tables.lock:
            for end in ended:
                _storable(end)
            acked = frozenset((end.id, end.run) for end in ended if self.end(incarnation, end))
            claimed = self._claim(incarnation, request) if request is not None else ()
            worker = self.tables.workers.get(incarnation)
            if worker is not None:
                worker.progress_at = self.clock()
            return Exchange(acked, claimed, tuple(self._wished(incarnation)))

    def end(self, incarnation: Incarnation, end: Ended, *, again: bool = True) -> bool:
        """Apply one end; with `again`, an end applied before counts too."""
        entry = self.holder(incarnation, end.id, end.run)
        if entry is None:
            return again and self._ended_before(incarnation, end)
        claimed_at = entry.started_at
        started = None if end.elapsed is None else max(claimed_at or self.clock(), self.clock() - end.elapsed)
        if end.event is not Event.complete or end.run > 1:
            self._attempt(entry, end.event, started, end.reason, end.error)
        if end.event is not Event.interrupt or started is not None:
            # An expiry asks whether the job has started: it has.
            entry.expires_at = None
        entry.counters = end.counters
        if end.to in {State.ready, State.scheduled, State.cancelled} and self._grant(entry, started):
            return True
        if end.to is State.ready:
            self._back(entry)
        elif end.to is State.scheduled:
            entry.wish = None
            self.to_scheduled(entry, self.clock() + (end.delay or timedelta(0)))
        else:
            self.to_final(entry, end.to, end.reason, incarnation=incarnation, started_at=started)
            entry.note = end.note
            entry.result = end.result if end.to is not State.dead else None
            entry.error = end.error if end.to is State.dead else None
        return True

    def _ended_before(self, incarnation: Incarnation, end: Ended) -> bool:
        entry = self.tables.entries.get(end.id)
        if entry is None:
            return False
        if any(
            (at.run, at.event, at.incarnation) == (end.run, end.event, incarnation) for at in entry.attempts
        ):
            return True
        return (
            end.event is Event.complete
            and entry.state is State.completed
            and (entry.run, entry.incarnation) == (end.run, incarnation)
        )

    def _attempt(
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

    def _grant(self, entry: Entry, started: datetime | None) -> bool:
        """Cancel instead of running again, where that was wished."""
        if entry.wish is None:
            return False
        self.to_final(entry, State.cancelled, entry.wish, incarnation=entry.incarnation, started_at=started)
        return True

    def _back(self, entry: Entry) -> None:
        entry.wish = None
        self.to_ready(entry)

    def _wished(self, incarnation: Incarnation) -> Iterable[JobId]:
        return sorted(entry.id for entry in self.held_by(incarnation) if entry.wish is not None)

    def _claim(self, incarnation: Incarnation, request: ClaimRequest) -> tuple[ClaimedJob, ...]:
        worker = self.tables.workers.get(incarnation)
        if worker is None:
            return ()
        taken: list[ClaimedJob] = []
        room = {
            asked.queue: asked.most for asked in request.queues if not self.is_paused(f"queue:{asked.queue}")
        }
        for task in request.unparked:
            if task in worker.info.tasks and not self.is_paused(f"task:{task}"):
                taken += self._take(incarnation, worker, self._parked(task, room), room, request, len(taken))
        for queue in room:
            taken += self._take(incarnation, worker, self._line(queue), room, request, len(taken))
        return tuple(taken)

    def _parked(self, task: str, room: dict[str, int]) -> list[Entry]:
        found = [
            entry
            for entry in self.tables.entries.values()
            if entry.state is State.blocked
            and entry.parked == UNKNOWN
            and entry.new.task == task
            and entry.new.queue in room
        ]
        return sorted(found, key=lambda entry: entry.pos)

    def _line(self, queue: str) -> list[Entry]:
        found = [
            entry
            for entry in self.tables.entries.values()
            if entry.state is State.ready and entry.new.queue == queue
        ]
        return sorted(found, key=lambda entry: (entry.priority, entry.pos))

    def _take(
        self,
        incarnation: Incarnation,
        worker: Worker,
        line: list[Entry],
        room: dict[str, int],
        request: ClaimRequest,
        taken: int,
    ) -> list[ClaimedJob]:
        claimed: list[ClaimedJob] = []
        for entry in line:
            queue, task = entry.new.queue, entry.new.task
            if room[queue] <= 0 or taken + len(claimed) >= request.most:
                continue
            if bool(entry.counters.lost) != request.suspects or self.expire(entry):
                continue
            if self.is_paused(f"task:{task}"):
                self._park(entry, PAUSED)
            elif task not in worker.info.tasks:
                self._park(entry, UNKNOWN)
            else:
                room[queue] -= 1
                claimed.append(self._run(entry, incarnation, worker.info.tasks[task]))
        return claimed

    def _park(self, entry: Entry, cause: str) -> None:
        pos = entry.pos
        self.leave(entry)
        entry.state, entry.parked, entry.pos, entry.waiting_since = State.blocked, cause, pos, self.clock()

    def _run(self, entry: Entry, incarnation: Incarnation, timeout: timedelta) -> ClaimedJob:
        now = self.clock()
        self.leave(entry)
        entry.state, entry.incarnation, entry.started_at = State.running, incarnation, now
        entry.run += 1
        entry.deadline = now + (entry.new.timeout or timeout)
        new = entry.new
        return ClaimedJob(
            id=entry.id,
            run=entry.run,
            queue=new.queue,
            task=new.task,
            args=new.args if len(new.args) <= INLINE_PAYLOAD else None,
            priority=entry.priority,
            tenant=new.tenant,
            tags=new.tags,
            correlation_id=new.correlation_id or str(entry.id),
            counters=entry.counters,
            attempts=new.attempts,
            timeout=new.timeout,
            enqueued_at=entry.enqueued_at,
            claimed_at=now,
        )

    def arguments(self, ids: Sequence[JobId]) -> dict[JobId, bytes]:
        with self.tables.lock:
            return {id: self.tables.entries[id].new.args for id in ids if id in self.tables.entries}

    def extend(self, incarnation: Incarnation, id: JobId, run: int, by: timedelta) -> bool:
        with self.tables.lock:
            entry = self.holder(incarnation, id, run)
            if entry is None or entry.deadline is None:
                return False
            entry.deadline += by
            return True

    def report(
        self, incarnation: Incarnation, progress: Sequence[Progress]
    ) -> tuple[list[tuple[JobId, int]], list[JobId]]:
        with self.tables.lock:
            for word in progress:
                entry = self.holder(incarnation, word.id, word.run)
                if entry is not None:
                    entry.progress = word
            held = [(entry.id, entry.run) for entry in self.held_by(incarnation)]
            return held, list(self._wished(incarnation))

    def register(self, info: WorkerInfo) -> Incarnation:
        with self.tables.lock:
            now = self.clock()
            incarnation = Incarnation(self.number())
            self.tables.workers[incarnation] = Worker(info, now, now, now)
            return incarnation

    def beat(self, incarnations: Sequence[Incarnation]) -> frozenset[Incarnation]:
        with self.tables.lock:
            alive = frozenset(incarnations) & self.tables.workers.keys()
            for incarnation in alive:
                self.tables.workers[incarnation].beat += 1
                self.tables.workers[incarnation].beat_at = self.clock()
            return alive

    def beats(self) -> list[Beat]:
        with self.tables.lock:
            return [
                Beat(
                    incarnation,
                    worker.beat,
                    worker.info.lease.total_seconds(),
                    (self.clock() - worker.beat_at).total_seconds(),
                )
                for incarnation, worker in self.tables.workers.items()
            ]

    def reap(self, overdue: Sequence[Beat], poison: int) -> int:
        with self.tables.lock:
            moved = 0
            for seen in overdue:
                worker = self.tables.workers.get(seen.incarnation)
                if worker is None or worker.beat != seen.beat:
                    continue
                del self.tables.workers[seen.incarnation]
                for entry in self.held_by(seen.incarnation):
                    self.lose(entry, "its worker's lease lapsed", poison)
                    moved += 1
            return moved

    def disown(
        self, incarnation: Incarnation, started: Sequence[tuple[JobId, int]], reason: str, poison: int
    ) -> int:
        with self.tables.lock:
            if self.tables.workers.pop(incarnation, None) is None:
                return 0
            held = self.held_by(incarnation)
            for entry in held:
                if (entry.id, entry.run) in started:
                    self.lose(entry, reason, poison, witnessed=True)
                else:
                    self._interrupt(entry, reason)
            return len(held)

    def retire(self, incarnation: Incarnation) -> int:
        return self.disown(incarnation, (), "its worker ended", 0)

    def lose(self, entry: Entry, reason: str, poison: int, *, witnessed: bool = False) -> None:
        """running -> ready, or dead when the evidence is against the job itself."""
        before, incarnation, started = entry.counters, entry.incarnation, entry.started_at
        convicted = before.lost + 1 >= poison and (witnessed or before.lost >= 1)
        text = f"poison: its worker was lost {before.lost + 1} times" if convicted else reason
        self._attempt(entry, Event.lose, started, text)
        entry.counters = Counters(before.failed, before.lost + 1, 0, before.snoozed)
        entry.expires_at = None
        if convicted:
            self.to_final(entry, State.dead, text, incarnation=incarnation, started_at=started)
        elif not self._grant(entry, started):
            self._back(entry)

    def _interrupt(self, entry: Entry, reason: str) -> None:
        before = entry.counters
        self._attempt(entry, Event.interrupt, None, reason)
        entry.counters = Counters(before.failed, before.lost, before.interrupted + 1, before.snoozed)
        if not self._grant(entry, None):
            self._back(entry)


def _storable(end: Ended) -> None:
    try:
        f"{end.reason}{end.note}".encode()
    except UnicodeEncodeError as error:
        raise DataFault(f"the end of job {end.id} holds text that is no text: {error}") from error
