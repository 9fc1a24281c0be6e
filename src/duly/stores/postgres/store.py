"""The PostgreSQL store: composes the protocols over one database and lends its transactions.

Opening is lazy: the first call connects. A forked child opens connections of its own.
"""

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import psycopg
from msgspec.structs import replace

from duly.core.job import Ended, Incarnation, NewJob, Stored
from duly.stores.connections.kinds import Answer
from duly.stores.connections.postgres import CallersConnection, Identity
from duly.stores.postgres import arrays, columns, translation
from duly.stores.postgres.capabilities import CAPABILITIES
from duly.stores.postgres.database import Database, migration_needed
from duly.stores.postgres.inspection import PostgresInspection
from duly.stores.postgres.jobs import PostgresJobs, stored
from duly.stores.postgres.leases import PostgresLeases
from duly.stores.postgres.listener import PostgresListener, Silence
from duly.stores.postgres.operator import PostgresOperator
from duly.stores.postgres.schema import PostgresSchema
from duly.stores.postgres.statements import migrations, statement
from duly.stores.postgres.upkeep import PostgresUpkeep
from duly.stores.protocol import (
    Clock,
    InspectionStore,
    JobStore,
    LeaseStore,
    Listener,
    OperatorStore,
    SchemaStore,
    UpkeepStore,
)


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
        self._identity: Identity | None = None
        self._callers = CallersConnection(
            statement("read_identity", schema), self._own_identity, self._database.where, url
        )
        jobs = PostgresJobs(self._database)
        self.jobs: JobStore = jobs
        self.leases: LeaseStore = PostgresLeases(self._database)
        self.upkeep: UpkeepStore = PostgresUpkeep(self._database, jobs.stragglers)
        self.inspection: InspectionStore = PostgresInspection(self._database)
        self.operator: OperatorStore = PostgresOperator(self._database)
        self.schema: SchemaStore = PostgresSchema(self._database)
        self.capabilities = replace(CAPABILITIES, rings=notify)

    def listen(self, on_work: Callable[[], None]) -> Listener:
        return PostgresListener(self._database, on_work) if self._notify else Silence()

    @contextmanager
    def transaction(self) -> Iterator[psycopg.Connection[Any]]:
        """A psycopg connection of ours, in a READ COMMITTED transaction that commits at the block's end."""
        with self._database.transaction() as connection:
            yield connection

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
                yield connection
        except psycopg.Error as error:
            if not connection.broken:
                raise
            raise translation.translated(error, broken=True, where=where) or error from error
        finally:
            await connection.close()

    def enqueue_on(self, connection: Any, jobs: Sequence[NewJob]) -> list[Stored]:
        return _stored(self._on(connection, *self._enqueueing(jobs)), jobs) if jobs else []

    async def aenqueue_on(self, connection: Any, jobs: Sequence[NewJob]) -> list[Stored]:
        return _stored(await self._aon(connection, *self._enqueueing(jobs)), jobs) if jobs else []

    def complete_on(self, connection: Any, incarnation: Incarnation, ended: Ended) -> bool:
        answer = self._on(connection, *self._completing(incarnation, ended))
        return not any(row[0] == "lost" for row in answer.rows)

    async def acomplete_on(self, connection: Any, incarnation: Incarnation, ended: Ended) -> bool:
        answer = await self._aon(connection, *self._completing(incarnation, ended))
        return not any(row[0] == "lost" for row in answer.rows)

    def close(self) -> None:
        self._database.close()

    def _enqueueing(self, jobs: Sequence[NewJob]) -> tuple[bytes, dict[str, Any]]:
        parameters = columns.new_jobs(jobs, own=False, now=self._database.now())
        return statement("enqueue_jobs", self._database.schema), parameters

    def _completing(self, incarnation: Incarnation, ended: Ended) -> tuple[bytes, dict[str, Any]]:
        parameters = {
            "incarnation": incarnation,
            **columns.ends([ended]),
            **columns.NO_CLAIM,
            "own": False,
            "now": self._database.now(),
        }
        return statement("exchange_jobs", self._database.schema), parameters

    def _on(self, connection: Any, text: bytes, parameters: dict[str, Any]) -> Answer:
        return self._callers.run(connection, text, arrays.plain(parameters))

    async def _aon(self, connection: Any, text: bytes, parameters: dict[str, Any]) -> Answer:
        return await self._callers.arun(connection, text, arrays.plain(parameters))

    def _own_identity(self, again: bool) -> Identity:
        if self._identity is None or again:
            found = self._database.call("read_identity")[0]
            if found[-1] is None:
                version = self.schema.version()
                raise migration_needed(
                    self._database.schema, self._database.where, version, migrations()[-1].version
                )
            self._identity = found
        return self._identity


def _stored(answer: Answer, jobs: Sequence[NewJob]) -> list[Stored]:
    return [replace(one, pending=answer.pending) for one in stored(answer.rows, jobs)]
