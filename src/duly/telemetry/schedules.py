"""The typed events of schedules: fired, missed, failed, taken over. Plain data, as in events."""

from typing import ClassVar

from duly.telemetry.events import Happening, Level


class ScheduleFired(Happening, frozen=True):
    level: ClassVar[Level] = "debug"
    schedule: str
    jobs: int

    def sentence(self) -> str:
        return f"schedule {self.schedule} enqueued {self.jobs} jobs"


class DueTimesMissed(Happening, frozen=True):
    level: ClassVar[Level] = "warning"
    schedule: str
    missed: int
    """Due times that passed without a job."""
    why: str

    def sentence(self) -> str:
        return f"schedule {self.schedule}: {self.missed} due times passed without a job: {self.why}"


class ScheduleFailed(Happening, frozen=True):
    level: ClassVar[Level] = "error"
    schedule: str
    error: str

    def sentence(self) -> str:
        return f"schedule {self.schedule} could not enqueue: {self.error}; it is tried again"


class ScheduleTakenOver(Happening, frozen=True):
    level: ClassVar[Level] = "warning"
    schedule: str
    before: str
    """The App that had declared it; "" when it was stored at run time."""
    origin: str

    def sentence(self) -> str:
        whose = f"declared by {self.before}" if self.before else "stored at run time"
        return (
            f"schedule {self.schedule} was {whose} and is from now on what {self.origin} declares; if both are meant, "
            "give one of them another name"
        )


class RowsRefused(Happening, frozen=True):
    level: ClassVar[Level] = "warning"
    schedule: str
    rows: int
    error: str
    """Of the first."""

    def sentence(self) -> str:
        return f"tick {self.schedule}: {self.rows} rows made no job: {self.error}"
