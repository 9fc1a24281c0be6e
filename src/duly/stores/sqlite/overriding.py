"""Overrides and plans of tenants: what a person has changed, for how long, and why. Inside a transaction or a read."""

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from duly.core.control import Override, OverrideKind, Rate, TenantPlan
from duly.core.names import key_of
from duly.stores.sqlite.bounds import bounds_of
from duly.stores.sqlite.releasing import let_go
from duly.stores.sqlite.session import Row, Session
from duly.stores.sqlite.times import from_micros, maybe_from_micros, span

_MOST_GATES: Final = 1_000
_FIRST: Final = -(2**63)
_BLOCK: Final = "block:"


def override_in(
    session: Session,
    target: str,
    kind: OverrideKind,
    value: Mapping[str, object],
    lasting: timedelta | None,
    by: str,
    reason: str,
) -> Override:
    """Lay it over what is declared; whom it lets go on goes on."""
    until = None if lasting is None else session.now + span(lasting)
    text = json.dumps(dict(value), ensure_ascii=False)
    given = {"target": target, "kind": kind, "value": text, "by": by, "reason": reason}
    id = session.value("insert_override", **given, at=session.now, until=until)
    _look_again(session, target)
    return override_of((id, target, kind, text, by, reason, session.now, until))


def lift_in(session: Session, id: int) -> str | None:
    """End it; what it was about, None when it does not hold."""
    target = session.value("update_lifted", id=id, now=session.now)
    if target is None:
        return None
    _look_again(session, str(target))
    # Behind a block, too.
    let_go(session, bounds_of(session), [f"{_BLOCK}{id}"])
    return str(target)


def override_of(row: Row) -> Override:
    """From (id, target, kind, value, by, reason, at, until)."""
    id, target, kind, value, by, reason, at, until = row
    return Override(
        id, target, kind, json.loads(value), by, reason, from_micros(at), maybe_from_micros(until)
    )


def set_plan_in(session: Session, plan: TenantPlan, by: str, reason: str) -> None:
    rate = plan.rate
    session.run(
        "upsert_tenant",
        key=key_of(plan.name),
        name=plan.name,
        weight=plan.weight,
        max_running=plan.max_running,
        interval=None if rate is None else float(rate.interval),
        burst=None if rate is None else rate.burst,
        by=by,
        reason=reason,
        at=session.now,
    )
    session.rings = True


def plan_record(row: Row) -> TenantPlan:
    """From (name, weight, max_running, interval, burst)."""
    name, weight, max_running, interval, burst = row
    return TenantPlan(name, weight, max_running, None if interval is None else Rate(interval, burst or 1))


def _look_again(session: Session, target: str) -> None:
    """Jobs may wait behind a limit that allows more now."""
    bounds = bounds_of(session)
    rows = session.rows("select_gates_after", after=_FIRST, most=_MOST_GATES)
    let_go(
        session,
        bounds,
        [name for _, _, name, _ in rows if name is not None and target in bounds.names(name)],
    )
    # Claims look at the limits of queues and tenants themselves.
    session.rings = True
