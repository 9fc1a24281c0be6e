"""The model's reads: every answer about jobs, queues, workers and dead letters."""

from collections.abc import Sequence
from datetime import datetime
from math import ceil

from duly.core.dead_breaker import AUTHOR, Outcomes
from duly.core.filters import Filter
from duly.core.job import AttemptRecord, JobId, JobRecord
from duly.core.lifecycle import FINAL, State
from duly.core.share import DatabaseLoad
from duly.core.why import JobFacts
from duly.stores.protocol import DeadGroup, Page, Pause, QueueCount, WorkerRecord

from .model import Entry
from .model_upkeep import UpkeepModel


class ReadableModel(UpkeepModel):
    """Reads."""

    def lookup(self, ids: Sequence[JobId]) -> list[JobRecord | None]:
        with self.tables.lock:
            return [self.tables.entries[id].record() if id in self.tables.entries else None for id in ids]

    def facts(self, id: JobId) -> JobFacts | None:
        with self.tables.lock:
            entry = self.tables.entries.get(id)
            if entry is None:
                return None
            serving = [
                worker
                for worker in self.tables.workers.values()
                if entry.new.queue in worker.info.queues and not worker.draining
            ]
            head = self.tables.entries.get(self.tables.heads.get(entry.key, JobId(0))) if entry.key else None
            limits = sorted(limit.name for limit in self.limits_of(entry))
            return JobFacts(
                entry.record(),
                ahead=self._ahead(entry),
                serving=len(serving),
                knowing=sum(entry.new.task in worker.info.tasks for worker in serving),
                head=None if head is None else head.id,
                head_state=None if head is None else head.state,
                key_paused=entry.key in self.tables.paused_keys,
                before=sum(other.id < id for other in self._in_key(entry)),
                limits=tuple(limits),
                holders=self._holders(entry, limits),
            )

    def _ahead(self, entry: Entry) -> int:
        if entry.state is not State.ready:
            return 0
        lane = (entry.new.queue, entry.lane, entry.counters.lost > 0)
        return sum(
            other.state is State.ready
            and (other.new.queue, other.lane, other.counters.lost > 0) == lane
            and (other.priority, other.pos) < (entry.priority, entry.pos)
            for other in self.tables.entries.values()
        )

    def _in_key(self, entry: Entry) -> list[Entry]:
        if not entry.key:
            return []
        same = [other for other in self.tables.entries.values() if other.key == entry.key]
        return [other for other in same if other.state not in FINAL or other.keeps_key]

    def _holders(self, entry: Entry, limits: Sequence[str]) -> tuple[tuple[str, JobId], ...]:
        queue = entry.new.queue
        names = sorted([*limits, f"queue:{queue}", f"tenant:{queue}={entry.new.tenant}"])
        ids = sorted(self.tables.entries)
        held = {name: [id for id in ids if name in self.tables.entries[id].holds] for name in names}
        return tuple((name, id) for name in names for id in held[name][:5])

    def outcomes(self, queue: str, since: datetime, least: int, share: float) -> Outcomes:
        with self.tables.lock:
            lifted = [
                one.lifted_at
                for one in self.tables.overrides.values()
                if one.by == AUTHOR and one.target == f"queue:{queue}" and one.lifted_at is not None
            ]
            from_ = max([since, *lifted])
            ends = [entry.record() for entry in self.tables.entries.values() if entry.new.queue == queue]
            recent = [end for end in ends if end.finished_at is not None and end.finished_at > from_]
            dead = sum(end.state is State.dead for end in recent)
            completed = sum(end.state is State.completed for end in recent)
            return Outcomes(min(completed, max(least, ceil(dead / share))), dead)

    def attempts(self, id: JobId) -> list[AttemptRecord]:
        with self.tables.lock:
            return (
                sorted(self.tables.entries[id].attempts, key=lambda at: at.run)
                if id in self.tables.entries
                else []
            )

    def page(
        self, filter: Filter, *, before: int | None = None, after: int | None = None, limit: int = 50
    ) -> Page:
        with self.tables.lock:
            rows = [entry.record() for entry in self.tables.entries.values()]
        ordered = sorted(rows, key=lambda row: row.id, reverse=after is None)
        rows = [row for row in ordered if filter.matches(row)]
        rows = [row for row in rows if (before is None or row.id < before) and row.id > (after or 0)]
        shown = rows[:limit]
        return Page(tuple(shown), shown[-1].id if len(rows) > limit else None)

    def counts(self) -> list[QueueCount]:
        with self.tables.lock:
            now = self.clock()
            queues: dict[str, list[Entry]] = {}
            for entry in self.tables.entries.values():
                if entry.state not in FINAL - {State.dead}:
                    queues.setdefault(entry.new.queue, []).append(entry)
            return [self._count(queue, entries, now) for queue, entries in sorted(queues.items())]

    def _count(self, queue: str, entries: list[Entry], now: datetime) -> QueueCount:
        states = [entry.state for entry in entries]
        ready = [
            entry.waiting_since for entry in entries if entry.state is State.ready and entry.waiting_since
        ]
        due = [entry.run_at for entry in entries if entry.state is State.scheduled and entry.run_at]
        target = f"queue:{queue}"
        paused = self.is_paused(target)
        return QueueCount(
            queue,
            ready=states.count(State.ready),
            scheduled=states.count(State.scheduled),
            blocked=states.count(State.blocked),
            running=states.count(State.running),
            dead=states.count(State.dead),
            oldest_ready=now - min(ready) if ready else None,
            next_due=min(due) if due else None,
            paused=paused,
            paused_until=self.tables.paused[target].until if paused else None,
        )

    def workers(self) -> list[WorkerRecord]:
        with self.tables.lock:
            now = self.clock()
            return [
                WorkerRecord(
                    incarnation,
                    worker.info.host,
                    worker.info.pid,
                    worker.info.supervisor,
                    worker.info.queues,
                    worker.info.slots,
                    len(self.held_by(incarnation)),
                    worker.started_at,
                    now - worker.beat_at,
                    now - worker.progress_at,
                    worker.info.version,
                    worker.draining,
                )
                for incarnation, worker in self.tables.workers.items()
            ]

    def dead_groups(self, filter: Filter) -> list[DeadGroup]:
        with self.tables.lock:
            entries = [entry for entry in self.tables.entries.values() if entry.state is State.dead]
            dead = [entry.record() for entry in entries]
            edited = {entry.id for entry in entries if entry.successor is not None}
        groups: dict[tuple[str, str, str], list[JobRecord]] = {}
        for row in sorted(dead, key=lambda row: (row.finished_at, row.id)):
            if filter.matches(row):
                key = (row.error.fingerprint if row.error else "", row.queue, row.task)
                groups.setdefault(key, []).append(row)
        return [_group(key, rows, edited) for key, rows in groups.items()]

    def pauses(self) -> list[Pause]:
        with self.tables.lock:
            return [pause for pause in self.tables.paused.values() if self.is_paused(pause.target)]

    def now(self) -> datetime:
        return self.clock()

    def load(self) -> DatabaseLoad | None:
        return None

    def describe(self) -> dict[str, str]:
        return {"kind": "model", "where": "this process"}

    def warnings(self) -> list[str]:
        return ["nothing outlives this process: use it to compare, never to keep"]


def _group(key: tuple[str, str, str], rows: list[JobRecord], edited: set[JobId]) -> DeadGroup:
    times = [row.finished_at for row in rows if row.finished_at is not None]
    error = rows[-1].error
    text = f"{error.type}: {error.message}" if error else rows[-1].reason or ""
    gone = sum(row.id in edited for row in rows)
    return DeadGroup(*key, len(rows), times[0], times[-1], text, gone)
