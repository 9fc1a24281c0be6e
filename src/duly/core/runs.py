"""How often jobs run: attempts per completed job, second runs by cause, and what that is a day, in words.

Pure numbers in, numbers and words out; knows no store and no clock.
"""

from collections.abc import Iterable
from datetime import timedelta
from typing import Final

from msgspec import Struct

from duly.core.operating import Tally

CAUSES: Final = ("lost", "timeout", "redelivered", "redriven")
"""Why a job runs again though its handler asked for nothing."""
_DAY: Final = timedelta(days=1)


class TaskRuns(Struct, frozen=True):
    """What one task, or all of them, came to within a span."""

    task: str
    completed: int = 0
    failed: int = 0
    """Attempts whose handlers failed: their retries are meant, and are no second runs."""
    lost: int = 0
    """Attempts whose worker vanished."""
    timeout: int = 0
    """Attempts that ran out of their time to run."""
    redelivered: int = 0
    """Attempts that were interrupted after they had begun, to begin again elsewhere."""
    redriven: int = 0
    """Jobs that a person made run again."""
    suppressed: int = 0
    """Copies that were skipped instead of run, since another job stands for them."""

    @property
    def runs(self) -> int:
        """Attempts that ended."""
        return self.completed + self.failed + self.lost + self.timeout + self.redelivered

    @property
    def per_completed(self) -> float | None:
        """1.0: every job ran once. None: none has completed."""
        return self.runs / self.completed if self.completed else None

    @property
    def second(self) -> int:
        """Runs beyond the first that nobody's handler asked for: where an effect may have happened twice."""
        return sum(self.by_cause.values())

    @property
    def by_cause(self) -> dict[str, int]:
        return {cause: getattr(self, cause) for cause in CAUSES}


def runs_of(tallies: Iterable[Tally]) -> list[TaskRuns]:
    """By task, the one with the most second runs first."""
    found: dict[str, dict[str, int]] = {}
    for tally in tallies:
        sums = found.setdefault(tally.task, {})
        # A store counts an attempt that ran out of its time under both names.
        parts = {
            "completed": tally.completed,
            "failed": max(0, tally.failed - tally.timeout),
            "lost": tally.lost,
            "timeout": tally.timeout,
            "redelivered": tally.redelivered,
            "redriven": tally.redriven,
            "suppressed": tally.suppressed,
        }
        for name, number in parts.items():
            sums[name] = sums.get(name, 0) + number
    tasks = [TaskRuns(task, **sums) for task, sums in found.items()]
    return sorted(tasks, key=lambda one: (-one.second, -one.completed, one.task))


def together(tasks: Iterable[TaskRuns]) -> TaskRuns:
    """All of them as one."""
    kept = list(tasks)
    names = [name for name in TaskRuns.__struct_fields__ if name != "task"]
    return TaskRuns("all", **{name: sum(getattr(one, name) for one in kept) for name in names})


def share_text(number: int, of: int, span: timedelta) -> str:
    """A share and what it is a day at this pace: "0.01 % = 1,000 a day"; "none" for 0."""
    if not number:
        return "none"
    a_day = number * (_DAY / span) if span > timedelta(0) else float(number)
    daily = f"{a_day:,.0f}" if a_day >= 10 else f"{a_day:.1f}".removesuffix(".0")
    return f"{_percent(number / of)} = {daily} a day" if of else f"{daily} a day"


def _percent(share: float) -> str:
    """Two digits that count."""
    percent = share * 100
    if percent >= 10:
        return f"{percent:.0f} %"
    places = 1 if percent >= 1 else 2
    while round(percent, places) < 0.1 ** (places - 1) and places < 8:
        places += 1
    return f"{percent:.{places}f}".rstrip("0").rstrip(".") + " %"
