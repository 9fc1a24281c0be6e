"""Room in a bounded store: enqueues wait in line while as many jobs wait as may. Knows no table and no URL.

Threads wait on a future, tasks await it, so that a full store stops no event loop. A batch goes in as a whole.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import Final, NamedTuple

from duly.core.errors import UsageError

log: Final = logging.getLogger("duly.store")

# What nobody tells of (expiry, a purge, a child process) is seen at the next look.
_LOOK_EVERY: Final = 0.1
_WORTH_A_WORD: Final = 5.0

_admitted: ContextVar[bool] = ContextVar("duly_admitted", default=False)
"""This context waits already, or has its room: the store's own enqueue must not wait a second time."""


class Waits(NamedTuple):
    """How enqueues have waited so far."""

    waited: int
    """Enqueues that found the store full."""
    longest: float
    """Seconds."""
    total: float
    """Seconds."""
    waiting: int
    """Enqueues that wait now."""


class _Waiter:
    __slots__ = ("count", "future", "loop")

    def __init__(self, count: int, loop: asyncio.AbstractEventLoop | None) -> None:
        self.count = count
        self.loop = loop
        self.future: Future[None] = Future()

    def wants(self) -> bool:
        if self.loop is not None and self.loop.is_closed():
            return False
        return self.future.set_running_or_notify_cancel()


class Room:
    """At most `most` waiting jobs, as `count` counts them. First come, first served."""

    def __init__(self, most: int, count: Callable[[], int], name: str) -> None:
        self.most = most
        self._count = count
        self._name = name
        self._lock = threading.Lock()
        self._counting = threading.Lock()
        self._line: deque[_Waiter] = deque()
        self._granted = 0
        """Places of enqueues that have not returned yet."""
        self._at_most = most
        """No more jobs than these wait in the store; counted anew when that leaves too little room."""
        self._entered = 0
        self._standing = 0
        """Enqueues that have looked, found it full, and wait."""
        self._waits = Waits(0, 0.0, 0.0, 0)

    @property
    def waits(self) -> Waits:
        with self._lock:
            return self._waits._replace(waiting=self._standing)

    @contextmanager
    def place(self, count: int) -> Iterator[None]:
        """Room for `count` jobs while they are stored; blocks until there is."""
        if _admitted.get():
            yield
            return
        waiter, began = self._ask(count, None), time.monotonic()
        try:
            if not waiter.future.done():
                self._wait(waiter, began)
            yield
        finally:
            self._leave(waiter)

    @asynccontextmanager
    async def aplace(self, count: int) -> AsyncIterator[None]:
        """As `place`, for tasks; the enqueue inside does not wait again."""
        waiter, began = self._ask(count, asyncio.get_running_loop()), time.monotonic()
        mark = _admitted.set(True)
        try:
            if not waiter.future.done():
                await self._await(waiter, began)
            yield
        finally:
            _admitted.reset(mark)
            self._leave(waiter)

    def passed(self, count: int) -> None:
        """So many jobs wait now that did not ask for room."""
        with self._lock:
            self._entered += count
            self._at_most += count

    def forget(self) -> None:
        """How many wait has changed in ways that were not counted."""
        with self._lock:
            self._at_most = self.most

    def freed(self) -> None:
        """Some that waited do not wait any more."""
        if self._line:
            self._look()

    def _wait(self, waiter: _Waiter, began: float) -> None:
        self._look()
        if waiter.future.done():
            return
        told = False
        with self._stands(began):
            while not waiter.future.done():
                try:
                    waiter.future.result(_LOOK_EVERY)
                except TimeoutError:
                    if self._is_first(waiter):
                        told = self._tell(began, told)
                        self._look()

    async def _await(self, waiter: _Waiter, began: float) -> None:
        granted = asyncio.wrap_future(waiter.future)
        # Counting reads the store, which no loop should wait for.
        await asyncio.to_thread(self._look)
        if waiter.future.done():
            return
        told = False
        with self._stands(began):
            while not waiter.future.done():
                await asyncio.wait([granted], timeout=_LOOK_EVERY)
                if not waiter.future.done() and self._is_first(waiter):
                    told = self._tell(began, told)
                    await asyncio.to_thread(self._look)

    @contextmanager
    def _stands(self, began: float) -> Iterator[None]:
        with self._lock:
            self._standing += 1
        try:
            yield
        finally:
            waited = time.monotonic() - began
            with self._lock:
                self._standing -= 1
                so_far = self._waits
                self._waits = Waits(so_far.waited + 1, max(so_far.longest, waited), so_far.total + waited, 0)

    def _ask(self, count: int, loop: asyncio.AbstractEventLoop | None) -> _Waiter:
        if count > self.most:
            raise UsageError(
                f"{count} jobs at once never fit into {self._name}; enqueue them in portions of {self.most} or fewer, "
                "or write a larger max"
            )
        waiter = _Waiter(count, loop)
        with self._lock:
            self._line.append(waiter)
            self._admit()
        return waiter

    def _look(self) -> None:
        with self._counting:
            before = self._entered
            counted = self._count()
            with self._lock:
                # What came in meanwhile may have been counted or not.
                self._at_most = counted + self._entered - before
                self._admit()

    def _admit(self) -> None:
        while self._line and self._at_most + self._granted + self._line[0].count <= self.most:
            waiter = self._line.popleft()
            if waiter.wants():
                self._granted += waiter.count
                waiter.future.set_result(None)

    def _leave(self, waiter: _Waiter) -> None:
        """Stored, failed or given up."""
        gave_up = waiter.future.cancel()
        with self._lock:
            if not gave_up:
                self._granted -= waiter.count
                self._entered += waiter.count
                self._at_most += waiter.count
            elif waiter in self._line:
                self._line.remove(waiter)
            self._admit()

    def _is_first(self, waiter: _Waiter) -> bool:
        with self._lock:
            return bool(self._line) and self._line[0] is waiter

    def _tell(self, began: float, told: bool) -> bool:
        waited = time.monotonic() - began
        if not told and waited >= _WORTH_A_WORD:
            log.warning(
                "%s is full: an enqueue has waited %.0f s. Jobs in memory run only in this process: "
                "async with jobs.working()",
                self._name,
                waited,
            )
            return True
        return told


def room_of(store: object) -> Room | None:
    """Where the enqueues of this store wait; None where nothing bounds it."""
    room = getattr(store, "room", None)
    return room if isinstance(room, Room) else None
