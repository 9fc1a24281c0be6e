"""SIGTERM and SIGINT as they come, and a wait that they, a child's word or a child's end cut short."""

import select
import signal
import socket
import threading
from collections.abc import Sequence
from types import FrameType
from typing import Any


class Signals:
    """For the main thread; elsewhere it hears nothing and only waits."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        """Names, in order; repeated ones as often as they came."""
        self._read, self._write = socket.socketpair()
        self._read.setblocking(False)
        self._write.setblocking(False)
        self._before: dict[int, Any] = {}
        self._descriptor_before = -1

    def install(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        self._descriptor_before = signal.set_wakeup_fd(self._write.fileno(), warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
            self._before[number] = signal.signal(number, self._note)

    def wait(self, seconds: float, descriptors: Sequence[int]) -> None:
        """Until a signal, something to read on one of `descriptors`, or the time is over."""
        poll = select.poll()
        for descriptor in (self._read.fileno(), *descriptors):
            poll.register(descriptor, select.POLLIN)
        poll.poll(seconds * 1000)
        try:
            self._read.recv(4096)
        except BlockingIOError:
            # Something else ended the wait.
            pass

    def restore(self) -> None:
        """Give the signals back to whoever had them."""
        if self._before:
            signal.set_wakeup_fd(self._descriptor_before)
            for number, handler in self._before.items():
                signal.signal(number, handler)
        self._read.close()
        self._write.close()

    def _note(self, number: int, _: FrameType | None) -> None:
        if number != signal.SIGCHLD:
            self.seen.append(signal.Signals(number).name)
