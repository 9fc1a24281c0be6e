"""What was measured, medians over the runs, and how a median stands to its target. No I/O."""

import statistics
from collections.abc import Iterable
from dataclasses import dataclass, field

from bench.peers.rows import ROWS, WORKLOADS


@dataclass(frozen=True, slots=True)
class Result:
    """One run of one workload of one row; `others` is the cores that everybody else used meanwhile."""

    row: str
    workload: str
    figures: dict[str, float] = field(default_factory=dict)
    others: float = 0.0
    version: str = ""
    settings: str = ""
    acknowledges: bool = True
    error: str = ""


class Results:
    """All runs of one session, asked for medians."""

    def __init__(self, results: Iterable[Result]) -> None:
        self.all = list(results)

    def values(self, row: str, workload: str, figure: str = "value") -> list[float]:
        found = (result for result in self.all if (result.row, result.workload) == (row, workload))
        return [result.figures[figure] for result in found if figure in result.figures]

    def median(self, row: str, workload: str, figure: str = "value") -> float | None:
        """None when no run of it succeeded."""
        values = self.values(row, workload, figure)
        return statistics.median(values) if values else None

    def rows(self) -> list[str]:
        """Those with at least one run that succeeded, in the order of the table."""
        measured = {result.row for result in self.all if not result.error}
        return [row for row in ROWS if row in measured]

    def failed(self) -> list[Result]:
        return [result for result in self.all if result.error]

    def first(self, row: str) -> Result:
        """Of which the facts that do not change are taken."""
        return next(result for result in self.all if result.row == row and not result.error)

    def best_peer(self, workload: str) -> str | None:
        """The peer that is ahead of all others in it."""
        peers = [row for row in self.rows() if ROWS[row].is_peer and self.values(row, workload)]
        sign = -1 if WORKLOADS[workload].lower_is_better else 1
        return max(peers, key=lambda row: sign * (self.median(row, workload) or 0), default=None)


@dataclass(frozen=True, slots=True)
class Figure:
    """A median to be looked up."""

    row: str
    workload: str
    figure: str = "value"


BEST_PEER = "best peer"


@dataclass(frozen=True, slots=True)
class Target:
    """What `measured` must be: at least `bound` times what it is compared with, or at most `bound` itself.

    `beside` is shown where that has nothing to compare with: what the bare statements took in the same run.
    """

    measured: Figure
    bound: float
    compared: Figure | float | None = None
    at_most: bool = False
    beside: Figure | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """A target and how it was met; `met` is None where something of it was not measured."""

    target: Target
    value: float | None
    against: str = ""
    base: float | None = None
    ratio: float | None = None
    met: bool | None = None


def judge(target: Target, results: Results) -> Verdict:
    """The measured median beside the target."""
    measured = target.measured
    value = results.median(measured.row, measured.workload, measured.figure)
    if target.compared is None:
        met = None if value is None else _within(target, value)
        against, base = _base(target.beside, results) if target.beside else ("", None)
        return Verdict(
            target, value, against if base else "", base, value / base if value and base else None, met
        )
    against, base = _base(target.compared, results)
    if value is None or not base:
        return Verdict(target, value, against, base)
    ratio = value / base
    return Verdict(target, value, against, base, ratio, _within(target, ratio))


def _within(target: Target, score: float) -> bool:
    return score <= target.bound if target.at_most else score >= target.bound


def _base(compared: Figure | float, results: Results) -> tuple[str, float | None]:
    """(What it is called, its value) of what a target is compared with."""
    if isinstance(compared, float):
        return "ideal", compared
    row = compared.row
    if row == BEST_PEER:
        best = results.best_peer(compared.workload)
        if best is None:
            return BEST_PEER, None
        row = best
    name = "plain" if compared.workload == "drain" else "one process"
    name = name if ROWS[row].adapter == "duly" else row
    return name, results.median(row, compared.workload, compared.figure)


BARE_POSTGRES, BARE_SQLITE = "limit postgres", "limit sqlite"

# Of 50 slots with handlers of 1 ms.
IDEAL_SHORT = 50_000.0

POSTGRES = (
    Target(Figure("duly postgres", "one"), 0.80, Figure(BARE_POSTGRES, "one")),
    Target(Figure("duly postgres", "one"), 1.4, Figure("pgqueuer", "one")),
    Target(Figure("duly postgres", "bulk"), 2.0, Figure(BEST_PEER, "bulk")),
    Target(Figure("duly postgres", "drain"), 2.5, Figure("pgqueuer", "drain")),
    Target(Figure("duly postgres", "drain"), 5.0, Figure("beanstalkd", "drain")),
    Target(Figure("duly postgres", "two"), 1.3, Figure("duly postgres", "long")),
    Target(Figure("duly postgres", "latency"), 1.5, at_most=True, beside=Figure(BARE_POSTGRES, "latency")),
    Target(
        Figure("duly postgres", "latency", "p99"),
        8.0,
        at_most=True,
        beside=Figure(BARE_POSTGRES, "latency", "p99"),
    ),
    Target(Figure("duly postgres", "threads"), 10_000),
    Target(Figure("duly postgres", "short"), 0.70, IDEAL_SHORT),
    Target(Figure("duly postgres", "everything"), 0.50, Figure("duly postgres", "drain")),
    Target(Figure("duly postgres", "late"), 50.0, at_most=True),
    Target(Figure("duly postgres", "late", "p99"), 250.0, at_most=True),
)
SQLITE = (
    Target(Figure("duly sqlite", "one"), 0.75, Figure(BARE_SQLITE, "one")),
    Target(Figure("duly sqlite", "bulk"), 100_000),
    Target(Figure("duly sqlite", "drain"), 10.0, Figure("huey sqlite", "drain")),
    Target(Figure("duly sqlite", "two"), 1.0, Figure("duly sqlite", "long")),
    Target(Figure("duly sqlite", "latency"), 2.0, at_most=True, beside=Figure(BARE_SQLITE, "latency")),
    Target(
        Figure("duly sqlite", "latency", "p99"),
        10.0,
        at_most=True,
        beside=Figure(BARE_SQLITE, "latency", "p99"),
    ),
    Target(Figure("duly sqlite", "threads"), 10_000),
    Target(Figure("duly sqlite", "short"), 0.60, IDEAL_SHORT),
    Target(Figure("duly sqlite", "everything"), 0.50, Figure("duly sqlite", "drain")),
    Target(Figure("duly sqlite", "late"), 50.0, at_most=True),
    Target(Figure("duly sqlite", "late", "p99"), 250.0, at_most=True),
)
TARGETS = (*POSTGRES, *SQLITE)
