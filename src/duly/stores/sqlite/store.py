"""The store on one SQLite file: puts its parts together and joins callers' transactions. Writes no SQL of its own."""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from duly.core.job import Ended, Incarnation, JobId, JobRecord, NewJob, Stored
from duly.core.lifecycle import State
from duly.stores.connections import sqlite3 as joined
from duly.stores.protocol import (
    Clock,
    InspectionStore,
    JobStore,
    KeyStore,
    LeaseStore,
    OperatorStore,
    ScheduleStore,
    SchemaStore,
    StepStore,
    UpkeepStore,
)
from duly.stores.sqlite import blocks, migrating
from duly.stores.sqlite.capabilities import CAPABILITIES
from duly.stores.sqlite.connecting import Journal
from duly.stores.sqlite.database import BUSY_TIMEOUT, Database
from duly.stores.sqlite.enqueueing import enqueue_in
from duly.stores.sqlite.errors import FAILURES, translate
from duly.stores.sqlite.inspection import SQLiteInspection, lookup_in
from duly.stores.sqlite.jobs import SQLiteJobs, complete_in
from duly.stores.sqlite.keys import SQLiteKeys, once_in
from duly.stores.sqlite.leases import SQLiteLeases
from duly.stores.sqlite.operator import SQLiteOperator, cancel_in
from duly.stores.sqlite.schedules import SQLiteSchedules, advance_in
from duly.stores.sqlite.schema import SQLiteSchema
from duly.stores.sqlite.session import Session
from duly.stores.sqlite.steps import SQLiteSteps
from duly.stores.sqlite.upkeep import SQLiteUpkeep
from duly.stores.sqlite.wake import SQLiteListener


class SQLiteStore:
    """See duly.stores.protocol.Store. Safe for many threads and many processes of one machine; a fork opens anew.

    `busy_timeout` is in seconds; `journal` is for tests: by default the safe one for the linked SQLite. Without
    `durable` a commit does not wait for the disk.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        schema: str = "duly",
        clock: Clock | None = None,
        journal: Journal | None = None,
        busy_timeout: float = BUSY_TIMEOUT,
        durable: bool = True,
    ) -> None:
        self._database = Database(
            path, prefix=schema, clock=clock, journal=journal, busy_timeout=busy_timeout, durable=durable
        )
        self.url = f"sqlite:///{self._database.path}"
        self.capabilities = CAPABILITIES
        jobs = SQLiteJobs(self._database)
        self.jobs: JobStore = jobs
        self.keys: KeyStore = SQLiteKeys(self._database)
        self.steps: StepStore = SQLiteSteps(self._database, jobs.group)
        self.schedules: ScheduleStore = SQLiteSchedules(self._database)
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

    def cancel_on(self, connection: Any, ids: Sequence[JobId], by: str, reason: str) -> dict[JobId, State]:
        with self._joined(connection) as session:
            return cancel_in(session, ids, by, reason)

    async def acancel_on(
        self, connection: Any, ids: Sequence[JobId], by: str, reason: str
    ) -> dict[JobId, State]:
        return self.cancel_on(connection, ids, by, reason)

    def lookup_on(self, connection: Any, ids: Sequence[JobId]) -> list[JobRecord | None]:
        """Begins no transaction and takes no lock."""
        with self._reading(connection) as session:
            return lookup_in(session, ids)

    async def alookup_on(self, connection: Any, ids: Sequence[JobId]) -> list[JobRecord | None]:
        return self.lookup_on(connection, ids)

    def once_on(self, connection: Any, digest: bytes, keep: timedelta) -> bool:
        with self._joined(connection) as session:
            return once_in(session, digest, keep)

    async def aonce_on(self, connection: Any, digest: bytes, keep: timedelta) -> bool:
        return self.once_on(connection, digest, keep)

    def advance_on(
        self, connection: Any, name: str, expected: datetime, next_at: datetime, last_at: datetime, fired: int
    ) -> bool:
        with self._joined(connection) as session:
            return advance_in(session, name, expected, next_at, last_at, fired)

    async def aadvance_on(
        self, connection: Any, name: str, expected: datetime, next_at: datetime, last_at: datetime, fired: int
    ) -> bool:
        return self.advance_on(connection, name, expected, next_at, last_at, fired)

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

    @contextmanager
    def _reading(self, connection: object) -> Iterator[Session]:
        database = self._database
        theirs = joined.check(connection, database.path)
        if not theirs.in_transaction:
            database.prepare()
        elif not database.is_ready:
            # Our tables may be missing or old, and the caller's transaction holds the file.
            with self._joined(connection) as session:
                yield session
            return
        with joined.plain_text(theirs):
            session = database.session_on(theirs)
            try:
                yield session
            except FAILURES as error:
                raise translate(error, database.path) or error from error
            finally:
                session.close()

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
