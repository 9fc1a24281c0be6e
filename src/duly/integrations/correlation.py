"""Which work a request belongs to: its correlation id and traceparent, taken from its headers or made.

What is bound here, enqueues of the same context carry on. Knows no framework and no job.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from os import urandom
from typing import Final, NamedTuple
from uuid import uuid4

from duly.core.trace import made_traceparent, read_traceparent
from duly.telemetry import context

HEADER: Final = "X-Correlation-ID"
"""Taken and answered; X-Request-ID is taken where it is missing."""
ALSO: Final = "X-Request-ID"
TRACE: Final = "traceparent"

# Fit for a header, a log line and a filter; digits alone would be a job's number.
_CORRELATION: Final = re.compile(r"(?![0-9]+\Z)[A-Za-z0-9][A-Za-z0-9._:/@+=-]{0,199}")


class Belonging(NamedTuple):
    """What one request belongs to."""

    correlation_id: str
    traceparent: str


def belonging(correlation: str | None, request_id: str | None, traceparent: str | None) -> Belonging:
    """What the headers say, where they say it properly; made anew else."""
    taken = next((said for said in (correlation, request_id) if said and _CORRELATION.fullmatch(said)), None)
    return Belonging(
        taken or uuid4().hex, read_traceparent(traceparent) or made_traceparent(urandom(16), urandom(8))
    )


@contextmanager
def bound(to: Belonging) -> Iterator[None]:
    """Let the enqueues and log lines of this context belong there while the block lasts."""
    before = context.correlation.get(), context.traceparent.get()
    context.correlation.set(to.correlation_id)
    context.traceparent.set(to.traceparent)
    try:
        yield
    finally:
        # Not by token: a server may end the block in another context than it began it in.
        context.correlation.set(before[0])
        context.traceparent.set(before[1])
