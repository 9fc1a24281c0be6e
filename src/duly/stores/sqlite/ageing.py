"""Priority without starvation: a share of what a lane gives goes to the jobs that have waited longest.

Remembers per store how much was given; knows the order of a lane, and nothing of what may run.
"""

import json
from heapq import heapify, heapreplace
from typing import Final

from duly.core.ageing import aged
from duly.core.defaults import INLINE_PAYLOAD
from duly.stores.sqlite.session import Row, Session

_KNOWN: Final = 4_096


class Given:
    """How many jobs each queue has given to claims of this store. Used under the write lock only."""

    def __init__(self) -> None:
        self._given: dict[int, int] = {}

    def aged(self, lane: int, wanted: int) -> int:
        """How many of so many are to be the oldest."""
        return aged(self._given.get(lane, 0), wanted)

    def add(self, lane: int, count: int) -> None:
        if len(self._given) > _KNOWN:
            self._given.clear()
        self._given[lane] = self._given.get(lane, 0) + count


def oldest(session: Session, lane: int, tenant: int, most: int) -> list[Row]:
    """The jobs of a lane that have waited longest, as rows of `select_ready`; none where all are of one priority."""
    heads: list[tuple[int, int]] = session.rows("select_lane_heads", queue=lane, tenant=tenant)
    if len(heads) < 2:
        return []
    heapify(heads)
    places: list[tuple[int, int]] = []
    while len(places) < most:
        pos, priority = heads[0]
        places.append((priority, pos))
        after = session.value("select_lane_next", queue=lane, tenant=tenant, priority=priority, pos=pos)
        # A priority without more jobs sorts behind all others.
        heapreplace(heads, (after, priority) if after is not None else (_LAST, priority))
        if heads[0][0] == _LAST:
            break
    return session.rows(
        "select_placed", queue=lane, tenant=tenant, places=json.dumps(places), inline=INLINE_PAYLOAD
    )


_LAST: Final = 2**63
