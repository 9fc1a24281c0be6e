"""How often jobs run, from the counts that a duty folds. Part of `inspect`."""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

from duly.client.control_reads import ControlReads
from duly.client.twins import blocking, twin
from duly.core.durations import Duration, parse_duration
from duly.core.errors import UsageError
from duly.core.operating import TALLY_HOURS, TALLY_MINUTES
from duly.core.runs import TaskRuns, runs_of, share_text, together


class Runs(msgspec.Struct, frozen=True):
    """Attempts and second runs of the tasks within a span."""

    since: datetime | None
    """None: nothing was counted yet, as before a worker has run for a minute."""
    until: datetime | None
    """Ends are counted up to here, a minute or two behind."""
    tasks: tuple[TaskRuns, ...]
    """The one with the most second runs first."""
    all: TaskRuns

    def share(self, number: int, of: TaskRuns) -> str:
        """A number of a task's as a share of its completed jobs and as what it is a day: "0.01 % = 1,000 a day"."""
        span = timedelta(0) if self.since is None or self.until is None else self.until - self.since
        return share_text(number, of.completed, span)


class RunReads(ControlReads):
    """Part of `Inspect`."""

    @blocking
    def runs(self, lasting: Duration = "1h", *, queue: str | None = None) -> Runs:
        """Runs per completed job, second runs by cause and suppressed copies, per task, over the last so long.

        Up to an hour by the minute, up to 14 days by whole hours. Costs no job anything: read from folded counts.
        """
        span = parse_duration(lasting, "lasting", positive=True)
        if span > TALLY_HOURS:
            raise UsageError(
                f"counts are kept for {TALLY_HOURS.days} days; ask for '{TALLY_HOURS.days}d' or less"
            )
        tallies = self._client.store.tallies
        until = tallies.counted()
        if until is None:
            return Runs(None, None, (), TaskRuns("all"))
        since = until - span
        fine = span <= TALLY_MINUTES
        if not fine:
            since -= timedelta(minutes=since.minute, seconds=since.second, microseconds=since.microsecond)
        queues = None if queue is None else [queue]
        tasks = tuple(runs_of(tallies.read("minute" if fine else "hour", since, until, queues=queues)))
        return Runs(since, until, tasks, together(tasks))

    aruns = twin(runs)
