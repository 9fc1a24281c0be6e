"""The generators that run around attempts and around processes: what they look like, checked at registration.

Runs none of them; that is the worker's.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from duly.client.job import Job
from duly.core.errors import UsageError

AroundFunction = Callable[[Job], Iterator[None] | AsyncIterator[None]]
LifespanFunction = Callable[[], Iterator[None] | AsyncIterator[None]]


def check_around(fn: AroundFunction) -> AroundFunction:
    """UsageError unless it is a generator function that takes the job alone."""
    _check(fn, 1, "around", "(job: Job)")
    return fn


def check_lifespan(fn: LifespanFunction) -> LifespanFunction:
    """UsageError unless it is a generator function that takes nothing."""
    _check(fn, 0, "lifespan", "()")
    return fn


def _check(fn: Callable[..., Any], wanted: int, what: str, parameters: str) -> None:
    name = getattr(fn, "__name__", repr(fn))
    if not inspect.isgeneratorfunction(fn) and not inspect.isasyncgenfunction(fn):
        raise UsageError(
            f"@jobs.{what} needs a generator; write `def {name}{parameters}:` with one bare `yield`"
        )
    required = [
        item
        for item in inspect.signature(fn).parameters.values()
        if item.default is item.empty and item.kind not in {item.VAR_POSITIONAL, item.VAR_KEYWORD}
    ]
    if len(required) != wanted:
        raise UsageError(f"@jobs.{what} calls {name}{parameters}, but it takes {len(required)} arguments")
