"""Blobs: the files that no job names any more go, a day after somebody last enqueued them."""

from datetime import timedelta
from pathlib import Path
from typing import Final

from duly.client.blobs import remove_unused
from duly.stores.protocol import Store

_EVERY: Final = 3600.0
GRACE: Final = timedelta(days=1)
"""A blob is stored before its job, which a caller's transaction may commit much later."""


class Blobs:
    """Looks through the whole folder once an hour."""

    name = "blobs"

    def __init__(self, folder: Path, store: Store) -> None:
        self._folder = folder
        self._store = store

    def run(self, now: float) -> float:
        remove_unused(self._folder, self._store, GRACE)
        return _EVERY

    def failed(self) -> None:
        """Nothing to forget."""
