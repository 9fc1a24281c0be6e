"""The rest of the model: reading, stored operations, and the face of a store, so that the suite can run on it."""

import copy
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime

from msgspec.structs import replace

from duly.core.errors import ConnectionMismatch
from duly.core.filters import Filter
from duly.core.job import (
    AttemptRecord,
    Ended,
    Incarnation,
    JobId,
    JobRecord,
    NewJob,
    Stored,
)
from duly.core.lifecycle import FINAL, State
from duly.stores.protocol import (
    Capabilities,
    Clock,
    DeadGroup,
    InspectionStore,
    JobStore,
    LeaseStore,
    OperationRecord,
    OperatorStore,
    Page,
    Pause,
    QueueCount,
    SchemaStore,
    Store,
    UpkeepStore,
    WorkerRecord,
)

from .model import Entry, Tables
from .model_upkeep import UpkeepModel


class ReadableModel(UpkeepModel):
    """Reads and stored operations."""

    def lookup(self, ids: Sequence[JobId]) -> list[JobRecord | None]:
        with self.tables.lock:
            return [self.tables.entries[id].record() if id in self.tables.entries else None for id in ids]

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
            dead = [entry.record() for entry in self.tables.entries.values() if entry.state is State.dead]
        groups: dict[tuple[str, str, str], list[JobRecord]] = {}
        for row in sorted(dead, key=lambda row: (row.finished_at, row.id)):
            if filter.matches(row):
                key = (row.error.fingerprint if row.error else "", row.queue, row.task)
                groups.setdefault(key, []).append(row)
        return [_group(key, rows) for key, rows in groups.items()]

    def pauses(self) -> list[Pause]:
        with self.tables.lock:
            return [pause for pause in self.tables.paused.values() if self.is_paused(pause.target)]

    def now(self) -> datetime:
        return self.clock()

    def describe(self) -> dict[str, str]:
        return {"kind": "model", "where": "this process"}

    def warnings(self) -> list[str]:
        return ["nothing outlives this process: use it to compare, never to keep"]


def _group(key: tuple[str, str, str], rows: list[JobRecord]) -> DeadGroup:
    times = [row.finished_at for row in rows if row.finished_at is not None]
    error = rows[-1].error
    text = f"{error.type}: {error.message}" if error else rows[-1].reason or ""
    return DeadGroup(*key, len(rows), times[0], times[-1], text)


class ModelStore(ReadableModel):
    """The model as a Store. Every handle that shares `tables` sees the same jobs."""

    url = "model://"
    capabilities = Capabilities(kind="model", shared_by_machines=False, rings=False)

    def __init__(self, clock: Clock, tables: Tables | None = None) -> None:
        super().__init__(clock, tables)
        self.jobs: JobStore = self
        self.leases: LeaseStore = self
        self.upkeep: UpkeepStore = self
        self.inspection: InspectionStore = self
        self.operator: OperatorStore = self
        self.schema: SchemaStore = self

    def start_operation(
        self,
        verb: str,
        filter: Filter,
        rate: float | None,
        priority: int | None,
        total: int,
        by: str,
        reason: str,
    ) -> OperationRecord:
        with self.tables.lock:
            upto = max(self.tables.entries, default=0)
            id = self.number()
            self.tables.operations[id] = OperationRecord(
                id,
                verb,
                filter,
                "running",
                rate,
                priority,
                0,
                0,
                total,
                by,
                reason,
                self.clock(),
                upto=upto,
            )
            return self.tables.operations[id]

    def set_operation(self, id: int, state: str) -> OperationRecord | None:
        with self.tables.lock:
            found = self.tables.operations.get(id)
            if found is None or found.ended_at is not None:
                return None
            ended = self.clock() if state == "cancelled" else None
            self.tables.operations[id] = replace(found, state=state, ended_at=ended)
            return self.tables.operations[id]

    def advance_operation(self, id: int, cursor: int, done: int, skipped: int, ended: bool) -> bool:
        with self.tables.lock:
            found = self.tables.operations.get(id)
            if found is None or found.state != "running" or cursor <= found.cursor:
                return False
            self.tables.operations[id] = replace(
                found,
                cursor=cursor,
                done=found.done + done,
                skipped=found.skipped + skipped,
                state="done" if ended else "running",
                ended_at=self.clock() if ended else None,
            )
            return True

    def operations(self) -> list[OperationRecord]:
        with self.tables.lock:
            return list(self.tables.operations.values())

    def version(self) -> int:
        return 1

    def wanted(self) -> int:
        return 1

    def migrate(self) -> list[str]:
        return []

    def sql(self) -> str:
        return "-- a model creates nothing"

    def declare(self, queues: Mapping[str, str], tasks: Mapping[str, str]) -> None:
        with self.tables.lock:
            self.tables.queues.update(queues)
            self.tables.tasks.update(tasks)

    def declared(self) -> tuple[dict[str, str], dict[str, str]]:
        with self.tables.lock:
            return dict(self.tables.queues), dict(self.tables.tasks)

    def listen(self, on_work: Callable[[], None]) -> "Silence":
        return Silence(on_work)

    @contextmanager
    def transaction(self) -> Iterator[object]:
        """Holds the one lock for the whole block; an error brings everything back."""
        with self.tables.lock:
            fields = {name: value for name, value in vars(self.tables).items() if name != "lock"}
            before = copy.deepcopy(fields)
            try:
                yield self.tables
            except BaseException:
                vars(self.tables).update(before)
                raise

    @asynccontextmanager
    async def atransaction(self) -> AsyncIterator[object]:
        with self.transaction() as connection:
            yield connection

    def enqueue_on(self, connection: object, jobs: Sequence[NewJob]) -> list[Stored]:
        self._check(connection)
        return self.enqueue(jobs)

    async def aenqueue_on(self, connection: object, jobs: Sequence[NewJob]) -> list[Stored]:
        return self.enqueue_on(connection, jobs)

    def complete_on(self, connection: object, incarnation: Incarnation, ended: Ended) -> bool:
        self._check(connection)
        return self.end(incarnation, ended, again=False)

    async def acomplete_on(self, connection: object, incarnation: Incarnation, ended: Ended) -> bool:
        return self.complete_on(connection, incarnation, ended)

    def close(self) -> None:
        """Nothing is held."""

    def _check(self, connection: object) -> None:
        if connection is not self.tables:
            raise ConnectionMismatch("this is no transaction of the model")


class Silence:
    """A listener that never calls: everyone polls."""

    def __init__(self, on_work: Callable[[], None]) -> None:
        self.on_work = on_work

    def idle(self, yes: bool) -> None:
        """Nothing rings."""

    def close(self) -> None:
        """Nothing was opened."""


class ModelPlace:
    """A Database of the suite in which every handle shares one set of tables."""

    def __init__(self) -> None:
        self.tables = Tables()

    def open(self, clock: Clock) -> Store:
        return ModelStore(clock, self.tables)

    def forget_worker(self, incarnation: Incarnation) -> None:
        del self.tables.workers[incarnation]

    def next_id(self, at_least: int) -> None:
        self.tables.last = max(self.tables.last, at_least)

    def wish_cancel(self, id: JobId, by: str, reason: str) -> None:
        self.tables.acts.append((by, reason))
        self.tables.entries[id].wish = reason
