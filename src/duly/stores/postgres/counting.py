"""Rows of counts and samples as one QueueCount per queue. Reads nothing itself."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from duly.stores.postgres.columns import lane_of_suspects, queue_key, utc, utc_or_none
from duly.stores.protocol import QueueCount

Row = Sequence[Any]
_STATES: Final = ("ready", "scheduled", "blocked", "running", "dead")


class _Rates(NamedTuple):
    incoming: float
    outgoing: float
    slope: float


class _Tally:
    """One queue's numbers while they come in, from its own lane and that of its suspects."""

    def __init__(self) -> None:
        self.counts = dict.fromkeys(_STATES, 0)
        self.estimated: set[str] = set()
        self.earliest: dict[str, datetime] = {}
        self.paused = False
        self.paused_until: datetime | None = None

    def add(self, kind: str, count: int, extreme: datetime | None, *, estimated: bool) -> None:
        if kind == "pause":
            self.paused, self.paused_until = True, extreme
            return
        if kind in self.counts:
            self.counts[kind] += count
            if estimated:
                self.estimated.add(kind)
        if extreme is not None:
            self.earliest[kind] = min(extreme, self.earliest.get(kind, extreme))


def queue_counts(rows: Iterable[Row], samples: Iterable[Row], now: datetime) -> list[QueueCount]:
    """One count per queue that holds a job, is declared or is paused, by name."""
    queues: dict[str, _Tally] = {}
    for kind, queue, count, extreme, estimated in rows:
        if queue is not None:
            queues.setdefault(queue, _Tally()).add(kind, count, extreme, estimated=estimated)
    rates = _rates(samples, queues)
    return [_told(queue, queues[queue], rates.get(queue), now) for queue in sorted(queues)]


def _told(queue: str, tally: _Tally, rates: _Rates | None, now: datetime) -> QueueCount:
    oldest = tally.earliest.get("ready")
    return QueueCount(
        queue=queue,
        **tally.counts,
        oldest_ready=None if oldest is None else now - utc(oldest),
        next_due=utc_or_none(tally.earliest.get("scheduled")),
        paused=tally.paused,
        paused_until=utc_or_none(tally.paused_until),
        in_per_s=None if rates is None else rates.incoming,
        out_per_s=None if rates is None else rates.outgoing,
        slope_per_s=None if rates is None else rates.slope,
        estimated=tuple(state for state in _STATES if state in tally.estimated),
    )


def _rates(samples: Iterable[Row], queues: Iterable[str]) -> dict[str, _Rates]:
    names = {key(name): name for name in queues for key in (queue_key, lane_of_suspects)}
    sums: dict[str, dict[datetime, tuple[int, int, int]]] = {}
    for lane, at, ready, running, ended in samples:
        if lane in names:
            moments = sums.setdefault(names[lane], {})
            had = moments.get(at, (0, 0, 0))
            moments[at] = (had[0] + ready, had[1] + running, had[2] + ended)
    found = {}
    for name, moments in sums.items():
        first, last = min(moments), max(moments)
        span = (last - first).total_seconds()
        if span <= 0:
            continue
        out = sum(ended for at, (_, _, ended) in moments.items() if at > first) / span
        slope = (moments[last][0] - moments[first][0]) / span
        held = (moments[last][1] - moments[first][1]) / span
        found[name] = _Rates(max(0.0, slope + held + out), out, slope)
    return found
