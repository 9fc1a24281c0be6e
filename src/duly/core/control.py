"""What bounds a job beside its place in a queue, as data: limits, breakers, ordering policies, overrides, reasons.

Names of limits and their keys are made here. Knows neither stores nor handlers; `core.pace` counts the rates.
"""

import re
from datetime import datetime, timedelta
from typing import Final, Literal

from msgspec import Struct

from duly.core.errors import UsageError
from duly.core.pace import parse_pace

Ordering = Literal["wait", "skip_dead", "pause_key"]
MOST_WEIGHT: Final = 1_000
"""What the jobs behind a dead head do: wait for it, go on without it, or wait until a person resumes the key."""
WhenFull = Literal["reject", "shed", "slow"]
BreakerState = Literal["closed", "open", "half-open"]
OverrideKind = Literal["limit", "block"]

PATIENCE: Final = timedelta(seconds=30)
"""A job that waited so long for several limits reserves them, one after another."""
AGED_SHARE: Final = 8
"""One in so many claimed jobs is the one that has waited longest, whatever its priority."""


class Rate(Struct, frozen=True):
    """Starts per time, as GCRA counts them."""

    interval: float
    """Seconds between two starts."""
    burst: int = 1
    """So many at once after a pause."""


class BreakerPolicy(Struct, frozen=True):
    """When a resource is left alone."""

    failures: float = 0.5
    """Share of failed calls within the window that opens it."""
    min_calls: int = 20
    """Fewer calls than that open nothing."""
    window: timedelta = timedelta(minutes=1)
    cool_down: timedelta = timedelta(seconds=30)
    """Open for so long, then one job tries."""


class LimitPolicy(Struct, frozen=True):
    """A declared bound; None: unbounded in that respect."""

    name: str
    """As `queue_limit` and its kin make it."""
    max_running: int | None = None
    rate: Rate | None = None
    breaker: BreakerPolicy | None = None


class TaskLimit(Struct, frozen=True):
    """That a task's jobs take a limit; with `argument` one instance per value."""

    task: str
    policy: str
    argument: str | None = None


class LimitRecord(Struct, frozen=True):
    """A limit as it stands: what is declared, what an override says, and how much of it is used."""

    name: str
    """The instance's."""
    max_running: int | None
    rate: Rate | None
    running: int
    waiting: int
    """Jobs that are blocked behind it; at most 10,000 are counted."""
    next_at: datetime | None = None
    """When its rate, its hold or its breaker lets the next one start."""
    held_until: datetime | None = None
    held_by: str | None = None
    """Who holds it, or held it last: a person, or "task:NAME" for a handler."""
    held_reason: str | None = None
    breaker: BreakerState | None = None
    breaker_until: datetime | None = None
    override: int | None = None


class Override(Struct, frozen=True):
    """A temporary change of policy; it ends by itself, and everybody sees who made it and why."""

    id: int
    target: str
    """A limit's policy or instance name, or for a block the queue's `queue:NAME`."""
    kind: OverrideKind
    value: dict[str, object]
    """limit: max_running, interval, burst, weight; block: the filter as text."""
    by: str
    reason: str
    at: datetime
    until: datetime | None
    lifted_at: datetime | None = None


class TenantPlan(Struct, frozen=True):
    """What one tenant was sold; it takes the place of the queues' own values."""

    name: str
    weight: int = 1
    max_running: int | None = None
    rate: Rate | None = None


MOST_WAITING: Final = 1_000
"""Ready jobs of one tenant are counted so far."""


class TenantWait(Struct, frozen=True):
    """What a tenant has ready in one fair queue."""

    queue: str
    tenant: str
    ready: int
    """At most MOST_WAITING and one are counted."""
    oldest: timedelta
    """How long the one that is ready longest has waited."""


