"""Batches: jobs that are counted together. What a batch is, how it ends, and which of its follow-ups that calls.

Pure rules over counts; knows nothing of how a store keeps them.
"""

from datetime import datetime
from enum import StrEnum
from typing import Final

from msgspec import Struct

from .job import NewJob


class BatchState(StrEnum):
    """Where a batch stands."""

    open = "open"
    """More may come from where it was made; its jobs run already."""
    running = "running"
    """Closed, and not all of its jobs have ended."""
    dead = "dead"
    """All have ended, some of them dead: a redrive sets it running again."""
    completed = "completed"
    """All have ended and none was dead: `then` has been enqueued."""
    cancelled = "cancelled"
    """Given up: what waited of it was cancelled, nothing follows."""


ACCEPTING: Final = frozenset({BatchState.open, BatchState.running, BatchState.dead})
"""States in which jobs may be added."""
_STAYS: Final = frozenset({BatchState.open, BatchState.completed, BatchState.cancelled})
TOLD: Final = frozenset({BatchState.dead, BatchState.completed, BatchState.cancelled})
"""States that a batch around counts as the end of a member."""


class BatchCounts(Struct, frozen=True):
    """How many members a batch has, and how many of them ended in which way. A batch inside counts as one."""

    total: int = 0
    completed: int = 0
    skipped: int = 0
    cancelled: int = 0
    shed: int = 0
    dead: int = 0

    @property
    def ended(self) -> int:
        return self.completed + self.skipped + self.cancelled + self.shed + self.dead

    @property
    def left(self) -> int:
        """Members that have not ended."""
        return self.total - self.ended


class BatchRecord(Struct, frozen=True):
    """One batch as read."""

    id: int
    name: str
    state: BatchState
    counts: BatchCounts
    created_at: datetime
    parent: int | None = None
    """The batch that this one is a member of."""
    closed_at: datetime | None = None
    finished_at: datetime | None = None
    """When `then` was enqueued, or it was cancelled."""
    reason: str | None = None
    """Why it was cancelled."""

    @property
    def progress(self) -> float:
        """The share of its members that have ended, 0 to 1; may fall while jobs are added or redriven."""
        return self.counts.ended / self.counts.total if self.counts.total else 0.0


class OpenBatch(Struct, frozen=True):
    """Make a batch; the answer is its id."""

    name: str
    then: tuple[NewJob, ...] = ()
    """Enqueued once, when all members have ended and none is dead."""
    on_dead: tuple[NewJob, ...] = ()
    """Enqueued once, at the first member that goes dead."""
    parent: int | None = None


class CloseBatch(Struct, frozen=True):
    """open -> running, or completed or dead when all have ended. Changes no batch that is not open."""

    id: int


class CancelBatch(Struct, frozen=True):
    """-> cancelled, with the batches inside: waiting members are cancelled, running ones asked to stop."""

    id: int
    by: str
    reason: str


BatchAct = OpenBatch | CloseBatch | CancelBatch


def state_after(state: BatchState, counts: BatchCounts) -> BatchState:
    """The state once the counts have changed. `completed` stays, so that `then` is called for once."""
    if state in _STAYS:
        return state
    if counts.left > 0:
        return BatchState.running
    return BatchState.dead if counts.dead else BatchState.completed
