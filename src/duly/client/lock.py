"""Locks by name, one holder in the whole fleet: of a running job, and of code outside of handlers.

The store keeps who holds one; knows no worker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextvars import ContextVar
from datetime import timedelta
from types import CodeType, TracebackType
from typing import Any, Final, Self

from duly.client.blocking import refuse_blocking
from duly.client.client import Client
from duly.client.job import Job
from duly.client.permits import (
    Entered,
    JobTaker,
    PlainTaker,
    Taker,
    agive_back,
    await_for,
    place,
    running_job,
    wait_for,
)
from duly.core.control import Permit, lock_limit
from duly.core.durations import Duration, compact_duration, parse_duration
from duly.core.errors import LeaseLost, UsageError
from duly.core.names import check_name

_held: Final[ContextVar[frozenset[tuple[str, object]]]] = ContextVar("duly_locks", default=frozenset())
"""The locks whose blocks this code is in, each with its thread and task: those begun inside are others."""


class _Section:
    """`with` or `async with`: blocks until nobody else has it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._entered: Entered[tuple[Taker, Permit]] = Entered()

    def __enter__(self) -> Self:
        refuse_blocking("with lock", "async with lock")
        taker = self._prepared()
        self._keep(taker, wait_for(taker, lock_limit(self.name)))
        return self

    async def __aenter__(self) -> Self:
        taker = self._prepared()
        self._keep(taker, await await_for(taker, lock_limit(self.name)))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        taker, permit = self._left()
        self._look(taker.give_back(permit), error)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        taker, permit = self._left()
        self._look(await agive_back(taker, permit), error)

    def _prepared(self) -> Taker:
        if (self.name, place()) in _held.get():
            raise UsageError(
                f"the lock {self.name!r} is held by this code already and would wait for itself; leave the inner block "
                "out"
            )
        return self._taker()

    def _taker(self) -> Taker:
        raise AssertionError

    def _keep(self, taker: Taker, permit: Permit) -> None:
        self._entered.push((taker, permit))
        _held.set(_held.get() | {(self.name, place())})

    def _left(self) -> tuple[Taker, Permit]:
        _held.set(_held.get() - {(self.name, place())})
        return self._entered.pop()

    def _look(self, in_time: bool, error: BaseException | None) -> None:
        # Whoever left with an error has worse to tell.
        if not in_time and error is None:
            raise LeaseLost(self._ran_out())

    def _ran_out(self) -> str:
        raise AssertionError


class JobLock(_Section):
    """What `job.lock` gives: held until its block ends, and never longer than the attempt."""

    def __init__(self, job: Job, name: str) -> None:
        super().__init__(check_name("lock", name))
        self._job = job

    def _taker(self) -> Taker:
        return JobTaker(self._job)

    def _ran_out(self) -> str:
        return f"the lock {self.name!r} was lost with the attempt of job {self._job.id}; write nothing more"

    def __repr__(self) -> str:
        return f"<JobLock {self.name!r} of job {self._job.id}>"


class Lock(_Section):
    """What `App.lock` gives: held until its block ends, at most for its ttl, which starts anew with each block."""

    def __init__(self, client: Client, name: str, ttl: Duration) -> None:
        super().__init__(check_name("lock", name))
        self.ttl: timedelta = parse_duration(ttl, "ttl", positive=True)
        self._client = client

    def _taker(self) -> Taker:
        job = running_job(self._client)
        if job is not None and job.time_left() > self.ttl:
            raise UsageError(
                f"the lock {self.name!r} would run out after {compact_duration(self.ttl)}, before the time to run of "
                f"job {job.id} ({job.task}); inside a handler write job.lock({self.name!r}), which lives as long as "
                "the attempt"
            )
        return PlainTaker(self._client, self.ttl)

    def _ran_out(self) -> str:
        return (
            f"the lock {self.name!r} ran out after its ttl of {compact_duration(self.ttl)}, before its block ended: "
            "somebody else may have been in it meanwhile; give it a longer ttl"
        )

    def __repr__(self) -> str:
        return f"<Lock {self.name!r} for {compact_duration(self.ttl)} at most>"


def locks_of(fn: Callable[..., Any]) -> Iterator[tuple[str, Lock]]:
    """(variable, lock) of those that a function names: globals and what it captured."""
    code = getattr(fn, "__code__", None)
    if not isinstance(code, CodeType):
        return
    around = getattr(fn, "__globals__", {})
    for name in code.co_names:
        if isinstance(value := around.get(name), Lock):
            yield name, value
    for name, cell in zip(code.co_freevars, getattr(fn, "__closure__", None) or (), strict=False):
        try:
            value = cell.cell_contents
        except ValueError:
            # A variable that has no value yet.
            continue
        if isinstance(value, Lock):
            yield name, value
