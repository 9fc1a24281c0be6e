"""Stored bulk acts of operators: every worker moves them on, at their own pace."""

from typing import Final

from duly.client.operations import Pace, advance
from duly.stores.protocol import Store

_BUSY: Final = 0.2
_IDLE: Final = 3.0


class Operations:
    """One stretch per run."""

    name = "operations"

    def __init__(self, store: Store) -> None:
        self._store = store
        self._pace = Pace()

    def run(self, now: float) -> float:
        return _BUSY if advance(self._store, pace=self._pace) else _IDLE

    def failed(self) -> None:
        """Nothing to forget: the stored cursor decides."""
