"""Writing finished steps: those that wait at the same time go to the store in one call and one transaction.

Whoever comes first writes what is there; who comes meanwhile is gathered for the next write. Each is tried until the
store has answered, for as long as its attempt may wait: a restart of the database must not have work repeated that is
done. Knows no handler.
"""

import asyncio
import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from duly.core.errors import UsageError
from duly.core.job import FinishedStep, Incarnation
from duly.stores.faults import DataFault, Transient
from duly.stores.protocol import Store
from duly.worker.attempt import Attempt, Phase
from duly.worker.board import boottime
from duly.worker.messages import StepKept

_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 1.0
_MOST: Final = 256
_MOST_BYTES: Final = 4 * 2**20
_STAY: Final = 10.0
"""Seconds without a step after which our thread ends; the next one starts another."""
_KEPT: Final = StepKept(live=True)
_LOST: Final = StepKept(live=False)
_HELD: Final = "an open transaction holds the job"

Answer = bool | Exception | None
"""The store's word on one step; None: a transaction held its row."""


class StepWrite:
    """One step on its way. It may be written twice: the first value stays."""

    __slots__ = ("_attempt", "_until", "pause", "step")

    def __init__(self, attempt: Attempt, name: str, value: bytes) -> None:
        job = attempt.job
        self.step = FinishedStep(job.id, job.run, name, value)
        self.pause = 0.0
        """Seconds to wait before the next try."""
        self._attempt = attempt
        # As it stands now: a handler's own lock on the file would else be waited for as long as the lease is renewed.
        self._until = min(attempt.deadline_at, attempt.desk.stop_at())

    def judged(self, answer: Answer, now: float) -> StepKept | None:
        """What the store's answer means; None: there is time to try again."""
        if answer is True:
            return _KEPT
        if answer is False:
            return _LOST
        if isinstance(answer, DataFault):
            return StepKept(live=False, fault=str(answer), why="unfit")
        if isinstance(answer, UsageError):
            return StepKept(live=False, fault=str(answer), why="inside")
        if answer is not None and not isinstance(answer, Transient):
            # A fault of ours or of a driver: the attempt fails for it, not the worker.
            return _broken(answer)
        if self._must_end(now):
            return StepKept(live=False, fault=_HELD if answer is None else str(answer))
        self.pause = min(max(2 * self.pause, _FIRST_PAUSE), _LONGEST_PAUSE)
        return None

    def _must_end(self, now: float) -> bool:
        attempt = self._attempt
        return attempt.why is not None or attempt.phase is not Phase.running or now >= self._until


class _OwnWrite(StepWrite):
    """Of a handler whose thread waits for it."""

    __slots__ = ("kept", "told")

    def __init__(self, attempt: Attempt, name: str, value: bytes) -> None:
        super().__init__(attempt, name, value)
        self.kept: StepKept | None = None
        self.told = threading.Event()


class PostedWrite(StepWrite):
    """Of a handler that is elsewhere. `tell` is called once: on `loop`, else in the thread that wrote.

    `fail` is called in its place with what is no answer of a store, as the death of the process in a test.
    """

    __slots__ = ("fail", "loop", "next_at", "tell")

    def __init__(
        self,
        attempt: Attempt,
        name: str,
        value: bytes,
        tell: Callable[[StepKept], object],
        loop: asyncio.AbstractEventLoop | None = None,
        fail: Callable[[BaseException], object] | None = None,
    ) -> None:
        super().__init__(attempt, name, value)
        self.tell = tell
        self.loop = loop
        self.fail = fail
        self.next_at = 0.0


class FirmFuture(asyncio.Future[StepKept]):
    """An answer that a cancellation waits for: what has run is written down before its handler ends."""

    def cancel(self, msg: object = None) -> bool:
        """Refused: the task is cancelled when it has the answer."""
        return False


