"""The board: memory that a worker process and its supervisor share, so that neither needs the other's loop or GIL.

The child writes its pulse and which attempts have started; the supervisor writes when the lease was last renewed.
Every field has one writer. Knows nothing of stores or handlers.
"""

import mmap
import os
import struct
import sys
import tempfile
import time
import weakref
from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple, Self

# ticks, ticked_at, exchanges, exchanged_at, held | renewed_at, gone, draining, quarantine
_HEADER: Final = struct.Struct("=QdQdQdBBB")
_TICK: Final = struct.Struct("=Qd")
_EXCHANGE: Final = struct.Struct("=QdQ")
_RENEWED: Final = struct.Struct("=d")
_BYTE: Final = struct.Struct("=B")
_EXCHANGE_AT: Final = 16
_RENEWED_AT: Final = 40
_GONE_AT: Final = 48
_DRAINING_AT: Final = 49
_QUARANTINE_AT: Final = 50
_RECORDS_AT: Final = 64

# id, run, deadline, kind, state
_RECORD: Final = struct.Struct("=qqdBB6x")
_STATE_AT: Final = 25
EMPTY: Final = 0
RUNNING: Final = 1
ENDED: Final = 2
"""The handler is over and its end is not stored yet."""

KINDS: Final = ("loop", "thread", "process")

# Suspend stops CLOCK_MONOTONIC while leases run on; CLOCK_BOOTTIME does not stop. Elsewhere there is only one.
_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


# A partial is twice as fast as a function, and every job asks several times.
boottime: Final[Callable[[], float]] = partial(time.clock_gettime, _CLOCK)
"""Seconds on a clock that never steps and runs on through a suspend, the same in every process."""


class Pulse(NamedTuple):
    """The header as read."""

    ticks: int
    ticked_at: float
    """When the event loop last turned."""
    exchanges: int
    exchanged_at: float
    held: int
    renewed_at: float
    gone: bool
    """The store has no row of this incarnation any more."""
    draining: bool
    """An operator asked this worker to stop claiming."""
    quarantine: bool
    """Another process of this worker runs the jobs that must run alone."""


class Started(NamedTuple):
    """One attempt whose handler has begun, as the board shows it."""

    id: int
    run: int
    deadline: float
    """On the clock of `boottime`."""
    kind: str
    running: bool


class Board:
    """A fixed number of records over one file descriptor that both processes map."""

    def __init__(self, descriptor: int, records: int) -> None:
        self.descriptor = descriptor
        self.records = records
        self._map = mmap.mmap(descriptor, _RECORDS_AT + records * _RECORD.size)
        # An embedded worker's board goes with the last thread that may still write to it.
        self._closing = weakref.finalize(self, os.close, descriptor)
        self._closing.atexit = False

    @classmethod
    def create(cls, records: int) -> Self:
        """A new board in memory; hand `descriptor` and `records` to the other process."""
        if sys.platform == "linux":
            descriptor = os.memfd_create("duly-board", os.MFD_CLOEXEC)
        else:
            with tempfile.TemporaryFile() as file:
                descriptor = os.dup(file.fileno())
        os.ftruncate(descriptor, _RECORDS_AT + records * _RECORD.size)
        return cls(descriptor, records)

    def close(self) -> None:
        self._map.close()
        self._closing()

    # The child writes:

    def tick(self, ticks: int, now: float) -> None:
        """The event loop turned."""
        _TICK.pack_into(self._map, 0, ticks, now)

    def exchanged(self, exchanges: int, now: float, held: int) -> None:
        """A round trip with the store ended; `held` jobs are claimed."""
        _EXCHANGE.pack_into(self._map, _EXCHANGE_AT, exchanges, now, held)

    def start(self, record: int, id: int, run: int, deadline: float, kind: int) -> None:
        """A handler begins. `kind` is an index into KINDS."""
        _RECORD.pack_into(self._map, _RECORDS_AT + record * 32, id, run, deadline, kind, RUNNING)

    def state(self, record: int, state: int) -> None:
        self._map[_RECORDS_AT + record * 32 + _STATE_AT] = state

    # The supervisor writes:

    def renew(self, sent_at: float) -> None:
        """A heartbeat sent at `sent_at` was confirmed."""
        # A dead child's board is closed while its heart still beats, until it is settled.
        if not self._map.closed:
            _RENEWED.pack_into(self._map, _RENEWED_AT, sent_at)

    def mark_gone(self) -> None:
        self._mark(_GONE_AT, True)

    def mark_draining(self) -> None:
        self._mark(_DRAINING_AT, True)

    def mark_quarantine(self, running: bool) -> None:
        self._mark(_QUARANTINE_AT, running)

    def _mark(self, place: int, value: bool) -> None:
        if not self._map.closed:
            _BYTE.pack_into(self._map, place, value)

    # Both read:

    def pulse(self) -> Pulse:
        fields = _HEADER.unpack_from(self._map, 0)
        ticks, ticked_at, exchanges, exchanged_at, held, renewed_at, gone, draining, quarantine = fields
        return Pulse(
            ticks,
            ticked_at,
            exchanges,
            exchanged_at,
            held,
            renewed_at,
            bool(gone),
            bool(draining),
            bool(quarantine),
        )

    def started(self) -> list[Started]:
        """The attempts that have begun and are not stored as ended yet."""
        found = []
        for id, run, deadline, kind, state in _RECORD.iter_unpack(self._map[_RECORDS_AT:]):
            if state != EMPTY:
                found.append(Started(id, run, deadline, KINDS[kind], state == RUNNING))
        return found
