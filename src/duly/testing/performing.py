"""Running one attempt in a test: the handler, on the test's loop or thread, and what became of it.

How an attempt ends is worker/run.py's word; this only calls, and keeps what a test may ask for.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextvars import Context
from dataclasses import dataclass, field
from typing import Any, Final

from duly.core.endings import Ending, unwrap_ending
from duly.core.job import Ended, JobId
from duly.core.lifecycle import Event, State
from duly.testing.tap import Killed
from duly.worker.attempt import Attempt
from duly.worker.board import boottime
from duly.worker.floor import Slot
from duly.worker.run import Around, acall, bind, call, handle_of, raised, read_arguments, returned

# These end the test itself, whatever a handler might make of them.
_PASSING: Final = (Killed, KeyboardInterrupt)


@dataclass(frozen=True, slots=True)
class Ran:
    """One attempt that ran in the test."""

    task: str
    arguments: Mapping[str, Any]
    job_id: JobId
    attempt: int
    """1 at first; failures and losses raise it."""
    ending: Event
    """What happened: complete, fail, snooze, skip, bury, cancel, interrupt or lose."""
    state: State
    """Where that led: completed, scheduled for another attempt, dead, …"""
    result: object = None
    error: BaseException | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Drained:
    """How many attempts ended how."""

    ran: int = 0
    """Attempts in all."""
    completed: int = 0
    failed: int = 0
    """Attempts that failed, whether the job is tried again or not."""
    dead: int = 0
    """Jobs that were given up, or buried by their handler."""
    snoozed: int = 0
    skipped: int = 0
    cancelled: int = 0
    interrupted: int = 0
    lost: int = 0
    """Attempts whose worker died, as `deliver_twice` has it."""

    @classmethod
    def of(cls, ran: Sequence[Ran]) -> Drained:
        """Count them."""
        events = Counter(one.ending for one in ran)
        return cls(
            ran=len(ran),
            completed=events[Event.complete],
            failed=events[Event.fail],
            dead=sum(one.state is State.dead for one in ran),
            snoozed=events[Event.snooze],
            skipped=events[Event.skip],
            cancelled=events[Event.cancel],
            interrupted=events[Event.interrupt],
            lost=events[Event.lose],
        )


@dataclass(frozen=True, slots=True)
class Performed:
    """An attempt whose handler is over."""

    attempt: Attempt
    slot: Slot
    ended: Ended
    arguments: Mapping[str, Any]
    result: object = None
    error: BaseException | None = None

    def trouble(self) -> BaseException | None:
        """What the test should hear of: a handler's error, never an ending that it chose."""
        ended = self.ended
        if self.error is not None and isinstance(unwrap_ending(self.error), Ending):
            return None
        if ended.event is not Event.fail and ended.to is not State.dead:
            return None
        if self.error is not None:
            return self.error
        said = ended.reason or (ended.error.message if ended.error is not None else "it failed")
        return AssertionError(f"job {ended.id} ({self.attempt.job.task}) ended as {ended.to}: {said}")


@dataclass(slots=True)
class _Heard:
    result: object = None
    error: BaseException | None = None


def perform(attempt: Attempt, slot: Slot, arounds: Sequence[Around], run: Callable[..., Any]) -> Performed:
    """Run the handler here; `run(coroutine, context=…)` runs an async one to its end."""
    kwargs = read_arguments(attempt)
    if isinstance(kwargs, Ended):
        return Performed(attempt, slot, kwargs, {})
    heard, context = _Heard(), Context()
    if attempt.card.is_async:
        run(_await(attempt, kwargs, arounds, heard), context=context)
    else:
        context.run(_call, attempt, kwargs, arounds, heard)
    return _performed(attempt, slot, kwargs, heard)


async def aperform(attempt: Attempt, slot: Slot, arounds: Sequence[Around]) -> Performed:
    """As `perform`: async handlers on the running loop, others in a thread, as in a worker."""
    kwargs = read_arguments(attempt)
    if isinstance(kwargs, Ended):
        return Performed(attempt, slot, kwargs, {})
    heard, context = _Heard(), Context()
    if attempt.card.is_async:
        work = asyncio.get_running_loop().create_task(
            _await(attempt, kwargs, arounds, heard), context=context
        )
        try:
            await asyncio.wait([work])
        except asyncio.CancelledError:
            # The test itself was cancelled; its handler must not go on without it.
            work.cancel()
            await asyncio.wait([work])
            raise
        work.result()
    else:
        await asyncio.to_thread(context.run, _call, attempt, kwargs, arounds, heard)
    return _performed(attempt, slot, kwargs, heard)


def _call(attempt: Attempt, kwargs: dict[str, Any], arounds: Sequence[Around], heard: _Heard) -> None:
    job = handle_of(attempt)
    bind(job)
    try:
        heard.result = call(attempt, job, kwargs, arounds)
    except BaseException as error:
        heard.error = error


async def _await(attempt: Attempt, kwargs: dict[str, Any], arounds: Sequence[Around], heard: _Heard) -> None:
    job = handle_of(attempt)
    bind(job)
    try:
        heard.result = await acall(attempt, job, kwargs, arounds)
    except BaseException as error:
        heard.error = error


def _performed(attempt: Attempt, slot: Slot, kwargs: dict[str, Any], heard: _Heard) -> Performed:
    if isinstance(heard.error, _PASSING):
        raise heard.error
    now = boottime()
    error = heard.error
    ended = returned(attempt, heard.result, now) if error is None else raised(attempt, error, now)
    return Performed(attempt, slot, ended, kwargs, heard.result, error)
