"""Waking: a counter in a side file that writers bump after a commit, and the thread that sleeps until it moves.

The counter is a hint. A missing or unwritable side file costs latency, never a job. Knows no table.
"""

import mmap
import os
import struct
import threading
import time
from collections.abc import Callable
from typing import Final

from duly.stores.sqlite.futex import Futex

_SIZE: Final = mmap.PAGESIZE
_WORD: Final = struct.Struct("<Q")
_TWO: Final = struct.Struct("<QQ")
# Which word of the file counts what.
_COMMITS: Final = 0
_ARRIVED: Final = 1
_SERVED: Final = 2

# Between two looks where one cannot sleep on the counter.
_FIRST_PAUSE: Final = 0.001
_LONGEST_PAUSE: Final = 0.020
_BUSY_PAUSE: Final = 0.200
# Commits of users' own connections bump no counter; SQLite's own change counter shows them.
_VERSION_EVERY: Final = 0.200


class WakeFile:
    """Counters that all processes on a file share. They are hints: a lost count costs time, nothing else."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._map: mmap.mmap | None = None
        self._futex: Futex | None = None
        self._tried = False

    def bump(self) -> None:
        """Something was committed. Called by whoever holds the process queue, so that no bump is lost."""
        self._add(_COMMITS)

    def read(self) -> int:
        return self._get(_COMMITS)

    def ring(self) -> None:
        """Wake those who wait for the counter to move, after a bump."""
        if self._shared() is not None and self._futex is not None:
            self._futex.ring()

    def wait(self, seen: int, seconds: float) -> bool:
        """Sleep until the counter moves from `seen`, or somebody rings, at most so long; False where that cannot be."""
        if self._shared() is None or (futex := self._futex) is None:
            return False
        word = futex.value
        return self.read() != seen or futex.wait(word, seconds)

    def arrived(self) -> None:
        """A process waits for its turn."""
        self._add(_ARRIVED)

    def served(self) -> None:
        """A process that waited has its turn."""
        self._add(_SERVED)

    def waiting(self) -> bool:
        """Whether some process waits, as far as the counters know."""
        shared = self._map or self._shared()
        if shared is None:
            return False
        # Asked before every transaction.
        arrived, served = _TWO.unpack_from(shared, _ARRIVED * _WORD.size)
        return bool(arrived > served)

    def turns(self) -> int:
        return self._get(_SERVED)

    def settle(self) -> None:
        """Nobody waits: whoever was counted has died or stands still."""
        shared = self._shared()
        if shared is not None:
            _WORD.pack_into(shared, _SERVED * _WORD.size, self._get(_ARRIVED))

    def forget(self) -> None:
        """Let go of the mapping; the next use maps it anew."""
        # Not closed: a listener may be reading it.
        self._map = self._futex = None
        self._tried = False

    def _get(self, word: int) -> int:
        shared = self._shared()
        return 0 if shared is None else int(_WORD.unpack_from(shared, word * _WORD.size)[0])

    def _add(self, word: int) -> None:
        shared = self._map or self._shared()
        if shared is not None:
            place = word * _WORD.size
            _WORD.pack_into(shared, place, (_WORD.unpack_from(shared, place)[0] + 1) % 2**64)

    def _shared(self) -> mmap.mmap | None:
        if self._map is None and not self._tried:
            self._tried = True
            try:
                descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
                try:
                    if os.fstat(descriptor).st_size < _SIZE:
                        # Really written: a store into a hole of a full disk would end the process with SIGBUS.
                        os.pwrite(descriptor, bytes(_SIZE), 0)
                    self._map = mmap.mmap(descriptor, _SIZE)
                    self._futex = Futex(self._map)
                finally:
                    os.close(descriptor)
            except OSError:
                self._map = None
        return self._map


class SQLiteListener:
    """Calls `on_work` from its own thread after a commit that may have made work ready."""

    def __init__(
        self,
        wake: WakeFile,
        version: Callable[[], int | None],
        on_work: Callable[[], None],
        forget: Callable[[], None],
    ) -> None:
        self._wake = wake
        self._version = version
        self._on_work = on_work
        self._forget = forget
        self._idle = True
        self._closed = False
        self._changed = threading.Event()
        # Before the thread starts: what is committed from now on must ring.
        self._seen, self._last_version = wake.read(), version()
        self._thread = threading.Thread(target=self._watch, name="duly-sqlite-listener", daemon=True)
        self._thread.start()

    def idle(self, yes: bool) -> None:
        self._idle = yes
        if yes:
            self._changed.set()

    def found(self) -> None:
        """The counter tells all there is to know."""

    def close(self) -> None:
        """Wait for the thread to end, unless it is the one that calls."""
        self._closed = True
        self._changed.set()
        if threading.current_thread() is self._thread:
            return
        while self._thread.is_alive():
            # It may have been about to sleep when this rang.
            self._wake.ring()
            self._thread.join(_FIRST_PAUSE)

    def _watch(self) -> None:
        seen, version = self._seen, self._last_version
        pause, look = _FIRST_PAUSE, time.monotonic() + _VERSION_EVERY
        try:
            while not self._closed:
                self._sleep(seen, pause)
                counter, rung = self._wake.read(), False
                if counter != seen:
                    seen, rung = counter, True
                elif time.monotonic() >= look:
                    latest = self._version()
                    rung, version = latest != version, latest
                    look = time.monotonic() + _VERSION_EVERY
                if rung and not self._closed:
                    self._on_work()
                pause = _FIRST_PAUSE if rung else min(pause * 2, _LONGEST_PAUSE)
        finally:
            self._forget()

    def _sleep(self, seen: int, pause: float) -> None:
        """Until there may be work, or it is time to look for a user's commits. A busy worker is not disturbed often."""
        if not self._idle:
            self._changed.wait(_BUSY_PAUSE)
            self._changed.clear()
        elif not self._wake.wait(seen, _VERSION_EVERY) and self._changed.wait(pause):
            self._changed.clear()
