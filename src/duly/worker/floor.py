"""What every slot needs around one attempt: permission to start it, its line on the board, and where its end goes.

Knows no kind of slot and no store.
"""

import os
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from duly.core.job import Ended
from duly.worker.attempt import Attempt, Phase, must_be_read
from duly.worker.board import EMPTY, ENDED, Board, boottime
from duly.worker.heartbeat import Fence
from duly.worker.run import Around
from duly.worker.usage import uses

# Reading a member from its class runs Python code before 3.12, and every job ends so.
_ENDED: Final = Phase.ended


class Slot:
    """One place where a handler can run."""

    __slots__ = ("abandoned", "attempt", "idle", "number", "task", "thread")

    def __init__(self, number: int) -> None:
        self.number = number
        self.attempt: Attempt | None = None
        self.abandoned = False
        """Its handler did not stop; another slot took its place."""
        self.idle: object = None
        self.task: object = None
        self.thread: object = None


class Group(Protocol):
    """All slots of one kind in one process. `push` is called by the pump, the others by the watch."""

    kind: int
    slots: list[Slot]

    def start(self) -> None: ...

    def push(self, attempts: Sequence[Attempt]) -> None:
        """Hand over attempts to run, in order."""

    def take_back(self, attempt: Attempt) -> bool:
        """Remove an attempt that no slot has taken; False when one has."""

    def unstarted(self) -> list[Attempt]: ...

    def stop(self, attempt: Attempt) -> None:
        """`attempt.ask` was answered: make the handler end, as far as its kind can be made to."""

    def give_up(self, attempt: Attempt) -> None:
        """Let another slot take the place of the one whose handler does not stop."""

    def close(self) -> None:
        """Nothing runs any more: let the slots go."""


class Floor:
    """Shared by all slots of one process. `begin` and `finish` are called from whatever thread runs the handler."""

    def __init__(
        self, board: Board, fence: Fence, arounds: Sequence[Around], clock: Callable[[], float] = boottime
    ) -> None:
        self.board = board
        self.fence = fence
        self.arounds = tuple(arounds)
        self.clock = clock
        self.on_end: Callable[[Attempt], None] = _nowhere
        self.on_lapse: Callable[[], None] = _nothing
        self.on_follow: Callable[[Attempt], None] = _nowhere
        """The next job of a chain needs another kind of slot, or has to be read first."""
        self._records: deque[int] = deque(range(board.records))
        self._forked = False
        _floors.add(self)

    def begin(self, attempt: Attempt, slot: Slot) -> bool:
        """waiting -> running, if the lease still allows it; says so on the board."""
        now, fence = self.clock(), self.fence
        # Claimed a whole lease ago: this process stood still, and a sweep may have given the job to another by now.
        stale = now - attempt.held_at >= fence.lease and not attempt.acked_first
        if stale or attempt.why is not None or not fence.may_start(now):
            if attempt.why is None and not stale:
                self.on_lapse()
            return False
        attempt.begin(now)
        slot.attempt = attempt
        attempt.slot = slot
        record = attempt.record = self._records.popleft() if self._records else -1
        if record >= 0:
            job = attempt.job
            self.board.start(record, job.id, job.run, attempt.deadline_at, attempt.card.kind)
        return True

    def finish(self, attempt: Attempt, ended: Ended, slot: Slot) -> None:
        """The handler is over: its end goes to the pump."""
        if self._forked:
            # A handler forked and let the copy come back here; only the original may speak to the store.
            os._exit(0)
        slot.attempt = None
        ended = attempt.verdict or ended
        attempt.ended = attempt.carrying(ended) if attempt.cursors else ended
        if attempt.card.watched:
            for resource, failure in uses(attempt.card.watched, attempt.called, ended):
                attempt.desk.note_call(attempt, resource, "failed" if failure else "done")
        attempt.phase = _ENDED
        record = attempt.record
        if record >= 0:
            self.board.state(record, ENDED)
        self.on_end(attempt)

    def follower(self, attempt: Attempt, slot: Slot) -> Attempt | None:
        """The next job of its ordering key, if `attempt` has completed here and this slot can run it now.

        Else the pump hands the rest of the chain back, or has it delivered to where it can run.
        """
        chain = attempt.chain
        if chain is None or slot.abandoned or not attempt.is_complete:
            return None
        try:
            found = chain.waiting.popleft()
        except IndexError:
            return None
        if found.card.kind == attempt.card.kind and not must_be_read(found):
            return found
        self.on_follow(found)
        return None

    def settled(self, attempt: Attempt) -> None:
        """Its end is stored, or is nobody's business any more."""
        record = attempt.record
        if record >= 0:
            self.board.state(record, EMPTY)
            self._records.append(record)
            attempt.record = -1

    def forked(self) -> None:
        """This is a copy that a handler made of its process."""
        self._forked = True


def _note_fork() -> None:
    for floor in list(_floors):
        floor.forked()


_floors: Final[weakref.WeakSet[Floor]] = weakref.WeakSet()
os.register_at_fork(after_in_child=_note_fork)


def _nowhere(_: Attempt) -> None:
    raise RuntimeError("the floor is not connected to a pump")


def _nothing() -> None:
    pass


NOT_STARTED: Final = "no slot was free in time"
