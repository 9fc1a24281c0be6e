"""Running one attempt: decode, call the handler inside its around functions, and turn its end into what is stored.

Knows how a handler may end, not where it runs: loop, thread and child process share this.
"""

import random
import signal
from asyncio import CancelledError
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from inspect import isasyncgen, isasyncgenfunction, isawaitable, iscoroutine, isgenerator
from typing import Any, Final

import msgspec

from duly.client.job import Job, current
from duly.client.steps import StepInTransaction, StepNotKept
from duly.core import decide
from duly.core.classify import Verdict, classify
from duly.core.endings import Ending, Snooze, unwrap_ending
from duly.core.envelope import KeyNotHeld, is_sealed
from duly.core.fingerprint import ErrorRecord, describe
from duly.core.job import Ended
from duly.core.secret import masked
from duly.worker.attempt import ROLLED_BACK, Attempt

Around = Callable[[Job], Any]

_KEY_PAUSE: Final = "1m"
"""Between two looks whether the key is there."""
_TRANSIENT: Final = Verdict("transient")
_PERMANENT: Final = Verdict("permanent")
_DATA: Final = frozenset({str, int, float, bool, dict, list, tuple})
_NOT_RUN: Final = (
    "the handler returned work that nobody runs ({}): make it `async def` and await, or run it to its end"
)


def handle_of(attempt: Attempt) -> Job:
    """The Job that the handler and its enqueues see."""
    return Job.claimed(attempt.job, attempt.desk.incarnation, attempt, attempt.encode)


def read_arguments(attempt: Attempt) -> dict[str, Any] | Ended:
    """The keyword arguments, or the end of a job whose arguments do not fit."""
    try:
        return attempt.card.decode(_opened(attempt))
    except KeyNotHeld as error:
        return _left_alone(attempt, str(error))
    except Exception as error:
        return decide.undecodable(attempt.job, describe(error))


def _opened(attempt: Attempt) -> bytes:
    """The arguments in clear; also what earlier runs have left is from here on."""
    job, card = attempt.job, attempt.card
    data = b"{}" if job.args is None else job.args
    sealed = is_sealed(data)
    attempt.seals = sealed or card.encrypted(job.queue)
    if sealed:
        data = card.sealing.open_arguments(job.queue, job.task, job.tenant, data)
    if attempt.left.finished:
        attempt.left = card.sealing.open_steps(job.id, attempt.left)
    return data


def _left_alone(attempt: Attempt, why: str) -> Ended:
    """Another worker, or this one once it was given the key, can run it: nothing is spent."""
    ending = Snooze(_KEY_PAUSE, f"this job cannot be read here: {why}")
    return decide.raised(
        attempt.job, ending, attempt.card.policy, random.random(), describe(ending), timedelta(0)
    )


def call(attempt: Attempt, job: Job, kwargs: dict[str, Any], arounds: Sequence[Around]) -> Any:
    """Ask the guards and call a `def` handler, inside the around functions, the first one outermost."""
    card = attempt.card
    with ExitStack() as stack:
        for around in blocking(arounds):
            stack.enter_context(contextmanager(around)(job))
        for guard in card.guards:
            guard.ask(job, kwargs)
        return card.fn(job, **kwargs) if card.takes_job else card.fn(**kwargs)


def blocking(arounds: Sequence[Around]) -> tuple[Around, ...]:
    """Those that can surround a `def` handler; an async one has no loop to run on there."""
    return tuple(around for around in arounds if not isasyncgenfunction(around))


async def acall(attempt: Attempt, job: Job, kwargs: dict[str, Any], arounds: Sequence[Around]) -> Any:
    """As `call`, for an async handler; guards and around functions may be async too."""
    card = attempt.card
    async with AsyncExitStack() as stack:
        for around in arounds:
            if isasyncgenfunction(around):
                await stack.enter_async_context(asynccontextmanager(around)(job))
            else:
                stack.enter_context(contextmanager(around)(job))
        for guard in card.guards:
            await guard.aask(job, kwargs)
        return await (card.fn(job, **kwargs) if card.takes_job else card.fn(**kwargs))


def returned(attempt: Attempt, result: object, now: float) -> Ended:
    """The handler returned."""
    if attempt.committed is not None:
        return attempt.committed
    if attempt.handed_over:
        # Where the user's transaction committed, the store finds the end of this very attempt and changes nothing.
        return _failed(attempt, ErrorRecord("RolledBack", ROLLED_BACK, "", "rollback"), ROLLED_BACK, now)
    if result is None:
        return decide.completed(attempt.job, None, attempt.elapsed(now))
    if type(result) not in _DATA and (isawaitable(result) or isasyncgen(result) or isgenerator(result)):
        return _not_run(attempt, result, now)
    try:
        data, note = attempt.encode(result)
    except Exception as error:
        data, note = None, f"result not storable: {describe(error).message}"
    return decide.completed(attempt.job, data, attempt.elapsed(now), note)


