"""`def` handlers: plain threads, started when first needed. A thread that does not stop is given up, never killed."""

import contextvars
import threading
from collections import deque
from collections.abc import Sequence

from duly.core.job import Ended
from duly.worker.attempt import Attempt
from duly.worker.card import THREAD
from duly.worker.floor import Floor, Slot
from duly.worker.run import bind, blocking, call, handle_of, raised, read_arguments, returned


class ThreadGroup:
    """The thread slots of one process."""

    kind = THREAD

    def __init__(self, floor: Floor, size: int) -> None:
        self.slots: list[Slot] = []
        self.failure: BaseException | None = None
        self._floor = floor
        self._size = size
        self._ready = threading.Condition()
        self._waiting: deque[Attempt] = deque()
        self._idle = 0
        self._closed = False
        self._arounds = blocking(floor.arounds)

    def start(self) -> None:
        """Nothing yet: threads start with the first job."""

    def push(self, attempts: Sequence[Attempt]) -> None:
        with self._ready:
            self._waiting.extend(attempts)
            busy = sum(1 for slot in self.slots if not slot.abandoned) - self._idle
            for _ in range(min(len(self._waiting) - self._idle, self._size - busy - self._idle)):
                self._hire()
            self._ready.notify(len(attempts))

    def take_back(self, attempt: Attempt) -> bool:
        with self._ready:
            try:
                self._waiting.remove(attempt)
            except ValueError:
                return False
            return True

    def unstarted(self) -> list[Attempt]:
        with self._ready:
            return list(self._waiting)

    def stop(self, attempt: Attempt) -> None:
        """Cooperative: `job.should_stop` is true from now on."""

    def give_up(self, attempt: Attempt) -> None:
        with self._ready:
            slot = attempt.slot
            if isinstance(slot, Slot) and not slot.abandoned:
                slot.abandoned = True
                if self._waiting:
                    self._hire()

    def close(self) -> None:
        with self._ready:
            self._closed = True
            self._ready.notify_all()

    def _hire(self) -> None:
        slot = Slot(len(self.slots))
        self.slots.append(slot)
        # Daemons: a handler that never returns must not keep the process.
        thread = threading.Thread(
            target=self._serve, args=(slot,), name=f"duly-thread-{slot.number}", daemon=True
        )
        slot.thread = thread
        thread.start()

    def _serve(self, slot: Slot) -> None:
        try:
            follower: Attempt | None = None
            while (attempt := follower or self._next(slot)) is not None:
                follower = None
                if self._floor.begin(attempt, slot):
                    contextvars.Context().run(self._run, attempt, slot)
                    follower = self._floor.follower(attempt, slot)
                else:
                    self._floor.on_end(attempt)
        except BaseException as error:
            self.failure = error
        finally:
            with self._ready:
                if slot in self.slots:
                    self.slots.remove(slot)

    def _next(self, slot: Slot) -> Attempt | None:
        with self._ready:
            self._idle += 1
            try:
                while not self._waiting:
                    if self._closed or slot.abandoned:
                        return None
                    self._ready.wait()
                return None if slot.abandoned else self._waiting.popleft()
            finally:
                self._idle -= 1

    def _run(self, attempt: Attempt, slot: Slot) -> None:
        floor = self._floor
        try:
            kwargs = read_arguments(attempt)
            if isinstance(kwargs, Ended):
                floor.finish(attempt, kwargs, slot)
                return
            job = handle_of(attempt)
            bind(job)
            ended = returned(attempt, call(attempt, job, kwargs, self._arounds), floor.clock())
        except BaseException as error:
            ended = raised(attempt, error, floor.clock())
        floor.finish(attempt, ended, slot)
