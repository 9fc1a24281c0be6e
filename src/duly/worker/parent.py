"""What an isolated process says of its attempt to the process that holds the lease, and the answers it waits for.

Knows the messages and no handler. Any thread may call it; a step's write blocks the caller until it is answered.
"""

import threading
from typing import Final

import msgspec

from duly.core.job import JobId
from duly.worker.channel import Channel
from duly.worker.messages import HandsOver, IsolatedOrders, KeepStep, Moved, StepKept

_PAUSE: Final = 0.1


class Parent:
    """Of one attempt; after `close` nothing is said any more in its name."""

    def __init__(self, channel: Channel[IsolatedOrders]) -> None:
        self._channel = channel
        self._speaking = threading.Lock()
        self._asking = threading.Lock()
        self._noting = threading.Lock()
        self._closed = False
        self._key: tuple[int, int] = (0, 0)
        self._cursors: dict[str, int] = {}
        self._news = threading.Event()
        self._over = threading.Event()
        self._teller: threading.Thread | None = None

    def tell(self, message: msgspec.Struct) -> None:
        with self._speaking:
            if not self._closed:
                self._channel.send(message)

    def keep_step(self, name: str, value: bytes) -> StepKept:
        """Have it written. Refused like a lost lease once the attempt is over or the parent is gone."""
        with self._asking:
            if not self._closed:
                self.tell(KeepStep(name, value))
                # Only one asks at a time, and nothing else is sent here while an attempt runs.
                while not self._channel.closed:
                    answer = self._channel.receive(None)
                    if isinstance(answer, StepKept):
                        return answer
        return StepKept(live=False)

    def moved(self, key: tuple[int, int], name: str, position: int) -> None:
        """A loop came so far: said at once, and then ten times a second at most."""
        with self._noting:
            self._key = key
            self._cursors[name] = position
        if self._teller is None:
            self._teller = threading.Thread(target=self._run, name="duly-cursors", daemon=True)
            self._teller.start()
        if not self._news.is_set():
            self._news.set()

    def hands_over(self) -> None:
        """Say no more of loops, and have the parent forget what was said."""
        with self._noting:
            self._cursors = {}
        self.tell(HandsOver())

    def close(self) -> None:
        """Waits for an answer that is on its way, so that nobody mistakes it for another one."""
        with self._asking, self._speaking:
            self._closed = True
        self._over.set()
        self._news.set()

    def _run(self) -> None:
        while not self._over.is_set():
            self._news.wait()
            self._news.clear()
            with self._noting:
                moved, self._cursors = self._cursors, {}
                id, run = self._key
            if moved:
                self.tell(Moved(JobId(id), run, tuple(moved.items())))
            self._over.wait(_PAUSE)
