"""Numbers of the one sequence taken ahead, so that a writer who is alone on the file seldom writes the sequence's page.

They are good until another connection commits: whatever that took lies above them, and order is the order of commits.
Knows no transaction; whoever rolls one back drops what it took ahead in it.
"""

from collections.abc import Callable
from typing import Final

# What a process that ends leaves unused at most.
_MOST: Final = 64


class Ahead:
    """The numbers that one writing connection has in hand. Each batch asked for is above all that were committed."""

    __slots__ = ("_end", "_more", "_next", "_version")

    def __init__(self) -> None:
        self._version: int | None = None
        self._next = self._end = self._more = 0

    def look(self, version: int) -> None:
        """Once in each transaction that takes numbers: `version` is SQLite's data_version, within it."""
        if version != self._version:
            self._version = version
            self._next = self._end = self._more = 0
        else:
            # The longer nobody else writes, the less often the sequence is.
            self._more = min(2 * self._more + 1, _MOST)

    def take(self, count: int, advance: Callable[[int], int]) -> int:
        """The first of `count` consecutive numbers; `advance` moves the sequence on and answers its new value."""
        short = count - (self._end - self._next)
        if short > 0:
            grown = short + self._more
            last = advance(grown)
            if self._next == self._end:
                self._next = last - grown + 1
            self._end = last + 1
        first, self._next = self._next, self._next + count
        return first

    def drop(self) -> None:
        """The next number comes from the sequence itself."""
        self._next = self._end = self._more = 0
