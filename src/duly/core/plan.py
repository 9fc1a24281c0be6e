"""Arithmetic of capacity: how long a backlog takes, how many workers a wait target needs, when to start or stop one.

Pure numbers in, numbers and words out; knows no store, no process and no clock.
"""

import re
from collections.abc import Iterable
from datetime import timedelta
from math import ceil, floor
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from duly.core.bounds import Bound
from duly.core.defaults import SCALE_CALM, SCALE_EVERY, SCALE_SETTLE, SCALE_WAIT
from duly.core.durations import LONGEST
from duly.core.errors import UsageError
from duly.core.pressure import drain_time

_PROCESSES: Final = re.compile(r"([0-9]{1,4})(?:\.\.([0-9]{1,4}))?")
_ROUNDING: Final = 1e-9
"""So that 4.0000000001 workers are four."""
MOST_WORKERS: Final = 1_000_000
CATCH_UP: Final = timedelta(minutes=10)
"""In such a time a person wants a backlog done by the processes that the sentence names."""
CONNECTIONS_PER_PROCESS: Final = 4
CROWDED: Final = 0.8
"""From this share of the database's connections on, no process is added."""
_REVERSED: Final = 10.0
"""A process that is wanted again within so many times the settling was stopped too early."""
_MOST_CALM: Final = 16
"""Calm is asked for at most so many times as long."""


class Plan(Struct, frozen=True):
    """What becomes of a backlog."""

    backlog: float
    rate: float
    """Jobs that all workers together finish a second."""
    arrivals: float
    workers: int
    """How many finish `rate` together."""
    drain: timedelta | None
    """None: never."""
    growth: float
    """Jobs a second by which it grows; negative while it drains."""
    workers_needed: int
    """So that it drains; with a time for it, within that time."""

    def sentence(self) -> str:
        """ "2,000 s (33 min)", or "never: it grows by 100/s, needs 2 workers"."""
        if self.drain is not None:
            return seconds_and(self.drain)
        if self.growth < 0:
            return f"more than {LONGEST.days // 365} years"
        needed = "1 worker" if self.workers_needed == 1 else f"{self.workers_needed:,} workers"
        return f"never: it grows by {_number(self.growth)}/s, needs {needed}"


def plan(
    backlog: float, rate: float, arrivals: float = 0.0, *, workers: int = 1, within: timedelta | None = None
) -> Plan:
    """What becomes of `backlog` jobs when `workers` finish `rate` jobs a second together and `arrivals` come."""
    needed = workers_needed(backlog, arrivals, rate / workers, within)
    return Plan(
        backlog, rate, arrivals, workers, drain_time(ceil(backlog), arrivals, rate), arrivals - rate, needed
    )


def workers_needed(backlog: float, arrivals: float, per_worker: float, within: timedelta | None) -> int:
    """How many workers of this speed keep up with the arrivals and, where a time is given, do the backlog within it.

    Without a time so many that it drains at all; at most MOST_WORKERS, and that many where one does nothing.
    """
    if backlog <= 0 and arrivals <= 0:
        return 0
    if per_worker <= 0:
        return MOST_WORKERS
    if within is None:
        # More than the arrivals: as many as arrive would keep the backlog as it is.
        needed = arrivals / per_worker
        return min(MOST_WORKERS, floor(needed + _ROUNDING) + 1)
    needed = (arrivals + backlog / max(within.total_seconds(), _ROUNDING)) / per_worker
    return min(MOST_WORKERS, max(1, ceil(min(needed, MOST_WORKERS) - _ROUNDING)))


def full_in(ready: int, slope: float | None, bound: Bound | None) -> timedelta | None:
    """How long until a growing queue reaches its depth; zero when it has; None when it has none or does not grow."""
    if bound is None or bound.max_depth is None:
        return None
    if ready >= bound.max_depth:
        return timedelta(0)
    if slope is None or slope <= 0:
        return None
    seconds = (bound.max_depth - ready) / slope
    return None if seconds >= LONGEST.total_seconds() else timedelta(seconds=seconds)


