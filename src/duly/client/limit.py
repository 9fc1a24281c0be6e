"""`Limit`: how much of something this process does at once and how often it begins. No store, no other process.

Permits are handed over in the order in which they were asked for, to threads and to tasks of any event loop alike.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
import weakref
from collections import deque
from concurrent.futures import Future
from types import TracebackType
from typing import Final, Protocol, Self

from duly.client.blocking import refuse_blocking
from duly.client.options import whole_number
from duly.core.errors import UsageError
from duly.core.pace import Pace, parse_pace


class LimitClock(Protocol):
    """Monotonic seconds and two ways to wait, for tests that bring their own."""

    def now(self) -> float: ...

    def sleep(self, seconds: float) -> None: ...

    async def asleep(self, seconds: float) -> None: ...


class RealClock:
    """The machine's clock."""

    def now(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    async def asleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class _Waiter:
    """One place in the line. The result is the moment from which its owner may begin."""

    __slots__ = ("future", "loop")

    def __init__(self, loop: asyncio.AbstractEventLoop | None) -> None:
        self.future: Future[float] = Future()
        self.loop = loop

    def wants(self) -> bool:
        """False when it left the line, or its loop was closed under it."""
        if self.loop is not None and self.loop.is_closed():
            return False
        return self.future.set_running_or_notify_cancel()


class Limit:
    """A semaphore and a pace, in this process only: `with limit:` in threads, `async with limit:` in coroutines.

    Args:
        max_running: how many blocks may be entered at once.
        rate: how often a block may be entered, as "5/s" (evenly spaced) or "100/s burst 20".
        clock: what tells the time, for tests.

    """

    def __init__(
        self, max_running: int | None = None, *, rate: str | None = None, clock: LimitClock | None = None
    ) -> None:
        if max_running is None and rate is None:
            raise UsageError("a Limit limits something; write Limit(2), Limit(rate='5/s') or both")
        if isinstance(max_running, str):
            raise UsageError(
                f"Limit({max_running!r}) is no whole number; a rate has its name: Limit(rate='5/s')"
            )
        self._most = None if max_running is None else whole_number(max_running, "max_running")
        self._pace: Pace | None = None if rate is None else parse_pace(rate)
        self._rate = rate
        self._clock: LimitClock = clock or RealClock()
        self._lock = threading.Lock()
        self._line: deque[_Waiter] = deque()
        self._running = 0
        self._due = 0.0
        _everyone.add(self)

    @property
    def running(self) -> int:
        """Blocks entered and not left."""
        return self._running

    @property
    def waiting(self) -> int:
        """How many wait for a place; who only waits for the rate counts as running."""
        return len(self._line)

    def __enter__(self) -> Self:
        refuse_blocking("with limit", "async with limit")
        waiter = self._enter(None)
        try:
            self._pause(waiter.future.result())
        except BaseException:
            self._left(waiter)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._leave()

    async def __aenter__(self) -> Self:
        waiter = self._enter(asyncio.get_running_loop())
        try:
            future = waiter.future
            allowed = future.result() if future.done() else await asyncio.wrap_future(future)
            if (wait := allowed - self._clock.now()) > 0:
                await self._clock.asleep(wait)
        except BaseException:
            self._left(waiter)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._leave()

    def __repr__(self) -> str:
        parts = [] if self._most is None else [f"{self._most} at once"]
        parts += [] if self._rate is None else [self._rate]
        return f"<Limit {', '.join(parts)}; in this process only>"

    def _enter(self, loop: asyncio.AbstractEventLoop | None) -> _Waiter:
        waiter = _Waiter(loop)
        with self._lock:
            self._line.append(waiter)
            self._admit()
        return waiter

    def _leave(self) -> None:
        with self._lock:
            # A forked child leaves blocks that its parent entered.
            self._running = max(0, self._running - 1)
            self._admit()

    def _left(self, waiter: _Waiter) -> None:
        """Its owner was interrupted: while it stood in the line, or with a permit that it no longer wants."""
        if not waiter.future.cancel():
            self._leave()
            return
        with self._lock:
            if waiter in self._line:
                self._line.remove(waiter)

    def _admit(self) -> None:
        """Hand free permits to the head of the line, so that nobody who comes later is faster."""
        while self._line and (self._most is None or self._running < self._most):
            waiter = self._line.popleft()
            if not waiter.wants():
                continue
            self._running += 1
            allowed = 0.0
            if self._pace is not None:
                allowed, self._due = self._pace.start(self._due, self._clock.now())
            waiter.future.set_result(allowed)

    def _pause(self, allowed: float) -> None:
        if (wait := allowed - self._clock.now()) > 0:
            self._clock.sleep(wait)

    def _forked(self) -> None:
        # Whoever holds a permit or waits is a thread of the parent.
        self._lock = threading.Lock()
        self._line.clear()
        self._running = 0


def _renew_all() -> None:
    for limit in list(_everyone):
        limit._forked()


_everyone: Final[weakref.WeakSet[Limit]] = weakref.WeakSet()
os.register_at_fork(after_in_child=_renew_all)
