"""Where claims may start: behind the dead entries that one connection has met in the index of `ready`.

A mark is a hint. It may be too low, it dies with its connection, and what it jumps over (a late commit, a claim that
was rolled back) is found by one scan a second from the very front. Correctness never depends on it.
"""

from collections import deque
from collections.abc import Iterator
from typing import Final, NamedTuple

LOWEST: Final = -(2**31)
BEYOND: Final = 2**31
MET: Final = 1_000
"""Dead entries that make a jump worth its own descent of the index."""
MOST: Final = 64
SETTLED: Final = 0.25
"""Seconds after which a position that was given out counts as committed: producers that are slower wait for a scan from
the front. Dead entries of so much time are walked over by each claim."""
_SAMPLES: Final = 5
_REMEMBERED: Final = 1_024
_ENTRY_NS: Final = 80
"""What one dead entry costs a scan, as measured; a scan slower than its rows explain has met some."""
_ROW_US: Final = 25
_CALL_US: Final = 200


class Jump(NamedTuple):
    """Scan from behind (low, pos) up to, not including, the priority `high`."""

    low: int
    pos: int
    high: int


FROM_FRONT: Final = Jump(LOWEST, -1, BEYOND)


class Seen(NamedTuple):
    """What one scan of a lane told: how many rows it took, where it ended, and what it cost."""

    wanted: int
    taken: int
    priority: int | None
    pos: int | None
    top: int
    """The highest position given out before the scan began."""
    microseconds: int
    from_front: bool


class _Mark:
    __slots__ = ("met", "pos")

    def __init__(self) -> None:
        self.pos = -1
        self.met = 0


class Lane:
    """The marks of one lane: per priority, the position behind which live rows can still stand."""

    def __init__(self) -> None:
        self._marks: dict[int, _Mark] = {}
        self._tops: deque[tuple[float, int]] = deque()
        self._next_sweep = 0.0

    def sweep_due(self, now: float) -> bool:
        """Whether to ask for a scan from the very front: there is something to jump over, and it is time."""
        return now >= self._next_sweep and any(mark.met >= MET for mark in self._marks.values())

    def swept(self, now: float, rest: float) -> None:
        """A scan from the front ran; the next one is due after `rest` seconds."""
        self._next_sweep = now + rest

    def jumped(self, priority: int, pos: int) -> bool:
        """Whether this place lies behind a mark, so that only a scan from the front finds it."""
        mark = self._marks.get(priority)
        return mark is not None and mark.met >= MET and pos <= mark.pos

    def jumps(self) -> list[Jump]:
        """Segments that cover all priorities in order; one single segment while no dead entries are known."""
        worth = [(mark.met, priority) for priority, mark in self._marks.items() if mark.met >= MET]
        jumps: list[Jump] = []
        low, pos = LOWEST, -1
        for _, priority in sorted(sorted(worth, reverse=True)[:MOST], key=lambda pair: pair[1]):
            if priority > LOWEST:
                jumps.append(Jump(low, pos, priority))
            low, pos = priority, self._marks[priority].pos
        jumps.append(Jump(low, pos, BEYOND))
        return jumps

    def learn(self, seen: Seen, counts: dict[int, int], now: float) -> None:
        """Take in one scan that has just ended; `counts` says how many rows of each priority it took."""
        for priority, count in counts.items():
            self._marks.setdefault(priority, _Mark()).met += count
        self._advance(seen, self._settled(seen.top, now - seen.microseconds / 1e6))
        spare = seen.microseconds - _CALL_US - _ROW_US * seen.taken
        if spare > 0 and not seen.from_front:
            met = spare * 1_000 // _ENTRY_NS
            for _, mark in self._passed(seen):
                mark.met += met
        if len(self._marks) > _REMEMBERED:
            fewest = min(self._marks, key=lambda priority: self._marks[priority].met)
            del self._marks[fewest]

    def _advance(self, seen: Seen, settled: int) -> None:
        exhausted = seen.taken < seen.wanted
        for priority, mark in self._passed(seen):
            # Nothing is known of what was given out lately and may still be committed: it stands behind no mark.
            limit = max(settled, mark.pos)
            if exhausted or priority != seen.priority:
                # The scan passed everything of this priority that was there.
                mark.pos = min(seen.top, limit)
            elif seen.pos is not None:
                # Not the higher of both: a scan from the front goes back for what it found.
                mark.pos = min(seen.pos, limit)

    def _settled(self, top: int, began: float) -> int:
        """The highest position known to have been given out long before this scan; -1 for none."""
        tops = self._tops
        while len(tops) > 1 and tops[1][0] <= began - SETTLED:
            tops.popleft()
        found = tops[0][1] if tops and tops[0][0] <= began - SETTLED else -1
        if not tops or tops[-1][0] <= began - SETTLED / _SAMPLES:
            tops.append((began, top))
        return found

    def _passed(self, seen: Seen) -> Iterator[tuple[int, _Mark]]:
        exhausted = seen.taken < seen.wanted
        for priority, mark in self._marks.items():
            if exhausted or (seen.priority is not None and priority <= seen.priority):
                yield priority, mark


class Marks:
    """All marks of one connection."""

    def __init__(self) -> None:
        self._lanes: dict[int, Lane] = {}

    def lane(self, key: int) -> Lane:
        return self._lanes.setdefault(key, Lane())
