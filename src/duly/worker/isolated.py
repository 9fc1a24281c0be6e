"""Isolated handlers: one killable child process per slot, driven by a thread of its own here.

What a handler does to its process (a crash, an endless C call, memory without end) ends that attempt alone.
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import msgspec

from duly.core import decide
from duly.core.fingerprint import ErrorRecord
from duly.core.job import Ended
from duly.worker.attempt import Attempt
from duly.worker.card import PROCESS
from duly.worker.channel import Channel
from duly.worker.floor import Floor, Slot
from duly.worker.messages import (
    Called,
    Done,
    Extended,
    HandsOver,
    IsolatedReports,
    KeepStep,
    Moved,
    Prepare,
    Prepared,
    Progressed,
    Run,
    StepKept,
)
from duly.worker.process import Process
from duly.worker.run import crash_text, judged, stopped, timed_out
from duly.worker.steps import PostedWrite, StepWriter

_LOOK: Final = 0.05
_TRIES: Final = 3
_START: Final = 120.0
"""Importing the user's code may take long; a process that never gets ready is replaced after this."""


@dataclass(frozen=True)
class Isolation:
    """What an isolated process is started with, and when it is replaced."""

    prepare: Prepare
    poison: int
    patience: float
    cut: float
    """The patience once a shutdown's grace is over."""
    max_jobs: int | None
    max_memory: int | None


class Cell:
    """One isolated process: started at its first job, replaced when it died or was killed."""

    def __init__(self, isolation: Isolation) -> None:
        self._isolation = isolation
        self._process: Process | None = None
        self._channel: Channel[IsolatedReports] | None = None
        self._ran = 0

    def ready(self) -> str | None:
        """Have a process that imported the App; else say why there is none."""
        if self._process is not None and self._process.poll() is None:
            return None
        self.kill()
        self._process = Process("duly.worker.isolated_child")
        self._channel = Channel(self._process.socket, IsolatedReports)
        self._channel.send(self._isolation.prepare)
        answer = self._channel.receive(_START)
        if isinstance(answer, Prepared) and answer.error is None:
            self._ran = 0
            return None
        code = self.kill()
        if isinstance(answer, Prepared):
            return answer.error
        return f"it {crash_text(code)} while starting"

    def send(self, order: Run) -> None:
        self._ran += 1
        if self._channel is not None:
            self._channel.send(order)

    def answering(self) -> Callable[[StepKept], object]:
        """Tells the process of now, and no later one, what came of its step. May be called from any thread."""
        return _send_nothing if self._channel is None else self._channel.send

    def hear(self) -> IsolatedReports | None:
        """The next word, after a short wait."""
        return self._channel.receive(_LOOK) if self._channel is not None else None

    def over(self) -> bool:
        """Whether the process ended and everything it said was heard."""
        channel, process = self._channel, self._process
        if channel is None or process is None:
            return True
        return channel.closed or (process.poll() is not None and not channel.readable())

    def hint(self) -> None:
        if self._process is not None:
            self._process.hint()

    def terminate(self) -> None:
        if self._process is not None:
            self._process.terminate()

    def kill(self) -> int:
        """The process is gone after this; its return code."""
        process, self._process = self._process, None
        channel, self._channel = self._channel, None
        code = 0
        if process is not None:
            # A channel at its end announces the end of the process by a moment.
            ended = process.wait(0.5) if channel is not None and channel.closed else process.poll()
            code = process.kill() if ended is None else ended
        if channel is not None:
            channel.close()
        return code

    def dismiss(self) -> None:
        """A clean end: its lifespan functions are left."""
        process, channel = self._process, self._channel
        if process is None or channel is None:
            return
        self._process = self._channel = None
        channel.close()
        if process.wait(self._isolation.patience) is None:
            process.kill()

    def is_worn(self) -> bool:
        """Enough jobs, or too much memory."""
        limits, process = self._isolation, self._process
        if process is None:
            return False
        if limits.max_jobs is not None and self._ran >= limits.max_jobs:
            return True
        return limits.max_memory is not None and process.memory() > limits.max_memory