class KeyRecord(Struct, frozen=True):
    """An ordering key with work."""

    queue: str
    tenant: str
    key: str
    head: int | None
    """The job that owns it."""
    state: str | None
    """Where the head stands."""
    waiting: int
    since: datetime
    """Since when that head has owned it."""
    paused: bool = False


class Permit(Struct, frozen=True):
    """A named limit or lock taken outside a claim: proof for its release. A job's permits end with its attempt."""

    names: tuple[str, ...]
    id: int
    """The job's, or a number of its own."""
    incarnation: int
    """0 outside handlers."""
    until: datetime | None


class Refusal(Struct, frozen=True):
    """A permit that could not be had now."""

    name: str
    """The first that refused."""
    wait: timedelta | None
    """Until a try may succeed; None: when another holder lets go."""


class Calls(Struct, frozen=True):
    """What a worker saw of one resource since it last said so."""

    resource: str
    calls: int
    failures: int


def queue_limit(queue: str) -> str:
    return f"queue:{queue}"


def tenant_limit(queue: str, tenant: str | None = None) -> str:
    """The policy of all tenants of a queue, or one tenant's instance."""
    return f"tenant:{queue}" if tenant is None else f"tenant:{queue}={tenant}"


def plan_limit(tenant: str) -> str:
    """The policy of one tenant in every queue."""
    return f"tenant:={tenant}"


def task_limit(task: str) -> str:
    return f"task:{task}"


def argument_limit(task: str, argument: str, value: str | None = None) -> str:
    policy = f"task:{task}#{argument}"
    return policy if value is None else f"{policy}={value}"


def resource_limit(resource: str) -> str:
    return f"resource:{resource}"


def lock_limit(name: str) -> str:
    return f"lock:{name}"


def ordering_name(queue: str, tenant: str, key: str) -> str:
    """What an ordering key's number is made of; its scope is (queue, tenant)."""
    return f"ordering\x1f{queue}\x1f{tenant}\x1f{key}"


def read_rate(text: object, what: str = "rate") -> Rate:
    """Read "600/min" or "100/s burst 20". Without a burst: what one second allows, at least 1.

    A fleet starts jobs by the claim, not one by one: a burst of 1 would bind it to as many starts as it makes claims.
    """
    pace = parse_pace(text, what)
    burst = pace.burst if " burst " in str(text) else max(1, round(1 / pace.interval))
    return Rate(pace.interval, burst)


def read_cap(cap: object, what: str = "max_running") -> int:
    """A number of jobs that may run at once. UsageError below 1."""
    if isinstance(cap, bool) or not isinstance(cap, int) or not 1 <= cap < 2**31:
        raise UsageError(
            f"{what}={cap!r:.60} must be a whole number from 1; to let nothing run, pause: duly pause NAME"
        )
    return cap


def read_weight(weight: object) -> int:
    """Turns beside those of others. UsageError for what is no whole number from 1 to 1,000."""
    if isinstance(weight, bool) or not isinstance(weight, int) or not 1 <= weight <= MOST_WEIGHT:
        raise UsageError(f"weight={weight!r:.40} must be a whole number from 1 to {MOST_WEIGHT:,}")
    return weight


def read_share(text: object, what: str) -> float:
    """Read "10%" as 0.1. UsageError for what is no share between nothing and all."""
    found = _SHARE.fullmatch(text.strip()) if isinstance(text, str) else None
    share = float(found[1]) / 100 if found is not None else 0.0
    if not 0 < share < 1:
        raise UsageError(
            f"{what}={text!r:.60} is no share of the slots; write one between 1% and 99%, as '10%'"
        )
    return share


_SHARE: Final = re.compile(r"([0-9]{1,2}(?:\.[0-9]+)?)\s*%")


def check_ordering(policy: str) -> Ordering:
    """UsageError for an unknown policy of dead heads."""
    match policy:
        case "wait" | "skip_dead" | "pause_key":
            return policy
    raise UsageError(f'ordering={policy!r}: write "wait", "skip_dead" or "pause_key"')
