"""The store on one SQLite file: puts its parts together and joins callers' transactions. Writes no SQL of its own."""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from duly.core.job import Ended, Incarnation, NewJob, Stored
from duly.stores.connections import sqlite3 as joined
from duly.stores.protocol import (
    Clock,
    InspectionStore,
    JobStore,
    LeaseStore,
    OperatorStore,
    SchemaStore,
    UpkeepStore,
)
from duly.stores.sqlite import blocks, migrating
from duly.stores.sqlite.capabilities import CAPABILITIES
from duly.stores.sqlite.connecting import Journal
from duly.stores.sqlite.database import BUSY_TIMEOUT, Database
from duly.stores.sqlite.inspection import SQLiteInspection
from duly.stores.sqlite.jobs import SQLiteJobs, complete_in, enqueue_in
from duly.stores.sqlite.leases import SQLiteLeases
from duly.stores.sqlite.operator import SQLiteOperator
from duly.stores.sqlite.schema import SQLiteSchema
from duly.stores.sqlite.session import Session
from duly.stores.sqlite.upkeep import SQLiteUpkeep
from duly.stores.sqlite.wake import SQLiteListener


class SQLiteStore:
    """See duly.stores.protocol.Store. Safe for many threads and many processes of one machine; a fork opens anew.

    `busy_timeout` is in seconds; `journal` is for tests: by default the safe one for the linked SQLite.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        schema: str = "duly",
        clock: Clock | None = None,
        journal: Journal | None = None,
        busy_timeout: float = BUSY_TIMEOUT,
    ) -> None:
        self._database = Database(
            path, prefix=schema, clock=clock, journal=journal, busy_timeout=busy_timeout
        )
        self.url = f"sqlite:///{self._database.path}"
        self.capabilities = CAPABILITIES
        jobs = SQLiteJobs(self._database)
        self.jobs: JobStore = jobs
        self.leases: LeaseStore = SQLiteLeases(self._database, jobs.forget)
        self.upkeep: UpkeepStore = SQLiteUpkeep(self._database)
        self.inspection: InspectionStore = SQLiteInspection(self._database)
        self.operator: OperatorStore = SQLiteOperator(self._database)
        self.schema: SchemaStore = SQLiteSchema(self._database)

    def listen(self, on_work: Callable[[], None]) -> SQLiteListener:
        """Watches the side file every 1 to 20 ms while idle, and SQLite's change counter five times a second."""
        version, forget = self._database.change_counter()
        return SQLiteListener(self._database.wake, version, on_work, forget)

    def transaction(self) -> AbstractContextManager[sqlite3.Connection]:
        """Holds the file's one write lock for the whole block: open it for the final writes only."""
        return blocks.block(self._database)

    def atransaction(self) -> AbstractAsyncContextManager[sqlite3.Connection]:
        """As `transaction`, with the waiting in a thread."""
        return blocks.ablock(self._database)

    def enqueue_on(self, connection: Any, jobs: Sequence[NewJob]) -> list[Stored]:
        """In the caller's transaction, which it may begin (the module's legacy mode) but never ends."""
        with self._joined(connection) as session:
            return enqueue_in(session, jobs) if jobs else []

    async def aenqueue_on(self, connection: Any, jobs: Sequence[NewJob]) -> list[Stored]:
        """On the caller's thread: an sqlite3 connection belongs to it."""
        return self.enqueue_on(connection, jobs)

    def complete_on(self, connection: Any, incarnation: Incarnation, ended: Ended) -> bool:
        with self._joined(connection) as session:
            return complete_in(session, incarnation, ended)

    async def acomplete_on(self, connection: Any, incarnation: Incarnation, ended: Ended) -> bool:
        return self.complete_on(connection, incarnation, ended)

    def close(self) -> None:
        self._database.close()

    @contextmanager
    def _joined(self, connection: object) -> Iterator[Session]:
        database = self._database
        theirs = joined.check(connection, database.path)
        if not theirs.in_transaction:
            # Nothing of the caller's is locked yet: our own connection may create the tables.
            database.prepare()
        joined.begin(theirs, database.path)
        with joined.within(theirs, database.path):
            session = database.session_on(theirs)
            try:
                # A write first: a deferred transaction that begins by reading could not wait for its turn.
                self._take_lock(session)
                yield session
            finally:
                session.close()
        database.holding.joined(theirs)

    def _take_lock(self, session: Session) -> None:
        database = self._database
        try:
            session.numbers(0)
        except sqlite3.OperationalError as error:
            if "no such table" not in str(error):
                raise
            # The caller's transaction holds the file: the tables come and stay with it.
            migrating.apply_missing(session, database.prefix, database.path)
            return
        if not database.is_ready:
            migrating.apply_missing(session, database.prefix, database.path)
