"""Follows jobs for whoever listens: one look at the store per interval for all listeners of this process together.

Knows no request and no ticket. Belongs to one event loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from typing import Final

from duly.app import App
from duly.core.errors import StoreUnreachable
from duly.core.job import JobId, JobRecord
from duly.core.lifecycle import FINAL

EVERY: Final = 0.5
"""Seconds between two looks."""
MOST: Final = 1_000
"""Listeners of one process; more should ask again later."""
_AT_ONCE: Final = 500

log: Final = logging.getLogger("duly.web")


class Stopping(StoreUnreachable):
    """This server ends: ask again, and another one answers."""


class Watcher:
    """Tells listeners of every change of a job that a look finds."""

    def __init__(self, jobs: App, every: float = EVERY) -> None:
        self._jobs = jobs
        self._every = every
        self._listeners: dict[JobId, set[asyncio.Event]] = {}
        self._seen: dict[JobId, JobRecord | None] = {}
        self._task: asyncio.Task[None] | None = None
        self._stopped = False

    def stop(self) -> None:
        """Let go of all who listen, so that a server need not wait for them. In the thread of the loop."""
        self._stopped = True
        for events in self._listeners.values():
            for news in events:
                news.set()

    @property
    def listeners(self) -> int:
        return sum(map(len, self._listeners.values()))

    @property
    def full(self) -> bool:
        """Whether nobody more should be let in."""
        return self.listeners >= MOST

    async def follow(self, id: JobId) -> AsyncGenerator[JobRecord | None, None]:
        """The job at once, then at each change, up to its end; None while it is not visible.

        An outage of the store is waited out. Close it, or cancel the task that reads it, to stop listening. Stopping is
        raised once the server ends.
        """
        news = asyncio.Event()
        self._listeners.setdefault(id, set()).add(news)
        try:
            record = (await self._jobs.inspect.alookup([id]))[0]
            yield record
            self._watch()
            while record is None or record.state not in FINAL:
                await news.wait()
                news.clear()
                if self._stopped:
                    raise Stopping("this server ends; ask again")
                latest = self._seen.get(id)
                if latest != record:
                    record = latest
                    yield record
        finally:
            self._leave(id, news)

    def _leave(self, id: JobId, news: asyncio.Event) -> None:
        others = self._listeners[id]
        others.discard(news)
        if not others:
            del self._listeners[id]
            self._seen.pop(id, None)
        if not self._listeners and self._task is not None:
            self._task.cancel()
            self._task = None

    def _watch(self) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._look_for_ever(), name="duly-watcher")

    async def _look_for_ever(self) -> None:
        while True:
            await asyncio.sleep(self._every)
            try:
                await self._look()
            except StoreUnreachable as error:
                log.debug("the jobs that are followed cannot be read: %s", error)

    async def _look(self) -> None:
        for ids in _chunks(list(self._listeners)):
            found = await self._jobs.inspect.alookup(ids)
            for id, record in zip(ids, found, strict=True):
                known = id in self._seen and self._seen[id] == record
                if known or id not in self._listeners:
                    continue
                self._seen[id] = record
                for news in self._listeners[id]:
                    news.set()


def _chunks(ids: list[JobId]) -> list[list[JobId]]:
    return [ids[start : start + _AT_ONCE] for start in range(0, len(ids), _AT_ONCE)]
