"""The store on one SQLite file: puts its parts together and joins callers' transactions. Writes no SQL of its own."""

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from duly.core.batch import BatchAct
from duly.core.job import Ended, Incarnation, JobId, JobRecord, NewJob, Stored
from duly.core.lifecycle import State
from duly.stores.batches import BatchStore
from duly.stores.control import ControlStore, PressingStore
from duly.stores.protocol import (
    AlertStore,
    AnswerStore,
    AuditStore,
    Clock,
    InspectionStore,
    JobStore,
    KeyStore,
    LeaseStore,
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
from duly.stores.sqlite import blocks
from duly.stores.sqlite.alerts import SQLiteAlerts
from duly.stores.sqlite.answers import SQLiteAnswers
from duly.stores.sqlite.audits import SQLiteAudits
from duly.stores.sqlite.batching import SQLiteBatches, act_in
from duly.stores.sqlite.capabilities import CAPABILITIES
from duly.stores.sqlite.connecting import Journal
from duly.stores.sqlite.control import SQLiteControl
from duly.stores.sqlite.database import BUSY_TIMEOUT, Database
from duly.stores.sqlite.followups import enqueue
from duly.stores.sqlite.inspection import SQLiteInspection, lookup_in
from duly.stores.sqlite.jobs import SQLiteJobs, complete_in
from duly.stores.sqlite.joining import Joining
from duly.stores.sqlite.keys import SQLiteKeys, once_in
from duly.stores.sqlite.leases import SQLiteLeases
from duly.stores.sqlite.operator import SQLiteOperator, cancel_in
from duly.stores.sqlite.pressing import SQLitePressing
from duly.stores.sqlite.schedules import SQLiteSchedules, advance_in
from duly.stores.sqlite.schema import SQLiteSchema
from duly.stores.sqlite.sealed import SQLiteSealed
from duly.stores.sqlite.steps import SQLiteSteps
from duly.stores.sqlite.tallies import SQLiteTallies
from duly.stores.sqlite.tokens import SQLiteTokens
from duly.stores.sqlite.triage import SQLiteTriage
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
        self._joining = Joining(self._database)
        jobs = SQLiteJobs(self._database)
        self.jobs: JobStore = jobs
        self.keys: KeyStore = SQLiteKeys(self._database)
        self.steps: StepStore = SQLiteSteps(self._database, jobs.group)
        self.schedules: ScheduleStore = SQLiteSchedules(self._database)
        self.control: ControlStore = SQLiteControl(self._database)
        self.batches: BatchStore = SQLiteBatches(self._database)
        self.pressing: PressingStore = SQLitePressing(self._database)
        self.leases: LeaseStore = SQLiteLeases(self._database, jobs.forget)
        self.inspection: InspectionStore = SQLiteInspection(self._database)
        self.operator: OperatorStore = SQLiteOperator(self._database)
        self.schema: SchemaStore = SQLiteSchema(self._database)
        self.tokens: TokenStore = SQLiteTokens(self._database)
        self.answers: AnswerStore = SQLiteAnswers(self._database, self._joining)
        self.triage: TriageStore = SQLiteTriage(self._database)
        self.audits: AuditStore = SQLiteAudits(self._database, self._joining)
        self.sealed: SealedStore = SQLiteSealed(self._database)
        self.alerts: AlertStore = SQLiteAlerts(self._database)
        self.tallies: TallyStore = SQLiteTallies(self._database)
        duties = (self.answers.forget, self.audits.follow, self.audits.seal, self.tallies.fold)
        self.upkeep: UpkeepStore = SQLiteUpkeep(self._database, duties)

    def listen(self, on_work: Callable[[], None]) -> SQLiteListener:
        """Sleeps on the side file while idle, and looks at SQLite's change counter five times a second."""
        version, forget = self._database.change_counter()
        return SQLiteListener(self._database.wake, version, on_work, forget)

    def transaction(self, *, kept: bool = False) -> AbstractContextManager[sqlite3.Connection]:
        """Holds the file's one write lock for the whole block: open it for the final writes only."""
        return blocks.block(self._database, kept=kept)

    def atransaction(self) -> AbstractAsyncContextManager[sqlite3.Connection]:
        """As `transaction`, with the waiting in a thread."""
        return blocks.ablock(self._database)

    def enqueue_on(self, connection: Any, jobs: Sequence[NewJob]) -> list[Stored]:
        """In the caller's transaction, which it may begin (the module's legacy mode) but never ends."""
        if not jobs:
            return []
        return _told(*self._joining.write(connection, lambda session: enqueue(session, jobs)))

    async def aenqueue_on(self, connection: Any, jobs: Sequence[NewJob]) -> list[Stored]:
        """On the thread that the connection belongs to."""
        if not jobs:
            return []
        return _told(*await self._joining.awrite(connection, lambda session: enqueue(session, jobs)))

    def batch_on(self, connection: Any, act: BatchAct) -> int:
        return self._joining.write(connection, lambda session: act_in(session, act))[0]

    async def abatch_on(self, connection: Any, act: BatchAct) -> int:
        return (await self._joining.awrite(connection, lambda session: act_in(session, act)))[0]

    def complete_on(self, connection: Any, incarnation: Incarnation, ended: Ended) -> bool:
        return self._joining.write(connection, lambda session: complete_in(session, incarnation, ended))[0]

    async def acomplete_on(self, connection: Any, incarnation: Incarnation, ended: Ended) -> bool:
        act = partial(complete_in, incarnation=incarnation, ended=ended)
        return (await self._joining.awrite(connection, act))[0]

    def cancel_on(self, connection: Any, ids: Sequence[JobId], by: str, reason: str) -> dict[JobId, State]:
        return self._joining.write(connection, lambda session: cancel_in(session, ids, by, reason))[0]

    async def acancel_on(
        self, connection: Any, ids: Sequence[JobId], by: str, reason: str
    ) -> dict[JobId, State]:
        act = partial(cancel_in, ids=ids, by=by, reason=reason)
        return (await self._joining.awrite(connection, act))[0]

    def lookup_on(self, connection: Any, ids: Sequence[JobId]) -> list[JobRecord | None]:
        return self._joining.read(connection, lambda session: lookup_in(session, ids))

    async def alookup_on(self, connection: Any, ids: Sequence[JobId]) -> list[JobRecord | None]:
        return await self._joining.aread(connection, lambda session: lookup_in(session, ids))

    def once_on(self, connection: Any, digest: bytes, keep: timedelta) -> bool:
        return self._joining.write(connection, lambda session: once_in(session, digest, keep))[0]

    async def aonce_on(self, connection: Any, digest: bytes, keep: timedelta) -> bool:
        return (await self._joining.awrite(connection, lambda session: once_in(session, digest, keep)))[0]

    def advance_on(
        self, connection: Any, name: str, expected: datetime, next_at: datetime, last_at: datetime, fired: int
    ) -> bool:
        act = partial(advance_in, name=name, expected=expected, next_at=next_at, last_at=last_at, fired=fired)
        return self._joining.write(connection, act)[0]

    def close(self) -> None:
        self._database.close()


def _told(stored: list[Stored], pending: bool) -> list[Stored]:
    return [replace(one, pending=True) for one in stored] if pending else stored