class StepWriter:
    """The steps of one process, from all kinds of handlers. One thread at a time writes: a handler's, or our own."""

    def __init__(self, store: Store, incarnation: Incarnation) -> None:
        self._store = store
        self._incarnation = incarnation
        self._forget()

    def _forget(self) -> None:
        self._process = os.getpid()
        self._news = threading.Condition(threading.Lock())
        self._waiting: deque[StepWrite] = deque()
        self._later: list[PostedWrite] = []
        """Those whose next try is not due yet."""
        self._led = False
        """Some thread is writing."""
        self._thread: threading.Thread | None = None

    def keep(self, attempt: Attempt, name: str, value: bytes) -> StepKept:
        """Write it, in this thread unless another one is writing; blocks."""
        if self._process != os.getpid():
            # A handler has forked: what others had waiting is their process's business.
            self._forget()
        write, never = _OwnWrite(attempt, name, value), threading.Event()
        while True:
            try:
                # What was not to be had may be locked by this very thread, which the writing one could not see.
                self._store.steps.refuse_inside(thread=True, searching=write.pause > 0)
            except UsageError as error:
                return StepKept(live=False, fault=str(error), why="inside")
            self._once(write)
            if write.kept is not None:
                return write.kept
            never.wait(write.pause)

    def akeep(self, attempt: Attempt, name: str, value: bytes) -> asyncio.Future[StepKept]:
        """Have it written, for a handler on the running loop; to be called in its context."""
        loop = asyncio.get_running_loop()
        kept = FirmFuture(loop=loop)
        try:
            self._store.steps.refuse_inside(thread=False)
        except UsageError as error:
            kept.set_result(StepKept(live=False, fault=str(error), why="inside"))
        else:
            self.post(PostedWrite(attempt, name, value, kept.set_result, loop, kept.set_exception))
        return kept

    def post(self, write: PostedWrite) -> None:
        """Have it written by our own thread, for which nobody waits here."""
        with self._news:
            self._waiting.append(write)
            self._call()

    def _once(self, write: _OwnWrite) -> None:
        write.told.clear()
        with self._news:
            self._waiting.append(write)
            leads, self._led = not self._led, True
        if not leads:
            write.told.wait()
            return
        try:
            while not write.told.is_set():
                with self._news:
                    taken = self._take()
                self._write(taken, write)
        finally:
            self._hand_over()

    def _hand_over(self) -> None:
        with self._news:
            self._led = False
            if self._waiting or self._later:
                self._call()

    def _call(self) -> None:
        """Have our thread look at what waits, unless who writes now will see to that."""
        if self._led:
            return
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._serve, name="duly-steps", daemon=True)
            self._thread.start()
        else:
            self._news.notify()

    def _serve(self) -> None:
        """Our own thread."""
        while (taken := self._next()) is not None:
            try:
                self._write(taken, None)
            except BaseException as fault:
                # Nobody interrupts this thread: whoever waits must hear of it.
                _fail_all(taken, fault)
            finally:
                self._led = False

    def _next(self) -> list[StepWrite] | None:
        """What is to be written by our thread, which leads then; None when there was nothing for long."""
        with self._news:
            while True:
                now = boottime()
                due = [write for write in self._later if write.next_at <= now]
                if due:
                    self._later = [write for write in self._later if write.next_at > now]
                    self._waiting.extend(due)
                if self._waiting and not self._led:
                    self._led = True
                    return self._take()
                wait = min([_STAY, *(write.next_at - now for write in self._later)])
                if not self._news.wait(wait) and not self._waiting and not self._later:
                    self._thread = None
                    return None

    def _take(self) -> list[StepWrite]:
        taken: list[StepWrite] = []
        size = 0
        while self._waiting and len(taken) < _MOST and size < _MOST_BYTES:
            taken.append(self._waiting.popleft())
            size += len(taken[-1].step.value)
        return taken

    def _write(self, writes: Sequence[StepWrite], own: _OwnWrite | None) -> None:
        """Write them, and tell each what came of it. `own` is of this thread."""
        try:
            answers = self._answers(writes, own)
        except BaseException:
            # A handler's thread was interrupted; the others' steps are not to blame.
            if own is not None:
                with self._news:
                    self._waiting.extendleft(write for write in reversed(writes) if write is not own)
            raise
        self._tell(writes, answers)

    def _answers(self, writes: Sequence[StepWrite], own: _OwnWrite | None) -> Sequence[Answer]:
        try:
            return self._store.steps.keep_steps(self._incarnation, [write.step for write in writes])
        except Transient as fault:
            return [fault] * len(writes)
        except UsageError as error:
            if own is None:
                return [error] * len(writes)
            # This thread holds the file with a transaction that nobody knew of: others are not inside it.
            return [error if write is own else Transient(str(error)) for write in writes]
        except Exception as fault:
            if len(writes) == 1:
                return [fault]
        half = len(writes) // 2
        return [*self._answers(writes[:half], own), *self._answers(writes[half:], own)]

    def _tell(self, writes: Sequence[StepWrite], answers: Sequence[Answer]) -> None:
        now = boottime()
        on_loops: dict[asyncio.AbstractEventLoop, list[tuple[Callable[[StepKept], object], StepKept]]] = {}
        later: list[PostedWrite] = []
        for write, answer in zip(writes, answers, strict=True):
            kept = write.judged(answer, now)
            if isinstance(write, _OwnWrite):
                write.kept = kept
                write.told.set()
            elif isinstance(write, PostedWrite):
                if kept is None:
                    write.next_at = now + write.pause
                    later.append(write)
                elif write.loop is None:
                    write.tell(kept)
                else:
                    on_loops.setdefault(write.loop, []).append((write.tell, kept))
        for loop, told in on_loops.items():
            # A loop that is closed has nobody left to hear it.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(_tell_all, told)
        if later:
            with self._news:
                self._later += later


def _tell_all(told: Sequence[tuple[Callable[[StepKept], object], StepKept]]) -> None:
    for tell, kept in told:
        with suppress(asyncio.InvalidStateError):
            tell(kept)


def _broken(fault: BaseException) -> StepKept:
    return StepKept(live=False, fault=f"{type(fault).__name__}: {fault}")


def _fail_all(writes: Sequence[StepWrite], fault: BaseException) -> None:
    for write in writes:
        if isinstance(write, PostedWrite):
            if write.loop is None or write.fail is None:
                write.tell(_broken(fault))
            else:
                with suppress(RuntimeError):
                    write.loop.call_soon_threadsafe(write.fail, fault)
        elif isinstance(write, _OwnWrite):
            write.kept = _broken(fault)
            write.told.set()
