"""Waking: a counter in a side file that writers bump after a commit, and the thread that watches it.

The counter is a hint. A missing or unwritable side file costs latency, never a job. Knows no table.
"""

import mmap
import os
import struct
import threading
from collections.abc import Callable
from typing import Final

_SIZE: Final = mmap.PAGESIZE
_WORD: Final = struct.Struct("<Q")
# Which word of the file counts what.
_COMMITS: Final = 0
_ARRIVED: Final = 1
_SERVED: Final = 2

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
        self._tried = False

    def bump(self) -> None:
        """Something was committed. Called by whoever holds the process queue, so that no bump is lost."""
        self._add(_COMMITS)

    def read(self) -> int:
        return self._get(_COMMITS)

    def arrived(self) -> None:
        """A process waits for its turn."""
        self._add(_ARRIVED)

    def served(self) -> None:
        """A process that waited has its turn."""
        self._add(_SERVED)

    def waiting(self) -> bool:
        """Whether some process waits, as far as the counters know."""
        return self._get(_ARRIVED) > self._get(_SERVED)

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
        self._map = None
        self._tried = False

    def _get(self, word: int) -> int:
        shared = self._shared()
        return 0 if shared is None else int(_WORD.unpack_from(shared, word * _WORD.size)[0])

    def _add(self, word: int) -> None:
        shared = self._shared()
        if shared is not None:
            _WORD.pack_into(shared, word * _WORD.size, (self._get(word) + 1) % 2**64)

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

    def close(self) -> None:
        """Wait for the thread to end, unless it is the one that calls."""
        self._closed = True
        self._changed.set()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _watch(self) -> None:
        seen, version = self._seen, self._last_version
        pause, since_version = _FIRST_PAUSE, 0.0
        try:
            while not self._closed:
                if self._changed.wait(pause if self._idle else _BUSY_PAUSE):
                    self._changed.clear()
                    pause = _FIRST_PAUSE
                since_version += pause if self._idle else _BUSY_PAUSE
                counter, rung = self._wake.read(), False
                if counter != seen:
                    seen, rung = counter, True
                elif since_version >= _VERSION_EVERY:
                    since_version = 0.0
                    latest = self._version()
                    rung, version = latest != version, latest
                if rung and not self._closed:
                    # Our own commits move the change counter too: read it, so that it does not ring a second time.
                    version = self._version()
                    self._on_work()
                pause = _FIRST_PAUSE if rung else min(pause * 2, _LONGEST_PAUSE)
        finally:
            self._forget()
