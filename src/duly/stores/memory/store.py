"""The store of `memory://`: SQLite in a private folder that ends with the process, and a bound on what waits.

The same promises while the process lives. Isolated children of this process reach it by `url_for_children`.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from duly.core.job import (
    ClaimRequest,
    Cursor,
    Ended,
    Exchange,
    Incarnation,
    JobId,
    NewJob,
    Progress,
    Stored,
)
from duly.stores.memory.folder import PrivateFolder
from duly.stores.protocol import Clock, JobStore
from duly.stores.room import Room
from duly.stores.sqlite.database import Database
from duly.stores.sqlite.inspection import SQLiteInspection
from duly.stores.sqlite.store import SQLiteStore


class MemoryStore(SQLiteStore):
    """See duly.stores.protocol.Store. A fork opens a new, empty one."""

    def __init__(self, *, schema: str = "duly", clock: Clock | None = None, most: int | None = None) -> None:
        self._folder = PrivateFolder()
        path = self._folder.path / "jobs.db"
        super().__init__(path, schema=schema, clock=clock, durable=False)
        self.url_for_children = self.url
        """Where handlers in processes of their own find this store while it lives."""
        self.url = "memory://" if most is None else f"memory://?max={most}"
        self.capabilities = replace(self.capabilities, kind="memory", shared_by_processes=False)
        self.room: Room | None = None
        """Where enqueues wait for their turn; None without a bound."""
        inspection = MemoryInspection(self._database, self.url)
        self.inspection = inspection
        if most is not None:
            self.room = inspection.room = Room(most, inspection.waiting, self.url)
            self.jobs = BoundedJobs(self.jobs, self.room)

    def enqueue_on(self, connection: Any, jobs: Sequence[NewJob]) -> list[Stored]:
        """In the caller's transaction, whatever the bound: it holds the lock that a worker would need to make room."""
        stored = super().enqueue_on(connection, jobs)
        if self.room is not None:
            self.room.passed(len(stored))
        return stored

    async def aenqueue_on(self, connection: Any, jobs: Sequence[NewJob]) -> list[Stored]:
        stored = await super().aenqueue_on(connection, jobs)
        if self.room is not None:
            self.room.passed(len(stored))
        return stored

    def close(self) -> None:
        """Forget every job."""
        super().close()
        self._folder.remove()


class BoundedJobs:
    """A JobStore whose enqueue waits for room. What handlers enqueue never waits: they would wait for themselves."""

    def __init__(self, jobs: JobStore, room: Room) -> None:
        self._jobs = jobs
        self._room = room

    def enqueue(self, jobs: Sequence[NewJob]) -> list[Stored]:
        if any(job.holder is not None for job in jobs):
            stored = self._jobs.enqueue(jobs)
            self._room.passed(len(stored))
            return stored
        with self._room.place(len(jobs)):
            return self._jobs.enqueue(jobs)

    def exchange(
        self, incarnation: Incarnation, ended: Sequence[Ended], request: ClaimRequest | None
    ) -> Exchange:
        answer = self._jobs.exchange(incarnation, ended, request)
        if ended:
            # Retries and follow-ups wait now, and nobody asked for room for them.
            self._room.forget()
        if answer.claimed:
            self._room.freed()
        return answer

    def arguments(self, ids: Sequence[JobId]) -> dict[JobId, bytes]:
        return self._jobs.arguments(ids)

    def extend(self, incarnation: Incarnation, id: JobId, run: int, by: timedelta) -> bool:
        return self._jobs.extend(incarnation, id, run, by)

    def report(
        self, incarnation: Incarnation, progress: Sequence[Progress], cursors: Sequence[Cursor] = ()
    ) -> tuple[list[tuple[JobId, int]], list[JobId]]:
        return self._jobs.report(incarnation, progress, cursors)


class MemoryInspection(SQLiteInspection):
    """As the file's, with words for who reads them."""

    def __init__(self, database: Database, url: str) -> None:
        super().__init__(database)
        self.room: Room | None = None
        self._url = url

    def describe(self) -> dict[str, str]:
        facts = super().describe()
        facts |= {"store": "memory", "where": f"{self._url}, in this process only", "sync": "off"}
        if self.room is not None:
            waits = self.room.waits
            facts["room"] = (
                f"{waits.waited} enqueues waited, {waits.longest * 1000:.0f} ms at most; {waits.waiting} wait now"
            )
        return facts

    def warnings(self) -> list[str]:
        """The file is nobody's concern."""
        return []
