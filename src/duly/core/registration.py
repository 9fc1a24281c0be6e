"""What an App declares, as data that a store keeps: queues, tasks and schedules, under a release of that App.

Knows neither functions nor stores.
"""

from datetime import datetime, timedelta
from typing import Literal

from msgspec import Struct

from .control import LimitPolicy, Ordering, TaskLimit, WhenFull
from .job import JobId, NewJob

CatchUp = Literal["last", "skip", "all"]
Overlap = Literal["skip", "queue", "allow"]


class QueuePolicy(Struct, frozen=True):
    """One declared queue. None: what the settings say."""

    name: str
    owner: str = ""
    keep: timedelta | None = None
    keep_dead: timedelta | None = None
    fair: bool = False
    ordering: Ordering = "wait"
    serialise: bool = False
    wait_target: timedelta | None = None
    max_depth: int | None = None
    max_age: timedelta | None = None
    when_full: WhenFull = "reject"
    importance: int = 100
    """Lower is more important: who gives way last when the store's budget is spent."""
    reserve: float = 0.0
    """Share of a worker's slots that is kept for tenants of which nothing runs."""


class TaskPolicy(Struct, frozen=True):
    """One declared task, as producers in other languages need it."""

    name: str
    queue: str
    priority: int
    expires: timedelta | None = None


class Schedule(Struct, frozen=True):
    """When something is due, and what is enqueued then."""

    name: str
    every: timedelta | None = None
    """Excludes `cron`."""
    cron: str | None = None
    tz: str = "UTC"
    job: NewJob | None = None
    """None for a tick: code of the App makes its jobs."""
    jitter: timedelta = timedelta(0)
    catch_up: CatchUp = "last"
    overlap: Overlap = "skip"


class ScheduleRecord(Struct, frozen=True):
    """A schedule as stored."""

    schedule: Schedule
    origin: str
    """The App that declares it; "" when it was stored at run time."""
    next_at: datetime
    """Only ever moves forward, so that a clock that was set back fires nothing twice."""
    paused: bool = False
    last_at: datetime | None = None
    """The due time that was fired last."""
    last_id: JobId | None = None
    last_waiting: bool = False
    """That job is ready, scheduled or blocked."""
    last_running: bool = False
    fired: int = 0
    missed: int = 0
    """Due times without a job: caught up, skipped after a downtime, or overlapping."""
    created_at: datetime | None = None
    failure: str | None = None
    """What went wrong when it was last tried; None since the last success."""
    failed_at: datetime | None = None
    failures: int = 0
    """Attempts that failed since the last success."""

    @property
    def name(self) -> str:
        """The schedule's."""
        return self.schedule.name


class Registration(Struct, frozen=True):
    """Everything one release of an App declares."""

    origin: str
    """Which App: "shop.background:jobs"."""
    release: str
    """A fingerprint of all of it. Of one origin the release seen first last wins: one started again never wins back."""
    queues: tuple[QueuePolicy, ...] = ()
    tasks: tuple[TaskPolicy, ...] = ()
    schedules: tuple[tuple[Schedule, datetime], ...] = ()
    """Each with its first due time from now."""
    limits: tuple[LimitPolicy, ...] = ()
    """Those of the origin that are no longer declared are removed."""
    task_limits: tuple[TaskLimit, ...] = ()
