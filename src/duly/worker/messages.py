"""The messages between the supervisor, its children and their isolated processes. Plain data."""

from datetime import timedelta
from typing import Final, Literal

from msgspec import Struct

from duly.core.fingerprint import ErrorRecord
from duly.core.job import ClaimedJob, Ended, Incarnation, JobId, Progress, Steps
from duly.telemetry.totals import Counted
from duly.worker.options import Plan, WorkerOptions

# How a child left: everything but 0 has it replaced, and the supervisor settles what it held.
FENCED: Final = 70
HUNG: Final = 71
BROKEN: Final = 72

# Supervisor -> child.


class Work(Struct, frozen=True, tag=True):
    """The first message: who to be."""

    app: str
    options: WorkerOptions
    path: tuple[str, ...]
    """sys.path of the supervisor."""
    supervisor: str
    records: int
    """Lines on the board."""
    quarantine: bool = False
    may_wait: bool = False
    """The store was reachable before: wait for it instead of giving up."""


class Stop(Struct, frozen=True, tag=True):
    """Stop claiming, give running jobs their grace, hand the rest back."""

    reason: str
    grace: float


Orders = Work | Stop

# Child -> supervisor.


class Registered(Struct, frozen=True, tag=True):
    """The child has an incarnation; the supervisor beats for it from now on."""

    incarnation: Incarnation
    registered_at: float
    """Boot time before the registration was sent."""
    plan: Plan
    url: str
    schema: str
    store: str
    """Where, for people: no password."""
    queues: tuple[str, ...]
    tasks: tuple[str, ...]


class Refused(Struct, frozen=True, tag=True):
    """The child cannot start, and the next one could not either."""

    kind: Literal["usage", "unreachable", "migration", "failed"]
    text: str


class Will(Struct, frozen=True, tag=True):
    """What to write for attempts whose handlers still run, once this process has ended."""

    ends: tuple[Ended, ...]
    reason: str


class SuspectsWait(Struct, frozen=True, tag=True):
    """There are jobs that must run alone."""


class Draining(Struct, frozen=True, tag=True):
    """The child wants to end soon and be replaced; it goes on working until it is told to stop."""

    reason: str
    urgent: bool
    """A handler is stuck in it, as against a planned recycling."""


class Left(Struct, frozen=True, tag=True):
    """The last word before a clean exit."""

    reason: str
    ran: int
    """Attempts that ended in this process."""
    retired: bool
    """False: the supervisor has to settle the incarnation."""


Reports = Registered | Refused | Will | SuspectsWait | Draining | Counted | Left

# Child -> isolated process.


class Prepare(Struct, frozen=True, tag=True):
    app: str
    url: str | None
    path: tuple[str, ...]


class Run(Struct, frozen=True, tag=True):
    job: ClaimedJob
    incarnation: Incarnation
    timeout: float
    left: Steps
    """Of earlier runs."""
    acked_first: bool


class StepKept(Struct, frozen=True, tag=True):
    """What became of the write of a finished step."""

    live: bool
    """False without a fault: the attempt no longer owns its job."""
    fault: str = ""
    why: Literal["away", "unfit", "inside"] = "away"
    """Of a fault: no answer, a value the store cannot hold, or a transaction of the handler's own in the way."""


IsolatedOrders = Prepare | Run | StepKept

# Isolated process -> child.


class Prepared(Struct, frozen=True, tag=True):
    error: str | None = None


class Progressed(Struct, frozen=True, tag=True):
    progress: Progress


class Extended(Struct, frozen=True, tag=True):
    by: timedelta


class Moved(Struct, frozen=True, tag=True):
    """How far the loops of an attempt came."""

    id: JobId
    run: int
    cursors: tuple[tuple[str, int], ...]


class KeepStep(Struct, frozen=True, tag=True):
    """A finished step; the answer is StepKept."""

    name: str
    value: bytes


class Called(Struct, frozen=True, tag=True):
    """A use of a resource is over."""

    resource: str
    outcome: Literal["done", "failed", "cut"]


class HandsOver(Struct, frozen=True, tag=True):
    """The handler writes its completion into a transaction of its own: touch the job no more."""


class Done(Struct, frozen=True, tag=True):
    """The attempt ended, as far as the process can tell."""

    ended: Ended
    how: str
    """returned, ending, error, stopped or settled (`complete` wrote it)."""
    error: ErrorRecord | None = None


IsolatedReports = Prepared | Progressed | Extended | Moved | KeepStep | Called | HandsOver | Done
