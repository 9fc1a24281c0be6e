"""From how a handler ended to what the store shall write: one pure decision per attempt.

Knows the policy of the task and the job's counters; randomness and time are passed in.
"""

from datetime import timedelta
from typing import Final

from msgspec import Struct

from .backoff import Backoff
from .classify import Verdict
from .defaults import MAX_REASON
from .endings import Dead, Ending, Retry, Skip, SkippedByGuard, Snooze
from .fingerprint import ErrorRecord
from .job import ClaimedJob, Counters, Ended
from .lifecycle import Event, State
from .text import storable

INTERRUPTED_TOO_OFTEN: Final = "interrupted {} times in a row"
# Reading a member from its class runs Python code before 3.12, and every job ends so.
_COMPLETE: Final = Event.complete
_COMPLETED: Final = State.completed


class Policy(Struct, frozen=True):
    """What decides after an attempt: the job's own limits where it has them, else the task's."""

    attempts: int
    backoff: Backoff
    max_interrupts: int


def completed(job: ClaimedJob, result: bytes | None, elapsed: timedelta, note: str | None = None) -> Ended:
    """running -> completed."""
    counters = job.counters
    if counters.interrupted:
        counters = _settled(job)
    return Ended(job.id, job.run, _COMPLETE, _COMPLETED, counters, None, result, None, note, None, elapsed)


def raised(
    job: ClaimedJob, ending: Ending, policy: Policy, random: float, error: ErrorRecord, elapsed: timedelta
) -> Ended:
    """The handler raised an ending: Snooze and Skip cost nothing, Retry costs an attempt, Dead ends the job."""
    match ending:
        case Snooze():
            counters = _settled(job, snoozed=job.counters.snoozed + 1)
            return Ended(
                job.id,
                job.run,
                Event.snooze,
                State.scheduled,
                counters,
                delay=ending.wait,
                reason=storable(ending.reason, MAX_REASON) or None,
                elapsed=elapsed,
            )
        case Skip():
            return Ended(
                job.id,
                job.run,
                Event.skip,
                State.skipped,
                _settled(job),
                reason=storable(ending.reason, MAX_REASON),
                elapsed=elapsed,
                guard=ending.guard if isinstance(ending, SkippedByGuard) else None,
            )
        case Dead():
            return Ended(
                job.id,
                job.run,
                Event.bury,
                State.dead,
                _settled(job),
                reason=storable(ending.reason, MAX_REASON),
                error=error,
                elapsed=elapsed,
            )
        case Retry():
            return _retry_or_dead(
                job,
                policy,
                random,
                error,
                elapsed,
                ending.reason or "asked to be retried",
                ending.wait,
                exact=ending.wait is not None,
            )
        case _:
            return failed(job, Verdict("transient", None), policy, random, error, elapsed)


def failed(
    job: ClaimedJob,
    verdict: Verdict,
    policy: Policy,
    random: float,
    error: ErrorRecord,
    elapsed: timedelta,
    reason: str | None = None,
) -> Ended:
    """An error: permanent -> dead at once; transient -> scheduled after the backoff, dead when the budget is spent."""
    text = storable(reason or error.message or error.type, MAX_REASON)
    if verdict.kind == "permanent":
        counters = _settled(job, failed=job.counters.failed + 1)
        return Ended(
            job.id, job.run, Event.fail, State.dead, counters, reason=text, error=error, elapsed=elapsed
        )
    return _retry_or_dead(job, policy, random, error, elapsed, text, verdict.retry_after, exact=False)


def interrupted(
    job: ClaimedJob, policy: Policy, reason: str, elapsed: timedelta | None, error: ErrorRecord | None = None
) -> Ended:
    """A shutdown handed the job back: no attempt is spent, until it happened too often in a row."""
    counters = job.counters
    if elapsed is not None and counters.interrupted + 1 > policy.max_interrupts:
        text = INTERRUPTED_TOO_OFTEN.format(counters.interrupted + 1)
        spent = _settled(job, failed=counters.failed + 1)
        return Ended(
            job.id, job.run, Event.fail, State.dead, spent, reason=text, error=error, elapsed=elapsed
        )
    back = Counters(counters.failed, counters.lost, counters.interrupted + 1, counters.snoozed)
    return Ended(job.id, job.run, Event.interrupt, State.ready, back, reason=reason, elapsed=elapsed)


def cancelled(job: ClaimedJob, reason: str, elapsed: timedelta | None) -> Ended:
    """A cancel was wished and the handler stopped for it."""
    return Ended(
        job.id, job.run, Event.cancel, State.cancelled, _settled(job), reason=reason, elapsed=elapsed
    )


def undecodable(job: ClaimedJob, error: ErrorRecord) -> Ended:
    """The stored arguments do not fit the handler: dead at once, the arguments kept byte for byte."""
    counters = _settled(job, failed=job.counters.failed + 1)
    return Ended(
        job.id,
        job.run,
        Event.fail,
        State.dead,
        counters,
        reason=storable(f"arguments cannot be read: {error.message}", MAX_REASON),
        error=error,
    )


def lost(job: ClaimedJob, reason: str, poison: int, elapsed: timedelta | None, *, alone: bool) -> Ended:
    """An attempt given up while its process goes on (an overrun thread): ready again, or dead as poison."""
    counters = job.counters
    gone = Counters(counters.failed, counters.lost + 1, 0, counters.snoozed)
    to = State.dead if gone.lost >= poison and alone else State.ready
    text = f"poison: its worker was lost {gone.lost} times" if to is State.dead else reason
    return Ended(job.id, job.run, Event.lose, to, gone, reason=text, elapsed=elapsed)


def _retry_or_dead(
    job: ClaimedJob,
    policy: Policy,
    random: float,
    error: ErrorRecord,
    elapsed: timedelta,
    reason: str,
    wait: timedelta | None,
    *,
    exact: bool,
) -> Ended:
    failures = job.counters.failed + 1
    counters = _settled(job, failed=failures)
    limit = job.attempts if job.attempts is not None else policy.attempts
    if failures >= limit:
        return Ended(
            job.id,
            job.run,
            Event.fail,
            State.dead,
            counters,
            reason=storable(f"gave up after {failures}: {reason}", MAX_REASON),
            error=error,
            elapsed=elapsed,
            transient=True,
        )
    backoff = policy.backoff.delay(failures, random)
    delay = wait if exact and wait is not None else max(backoff, wait or timedelta(0))
    return Ended(
        job.id,
        job.run,
        Event.fail,
        State.scheduled,
        counters,
        delay=delay,
        reason=reason,
        error=error,
        elapsed=elapsed,
        transient=True,
    )


def _settled(job: ClaimedJob, *, failed: int | None = None, snoozed: int | None = None) -> Counters:
    counters = job.counters
    return Counters(
        counters.failed if failed is None else failed,
        counters.lost,
        0,
        counters.snoozed if snoozed is None else snoozed,
    )
