"""What a store answers when it is read: queues, workers, dead letters, pauses, operations, and how stores differ.

Plain immutable data; knows no store.
"""

from datetime import datetime, timedelta

from msgspec import Struct

from duly.core.filters import Filter
from duly.core.job import Incarnation, JobRecord


class Swept(Struct, frozen=True):
    """What one round of upkeep did."""

    promoted: int = 0
    expired: int = 0
    orphans: int = 0
    overdue: int = 0
    abandoned: int = 0
    unparked: int = 0
    shed: int = 0
    """Least urgent jobs of queues that shed and held more than they may."""
    stragglers: int = 0
    ran: bool = True
    """False when another worker held the sweep or it was not due yet."""


class QueueCount(Struct, frozen=True):
    """One queue at one moment, from one statement."""

    queue: str
    ready: int = 0
    scheduled: int = 0
    blocked: int = 0
    running: int = 0
    dead: int = 0
    oldest_ready: timedelta | None = None
    """Age of the job that has been ready longest."""
    next_due: datetime | None = None
    paused_until: datetime | None = None
    paused: bool = False
    in_per_s: float | None = None
    """Over the last minutes, from samples the workers keep; None without samples."""
    out_per_s: float | None = None
    slope_per_s: float | None = None
    estimated: tuple[str, ...] = ()
    """Which of the counts are estimates, because counting so many would take too long: `("ready", "scheduled")`."""


class WorkerRecord(Struct, frozen=True):
    incarnation: Incarnation
    host: str
    pid: int
    supervisor: str
    queues: tuple[str, ...]
    slots: int
    running: int
    started_at: datetime
    beat_age: timedelta
    progress_age: timedelta | None
    """Since it last ended an attempt or found nothing to do; a pulse without progress is a hung worker."""
    version: str
    draining: bool = False


class DeadGroup(Struct, frozen=True):
    fingerprint: str
    queue: str
    task: str
    count: int
    first: datetime
    last: datetime
    error: str
    """Type and message of the latest."""
    edited: int = 0
    """So many of them an edited job runs in the place of; a redrive leaves them where they are."""


class Pause(Struct, frozen=True):
    target: str
    """`queue:NAME` or `task:NAME`."""
    until: datetime | None
    by: str
    reason: str
    at: datetime


class OperationRecord(Struct, frozen=True):
    """A stored bulk act."""

    id: int
    verb: str
    """redrive, purge or cancel."""
    filter: Filter
    state: str
    """running, paused, done or cancelled."""
    rate: float | None
    """Jobs per second; None = as fast as possible."""
    priority: int | None
    done: int
    skipped: int
    """No longer in the state when their turn came."""
    total: int
    by: str
    reason: str
    created_at: datetime
    ended_at: datetime | None = None
    cursor: int = 0
    """Highest job id handled; ids are walked upwards."""
    upto: int = 0
    """No job with a higher id belongs to it."""


class Page(Struct, frozen=True):
    jobs: tuple[JobRecord, ...]
    next: int | None
    """Pass as `before` (newest first) or `after` (oldest first); None at the end."""


class Capabilities(Struct, frozen=True):
    """How stores differ, as data that tests and docs read."""

    kind: str
    shared_by_machines: bool
    rings: bool
    """Producers can wake a worker without polling."""
    shared_by_processes: bool = True
    """False where the jobs end with the process that opened the store."""
    only_queries: tuple[str, ...] = ()
    """Statement files that the other store does not have."""
