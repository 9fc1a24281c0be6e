"""What a store promises of batches, in state words, and how it refuses. Each sentence has a test on every store."""

from collections.abc import Sequence
from typing import Protocol

from duly.core.batch import BatchAct, BatchRecord
from duly.core.errors import NotFound, UsageError
from duly.core.job import JobId


def batch_refused(id: int, state: str) -> NotFound | UsageError:
    """Why a batch takes no more members, or cannot be acted on: it is "missing", or has ended as `state` says."""
    if state == "missing":
        return NotFound(
            f"no batch {id}: its transaction was rolled back or has not committed, or it is no longer kept",
            kind="batch",
            name=str(id),
        )
    return UsageError(
        f"batch {id} is {state}: nothing can be added to it. Add while it is open, or from a handler of one of its own "
        "jobs, or make another batch"
    )


class BatchStore(Protocol):
    """Jobs that are counted together. Whatever ends a member counts it in the same transaction.

    `then` is enqueued once, in the transaction that finds a closed batch without live and without dead members,
    `on_dead` once, in the one that finds its first dead member.
    """

    def apply(self, act: BatchAct) -> int:
        """Make, close or cancel a batch; its id. NotFound, or UsageError for a batch inside one that has ended."""

    def of(self, ids: Sequence[JobId]) -> dict[JobId, int]:
        """The batches of those jobs that have one."""

    def lookup(self, ids: Sequence[int]) -> list[BatchRecord | None]: ...

    def page(self, before: int | None = None, limit: int = 50) -> list[BatchRecord]:
        """The newest first."""

    def finish(self) -> int:
        """Enqueue what follows from ends that were counted since; how many batches were looked at. Safe from any
        number of workers at once. The sweep does it, too."""
