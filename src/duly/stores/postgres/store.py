"""The PostgreSQL store: composes the protocols over one database and lends its transactions.

Opening is lazy: the first call connects. A forked child opens connections of its own.
"""

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime, timedelta
from typing import Any, TypeVar

import psycopg
from msgspec.structs import replace

from duly.core.batch import BatchAct
from duly.core.job import Ended, Incarnation, JobId, JobRecord, NewJob, Stored
from duly.core.lifecycle import State
from duly.stores.batches import BatchStore
from duly.stores.connections import ambient
from duly.stores.connections.postgres import CallersConnection, Identity
from duly.stores.control import ControlStore, PressingStore
from duly.stores.postgres import arrays, calls, translation
from duly.stores.postgres.alerts import PostgresAlerts
from duly.stores.postgres.answers import PostgresAnswers
from duly.stores.postgres.audits import PostgresAudits
from duly.stores.postgres.batching import PostgresBatches
from duly.stores.postgres.calls import Call
from duly.stores.postgres.capabilities import CAPABILITIES
from duly.stores.postgres.control import PostgresControl
from duly.stores.postgres.database import Database, migration_needed
from duly.stores.postgres.inspection import PostgresInspection
from duly.stores.postgres.jobs import PostgresJobs
from duly.stores.postgres.keys import PostgresKeys, PostgresSteps
from duly.stores.postgres.leases import PostgresLeases
from duly.stores.postgres.listener import PostgresListener, Silence
from duly.stores.postgres.operator import PostgresOperator
from duly.stores.postgres.pressing import PostgresPressing
from duly.stores.postgres.schedules import PostgresSchedules
from duly.stores.postgres.schema import PostgresSchema
from duly.stores.postgres.sealed import PostgresSealed
from duly.stores.postgres.statements import migrations, statement
from duly.stores.postgres.tallies import PostgresTallies
from duly.stores.postgres.tokens import PostgresTokens
from duly.stores.postgres.triage import PostgresTriage
from duly.stores.postgres.upkeep import PostgresUpkeep
from duly.stores.protocol import (
    AlertStore,
    AnswerStore,
    AuditStore,
    Clock,
    InspectionStore,
    JobStore,
    KeyStore,
    LeaseStore,
    Listener,
    OperatorStore,
    ScheduleStore,
    SchemaStore,
    SealedStore,
    StepStore,
    TallyStore,
    TokenStore,
    TriageStore,
    UpkeepStore,
)

T = TypeVar("T")


