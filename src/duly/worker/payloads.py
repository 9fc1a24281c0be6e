"""Large arguments, steps and cursors: read when their job is about to start, with a bound on what is in memory at once.

A claim brings small arguments along; five hundred large ones would be 128 MB.
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from duly.core.defaults import MAX_PAYLOAD, PAYLOADS_IN_FLIGHT
from duly.core.job import JobId, Steps
from duly.stores.faults import Transient
from duly.stores.protocol import Store
from duly.worker.attempt import Attempt

_AT_ONCE: Final = 16
_PAUSE: Final = 0.2


class Payloads:
    """Reads in a thread of its own, which starts with the first job that needs it."""

    def __init__(self, store: Store, largest: int = MAX_PAYLOAD, room: int = PAYLOADS_IN_FLIGHT) -> None:
        self.deliver: Callable[[Sequence[Attempt]], None] = _undelivered
        self.on_missing: Callable[[Attempt], None] = _missing
        self.failure: BaseException | None = None
        self._store = store
        self._largest = largest
        self._room = max(room, largest)
        self._ready = threading.Condition()
        self._waiting: deque[Attempt] = deque()
        self._in_flight = 0
        self._closed = False
        self._thread: threading.Thread | None = None

    def push(self, attempts: Sequence[Attempt]) -> None:
        with self._ready:
            self._waiting.extend(attempts)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="duly-payloads", daemon=True)
                self._thread.start()
            self._ready.notify()

    def release(self, attempt: Attempt) -> None:
        """Its arguments are not needed any more."""
        if not attempt.bytes:
            return
        with self._ready:
            self._in_flight -= attempt.bytes
            attempt.bytes = 0
            self._ready.notify()

    def take_back(self, attempt: Attempt) -> bool:
        with self._ready:
            if attempt not in self._waiting:
                return False
            self._waiting.remove(attempt)
            return True

    def unstarted(self) -> list[Attempt]:
        with self._ready:
            return list(self._waiting)

    def close(self) -> None:
        with self._ready:
            self._closed = True
            self._ready.notify()

    def _run(self) -> None:
        try:
            while batch := self._next():
                self._read(batch)
        except BaseException as error:
            self.failure = error

    def _next(self) -> list[Attempt]:
        """As many as have room, reserved at the largest size until their real one is known."""
        with self._ready:
            while not self._closed:
                room = min((self._room - self._in_flight) // self._largest, _AT_ONCE, len(self._waiting))
                if room > 0:
                    batch = [self._waiting.popleft() for _ in range(room)]
                    for attempt in batch:
                        attempt.bytes = self._largest
                    self._in_flight += room * self._largest
                    return batch
                self._ready.wait()
            return []

    def _read(self, batch: list[Attempt]) -> None:
        try:
            found, left = self._found(batch)
        except Transient:
            for attempt in batch:
                self.release(attempt)
            with self._ready:
                self._waiting.extendleft(reversed(batch))
                if not self._closed:
                    self._ready.wait(_PAUSE)
            return
        ready = []
        for attempt in batch:
            data = attempt.job.args if attempt.job.args is not None else found.get(attempt.job.id)
            attempt.left = left.get(attempt.job.id, attempt.left)
            size = 0 if data is None else len(data) + sum(map(len, attempt.left.finished.values()))
            with self._ready:
                self._in_flight += size - attempt.bytes
                attempt.bytes = size
            if data is None:
                self.on_missing(attempt)
                continue
            if attempt.job.args is None:
                attempt.job = msgspec.structs.replace(attempt.job, args=data)
            ready.append(attempt)
        if ready:
            self.deliver(ready)

    def _found(self, batch: Sequence[Attempt]) -> tuple[dict[JobId, bytes], dict[JobId, Steps]]:
        large = [attempt.job.id for attempt in batch if attempt.job.args is None]
        resumed = [attempt.job.id for attempt in batch if attempt.job.has_steps]
        found = self._store.jobs.arguments(large) if large else {}
        return found, {id: self._store.steps.steps(id) for id in resumed}


def _undelivered(_: Sequence[Attempt]) -> None:
    raise RuntimeError("the payload reader is not connected to any slots")


def _missing(attempt: Attempt) -> None:
    raise RuntimeError(f"the arguments of job {attempt.job.id} are not in the store")
