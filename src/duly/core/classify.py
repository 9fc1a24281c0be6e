"""Whether an error is worth another attempt, and how long its sender asked to wait.

Knows HTTP clients by the names of their modules and attributes alone: it imports none of them.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Literal

from duly.core.defaults import MAX_RETRY_AFTER
from duly.core.errors import PayloadError, UsageError
from duly.core.fingerprint import is_own, leaves, message_of

Kind = Literal["transient", "permanent"]
Rule = type[BaseException] | Callable[[BaseException], bool]

_HTTP_CLIENTS: Final = frozenset({"httpx", "httpx2", "requests", "aiohttp", "botocore", "urllib"})
_TRANSIENT_STATUSES: Final = frozenset({408, 425, 429})

# AWS throttles with status 400; the names are those that botocore's own retry modes repeat.
_AWS_TRANSIENT: Final = frozenset(
    {
        "BandwidthLimitExceeded",
        "EC2ThrottledException",
        "LimitExceededException",
        "PriorRequestNotComplete",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestThrottledException",
        "RequestTimeout",
        "RequestTimeoutException",
        "SlowDown",
        "Throttling",
        "ThrottlingException",
        "ThrottledException",
        "TooManyRequestsException",
        "TransactionInProgressException",
    }
)

_UNFIT_CALL: Final = re.compile(
    r"\) (missing \d+ required|takes |got an unexpected keyword|got multiple values|got some positional-only)"
)
_HTTP_DATE: Final = re.compile(
    r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), (\d\d) ([A-Z][a-z]{2}) (\d{4}) (\d\d):(\d\d):(\d\d) GMT"
)
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What to do with a failed attempt: try again (transient) or stop (permanent)."""

    kind: Kind
    retry_after: timedelta | None = None
    """How long the other side asked to wait; None leaves it to the backoff."""
    note: str = ""
    """A rule of the user's that could not be asked, for the attempt's record."""


def check_rules(permanent: Iterable[Rule], transient: Iterable[Rule]) -> None:
    """Raise UsageError unless every rule is an exception class or a predicate, and none stands on both sides."""
    first, second = tuple(permanent), tuple(transient)
    for rule in (*first, *second):
        if isinstance(rule, type) and not issubclass(rule, BaseException):
            raise UsageError(f"{rule.__qualname__} in permanent= or transient= is no exception class")
        if not callable(rule):
            raise UsageError(
                f"{rule!r:.80} in permanent= or transient= must be an exception class or a function of the error"
            )
    if both := [rule for rule in first if rule in second]:
        raise UsageError(
            f"{both[0]!r:.80} stands in permanent= and in transient=; remove it from one of them"
        )


def classify(
    error: BaseException,
    *,
    permanent: Iterable[Rule] = (),
    transient: Iterable[Rule] = (),
    now: datetime,
) -> Verdict:
    """Return the verdict on an attempt's error; never raises.

    The user's rules come first: a predicate that says yes, then the nearest class; between equals transient wins,
    since one attempt too many costs less than a job given up. Then HTTP statuses and calls that do not fit the
    handler are judged; whatever is left is transient. `now` turns a Retry-After date into a wait.
    """
    never, never_note = _nearest(error, permanent)
    again, again_note = _nearest(error, transient)
    note = "; ".join(filter(None, (never_note, again_note)))
    if never is None and again is None:
        verdict = _built_in(error, now)
        return Verdict(verdict.kind, verdict.retry_after, note)
    if again is None or (never is not None and never < again):
        return Verdict("permanent", note=note)
    return Verdict("transient", _asked_wait(error, now), note)


def _nearest(error: BaseException, rules: Iterable[Rule]) -> tuple[int | None, str]:
    nearest, note = None, ""
    ancestry = type(error).__mro__
    for rule in rules:
        distance: int | None = None
        if isinstance(rule, type):
            if isinstance(error, rule):
                # A virtual base class is in no ancestry: it is as far away as can be.
                distance = ancestry.index(rule) if rule in ancestry else len(ancestry)
        else:
            try:
                distance = -1 if rule(error) else None
            except Exception as failure:
                note = f"the rule {getattr(rule, '__qualname__', rule)!s:.80} raised {type(failure).__name__}"
        if distance is not None and (nearest is None or distance < nearest):
            nearest = distance
    return nearest, note


