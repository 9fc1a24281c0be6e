"""Which work a request belongs to: its correlation id and traceparent, taken from its headers or made.

What is bound here, enqueues of the same context carry on. Knows no framework and no job.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from duly.core.trace import made_traceparent, read_traceparent
from duly.telemetry import context

HEADER: Final = "X-Correlation-ID"
"""Taken and answered; X-Request-ID is taken where it is missing."""
ALSO: Final = "X-Request-ID"
TRACE: Final = "traceparent"

# Fit for a header, a log line and a filter; digits alone would be a job's number.
_CORRELATION: Final = re.compile(r"(?![0-9]+\Z)[A-Za-z0-9][A-Za-z0-9._:/@+=-]{0,199}")

# Names and no secrets. Asking the system for each would let another thread have the interpreter between two requests.
_NUMBERS: Final = random.Random()
os.register_at_fork(after_in_child=_NUMBERS.seed)


class Belonging(NamedTuple):
    """What one request belongs to."""

    correlation_id: str
    traceparent: str


def belonging(correlation: str | None, request_id: str | None, traceparent: str | None) -> Belonging:
    """What the headers say, where they say it properly; made anew else."""
    taken = next((said for said in (correlation, request_id) if said and _CORRELATION.fullmatch(said)), None)
    trace = read_traceparent(traceparent) if traceparent else None
    if taken is None or trace is None:
        made = _NUMBERS.randbytes(40)
        taken = taken or made[:16].hex()
        trace = trace or made_traceparent(made[16:32], made[32:])
    return Belonging(taken, trace)


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
