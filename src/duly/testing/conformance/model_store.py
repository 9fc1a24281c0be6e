"""The model as a store: stored operations, transactions, and the face that the suite runs on."""

import copy
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime, timedelta

from msgspec.structs import replace

from duly.core.batch import BatchAct
from duly.core.errors import ConnectionMismatch
from duly.core.filters import Filter
from duly.core.job import Ended, Incarnation, JobId, JobRecord, NewJob, Stored
from duly.core.lifecycle import State
from duly.core.registration import Registration
from duly.stores.audits import OPERATION_VERBS, operation_detail
from duly.stores.batches import BatchStore
from duly.stores.protocol import (
    AlertStore,
    AnswerStore,
    AuditStore,
    Capabilities,
    Clock,
    ControlStore,
    InspectionStore,
    JobStore,
    KeyStore,
    LeaseStore,
    OperationRecord,
    OperatorStore,
    PressingStore,
    ScheduleStore,
    SchemaStore,
    SealedStore,
    StepStore,
    Store,
    TallyStore,
    TokenStore,
    TriageStore,
    UpkeepStore,
)

from .bench import NO_SUCH_JOB
from .model import Tables
from .model_alerts import ModelAlerts
from .model_attempts import ModelSteps
from .model_audits import ModelAudits
from .model_batches import ModelBatches
from .model_control import ModelControl
from .model_operating import ModelAnswers, ModelTokens
from .model_reading import ReadableModel
from .model_schedules import ModelSchedules
from .model_sealed import ModelSealed
from .model_tallies import ModelTallies
from .model_triage import ModelTriage


class ModelStore(ReadableModel):
    """The model as a Store. Every handle that shares `tables` sees the same jobs."""

    url = "model://"
    capabilities = Capabilities(kind="model", shared_by_machines=False, rings=False)

    def __init__(self, clock: Clock, tables: Tables | None = None) -> None:
        super().__init__(clock, tables)
        self._schedules = ModelSchedules(self)
        self._batches = ModelBatches(self)
        self.batches: BatchStore = self._batches
        self.jobs: JobStore = self
        self.keys: KeyStore = self
        self.steps: StepStore = ModelSteps(self)
        self.schedules: ScheduleStore = self._schedules
        self.control: ControlStore = ModelControl(self)
        self.pressing: PressingStore = self
        self.leases: LeaseStore = self
        self.upkeep: UpkeepStore = self
        self.inspection: InspectionStore = self
        self.operator: OperatorStore = self
        self.schema: SchemaStore = self
        self.tokens: TokenStore = ModelTokens(self)
        self.answers: AnswerStore = ModelAnswers(self)
        self.triage: TriageStore = ModelTriage(self)
        self.audits: AuditStore = ModelAudits(self)
        self.sealed: SealedStore = ModelSealed(self)
        self.alerts: AlertStore = ModelAlerts(self)
        self.tallies: TallyStore = ModelTallies(self)

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
            self.note("start", f"operation:{id}", by, reason, operation_detail(verb, filter, total))
            return self.tables.operations[id]

    def set_operation(self, id: int, state: str, by: str, reason: str) -> OperationRecord | None:
        with self.tables.lock:
            found = self.tables.operations.get(id)
            if found is None or found.ended_at is not None:
                return None
            ended = self.clock() if state == "cancelled" else None
            self.note(OPERATION_VERBS[state], f"operation:{id}", by, reason)
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

    def duties(self) -> None:
        self.answers.forget()
        self.audits.follow()
        self.audits.seal()
        self.tallies.fold()

    def version(self) -> int:
        return 1

    def wanted(self) -> int:
        return 1

    def migrate(self) -> list[str]:
        return []

    def sql(self) -> str:
        return "-- a model creates nothing"

    def grant_roles(self) -> tuple[str, ...]:
        return ()

    def roles_sql(self) -> str:
        return ""

    def declare(self, registration: Registration) -> bool:
        return self._schedules.declare(registration)

    def declared(self) -> tuple[dict[str, str], dict[str, str]]:
        with self.tables.lock:
            return dict(self.tables.queues), dict(self.tables.tasks)

    def listen(self, on_work: Callable[[], None]) -> "Silence":
        return Silence(on_work)

    @contextmanager
    def transaction(self, *, kept: bool = False) -> Iterator[object]:
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

    def settle_batches(self) -> list[NewJob]:
        return self._batches.settle()

    def batch_on(self, connection: object, act: BatchAct) -> int:
        self._check(connection)
        return self._batches.apply(act)

    async def abatch_on(self, connection: object, act: BatchAct) -> int:
        return self.batch_on(connection, act)

    def complete_on(self, connection: object, incarnation: Incarnation, ended: Ended) -> bool:
        self._check(connection)
        return self.end(incarnation, ended, again=False)

    async def acomplete_on(self, connection: object, incarnation: Incarnation, ended: Ended) -> bool:
        return self.complete_on(connection, incarnation, ended)

    def cancel_on(self, connection: object, ids: Sequence[JobId], by: str, reason: str) -> dict[JobId, State]:
        self._check(connection)
        return self.cancel(ids, by, reason)

    async def acancel_on(
        self, connection: object, ids: Sequence[JobId], by: str, reason: str
    ) -> dict[JobId, State]:
        return self.cancel_on(connection, ids, by, reason)

    def lookup_on(self, connection: object, ids: Sequence[JobId]) -> list[JobRecord | None]:
        self._check(connection)
        return self.lookup(ids)

    async def alookup_on(self, connection: object, ids: Sequence[JobId]) -> list[JobRecord | None]:
        return self.lookup_on(connection, ids)

    def once_on(self, connection: object, digest: bytes, keep: timedelta) -> bool:
        self._check(connection)
        return self.once(digest, keep)

    async def aonce_on(self, connection: object, digest: bytes, keep: timedelta) -> bool:
        return self.once_on(connection, digest, keep)

    def advance_on(
        self,
        connection: object,
        name: str,
        expected: datetime,
        next_at: datetime,
        last_at: datetime,
        fired: int,
    ) -> bool:
        self._check(connection)
        return self._schedules.advance(name, expected, next_at, last_at, fired)

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

    def found(self) -> None: ...

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
        self.tables.entries[id].wish = reason

    def forget_heads(self) -> None:
        self.tables.heads.clear()

    def mislead_heads(self) -> None:
        self.tables.heads = dict.fromkeys(self.tables.heads, NO_SUCH_JOB)

    def leak_hold(self, limit: str, id: JobId) -> None:
        """The model counts who runs, so that nothing can leak."""

    def rewrite_entry(self, id: int, reason: str) -> None:
        self.tables.acts = [
            replace(entry, reason=reason) if entry.id == id else entry for entry in self.tables.acts
        ]

    def remove_entry(self, id: int) -> None:
        self.tables.acts = [entry for entry in self.tables.acts if entry.id != id]
