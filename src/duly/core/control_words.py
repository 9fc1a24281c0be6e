"""What bounds jobs, in words: temporary changes, tenants' plans, and what a limit is about. Pure."""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

from duly.core.control import LimitRecord, Override, Rate, TenantPlan
from duly.core.pace import pace_text

LimitKind = Literal["queue", "task", "argument", "resource", "tenant", "lock"]
_KINDS: Final[dict[str, LimitKind]] = {
    "queue": "queue", "task": "task", "resource": "resource", "tenant": "tenant", "lock": "lock",
}  # fmt: skip


class LimitTarget(Struct, frozen=True):
    """What the name of a limit says."""

    kind: LimitKind
    name: str
    """The queue's, task's, resource's, tenant's or lock's; "" for all tenants of a queue."""
    queue: str | None = None
    """Whose jobs it bounds, where the name says so; "" for a tenant in every queue."""
    argument: str | None = None
    value: str | None = None


def limit_target(name: str) -> LimitTarget:
    """Read a name that `core.control` has made; what is none of them counts as a lock's."""
    word, _, rest = name.partition(":")
    kind = _KINDS.get(word, "lock")
    match kind:
        case "queue":
            return LimitTarget(kind, rest, rest)
        case "tenant":
            # A queue's name holds no "="; a tenant's may.
            queue, _, tenant = rest.partition("=")
            return LimitTarget(kind, tenant, queue)
        case "task" if "#" in rest:
            task, _, more = rest.partition("#")
            argument, equals, value = more.partition("=")
            return LimitTarget("argument", task, None, argument, value if equals else None)
    return LimitTarget(kind, rest if word in _KINDS else name)


def rate_text(rate: Rate | None) -> str | None:
    """As people write it, "10/s burst 20"; None: unbounded."""
    return None if rate is None else pace_text(rate.interval, rate.burst)


def change_text(one: Override) -> str:
    """What an override changes, in the words of the command's flags."""
    value = one.value
    if one.kind == "block":
        return "block " + " ".join(f"{name}={text}" for name, text in value.items())
    parts = []
    if "max_running" in value:
        most = value["max_running"]
        parts.append(f"max-running {'none' if most is None else most}")
    if "interval" in value:
        interval, burst = value["interval"], value.get("burst")
        pace = "none"
        if isinstance(interval, int | float):
            pace = pace_text(float(interval), burst if isinstance(burst, int) else 1)
        parts.append(f"rate {pace}")
    if value.get("weight") is not None:
        parts.append(f"weight {value['weight']}")
    return ", ".join(parts)


def plan_text(plan: TenantPlan) -> str:
    """What a tenant was sold."""
    most = "no bound on running" if plan.max_running is None else f"max-running {plan.max_running}"
    pace = "no rate" if plan.rate is None else f"rate {pace_text(plan.rate.interval, plan.rate.burst)}"
    return f"weight {plan.weight}, {most}, {pace}"


def filled(limit: LimitRecord) -> float | None:
    """The share of its max_running in use; None without one."""
    return None if limit.max_running is None else limit.running / limit.max_running
