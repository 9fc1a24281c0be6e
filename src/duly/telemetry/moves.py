"""The typed events of a job's way but for the ends of attempts: enqueued, promoted, claimed, moved by hand.

Those of one per job or call are told only to whoever wants details. Plain data, as in events.
"""

from typing import ClassVar

from duly.telemetry.events import Happening, Level


class JobsEnqueued(Happening, frozen=True):
    """One call, or the part of it that is for one task of one queue."""

    level: ClassVar[Level] = "debug"
    queue: str
    task: str
    jobs: int
    """That are new."""
    duplicates: int = 0
    """That another job stands for."""

    def sentence(self) -> str:
        more = f"; {_jobs(self.duplicates)} stood there already" if self.duplicates else ""
        return f"{_jobs(self.jobs)} of {self.task} enqueued on {self.queue}{more}"


class JobsPromoted(Happening, frozen=True):
    """scheduled -> ready, since they are due."""

    level: ClassVar[Level] = "debug"
    jobs: int

    def sentence(self) -> str:
        return f"{_jobs(self.jobs)} came due"


class JobClaimed(Happening, frozen=True):
    """ready -> running; its handler starts when a slot is free."""

    level: ClassVar[Level] = "debug"
    id: int
    run: int
    queue: str
    task: str
    attempt: int

    def sentence(self) -> str:
        return f"job {self.id} ({self.task} on {self.queue}) claimed, attempt {self.attempt}"


class JobsUnblocked(Happening, frozen=True):
    """blocked -> ready, by the sweep; whoever gives a key or a limit free lets the next one through without a word."""

    level: ClassVar[Level] = "debug"
    jobs: int

    def sentence(self) -> str:
        return f"{_jobs(self.jobs)} may run again: a worker knows the task, or its pause is over"


class JobsExpired(Happening, frozen=True):
    """waiting -> skipped, found by the sweep."""

    jobs: int

    def sentence(self) -> str:
        return f"{_jobs(self.jobs)} not started by their expiry, and skipped; look: duly jobs --state skipped"


class JobsAbandoned(Happening, frozen=True):
    """blocked -> dead: no worker has known the task for `unknown_after`."""

    level: ClassVar[Level] = "error"
    jobs: int

    def sentence(self) -> str:
        return (
            f"{_jobs(self.jobs)} dead: no worker knows the task; start one that does, then: duly dead groups, "
            "duly dead redrive"
        )


class JobsMoved(Happening, frozen=True):
    """What a person did: cancel, redrive, purge, run_now, run_at or reprioritise."""

    verb: str
    jobs: tuple[int, ...]
    by: str

    def sentence(self) -> str:
        shown = ", ".join(map(str, self.jobs[:20]))
        more = f" and {len(self.jobs) - 20} more" if len(self.jobs) > 20 else ""
        return f"{self.verb} by {self.by}: {shown}{more}"


def _jobs(number: int) -> str:
    return "1 job" if number == 1 else f"{number:,} jobs"
