"""Waiting for a permit of the store and giving it back: what locks and resources have in common.

A permit that a handler takes ends with its attempt; one of plain code ends by itself after a time. Knows no worker.
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Callable
from contextvars import copy_context
from datetime import timedelta
from typing import Any, Final, Generic, Protocol, TypeVar

from duly.client.client import Client
from duly.client.job import Job, current, port_of
from duly.core.control import Permit, Refusal
from duly.core.endings import Snooze

T = TypeVar("T")

_FIRST_PAUSE: Final = 0.02
_LONGEST_PAUSE: Final = 0.5
_LONGEST_WAIT: Final = 1.0
# How soon a handler notices that it shall stop.
_SLICE: Final = 0.25


class Taker(Protocol):
    """In whose name a permit is taken."""

    def take(self, name: str) -> Permit | Refusal:
        """Try once; blocks for one round trip."""

    def give_back(self, permit: Permit) -> bool:
        """Blocks for one round trip. False when it had run out, or belongs to somebody else by now."""

    def check(self, name: str) -> None:
        """Raise, when waiting for it makes no sense any more."""


class JobTaker:
    """A running attempt: what it holds ends with it, however it ends."""

    def __init__(self, job: Job) -> None:
        self._port = port_of(job)

    def take(self, name: str) -> Permit | Refusal:
        return self._port.acquire(name)

    def give_back(self, permit: Permit) -> bool:
        return self._port.release(permit)

    def check(self, name: str) -> None:
        """Snooze, at no cost of an attempt, when the handler is asked to stop while it waits."""
        if self._port.should_stop():
            raise Snooze("0s", f"asked to stop while it waited for {name}")


class PlainTaker:
    """Code outside of handlers: what it holds ends after `ttl`, in case it dies."""

    def __init__(self, client: Client, ttl: timedelta) -> None:
        self._client = client
        self._ttl = ttl

    def take(self, name: str) -> Permit | Refusal:
        client = self._client
        return client.call(client.store.control.acquire, [name], None, self._ttl)

    def give_back(self, permit: Permit) -> bool:
        return self._client.call(self._client.store.control.release, permit)

    def check(self, name: str) -> None:
        """Nobody asks plain code to stop."""


def running_job(client: Client) -> Job | None:
    """The attempt that this code belongs to, where its job is of this App and stands in the store that is asked."""
    job = current.get()
    known = job is not None and job.token is not None and client.registry.find(job.task) is not None
    return job if known and client.main else None


def wait_for(taker: Taker, name: str) -> Permit:
    """Take it; blocks until it can be had."""
    tries = 0
    while True:
        answer = taker.take(name)
        if isinstance(answer, Permit):
            return answer
        ends = time.monotonic() + _pause(answer, tries)
        tries += 1
        taker.check(name)
        while (left := ends - time.monotonic()) > 0:
            time.sleep(min(left, _SLICE))
            taker.check(name)


async def await_for(taker: Taker, name: str) -> Permit:
    """As `wait_for`, without blocking the loop."""
    tries = 0
    while True:
        answer = await _atake(taker, name)
        if isinstance(answer, Permit):
            return answer
        ends = time.monotonic() + _pause(answer, tries)
        tries += 1
        taker.check(name)
        while (left := ends - time.monotonic()) > 0:
            await asyncio.sleep(min(left, _SLICE))
            taker.check(name)


async def agive_back(taker: Taker, permit: Permit) -> bool:
    """As `give_back`, without blocking the loop; a cancellation waits for it."""
    work = _beside(taker.give_back, permit)
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        await asyncio.wait([work])
        raise


async def _atake(taker: Taker, name: str) -> Permit | Refusal:
    work = _beside(taker.take, name)
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        # It may have been granted meanwhile, to nobody.
        await asyncio.wait([work])
        if not work.cancelled() and work.exception() is None and isinstance(permit := work.result(), Permit):
            await asyncio.wait([_beside(taker.give_back, permit)])
        raise


def _beside(act: Callable[[Any], T], what: object) -> asyncio.Future[T]:
    # In the caller's context, where the store sees a transaction of its own that is open.
    run = copy_context().run
    return asyncio.get_running_loop().run_in_executor(None, run, act, what)


def _pause(refusal: Refusal, tries: int) -> float:
    if refusal.wait is not None:
        return min(max(refusal.wait.total_seconds(), 0.001), _LONGEST_WAIT) * random.uniform(1.0, 1.1)
    return min(_FIRST_PAUSE * float(1 << min(tries, 8)), _LONGEST_PAUSE) * random.uniform(0.5, 1.0)


class Entered(Generic[T]):
    """What each `with` block over one object has taken: blocks of several threads and tasks at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stack: list[tuple[object, T]] = []

    def push(self, value: T) -> None:
        with self._lock:
            self._stack.append((place(), value))

    def pop(self) -> T:
        """This place's latest; where a block is left elsewhere than it was entered, anybody's latest."""
        here = place()
        with self._lock:
            for index in range(len(self._stack) - 1, -1, -1):
                if self._stack[index][0] == here:
                    return self._stack.pop(index)[1]
            return self._stack.pop()[1]


def place() -> object:
    """The thread and the task of this code."""
    try:
        task = asyncio.current_task()
    except RuntimeError:
        task = None
    return threading.get_ident(), id(task)
