"""Breakers of resources, and holds on them: what workers have seen, and what a person says. Inside a transaction."""

from collections.abc import Sequence
from datetime import timedelta

from duly.core.control import BreakerState, Calls
from duly.core.names import key_of
from duly.stores.sqlite.bounds import bounds_of
from duly.stores.sqlite.releasing import let_go
from duly.stores.sqlite.session import Session
from duly.stores.sqlite.times import span
from duly.stores.sqlite.usage import Use, use_of


def observe(session: Session, calls: Sequence[Calls]) -> list[str]:
    """Count; the names of the resources whose breaker changed."""
    changed: list[str] = []
    bounds = bounds_of(session)
    for seen in calls:
        use = use_of(session, bounds, seen.resource)
        if use.bound.breaker is None or use.forced is not None or not seen.calls:
            continue
        if _observe(session, use, seen):
            changed.append(seen.resource)
    let_go(session, bounds, changed)
    return changed


def _observe(session: Session, use: Use, seen: Calls) -> bool:
    now, breaker = session.now, use.bound.breaker
    if breaker is None:
        return False
    match use.breaker(now):
        case "open":
            return False
        case "half-open":
            _set(session, use.name, seen.failures > 0, now + span(breaker.cool_down))
            return True
    window_at, calls, failures = session.row("select_calls", key=use.key) or (None, 0, 0)
    if window_at is None or window_at + span(breaker.window) <= now:
        window_at, calls, failures = now, 0, 0
    calls, failures = calls + seen.calls, failures + seen.failures
    if calls >= breaker.min_calls and failures >= breaker.failures * calls:
        _set(session, use.name, True, now + span(breaker.cool_down))
        return True
    session.run(
        "upsert_calls", key=use.key, name=use.name, window_at=window_at, calls=calls, failures=failures
    )
    return False


def set_by_hand(session: Session, name: str, state: BreakerState | None) -> bool:
    """Until it is set again; False without a breaker."""
    bounds = bounds_of(session)
    if use_of(session, bounds, name).bound.breaker is None:
        return False
    until = session.now if state == "half-open" else None
    _set(session, name, state in {"open", "half-open"}, until, forced=state)
    let_go(session, bounds, [name])
    return True


def hold(session: Session, name: str, wait: timedelta, by: str, reason: str) -> int:
    """Nothing that takes this limit starts for so long; until when. A longer hold stays, with its author."""
    use = use_of(session, bounds_of(session), name)
    until = session.now + span(wait)
    if use.held_until is not None and use.held_until > until:
        until = use.held_until
    else:
        session.run("upsert_held", key=use.key, name=name, held_until=until, by=by, reason=reason)
    # For those that wait behind it already.
    let_go(session, bounds_of(session), [name])
    return until


def _set(
    session: Session, name: str, tripped: bool, until: int | None, forced: BreakerState | None = None
) -> None:
    session.run(
        "upsert_breaker",
        key=key_of(name),
        name=name,
        state="open" if tripped else None,
        until=until if tripped else None,
        forced=forced,
    )
