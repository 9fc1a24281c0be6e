"""Whose turn it is in the queues of one store handle: what its claims have given so far. Knows no SQL.

A hint like the marks: a handle that forgets it only begins another round.
"""

import threading
from collections.abc import Sequence
from typing import Any, Final

from duly.core.job import ClaimRequest
from duly.stores.postgres.arrays import words

Row = Sequence[Any]

_KNOWN: Final = 4_096


class Turns:
    """Per lane: how many jobs were given, the tenant served last, and what is left of its turn."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._given: dict[int, int] = {}
        self._last: dict[int, tuple[int, int]] = {}

    def parameters(self, request: ClaimRequest, lanes: Sequence[int]) -> dict[str, Any]:
        """What the claim needs to know of it."""
        fair = any(claim.fair for claim in request.queues)
        with self._guard:
            last = [self._last.get(lane) or (None, None) for lane in lanes]
            given = [self._given.get(lane, 0) for lane in lanes]
        return {
            "fair": words([claim.fair for claim in request.queues]) if fair else None,
            "reserved": words([claim.reserved for claim in request.queues]) if fair else None,
            "last": words([tenant for tenant, _ in last]) if fair else None,
            "rest": words([left for _, left in last]) if fair else None,
            # Suspects come one by one, as they stand.
            "given": None if request.suspects else words(given),
        }

    def learn(self, rows: Sequence[Row], lanes: Sequence[int]) -> None:
        """Take in an exchange. Rows without a position came from no lane."""
        counts: dict[int, int] = {}
        turns: dict[int, tuple[int, int]] = {}
        for row in rows:
            if row[0] is None and row[5] is not None:
                counts[lanes[row[1] - 1]] = counts.get(lanes[row[1] - 1], 0) + 1
            elif row[0] == "turn" and row[2] is not None:
                turns[lanes[row[1] - 1]] = (row[2], row[3] or 0)
        with self._guard:
            for known in (self._given, self._last):
                if len(known) > _KNOWN:
                    known.clear()
            self._last.update(turns)
            for lane, count in counts.items():
                self._given[lane] = self._given.get(lane, 0) + count
