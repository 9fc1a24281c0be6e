"""A declared queue: its name, who answers for it, and how long its finished jobs are kept.

Knows nothing of what is in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from duly.client.alert import Alert
from duly.core.bounds import Bound
from duly.core.control import Ordering, Rate
from duly.core.dead_breaker import DeadBreakerPolicy
from duly.core.defaults import IMPORTANCE
from duly.core.durations import format_duration
from duly.core.errors import UsageError


@dataclass(frozen=True, slots=True)
class Queue:
    """A named line of jobs, made by `App.queue`."""

    name: str
    owner: str | None = None
    """Whom a dead letter concerns, as an address or a team."""
    keep: timedelta | None = None
    """How long completed, skipped and cancelled jobs are kept; None is the setting `keep`."""
    keep_dead: timedelta | None = None
    """How long dead letters are kept; None is the setting `keep_dead`."""

    weight: int = 1
    """How often a worker asks it first, beside its other queues."""
    wait_target: timedelta | None = None
    """How soon its jobs should start: what it is measured against."""
    max_running: int | None = None
    """Of its jobs in the whole fleet."""
    rate: Rate | None = None
    """At which its jobs start, in the whole fleet."""
    fair: bool = False
    """Tenants in turn, priority inside a tenant."""
    tenant_max_running: int | None = None
    tenant_rate: Rate | None = None
    ordering: Ordering = "wait"
    """What the jobs behind a dead one of their ordering key do."""
    serialise: bool = False
    """Enqueues of one ordering key wait for each other."""
    reserve: float = 0.0
    """Share of each worker's slots that is kept for tenants of which nothing runs."""

    dead_breaker: DeadBreakerPolicy | None = None
    """When it stops itself, because its jobs die."""

    bound: Bound | None = None
    """How much it may hold, and what producers meet when it is full; None: as much as comes."""
    importance: int = IMPORTANCE
    """Lower is more important."""
    alert: Alert | None = None
    """What differs for its alerts."""
    encrypt: bool | None = None
    """Whether payloads of its jobs are encrypted; None: as the setting says."""

    def checked(self) -> Queue:
        """This, if its parts fit together. UsageError with what to write else."""
        breaker = self.dead_breaker
        if breaker is not None and self.keep is not None and self.keep < breaker.window:
            raise UsageError(
                f"queue {self.name!r}: finished jobs are kept for {format_duration(self.keep)}, and its dead_breaker "
                f"counts those of {format_duration(breaker.window)}; keep them longer"
            )
        if not self.fair:
            said = {
                "tenant_max_running": self.tenant_max_running,
                "tenant_rate": self.tenant_rate,
                "reserve": self.reserve or None,
            }
            for name, value in said.items():
                if value is not None:
                    raise UsageError(
                        f"queue {self.name!r}: {name} needs turns of tenants; write fair=True, too"
                    )
        return self

    def __str__(self) -> str:
        return self.name
