"""Blobs: the files that no job names any more go, a day after somebody last enqueued them."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Final

from duly.client.blobs import removing_unused
from duly.stores.protocol import Store

_EVERY: Final = 3600.0
_BETWEEN_STRETCHES: Final = 0.25
GRACE: Final = timedelta(days=1)
"""A blob is stored before its job, which a caller's transaction may commit much later."""


class Blobs:
    """Looks through the folder once an hour, a stretch of files per run, so that other duties get their turn."""

    name = "blobs"

    def __init__(self, folder: Path, store: Store) -> None:
        self._folder = folder
        self._store = store
        self._round: Iterator[int] | None = None

    def run(self, now: float) -> float:
        if self._round is None:
            self._round = removing_unused(self._folder, self._store, GRACE)
        if next(self._round, None) is not None:
            return _BETWEEN_STRETCHES
        self._round = None
        return _EVERY

    def failed(self) -> None:
        """A round that broke off begins anew."""
        self._round = None