class Load(Struct, frozen=True):
    """One queue as a scaler sees it."""

    queue: str
    ready: int
    processes: int
    """That serve it, in the whole fleet."""
    oldest: timedelta | None = None
    in_per_s: float | None = None
    out_per_s: float | None = None
    slope_per_s: float | None = None
    wait_target: timedelta | None = None
    paused: bool = False
    capped: bool = False
    """It runs as many jobs as it may."""
    sharers: int = 1
    """Supervisors that serve it: each adds its part of what is needed."""

    @property
    def target(self) -> timedelta:
        return SCALE_WAIT if self.wait_target is None else self.wait_target

    def pressed(self) -> bool:
        """Whether its jobs wait longer than they should, or soon will at this slope."""
        target = self.target.total_seconds()
        if not self.ready:
            return False
        if self.oldest is not None and self.oldest >= self.target:
            return True
        if not self.out_per_s:
            return False
        if self.ready >= target * self.out_per_s:
            return True
        slope = self.slope_per_s or 0.0
        left = target * self.out_per_s - self.ready
        return slope > 0 and left / slope <= SCALE_CALM.total_seconds()

    def needed(self, within: timedelta | None = None) -> int | None:
        """Processes, in the whole fleet, that keep up and do what waits within the target, or within this time; None:
        nobody can say."""
        if not self.ready and not self.in_per_s:
            return 0
        if not self.processes or not self.out_per_s or self.in_per_s is None:
            return None
        return workers_needed(
            self.ready, self.in_per_s, self.out_per_s / self.processes, within or self.target
        )


class Processes(NamedTuple):
    """How many processes a supervisor runs: always `least`, or up to `most` by how long jobs wait."""

    least: int
    most: int | None = None

    def __str__(self) -> str:
        return str(self.least) if self.most is None else f"{self.least}..{self.most}"


def read_processes(said: object, what: str = "processes") -> Processes:
    """Read 4, "4" or "1..8". UsageError with what to write."""
    match = _PROCESSES.fullmatch(str(said).strip())
    if match is None or isinstance(said, bool):
        raise UsageError(
            f"{what}={said!r:.40} is no number of processes; write 4, or 1..8 to scale them by the wait"
        )
    least, most = int(match[1]), None if match[2] is None else int(match[2])
    if least < 1 or (most is not None and most < least):
        raise UsageError(f"{what}={said!r:.40}: write at least 1, and the larger number last, as 1..8")
    return Processes(least, None if most == least else most)


class Tempo(Struct, frozen=True):
    """How quick a scaler is."""

    every: timedelta = SCALE_EVERY
    """Between two looks."""
    settle: timedelta = SCALE_SETTLE
    """After a change, until the rates show it."""
    calm: timedelta = SCALE_CALM
    """Without jobs that wait long, until one process fewer is tried."""


USUAL: Final = Tempo()


class Scaling(Struct, frozen=True):
    """What a scaler remembers between two looks. Moments in seconds of one clock."""

    wanted: int
    changed_at: float | None = None
    calm_since: float | None = None
    stopped_at: float | None = None
    """When it stopped a process last."""
    patience: int = 1
    """How many times the calm has to last before the next one is stopped."""
    why: str = ""


def scale(
    memory: Scaling,
    loads: Iterable[Load],
    now: float,
    *,
    least: int,
    most: int,
    room: int | None = None,
    tempo: Tempo = USUAL,
) -> Scaling:
    """Decide how many processes this supervisor runs: up at once to what is needed, down one by one after calm.

    `room`: how many more the database has connections for; None: as many as you like. After a change the rates are
    left the tempo's `settle` to show it. A process that was stopped too early makes the next stop wait twice as long.
    """
    loads = [load for load in loads if not load.paused]
    pressed = [load for load in loads if not load.capped and load.pressed()]
    if not pressed:
        return _calm(memory, loads, now, least, tempo)
    memory = replace(memory, calm_since=None)
    if memory.changed_at is not None and now - memory.changed_at < tempo.settle.total_seconds():
        return memory
    worst = max(pressed, key=_more)
    ceiling = most if room is None else min(most, memory.wanted + max(0, room))
    wanted = max(least, min(ceiling, memory.wanted + _more(worst)))
    if wanted <= memory.wanted:
        return memory
    early = memory.stopped_at is not None and (
        now - memory.stopped_at < _REVERSED * tempo.settle.total_seconds()
    )
    patience = min(_MOST_CALM, memory.patience * 2) if early else memory.patience
    why = f"the jobs of queue {worst.queue} wait longer than {spelled(worst.target)}, or soon will"
    return Scaling(wanted, now, None, memory.stopped_at, patience, why)