class PostgresStore:
    """See `duly.stores.protocol.Store`. `notify=False` for poolers: no listener, everyone polls."""

    def __init__(
        self,
        url: str,
        *,
        schema: str = "duly",
        clock: Clock | None = None,
        pool: int = 4,
        notify: bool = True,
    ) -> None:
        self.url = url
        self._notify = notify
        self._database = Database(url, schema, clock, pool)
        self._callers = CallersConnection(
            statement("read_identity", schema), self._own_identity, self._checked, self._database.where, url
        )
        jobs = PostgresJobs(self._database)
        self.jobs: JobStore = jobs
        self.keys: KeyStore = PostgresKeys(self._database)
        self.steps: StepStore = PostgresSteps(self._database)
        self.schedules: ScheduleStore = PostgresSchedules(self._database)
        self.control: ControlStore = PostgresControl(self._database)
        self.pressing: PressingStore = PostgresPressing(self._database)
        self.leases: LeaseStore = PostgresLeases(self._database)
        self.inspection: InspectionStore = PostgresInspection(self._database)
        self.operator: OperatorStore = PostgresOperator(self._database)
        self.batches: BatchStore = PostgresBatches(self._database, self.operator)
        self.schema: SchemaStore = PostgresSchema(self._database)
        self.tokens: TokenStore = PostgresTokens(self._database)
        self.answers: AnswerStore = PostgresAnswers(self._database, self._on)
        self.triage: TriageStore = PostgresTriage(self._database, self._on, self.transaction)
        self.audits: AuditStore = PostgresAudits(self._database, self._on)
        self.sealed: SealedStore = PostgresSealed(self._database)
        self.alerts: AlertStore = PostgresAlerts(self._database)
        self.tallies: TallyStore = PostgresTallies(self._database)
        duties: dict[str, Callable[[], object]] = {
            "answers": self.answers.forget,
            "audited": self.audits.follow,
            "unsealed": self.audits.seal,
            "tally": self.tallies.fold,
        }
        self.upkeep: UpkeepStore = PostgresUpkeep(self._database, jobs.stragglers, duties)
        self.capabilities = replace(CAPABILITIES, rings=notify)

    def listen(self, on_work: Callable[[], None]) -> Listener:
        return PostgresListener(self._database, on_work) if self._notify else Silence()

    @contextmanager
    def transaction(self, *, kept: bool = False) -> Iterator[psycopg.Connection[Any]]:
        """A psycopg connection of ours, in a READ COMMITTED transaction that commits at the block's end.

        It comes from the pool, `kept` or not."""
        with self._database.transaction() as connection:
            self._callers.lends(connection)
            ambient.joined(connection, self.url)
            try:
                yield connection
            finally:
                ambient.left(connection)

    @asynccontextmanager
    async def atransaction(self) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
        """As `transaction`, with a connection opened for this block: pools do not cross event loops."""
        where = self._database.where
        try:
            connection = await psycopg.AsyncConnection.connect(
                **self._database.settings, autocommit=True, prepare_threshold=None
            )
        except psycopg.OperationalError as error:
            raise translation.unreachable(error, where) from error
        try:
            await connection.set_isolation_level(psycopg.IsolationLevel.READ_COMMITTED)
            async with connection.transaction():
                self._callers.lends(connection)
                ambient.joined(connection, self.url)
                yield connection
        except psycopg.Error as error:
            if not connection.broken:
                raise
            raise translation.translated(error, broken=True, where=where) or error from error
        finally:
            await connection.close()

    def enqueue_on(self, connection: Any, jobs: Sequence[NewJob]) -> list[Stored]:
        return _told(*self._on(connection, self._enqueueing(jobs))) if jobs else []

    async def aenqueue_on(self, connection: Any, jobs: Sequence[NewJob]) -> list[Stored]:
        return _told(*await self._aon(connection, self._enqueueing(jobs))) if jobs else []

    def batch_on(self, connection: Any, act: BatchAct) -> int:
        return self._on(connection, calls.acting(act, whole=True, now=self._database.now()))[0]

    async def abatch_on(self, connection: Any, act: BatchAct) -> int:
        return (await self._aon(connection, calls.acting(act, whole=True, now=self._database.now())))[0]

    def complete_on(self, connection: Any, incarnation: Incarnation, ended: Ended) -> bool:
        return self._on(connection, calls.completing(incarnation, ended, now=self._database.now()))[0]

    async def acomplete_on(self, connection: Any, incarnation: Incarnation, ended: Ended) -> bool:
        call = calls.completing(incarnation, ended, now=self._database.now())
        return (await self._aon(connection, call))[0]

    def cancel_on(self, connection: Any, ids: Sequence[JobId], by: str, reason: str) -> dict[JobId, State]:
        return self._on(connection, calls.cancelling(ids, by, reason, now=self._database.now()))[0]

    async def acancel_on(
        self, connection: Any, ids: Sequence[JobId], by: str, reason: str
    ) -> dict[JobId, State]:
        return (await self._aon(connection, calls.cancelling(ids, by, reason, now=self._database.now())))[0]

    def lookup_on(self, connection: Any, ids: Sequence[JobId]) -> list[JobRecord | None]:
        return self._on(connection, calls.looking_up(ids))[0]

    async def alookup_on(self, connection: Any, ids: Sequence[JobId]) -> list[JobRecord | None]:
        return (await self._aon(connection, calls.looking_up(ids)))[0]

    def once_on(self, connection: Any, digest: bytes, keep: timedelta) -> bool:
        return self._on(connection, calls.taking_once(digest, keep, own=False, now=self._database.now()))[0]

    async def aonce_on(self, connection: Any, digest: bytes, keep: timedelta) -> bool:
        return (
            await self._aon(connection, calls.taking_once(digest, keep, own=False, now=self._database.now()))
        )[0]

    def advance_on(
        self, connection: Any, name: str, expected: datetime, next_at: datetime, last_at: datetime, fired: int
    ) -> bool:
        return self._on(connection, calls.advancing(name, expected, next_at, last_at, fired))[0]

    def close(self) -> None:
        self._database.close()

    def _enqueueing(self, jobs: Sequence[NewJob]) -> Call[list[Stored]]:
        return calls.enqueueing(jobs, own=False, now=self._database.now())

    def _on(self, connection: Any, call: Call[T]) -> tuple[T, bool]:
        """What the call answers, and whether it hangs on the caller's commit."""
        text = statement(call.name, self._database.schema)
        answer = self._callers.run(connection, text, arrays.plain(call.parameters))
        return call.read(answer.rows), answer.pending

    async def _aon(self, connection: Any, call: Call[T]) -> tuple[T, bool]:
        text = statement(call.name, self._database.schema)
        answer = await self._callers.arun(connection, text, arrays.plain(call.parameters))
        return call.read(answer.rows), answer.pending

    def _own_identity(self) -> Identity:
        return self._checked(self._database.call("read_identity")[0])

    def _checked(self, found: Identity) -> Identity:
        if found[-1] is None:
            version = self.schema.version()
            raise migration_needed(
                self._database.schema, self._database.where, version, migrations()[-1].version
            )
        return found


def _told(stored: list[Stored], pending: bool) -> list[Stored]:
    return [replace(one, pending=pending) for one in stored]
