"""Several server processes on one socket: started, replaced when one dies, ended together. Knows no route.

They are forks of this process, which answers nobody itself and must have no thread and nothing of a store open. Only
its main thread may run them.
"""

from __future__ import annotations

import logging
import mmap
import os
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final, NoReturn, Protocol

from duly.worker.restarts import Restarts
from duly.worker.signals import Signals

_LOOK: Final = 0.5
_ENDS: Final = 30.0
"""Seconds for all to end in order: more than what they wait for answers, upkeep and alerts together."""
_BACKLOG: Final = 2_048
_PARENTS: Final = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP})

log: Final = logging.getLogger("duly.web")


class Serve(Protocol):
    """The life of one process, in its main thread."""

    def __call__(self, first: bool, started: Callable[[], None], /) -> int:
        """Until SIGTERM; the exit code. Calls `started` once it answers. Exactly one at a time is the first."""


def bind(host: str, port: int) -> list[socket.socket]:
    """Sockets that listen on every address of a host, as one process would by itself. OSError where they cannot."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    made: list[socket.socket] = []
    try:
        for family, address in dict.fromkeys((info[0], info[4]) for info in found):
            made.append(socket.create_server(address[:2], family=family, backlog=_BACKLOG))
    except OSError:
        for one in made:
            one.close()
        raise
    return made


class _Place:
    """One of the processes, and after its death whoever replaces it."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.pid: int | None = None
        self.since = 0.0
        self.restarts = Restarts()


class Processes:
    """So many processes, each of which lives as `serve` says."""

    def __init__(self, count: int, serve: Serve, sockets: Sequence[socket.socket]) -> None:
        self._serve = serve
        self._sockets = sockets
        self._places = [_Place(number) for number in range(count)]
        self._signals = Signals()
        # A byte for each, in memory that all of them share: whether it answers.
        self._answers = mmap.mmap(-1, count)
        # Nobody writes: it is at its end once the parent, which alone holds the other end, is gone.
        self._parent, self._held = os.pipe()
        self._hopeless = False

    def run(self) -> int:
        """Until SIGTERM, SIGINT or SIGHUP; the exit code: 1 when a process ended before it answered and no other does.

        A second SIGINT kills those that have not ended yet.
        """
        self._signals.install()
        try:
            while not (self._signals.seen or self._hopeless):
                self._start_missing()
                self._signals.wait(_LOOK, ())
                for place, code in self._ended():
                    self._bury(place, code)
        finally:
            self._end()
            self._signals.restore()
            os.close(self._parent)
            os.close(self._held)
        return 1 if self._hopeless else 0

    def _start_missing(self) -> None:
        now = time.monotonic()
        for place in self._places:
            if place.pid is None and place.restarts.allowed(now):
                place.since = now
                try:
                    place.pid = self._fork(place.number)
                except OSError as error:
                    # Too little memory or too many processes, which may pass.
                    self._missed(place, f"no server process can be started ({error})")

    def _fork(self, number: int) -> int:
        for stream in (sys.stdout, sys.stderr):
            # Else both sides would write what waits.
            stream.flush()
        # One that comes before the child has handlers of its own would be noted by the parent's, and be lost.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _PARENTS)
        try:
            pid = os.fork()
            if pid == 0:
                self._live(number)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return pid

    def _live(self, number: int) -> NoReturn:
        code = 1
        try:
            os.close(self._held)
            self._signals.restore()
            threading.Thread(target=self._end_with_parent, name="duly-parent", daemon=True).start()
            # A terminal sends the others to all processes at once, and what they mean is the parent's to say.
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
            code = self._serve(number == 0, partial(self._answers.__setitem__, number, 1))
        except SystemExit as error:
            code = error.code if isinstance(error.code, int) else 1
        except BaseException:
            traceback.print_exc()
        finally:
            with suppress(Exception):
                sys.stdout.flush()
                sys.stderr.flush()
            # What stands above in the stack is the parent's.
            os._exit(code)

    def _end_with_parent(self) -> None:
        os.read(self._parent, 1)
        # Whoever kills the parent wants the port to be free now.
        os._exit(1)

    def _ended(self) -> list[tuple[_Place, int]]:
        """Those that have ended since the last look."""
        found = []
        for place in self._places:
            if place.pid is None:
                continue
            pid, status = os.waitpid(place.pid, os.WNOHANG)
            if pid:
                found.append((place, os.waitstatus_to_exitcode(status)))
        return found

    def _bury(self, place: _Place, code: int) -> None:
        how = f"ended with exit code {code}" if code >= 0 else f"was ended by {signal.Signals(-code).name}"
        when = "" if self._answers[place.number] else " before it answered"
        pid, place.pid = place.pid, None
        self._missed(place, f"server process {pid} {how}{when}")

    def _missed(self, place: _Place, why: str) -> None:
        answered, self._answers[place.number] = self._answers[place.number], 0
        now = time.monotonic()
        place.restarts.died(now, now - place.since)
        # Where others answer, a start that fails costs nobody anything, and the next one may not fail.
        if answered or any(self._answers[:]):
            log.warning("%s; another one takes its place", why)
        else:
            self._hopeless = True
            log.error("%s, and no other answers", why)

    def _end(self) -> None:
        for one in self._sockets:
            one.close()
        self._send(signal.SIGTERM)
        latest = time.monotonic() + _ENDS
        while any(place.pid is not None for place in self._places):
            self._signals.wait(_LOOK, ())
            for place, _ in self._ended():
                place.pid = None
            if time.monotonic() >= latest or self._signals.seen.count("SIGINT") > 1:
                self._send(signal.SIGKILL)

    def _send(self, number: signal.Signals) -> None:
        for place in self._places:
            if place.pid is not None:
                # One that has ended is there until it is waited for, so that the number is nobody else's.
                os.kill(place.pid, number)
