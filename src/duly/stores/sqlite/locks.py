"""The queue of processes before the write lock: flock on a side file, fair where SQLite's busy handler starves.

Knows nothing of SQLite. One holder at a time per process; the caller sees to that.
"""

import fcntl
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Final, Protocol

_STEP: Final = 0.0002
# A waiter that is not there by then does not run.
_POLITENESS: Final = 0.005


class Waiters(Protocol):
    """What the processes tell each other about who waits; hints, never needed for safety."""

    def arrived(self) -> None: ...
    def served(self) -> None: ...
    def waiting(self) -> bool: ...
    def turns(self) -> int: ...
    def settle(self) -> None: ...


class _Request:
    def __init__(self) -> None:
        self.granted = threading.Event()
        self.abandoned = False


class FileQueue:
    """An exclusive lock between processes with a time limit.

    flock itself knows no limit, so that a contended wait is left to a thread which gives the lock back
    when nobody wants it any more. It is no queue either: who releases it and comes again at once is faster than
    any sleeper it woke, and so lets those that wait go first.
    """

    def __init__(self, path: str, waiters: Waiters) -> None:
        self._path = path
        self._waiters = waiters
        self._descriptor: int | None = None
        self._requests: SimpleQueue[_Request | None] = SimpleQueue()
        self._waiter: threading.Thread | None = None
        self._mutex = threading.Lock()

    def acquire(self, deadline: float) -> bool:
        """Wait until `deadline` (monotonic); False when it passed. OSError when the file cannot be opened."""
        if self._descriptor is None:
            self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        if self._waiters.waiting():
            self._let_others_go_first()
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._waiters.arrived()
            granted = self._wait(self._descriptor, deadline)
            self._waiters.served()
            return granted
        return True

    def release(self) -> None:
        if self._descriptor is not None:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def close(self) -> None:
        if self._waiter is not None:
            self._requests.put(None)
            self._waiter.join(timeout=1)
            self._waiter = None
        self.forget()

    def forget(self) -> None:
        """Close our copy of the descriptor; in a forked child this leaves the parent's lock as it is."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            with suppress(OSError):
                os.close(descriptor)

    def _let_others_go_first(self) -> None:
        waiters = self._waiters
        turns, give_up = waiters.turns(), time.monotonic() + _POLITENESS
        while waiters.turns() == turns:
            if time.monotonic() >= give_up:
                waiters.settle()
                return
            time.sleep(_STEP)

    def _wait(self, descriptor: int, deadline: float) -> bool:
        if self._waiter is None:
            arguments = (descriptor, self._requests.get, self._mutex)
            self._waiter = threading.Thread(
                target=_serve, args=arguments, name="duly-sqlite-lock", daemon=True
            )
            self._waiter.start()
        request = _Request()
        self._requests.put(request)
        try:
            if request.granted.wait(max(0.0, deadline - time.monotonic())):
                return True
        except BaseException:
            if not self._abandon(request):
                fcntl.flock(descriptor, fcntl.LOCK_UN)
            raise
        return not self._abandon(request)

    def _abandon(self, request: _Request) -> bool:
        with self._mutex:
            if request.granted.is_set():
                return False
            request.abandoned = True
            return True


def _serve(descriptor: int, take: Callable[[], _Request | None], mutex: threading.Lock) -> None:
    # No reference to the FileQueue: it must stay collectable while this thread waits.
    while (request := take()) is not None:
        if request.abandoned:
            continue
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        with mutex:
            if request.abandoned:
                fcntl.flock(descriptor, fcntl.LOCK_UN)
            else:
                request.granted.set()
