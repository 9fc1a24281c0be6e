"""What an HTTP client is told of duly's errors, as RFC 9457 problems. Knows no framework."""

from datetime import timedelta
from typing import Final, NamedTuple

import msgspec

from duly.core.errors import DulyError, KeyReused, QueueFull, StoreUnreachable

MEDIA_TYPE: Final = "application/problem+json"
# A restart of a database takes seconds; a client that asks again sooner only adds load.
RETRY_AFTER: Final = "5"

ERRORS: Final[tuple[type[DulyError], ...]] = (KeyReused, QueueFull, StoreUnreachable)
"""Those that concern the client; every other one is a fault of the program and stays its own."""


class Problem(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


def problem_of(error: Exception) -> Problem:
    """The answer for one of `ERRORS`. A database's address and words stay inside."""
    if isinstance(error, KeyReused):
        return _problem(422, "The idempotency key was used before for another request", str(error))
    if isinstance(error, QueueFull):
        seconds = -(-error.retry_after // timedelta(seconds=1))
        return _problem(503, "Too much waits already; try again", None, {"Retry-After": str(seconds)})
    return _problem(503, "The job store does not answer; try again", None, {"Retry-After": RETRY_AFTER})


def _problem(status: int, title: str, detail: str | None, headers: dict[str, str] | None = None) -> Problem:
    body = {"type": "about:blank", "title": title, "status": status}
    if detail is not None:
        body["detail"] = detail
    return Problem(status, headers or {}, msgspec.json.encode(body))
