"""The endings a handler raises to say how its attempt ends, other than by return or error.

Owns their values; what follows from each is decided elsewhere.
"""

from __future__ import annotations

from datetime import timedelta

from duly.core.defaults import MAX_REASON
from duly.core.durations import Duration, compact_duration, parse_duration
from duly.core.errors import UsageError
from duly.core.text import storable


class Ending(BaseException):
    """What a handler raises to end its attempt; `except Exception` lets it through."""

    reason: str


class Snooze(Ending):
    """Not now: run again after `wait`; running -> scheduled, at no cost of an attempt."""

    def __init__(self, wait: Duration, reason: str = "") -> None:
        self.wait: timedelta = parse_duration(wait, "Snooze(wait)")
        self.reason = _text("Snooze", reason)
        super().__init__(self.wait, self.reason)

    def __str__(self) -> str:
        return _sentence(f"snoozed for {compact_duration(self.wait)}", self.reason)


class Skip(Ending):
    """Not needed any more: running -> skipped, with the reason kept; nothing is retried."""

    def __init__(self, reason: str) -> None:
        self.reason = _text("Skip", reason, required=True)
        super().__init__(self.reason)

    def __str__(self) -> str:
        return _sentence("skipped", self.reason)


class SkippedByGuard(Skip):
    """A guard of the task said no; its name leads the reason."""

    def __init__(self, guard: str, why: str) -> None:
        super().__init__(f"guard {guard}: {why}")
        self.guard = guard


class Retry(Ending):
    """Failed, try again: running -> scheduled, or dead at the last attempt; costs an attempt.

    Without `wait` the task's backoff says when.
    """

    def __init__(self, wait: Duration | None = None, reason: str = "") -> None:
        self.wait: timedelta | None = None if wait is None else parse_duration(wait, "Retry(wait)")
        self.reason = _text("Retry", reason)
        super().__init__(self.wait, self.reason)

    def __str__(self) -> str:
        after = "" if self.wait is None else f" after {compact_duration(self.wait)}"
        return _sentence(f"retry{after}", self.reason)


class Dead(Ending):
    """Failed for good: running -> dead, whatever attempts are left; an operator may redrive it."""

    def __init__(self, reason: str) -> None:
        self.reason = _text("Dead", reason, required=True)
        super().__init__(self.reason)

    def __str__(self) -> str:
        return _sentence("dead", self.reason)


def _text(ending: str, reason: str, *, required: bool = False) -> str:
    if not isinstance(reason, str):
        raise UsageError(
            f"the reason of {ending} is text, not {type(reason).__name__}; write "
            f"{ending}(…, reason=str(error)) or a sentence of your own"
        )
    if required and not reason.strip():
        raise UsageError(f"{ending} needs a reason: the person who finds the job will read it")
    return storable(reason, MAX_REASON)


def _sentence(what: str, reason: str) -> str:
    return f"{what}: {reason}" if reason else what


def unwrap_ending(error: BaseException) -> BaseException:
    """Return the one ending that a group, nested or not, consists of; else `error` itself.

    A group that holds anything beside the ending stays what it is: an error must not hide
    behind a Snooze raised next to it.
    """
    inner = error
    while isinstance(inner, BaseExceptionGroup) and len(inner.exceptions) == 1:
        inner = inner.exceptions[0]
    return inner if isinstance(inner, Ending) else error