def _built_in(error: BaseException, now: datetime) -> Verdict:
    if isinstance(error, BaseExceptionGroup):
        return _group(error, now)
    if _unfit(error):
        return Verdict("permanent")
    status = _status(error)
    if (
        status is not None
        and 400 <= status < 500
        and status not in _TRANSIENT_STATUSES
        and not _throttled(error)
    ):
        return Verdict("permanent")
    return Verdict("transient", _asked_wait(error, now))


def _group(error: BaseExceptionGroup[BaseException], now: datetime) -> Verdict:
    verdicts = [_built_in(leaf, now) for leaf in leaves(error)]
    if all(verdict.kind == "permanent" for verdict in verdicts):
        return Verdict("permanent")
    waits = [verdict.retry_after for verdict in verdicts if verdict.retry_after is not None]
    return Verdict("transient", max(waits, default=None))


def _unfit(error: BaseException) -> bool:
    """The call never reached a line of the handler, and never will: its arguments do not fit."""
    step = error.__traceback__
    if step is None or not isinstance(error, (TypeError, PayloadError)):
        return False
    while step.tb_next is not None:
        if not is_own(step.tb_frame):
            return False
        step = step.tb_next
    fits_pattern = isinstance(error, PayloadError) or _UNFIT_CALL.search(message_of(error)) is not None
    return is_own(step.tb_frame) and fits_pattern


def _client(error: BaseException) -> str | None:
    for ancestor in type(error).__mro__:
        root = str(ancestor.__module__).partition(".")[0]
        if root in _HTTP_CLIENTS:
            return root
    return None


def _attribute(owner: object, name: str) -> object:
    try:
        return getattr(owner, name, None)
    except Exception:  # httpx raises RuntimeError where a request or response was never set
        return None


def _entry(mapping: object, name: str) -> object:
    if isinstance(mapping, Mapping):
        return next((value for key, value in mapping.items() if str(key).lower() == name.lower()), None)
    get = _attribute(mapping, "get")
    return get(name) if callable(get) else None


def _status(error: BaseException) -> int | None:
    client = _client(error)
    response = _attribute(error, "response")
    status: object = None
    if client == "botocore":
        status = _entry(_entry(response, "ResponseMetadata"), "HTTPStatusCode")
    elif client in {"aiohttp", "urllib"}:
        status = _attribute(error, "status" if client == "aiohttp" else "code")
    elif client is not None:
        status = _attribute(response, "status_code")
    return status if isinstance(status, int) else None


def _throttled(error: BaseException) -> bool:
    if _client(error) != "botocore":
        return False
    return _entry(_entry(_attribute(error, "response"), "Error"), "Code") in _AWS_TRANSIENT


def _asked_wait(error: BaseException, now: datetime) -> timedelta | None:
    client = _client(error)
    response = _attribute(error, "response")
    if client is None:
        return None
    if client == "botocore":
        headers = _entry(_entry(response, "ResponseMetadata"), "HTTPHeaders")
    elif client in {"aiohttp", "urllib"}:
        headers = _attribute(error, "headers")
    else:
        headers = _attribute(response, "headers")
    value = _entry(headers, "Retry-After")
    return read_retry_after(value, now) if isinstance(value, str) else None


def read_retry_after(value: str, now: datetime) -> timedelta | None:
    """Read a Retry-After header, seconds or an HTTP date, as a wait of 0 to MAX_RETRY_AFTER; None if it is neither."""
    text = value.strip()
    if re.fullmatch(r"[0-9]{1,18}", text):
        return timedelta(seconds=min(int(text), MAX_RETRY_AFTER // timedelta(seconds=1)))
    found = _HTTP_DATE.fullmatch(text)
    if found is None or found[2] not in _MONTHS:
        return None
    day, year, hour, minute, second = (int(found[part]) for part in (1, 3, 4, 5, 6))
    try:
        moment = datetime(year, _MONTHS.index(found[2]) + 1, day, hour, minute, min(second, 59), tzinfo=UTC)
    except ValueError:
        return None
    return min(max(moment - now, timedelta(0)), MAX_RETRY_AFTER)
