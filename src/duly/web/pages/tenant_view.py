"""Tenants and ordering keys as the page shows them: records in, rows out. Pure; `tenants.py` reads and acts."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from duly.client.control_reads import TenantStatus
from duly.core.control import KeyRecord, Override
from duly.core.control_words import limit_target, plan_text, rate_text
from duly.core.key_health import KeyState, key_state, key_trouble
from duly.core.why_places import ready_text
from duly.web.pages.control_view import Allowed, OverrideRow, override_row, sees

_KEY_ORDER: Final[dict[KeyState, int]] = {"stuck": 0, "hot": 1, "moving": 2}


class TenantRow(Struct, frozen=True):
    """One tenant in the queues that the visitor may see."""

    name: str
    planned: bool
    weight: int
    max_running: int | None
    rate: str | None
    running: int
    ready: str
    waits: int
    oldest: timedelta | None
    queues: tuple[str, ...]
    overrides: tuple[OverrideRow, ...]
    """What was changed of it for a time."""
    stands: str
    """Its plan when it was shown."""


class KeyRow(Struct, frozen=True):
    """One ordering key with work."""

    queue: str
    tenant: str
    key: str
    head: int | None
    state: str
    paused: bool
    waiting: int
    held_for: timedelta
    """So long its head has owned it."""
    health: KeyState
    trouble: str | None
    """What is wrong, and what to do."""
    can_skip: bool
    """A person may let it go on behind its head."""

    @property
    def stands(self) -> str:
        """Its head when it was shown."""
        return key_stands(self.head, self.state, self.paused)


class TenantsView(Struct, frozen=True):
    """All of the page."""

    tenants: tuple[TenantRow, ...]
    """Those with the most ready first."""
    keys: tuple[KeyRow, ...]
    """Those that need a person first, then those with the most waiting."""
    hidden_tenants: int = 0
    """Read, and not shown."""
    hidden_keys: int = 0
    troubled: int = 0
    """Keys that need a person."""


def tenants_view(
    tenants: Iterable[TenantStatus],
    keys: Iterable[KeyRecord],
    overrides: Iterable[Override],
    now: datetime,
    *,
    allowed: Allowed = None,
    words: str = "",
    most: int = 50,
    most_keys: int = 50,
) -> TenantsView:
    """`words`: only what has them in a name."""
    changed: dict[str, list[OverrideRow]] = {}
    for one in overrides:
        target = limit_target(one.target)
        if target.kind == "tenant" and sees(allowed, target.queue or None):
            changed.setdefault(target.name, []).append(override_row(one))
    small = words.lower()
    rows = [
        row
        for row in (tenant_row(one, changed.get(one.name, ()), allowed) for one in tenants)
        if row is not None and small in row.name.lower()
    ]
    rows.sort(key=lambda row: (-row.waits, -row.running, row.name))
    held = [
        key_row(key, now)
        for key in keys
        if sees(allowed, key.queue) and small in f"{key.tenant} {key.key}".lower()
    ]
    held.sort(key=lambda row: (_KEY_ORDER[row.health], -row.waiting, row.queue, row.tenant, row.key))
    return TenantsView(
        tuple(rows[:most]),
        tuple(held[:most_keys]),
        max(0, len(rows) - most),
        max(0, len(held) - most_keys),
        sum(1 for row in held if row.health != "moving"),
    )


def tenant_row(one: TenantStatus, changed: Iterable[OverrideRow], allowed: Allowed) -> TenantRow | None:
    """None for one that has nothing in the visitor's queues."""
    limits = [limit for limit in one.limits if sees(allowed, limit_target(limit.name).queue)]
    waits = [wait for wait in one.waits if sees(allowed, wait.queue)]
    if allowed is not None and not limits and not waits:
        return None
    running = {limit_target(limit.name).queue or "" for limit in limits if limit.running}
    ready = sum(wait.ready for wait in waits)
    plan = one.plan
    return TenantRow(
        name=one.name,
        planned=plan is not None,
        weight=1 if plan is None else plan.weight,
        max_running=None if plan is None else plan.max_running,
        rate=None if plan is None else rate_text(plan.rate),
        running=sum(limit.running for limit in limits),
        ready=ready_text(ready) if len(waits) == 1 else f"{ready:,}",
        waits=ready,
        oldest=max((wait.oldest for wait in waits), default=None),
        queues=tuple(sorted({*running, *(wait.queue for wait in waits)} - {""})),
        overrides=tuple(changed),
        stands=plan_stands(one),
    )


def plan_stands(one: TenantStatus) -> str:
    """Its plan, for a form to say what it was made for."""
    return "without a plan" if one.plan is None else plan_text(one.plan)


def key_row(key: KeyRecord, now: datetime) -> KeyRow:
    state = key.state or ("gone" if key.head is not None else "")
    return KeyRow(
        queue=key.queue,
        tenant=key.tenant,
        key=key.key,
        head=key.head,
        state=state,
        paused=key.paused,
        waiting=key.waiting,
        held_for=max(now - key.since, timedelta(0)),
        health=key_state(key, now),
        trouble=key_trouble(key, now),
        can_skip=key.paused or key.state == "dead",
    )


def key_stands(head: int | None, state: str, paused: bool) -> str:
    """Who owns a key, for a form to say what it was made for."""
    owner = "without a head" if head is None else f"behind job {head}, {state or 'gone'}"
    return f"{owner}, paused" if paused else owner