class IsolatedGroup:
    """The isolated slots of one process."""

    kind = PROCESS

    def __init__(self, floor: Floor, size: int, isolation: Isolation, steps: StepWriter) -> None:
        self.slots: list[Slot] = []
        self.failure: BaseException | None = None
        self._floor = floor
        self._size = size
        self._isolation = isolation
        self._steps = steps
        """Where the lease is, the steps of the processes are written, without keeping a slot's thread."""
        self._ready = threading.Condition()
        self._waiting: deque[Attempt] = deque()
        self._idle = 0
        self._closed = False

    def start(self) -> None:
        """Nothing yet: processes start with the first job."""

    def push(self, attempts: Sequence[Attempt]) -> None:
        with self._ready:
            self._waiting.extend(attempts)
            for _ in range(min(len(self._waiting) - self._idle, self._size - len(self.slots))):
                self._hire()
            self._ready.notify(len(attempts))

    def take_back(self, attempt: Attempt) -> bool:
        with self._ready, suppress(ValueError):
            self._waiting.remove(attempt)
            return True
        return False

    def unstarted(self) -> list[Attempt]:
        with self._ready:
            return list(self._waiting)

    def stop(self, attempt: Attempt) -> None:
        """The slot's thread looks at `attempt.why` by itself, every few hundredths of a second."""

    def give_up(self, attempt: Attempt) -> None:
        """Never needed: what does not stop is killed."""

    def close(self) -> None:
        with self._ready:
            self._closed = True
            self._ready.notify_all()

    def join(self, timeout: float) -> None:
        """Wait for the processes to be gone."""
        for slot in list(self.slots):
            if isinstance(slot.thread, threading.Thread):
                slot.thread.join(timeout)

    def _hire(self) -> None:
        slot = Slot(len(self.slots))
        self.slots.append(slot)
        slot.thread = threading.Thread(
            target=self._serve, args=(slot,), name=f"duly-isolated-{slot.number}", daemon=True
        )
        slot.thread.start()

    def _serve(self, slot: Slot) -> None:
        cell = Cell(self._isolation)
        try:
            follower: Attempt | None = None
            while (attempt := follower or self._next()) is not None:
                follower = None
                if cell.is_worn():
                    cell.dismiss()
                # Before the attempt begins: starting a process is not part of its time to run.
                problem = self._prepared(cell)
                if not self._floor.begin(attempt, slot):
                    self._floor.on_end(attempt)
                    continue
                ended = (
                    self._unprepared(attempt, problem) if problem is not None else self._drive(attempt, cell)
                )
                self._floor.finish(attempt, ended, slot)
                follower = self._floor.follower(attempt, slot)
            cell.dismiss()
        except BaseException as error:
            self.failure = error
        finally:
            cell.kill()

    def _next(self) -> Attempt | None:
        with self._ready:
            self._idle += 1
            try:
                while not self._waiting:
                    if self._closed:
                        return None
                    self._ready.wait()
                return self._waiting.popleft()
            finally:
                self._idle -= 1

    @staticmethod
    def _prepared(cell: Cell) -> str | None:
        """A process may be killed while it starts: that says nothing about the job that waits for it."""
        problem = cell.ready()
        for _ in range(_TRIES - 1):
            if problem is None:
                break
            problem = cell.ready()
        return problem

    def _unprepared(self, attempt: Attempt, problem: str) -> Ended:
        error = RuntimeError(f"its isolated process could not be started: {problem}")
        return judged(
            attempt, error, ErrorRecord("RuntimeError", str(error), "", "isolated"), self._floor.clock()
        )

    def _drive(self, attempt: Attempt, cell: Cell) -> Ended:
        """Run one attempt in the process; whatever happens there, this returns its end."""
        job = attempt.job
        if job.args is None:
            raise RuntimeError("an attempt was started without its arguments")
        cell.send(
            Run(
                job,
                attempt.desk.incarnation,
                attempt.card.time_to_run(job),
                attempt.left,
                attempt.acked_first,
            )
        )
        hinted = terminated = False
        while True:
            match cell.hear():
                case Done() as done:
                    return self._heard(attempt, done)
                case Progressed(progress):
                    attempt.desk.note_progress(attempt, progress)
                case Extended(by):
                    attempt.deadline_at += by.total_seconds()
                    attempt.desk.note_extension(attempt, by)
                case Moved(id, run, cursors) if (id, run) == attempt.key:
                    attempt.heard(cursors)
                    for name, position in cursors:
                        attempt.desk.note_cursor(attempt, name, position)
                case KeepStep(name, value):
                    self._steps.post(PostedWrite(attempt, name, value, cell.answering()))
                case Called(resource, outcome):
                    attempt.note_call(resource, outcome)
                case HandsOver():
                    # From here on it may be over in the store while its handler goes on.
                    attempt.handed_over = True
                    attempt.desk.forget(attempt)
                case _ if cell.over():
                    code = cell.kill()
                    return self._crashed(attempt, code)
                case _:
                    pass
            if attempt.desk.stopping and not hinted:
                hinted = True
                cell.hint()
            if attempt.why is None:
                continue
            now = self._floor.clock()
            limits = self._isolation
            patience = limits.cut if attempt.why == "shutdown" else limits.patience
            if attempt.why == "lease" or now >= attempt.asked_at + patience:
                cell.kill()
                return stopped(attempt, now, note="it did not stop in time: its process was killed")
            if not terminated:
                terminated = True
                cell.terminate()

    def _crashed(self, attempt: Attempt, code: int) -> Ended:
        now = self._floor.clock()
        if attempt.why is not None:
            return stopped(attempt, now, note="its process ended while it was stopped")
        reason = f"its process {crash_text(code)}"
        return decide.lost(attempt.job, reason, self._isolation.poison, attempt.elapsed(now), alone=True)

    def _heard(self, attempt: Attempt, done: Done) -> Ended:
        now = self._floor.clock()
        attempt.heard(done.ended.cursors)
        if attempt.why == "timeout" and done.how in {"error", "stopped"}:
            return timed_out(attempt, now, done.error)
        if attempt.why is not None and done.how == "stopped":
            return stopped(attempt, now, done.error)
        return msgspec.structs.replace(done.ended, id=attempt.job.id, run=attempt.job.run)


def _send_nothing(_: StepKept) -> None:
    """Its process is gone."""
