"""Times as the tables hold them: whole microseconds since 1970 UTC. Reads no clock."""

from datetime import UTC, datetime, timedelta
from typing import Final

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND: Final = timedelta(microseconds=1)
LATEST: Final = (datetime.max.replace(tzinfo=UTC) - EPOCH) // MICROSECOND


def to_micros(moment: datetime) -> int:
    """An aware datetime as a number."""
    return (moment - EPOCH) // MICROSECOND


def from_micros(number: int) -> datetime:
    """The aware datetime of a number; one beyond year 9999 is cut to it."""
    return EPOCH + timedelta(microseconds=min(number, LATEST))


def maybe_from_micros(number: int | None) -> datetime | None:
    return None if number is None else from_micros(number)


def span(duration: timedelta) -> int:
    """A duration in microseconds."""
    return duration // MICROSECOND


def maybe_span(duration: timedelta | None) -> int | None:
    return None if duration is None else duration // MICROSECOND


def maybe_duration(number: int | None) -> timedelta | None:
    return None if number is None else timedelta(microseconds=number)