def raised(attempt: Attempt, error: BaseException, now: float) -> Ended:
    """The handler raised: an ending, an error, or what our own asking to stop made of it."""
    if attempt.committed is not None:
        return attempt.committed
    return _without_secrets(_raised(attempt, error, now))


def _without_secrets(ended: Ended) -> Ended:
    """What a handler says in words holds no Secret of its arguments."""
    if ended.reason is None and ended.note is None:
        return ended
    reason = None if ended.reason is None else masked(ended.reason)
    note = None if ended.note is None else masked(ended.note)
    return msgspec.structs.replace(ended, reason=reason, note=note)


def _raised(attempt: Attempt, error: BaseException, now: float) -> Ended:
    inner = unwrap_ending(error)
    policy, elapsed = attempt.card.policy, attempt.elapsed(now)
    if isinstance(inner, Ending):
        return decide.raised(attempt.job, inner, policy, random.random(), describe(inner), elapsed)
    record = describe(error)
    stopped = isinstance(error, CancelledError) or _only_cancelled(error)
    match attempt.why:
        case "timeout":
            return timed_out(attempt, now, record)
        case "cancel" if stopped:
            return decide.cancelled(attempt.job, attempt.reason, elapsed)
        case "shutdown" | "lease" if stopped or attempt.card.is_async:
            return decide.interrupted(
                attempt.job, policy, attempt.reason, elapsed, None if stopped else record
            )
        case _:
            return judged(attempt, error, record, now)


def judged(attempt: Attempt, error: BaseException, record: ErrorRecord, now: float) -> Ended:
    """An error of the handler's own: permanent or transient by the task's rules."""
    # Another attempt would do again what is done and could not be kept.
    permanent = (*attempt.card.permanent, StepNotKept, StepInTransaction)
    verdict = classify(error, permanent=permanent, transient=attempt.card.transient, now=datetime.now(UTC))
    ended = decide.failed(
        attempt.job, verdict, attempt.card.policy, random.random(), record, attempt.elapsed(now)
    )
    return msgspec.structs.replace(ended, note=verdict.note) if verdict.note else ended


def timed_out(attempt: Attempt, now: float, at: ErrorRecord | None = None, note: str = "") -> Ended:
    """A failed attempt, whatever the handler made of being stopped. `at` shows where it stood."""
    text = attempt.timeout_text()
    record = ErrorRecord("Timeout", text, at.traceback if at is not None else "", "timeout")
    ended = _failed(attempt, record, text, now)
    return msgspec.structs.replace(ended, note=note) if note else ended


def stopped(attempt: Attempt, now: float, at: ErrorRecord | None = None, note: str = "") -> Ended:
    """The end of an attempt that was stopped from outside: killed, or given up and now gone with its process."""
    match attempt.why:
        case "cancel":
            ended = decide.cancelled(attempt.job, attempt.reason, attempt.elapsed(now))
        case "shutdown" | "lease":
            ended = decide.interrupted(attempt.job, attempt.card.policy, attempt.reason, attempt.elapsed(now))
        case _:
            ended = timed_out(attempt, now, at, note)
    return attempt.carrying(ended)


def handed_back(attempt: Attempt, reason: str) -> Ended:
    """Claimed and never started: ready again, at no cost."""
    return decide.interrupted(attempt.job, attempt.card.policy, reason, None)


def crash_text(code: int) -> str:
    """How a process ended, from its return code."""
    if code >= 0:
        return f"exited with {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"


def bind(job: Job) -> None:
    """Make it the current job of this context."""
    current.set(job)


def _not_run(attempt: Attempt, result: object, now: float) -> Ended:
    """A plain function that hands back a coroutine or generator has done nothing yet: completed would be a lie."""
    if iscoroutine(result):
        result.close()
    reason = _NOT_RUN.format(type(result).__name__)
    record = ErrorRecord("NotRun", reason, "", "notrun00")
    return decide.failed(
        attempt.job, _PERMANENT, attempt.card.policy, random.random(), record, attempt.elapsed(now), reason
    )


def _failed(attempt: Attempt, record: ErrorRecord, reason: str, now: float) -> Ended:
    return decide.failed(
        attempt.job, _TRANSIENT, attempt.card.policy, random.random(), record, attempt.elapsed(now), reason
    )


def _only_cancelled(error: BaseException) -> bool:
    waiting = [error]
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, BaseExceptionGroup):
            waiting.extend(inner.exceptions)
        elif not isinstance(inner, CancelledError):
            return False
    return True