def _calm(memory: Scaling, loads: list[Load], now: float, least: int, tempo: Tempo) -> Scaling:
    if any(load.ready and load.oldest is not None and load.oldest >= load.target / 2 for load in loads):
        # In time, but not by much: neither up nor down. Nor late behind a cap, which may take all processes to reach.
        return replace(memory, calm_since=None)
    since = now if memory.calm_since is None else memory.calm_since
    calm = tempo.calm.total_seconds() * memory.patience
    if memory.wanted <= least or now - since < calm:
        return replace(memory, calm_since=since)
    # Long after the last mistake it may be tried as quickly as at first.
    forgiven = memory.stopped_at is not None and now - memory.stopped_at > 2 * _MOST_CALM * calm
    patience = 1 if forgiven else memory.patience
    return Scaling(memory.wanted - 1, now, now, now, patience, "nothing has waited long for a while")


def _more(load: Load) -> int:
    needed = load.needed()
    # Without a measured speed one more is a trial.
    return 1 if needed is None else max(1, ceil((needed - load.processes) / load.sharers))


def connection_room(connections: int, most: int) -> int:
    """How many more processes the database has connections for."""
    return max(0, int(CROWDED * most) - connections) // CONNECTIONS_PER_PROCESS


def outlook(load: Load, bound: Bound | None, *, capped: int | None = None) -> str | None:
    """What comes of a queue whose jobs wait too long, or which fills: when it is full, and what would help.

    `capped`: its max_running, where it runs that many. None when all is well, or nothing is known.
    """
    parts = []
    left = full_in(load.ready, load.slope_per_s, bound)
    if left and bound is not None:
        met = {"reject": "new work is rejected", "slow": "producers are slowed"}
        parts.append(
            f"at this slope full in {spelled(left)}, then "
            f"{met.get(bound.when_full, 'the least urgent jobs are shed')}"
        )
    if load.pressed() or left:
        if capped is not None:
            parts.append(f"it runs as many as max_running={capped} lets it: more processes would not help")
        elif remedy := _remedy(load):
            parts.append(remedy)
    return "; ".join(parts) or None


def _remedy(load: Load) -> str | None:
    behind = bool(load.out_per_s) and load.ready > load.target.total_seconds() * (load.out_per_s or 0.0)
    # Somebody who starts processes by hand wants to keep them: not those that do a large backlog within seconds.
    needed = load.needed(max(load.target, CATCH_UP) if behind else load.target)
    if needed is None or needed >= MOST_WORKERS:
        return None
    more = needed - load.processes
    if more <= 0:
        return None
    processes = "1 more process" if more == 1 else f"{more:,} more processes"
    return f"{processes} would hold {spelled(load.target)}" + (
        f" again in {spelled(CATCH_UP)}" if behind and load.target < CATCH_UP else ""
    )


def _number(per_second: float) -> str:
    return f"{per_second:,.0f}" if per_second >= 10 else f"{per_second:.2g}"


def seconds_and(span: timedelta) -> str:
    """A span in seconds, and in the unit that a person thinks in: "2,000 s (33 min)", "45 s"."""
    seconds = span.total_seconds()
    shown = f"{seconds:,.0f} s" if seconds >= 10 or seconds == int(seconds) else f"{seconds:.2g} s"
    if seconds < 120:
        return shown
    if seconds < 7_200:
        return f"{shown} ({seconds / 60:.0f} min)"
    if seconds < 172_800:
        return f"{shown} ({seconds / 3600:.1f} h)"
    return f"{shown} ({seconds / 86_400:,.1f} days)"


def spelled(span: timedelta) -> str:
    """A span in its two largest units, spelled out: "3 h 10 min", "30 s"."""
    rest = max(0, round(span.total_seconds()))
    if rest >= 3_600:
        # Nobody plans by the second over hours.
        rest = round(rest / 60) * 60
    parts = []
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")):
        number, rest = divmod(rest, size)
        if number:
            parts.append(f"{number} {unit}")
    return " ".join(parts[:2]) or "0 s"
