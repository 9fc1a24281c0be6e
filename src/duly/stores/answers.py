"""What a store promises of idempotent requests. Each sentence has a test on every store."""

from collections.abc import Sequence
from typing import Any, Protocol

from duly.core.operating import AnswerAsk, FilledReply, KeptReply


class AnswerStore(Protocol):
    """The first answer to each key, for whoever asks again.

    With a `connection`, which is that of one of the store's own blocks (`Store.transaction`), an act belongs to its
    transaction: take, enqueue and fill in one, and there is no key without its job, and no job without its key.
    """

    def take(self, asks: Sequence[AnswerAsk], connection: Any = None) -> list[KeptReply | None]:
        """For each, in order: None when its key is now taken, to be filled; else what is kept under it. A second ask
        for a key in one call finds the first in flight. A key that has expired is free. Another transaction's
        uncommitted key is waited for."""

    def fill(self, replies: Sequence[FilledReply], connection: Any = None) -> None:
        """Answer keys that were taken; one that has an answer already keeps it."""

    def look(self, key: bytes) -> KeptReply | None:
        """What is kept under a key and has not expired."""

    def release(self, keys: Sequence[bytes]) -> None:
        """Give back keys that are in flight, as their requests came to nothing."""

    def forget(self, most: int = 2000) -> int:
        """Delete at most so many that have expired; how many. The sweep does it, too."""
