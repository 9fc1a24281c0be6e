"""What a store promises of limits, overrides, tenants' plans and ordering keys, and of what is full, in state words.

Each sentence has a test on every store.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from duly.core.bounds import SAMPLE_AGE, Fill, Pressure
from duly.core.budget import StoreUse
from duly.core.control import (
    BreakerState,
    Calls,
    KeyRecord,
    LimitRecord,
    Override,
    OverrideKind,
    Permit,
    Refusal,
    TenantPlan,
    TenantWait,
)
from duly.core.job import Token
from duly.core.lateness import Crossing


class ControlStore(Protocol):
    """What bounds jobs beside their place in a queue. Limits of jobs are taken by claims and given back by ends."""

    def acquire(self, names: Sequence[str], holder: Token | None, ttl: timedelta | None) -> Permit | Refusal:
        """Take these limits (instance names; a lock is one of 1), all or none. A permit of a `holder` ends with its
        attempt (LeaseLost when that is not live), one without after `ttl`. Never waits."""

    def release(self, permit: Permit) -> bool:
        """False when it has run out or was given back before; whoever waits behind it is let go on."""

    def observe(self, calls: Sequence[Calls]) -> list[LimitRecord]:
        """Count calls of resources with a breaker; those whose breaker changed."""

    def hold(self, name: str, wait: timedelta, by: str, reason: str) -> datetime:
        """Nothing that takes this limit starts for so long; until when (an earlier, longer hold stays)."""

    def set_breaker(self, name: str, state: BreakerState | None, by: str, reason: str) -> bool:
        """By hand; None: by its own counts again. False when there is no such breaker."""

    def limits(self, names: Sequence[str] | None = None, most: int = 1000) -> list[LimitRecord]:
        """Those named, else those with a policy or in use."""

    def override(
        self,
        target: str,
        kind: OverrideKind,
        value: Mapping[str, object],
        lasting: timedelta | None,
        by: str,
        reason: str,
    ) -> Override: ...

    def lift(self, id: int, by: str, reason: str) -> bool: ...

    def overrides(self) -> list[Override]:
        """Those in force, newest first."""

    def set_plan(self, plan: TenantPlan, by: str, reason: str) -> None: ...

    def plans(self) -> list[TenantPlan]: ...

    def waits(self, tenant: str | None = None, most: int = 1000) -> list[TenantWait]:
        """Tenants with ready jobs in their lanes of fair queues, of at most so many lanes, by queue and tenant."""

    def keys(self, queue: str | None = None, most: int = 100) -> list[KeyRecord]:
        """Ordering keys with work, those with the most waiting first."""

    def resume_key(self, queue: str, tenant: str, key: str, by: str, reason: str) -> bool:
        """Go on with the next job of a paused key, or of one whose head is dead. False when it does not wait."""


class PressingStore(Protocol):
    """How full queues and the store are: what producers ask before they bring more, and what makes room."""

    def fills(self, queues: Mapping[str, int]) -> dict[str, Fill]:
        """Of each queue its ready jobs, counted to one more than given, at most a second old, or twenty times as old as
        its count took; one that another caller is counting for the first time may be missing. Waits for nobody."""

    def turned_away(self, refused: Mapping[str, int]) -> None:
        """Count so many refused jobs of these queues, for `pressures`."""

    def pressures(self, queues: Sequence[str]) -> dict[str, Pressure]:
        """Of each of these what is declared, and how many jobs were refused and shed: counted anew after an hour
        without any, and nothing once the last one is an hour ago."""

    def crossings(self) -> list[Crossing]:
        """Queues that have become late since anybody asked, or are in time again: each crossing of a `wait_target` is
        told once, to whoever asks first after it. A queue is looked at once a second at most, by its lanes' heads."""

    def use(self, age: timedelta = SAMPLE_AGE) -> StoreUse | None:
        """What the store takes, and the queues by importance, at most so old; None while another caller measures for
        the first time. Waits for nobody."""

    def uses(self, within: timedelta) -> list[tuple[datetime, StoreUse]]:
        """What it took so far, oldest first, without queues: as workers sample it, about every ten seconds."""

    def shed(self, queues: Sequence[str], most: int, reason: str) -> int:
        """ready -> shed for at most so many jobs, queue by queue in this order, the least urgent and latest of each
        first. How many went."""
