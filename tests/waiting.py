"""Waiting for something to become true, with an upper bound: what tests use instead of sleeping.

Knows nothing of duly. The pauses between two looks grow from 1 ms to 50 ms.
"""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import TypeVar, overload

T = TypeVar("T")

FIRST_PAUSE = 0.001
LONGEST_PAUSE = 0.05


def wait_until(probe: Callable[[], T], *, timeout: float = 30.0, what: str = "") -> T:
    """Call `probe` until it returns something true, and return that. AssertionError after `timeout` seconds.

    `what` says in the error what was waited for. An error of the probe ends the wait.
    """
    deadline = time.monotonic() + timeout
    pause = FIRST_PAUSE
    never = threading.Event()
    while True:
        seen = probe()
        if seen:
            return seen
        if time.monotonic() >= deadline:
            raise AssertionError(_too_late(probe, timeout, what, seen))
        never.wait(pause)
        pause = min(pause * 2, LONGEST_PAUSE)


@overload
async def await_until(probe: Callable[[], Awaitable[T]], *, timeout: float = 30.0, what: str = "") -> T: ...
@overload
async def await_until(probe: Callable[[], T], *, timeout: float = 30.0, what: str = "") -> T: ...
async def await_until(probe: Callable[[], object], *, timeout: float = 30.0, what: str = "") -> object:
    """As `wait_until`, for a test on an event loop: the loop turns meanwhile. The probe may be async."""
    deadline = time.monotonic() + timeout
    pause = FIRST_PAUSE
    while True:
        answer = probe()
        seen = await answer if isawaitable(answer) else answer
        if seen:
            return seen
        if time.monotonic() >= deadline:
            raise AssertionError(_too_late(probe, timeout, what, seen))
        await _turn(pause)
        pause = min(pause * 2, LONGEST_PAUSE)


async def _turn(pause: float) -> None:
    loop = asyncio.get_running_loop()
    due = loop.create_future()
    loop.call_later(pause, due.set_result, None)
    await due


def _too_late(probe: Callable[[], object], timeout: float, what: str, seen: object) -> str:
    name = what or getattr(probe, "__qualname__", repr(probe))
    return f"still not so after {timeout:g} s: {name} (last answer: {seen!r})"
