"""A connection that does not wait for ever: a statement of ours without an answer ends the connection.

The kernel notices a dead peer; it does not notice a proxy that keeps the connection open and passes nothing on.
"""

import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any, Final, Self, TypeVar

import psycopg

T = TypeVar("T")

SILENCE: Final = 15.0
"""Seconds without a byte from the server: with a heartbeat every 5 s there is time for another try within the lease."""


class PatientConnection(psycopg.Connection[Any]):
    """Waits without end where nothing is said, as for a caller's own statements."""

    _silence: float | None = None

    @contextmanager
    def patience(self, seconds: float) -> Iterator[Self]:
        """In the block: OperationalError, and a closed connection, after so long a silence."""
        before, self._silence = self._silence, seconds
        try:
            yield self
        finally:
            self._silence = before

    def wait(self, gen: Generator[Any, Any, T], *args: Any, **kwargs: Any) -> T:
        """See psycopg: drives one piece of protocol."""
        if self._silence is not None:
            gen = self._heard(gen, self._silence)
        return super().wait(gen, *args, **kwargs)

    def _heard(self, gen: Generator[Any, Any, T], seconds: float) -> Generator[Any, Any, T]:
        until = time.monotonic() + seconds
        try:
            wanted = next(gen)
            while True:
                # Nothing is ready: psycopg looks up from its wait ten times a second.
                if ready := (yield wanted):
                    until = time.monotonic() + seconds
                elif time.monotonic() >= until:
                    self.pgconn.finish()
                    raise psycopg.OperationalError(f"the server said nothing for {seconds:g} s")
                wanted = gen.send(ready)
        except StopIteration as end:
            value: T = end.value
            return value
