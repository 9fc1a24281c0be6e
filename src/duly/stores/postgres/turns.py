"""Whose turn it is in the queues of one store handle: what its claims have given so far. Knows no SQL.

A hint like the marks: a handle that forgets it only begins another round.
"""

import threading
from collections.abc import Sequence
from typing import Any, Final

from duly.core.ageing import aged
from duly.core.job import ClaimRequest
from duly.stores.postgres.arrays import words

Row = Sequence[Any]

_KNOWN: Final = 4_096
_PLAIN: Final[dict[str, Any]] = dict.fromkeys(("fair", "reserved", "last", "rest"))
# Suspects come one by one, as they stand.
_AS_THEY_STAND: Final[dict[str, Any]] = dict.fromkeys(("given", "asked", "aged"))


class Turns:
    """Per lane: how many jobs were given, the tenant served last, and what is left of its turn."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._given: dict[int, int] = {}
        self._last: dict[int, tuple[int, int]] = {}

    def parameters(self, request: ClaimRequest, lanes: Sequence[int]) -> dict[str, Any]:
        """What the claim needs to know of it."""
        fair = any(claim.fair for claim in request.queues)
        return {**(self._fair(request, lanes) if fair else _PLAIN), **self._ages(request, lanes)}

    def _ages(self, request: ClaimRequest, lanes: Sequence[int]) -> dict[str, Any]:
        if request.suspects:
            return _AS_THEY_STAND
        given = [self._given.get(lane, 0) for lane in lanes]
        asked = [min(claim.most, request.most) for claim in request.queues]
        shares = [*map(aged, given, asked)]
        if not any(shares):
            # Nor has a smaller number one.
            return _AS_THEY_STAND
        return {"given": words(given), "asked": words(asked), "aged": words(shares)}

    def _fair(self, request: ClaimRequest, lanes: Sequence[int]) -> dict[str, Any]:
        with self._guard:
            last = [self._last.get(lane) or (None, None) for lane in lanes]
        return {
            "fair": words([claim.fair for claim in request.queues]),
            "reserved": words([claim.reserved for claim in request.queues]),
            "last": words([tenant for tenant, _ in last]),
            "rest": words([left for _, left in last]),
        }

    def learn(self, rows: Sequence[Row], lanes: Sequence[int]) -> None:
        """Take in an exchange. Rows without a position came from no lane."""
        counts = [0] * len(lanes)
        turns: dict[int, tuple[int, int]] = {}
        for row in rows:
            if row[0] is None:
                if row[5] is not None:
                    counts[row[1] - 1] += 1
            elif row[0] == "turn" and row[2] is not None:
                turns[lanes[row[1] - 1]] = (row[2], row[3] or 0)
        with self._guard:
            if len(self._given) > _KNOWN:
                self._given.clear()
            for lane, count in zip(lanes, counts, strict=True):
                if count:
                    self._given[lane] = self._given.get(lane, 0) + count
            if turns:
                if len(self._last) > _KNOWN:
                    self._last.clear()
                self._last.update(turns)
