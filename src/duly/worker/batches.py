"""Batches: what follows a batch is enqueued soon after its last job has ended here.

The store counts each end with it; on some stores somebody then has to look. The sweep does it too, a second later.
"""

from collections.abc import Callable
from typing import Final

from duly.stores.batches import BatchStore

_WHEN_ASKED: Final = float("inf")


class Batches:
    """Runs when jobs of batches have ended, many ends at once. `soon` may be called from any thread."""

    name = "batches"

    def __init__(self, batches: BatchStore, ring: Callable[[], None], let_run: Callable[[str], None]) -> None:
        self.ended = 0
        """Ends that were told of."""
        self.looked = 0
        """How many of them the last run that succeeded knew of."""
        self.moved_at = -1.0
        """When the last run began that found something."""
        self._batches = batches
        self._ring = ring
        self._let_run = let_run

    def soon(self) -> None:
        self.ended += 1
        self._let_run(self.name)

    @property
    def is_done(self) -> bool:
        """Whether it has looked since the last end."""
        return self.looked >= self.ended

    def run(self, now: float) -> float:
        ended = self.ended
        if self._batches.finish():
            self.moved_at = now
            self._ring()
        self.looked = ended
        return _WHEN_ASKED

    def failed(self) -> None:
        """Nothing to forget: it is run again."""
