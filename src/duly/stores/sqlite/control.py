"""What bounds jobs, for those who look at it or change it: the ControlStore on SQLite. Each act is one transaction."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from duly.core.control import (
    BreakerState,
    Calls,
    KeyRecord,
    LimitRecord,
    Override,
    OverrideKind,
    Permit,
    Rate,
    Refusal,
    TenantPlan,
    TenantWait,
)
from duly.core.job import Token
from duly.core.names import key_of
from duly.stores.sqlite import breaking, keyholders, permits
from duly.stores.sqlite.bounds import bounds_of
from duly.stores.sqlite.database import Database
from duly.stores.sqlite.moves import lane_of, tenant_key
from duly.stores.sqlite.operator import note_act
from duly.stores.sqlite.overriding import lift_in, override_in, override_of, plan_record, set_plan_in
from duly.stores.sqlite.session import Session
from duly.stores.sqlite.times import MICROSECOND, from_micros, maybe_from_micros
from duly.stores.sqlite.transport import ids_text
from duly.stores.sqlite.usage import Use, bound_of, uses_of

_SECOND = 1_000_000


class SQLiteControl:
    """See duly.stores.control.ControlStore."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def acquire(self, names: Sequence[str], holder: Token | None, ttl: timedelta | None) -> Permit | Refusal:
        with self._database.write() as session:
            return permits.acquire(session, names, holder, ttl)

    def release(self, permit: Permit) -> bool:
        with self._database.write() as session:
            return permits.release(session, permit)

    def observe(self, calls: Sequence[Calls]) -> list[LimitRecord]:
        with self._database.write() as session:
            return _records(session, breaking.observe(session, calls))

    def hold(self, name: str, wait: timedelta, by: str, reason: str) -> datetime:
        with self._database.write() as session:
            until = breaking.hold(session, name, wait, by, reason)
            note_act(session, f"hold {name}", by, reason)
            return from_micros(until)

    def set_breaker(self, name: str, state: BreakerState | None, by: str, reason: str) -> bool:
        with self._database.write() as session:
            found = breaking.set_by_hand(session, name, state)
            if found:
                note_act(session, f"breaker {name} {state or 'by its counts'}", by, reason)
            return found

    def limits(self, names: Sequence[str] | None = None, most: int = 1000) -> list[LimitRecord]:
        with self._database.read(snapshot=True) as session:
            if names is None:
                names = [name for (name,) in session.rows("select_limit_names", most=most)]
            return _records(session, names[:most])

    def override(
        self,
        target: str,
        kind: OverrideKind,
        value: Mapping[str, object],
        lasting: timedelta | None,
        by: str,
        reason: str,
    ) -> Override:
        with self._database.write() as session:
            made = override_in(session, target, kind, value, lasting, by, reason)
            note_act(session, f"{kind} {target}", by, reason)
            return made

    def lift(self, id: int, by: str, reason: str) -> bool:
        with self._database.write() as session:
            target = lift_in(session, id)
            if target is not None:
                note_act(session, f"lift {target}", by, reason)
            return target is not None

    def overrides(self) -> list[Override]:
        with self._database.read() as session:
            return [override_of(row) for row in session.rows("select_overrides", now=session.now)]

    def set_plan(self, plan: TenantPlan, by: str, reason: str) -> None:
        with self._database.write() as session:
            set_plan_in(session, plan, by, reason)
            note_act(session, f"plan {plan.name}", by, reason)

    def plans(self) -> list[TenantPlan]:
        with self._database.read() as session:
            return [plan_record(row) for row in session.rows("select_plans")]

    def waits(self, tenant: str | None = None, most: int = 1000) -> list[TenantWait]:
        found: list[TenantWait] = []
        with self._database.read(snapshot=True) as session:
            for (queue,) in session.rows("select_fair_queues"):
                lane = lane_of(queue, False)
                lanes = [(tenant_key(tenant), tenant)] if tenant else _lanes(session, lane, most - len(found))
                for key, name in lanes:
                    ready, since = session.row("select_tenant_wait", queue=lane, tenant=key) or (0, None)
                    if ready:
                        waited = max(session.now - since, 0) * MICROSECOND
                        found.append(TenantWait(queue, name, ready, waited))
        return sorted(found[:most], key=lambda wait: (wait.queue, wait.tenant))

    def keys(self, queue: str | None = None, most: int = 100) -> list[KeyRecord]:
        with self._database.read() as session:
            return keyholders.keys_in(session, queue, most)

    def resume_key(self, queue: str, tenant: str, key: str, by: str, reason: str) -> bool:
        with self._database.write() as session:
            waited = keyholders.resume(session, queue, tenant, key)
            if waited:
                note_act(session, f"resume key {key} of {queue}", by, reason)
            return waited


def _lanes(session: Session, queue: int, most: int) -> list[tuple[int, str]]:
    """Tenants with ready jobs in their lanes, by key."""
    if most <= 0:
        return []
    rows = session.rows("select_lane_tenants", queue=queue, after=-(2**63), most=most + 1)
    return [(key, name) for key, name, *_ in rows if key][:most]


def _records(session: Session, names: Sequence[str]) -> list[LimitRecord]:
    """In the order asked."""
    bounds = bounds_of(session)
    uses = uses_of(session, [(name, bound_of(session, bounds, name)) for name in names])
    counts = session.rows("select_gated_counts", keys=ids_text([key_of(name) for name in names]))
    return [_record(session, use, waiting) for use, (waiting,) in zip(uses, counts, strict=True)]


def _record(session: Session, use: Use, waiting: int) -> LimitRecord:
    bound, refusal, breaker = use.bound, use.refusal(session.now), use.breaker(session.now)
    return LimitRecord(
        name=use.name,
        max_running=bound.max_running,
        rate=None if bound.interval is None else Rate(bound.interval / _SECOND, bound.burst),
        running=use.running,
        waiting=waiting,
        next_at=None if refusal is None else maybe_from_micros(refusal.at),
        held_until=maybe_from_micros(use.held_until),
        held_by=use.held_by,
        held_reason=use.held_reason,
        breaker=breaker,
        breaker_until=None if breaker in {None, "closed"} else maybe_from_micros(use.open_until),
        override=bound.override,
    )
