"""ControlStore on PostgreSQL: limits, overrides, tenants' plans and ordering keys, as people and plain code use them.

What jobs take of them is decided by the claims; what is done in each act is a function's to say.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from msgspec import json

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
from duly.core.errors import LeaseLost
from duly.core.filters import parse_where
from duly.core.job import Incarnation, JobId, Token
from duly.stores.postgres.arrays import texts, words
from duly.stores.postgres.columns import seconds, utc, utc_or_none
from duly.stores.postgres.database import Database, Row


class PostgresControl:
    """See `ControlStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def acquire(self, names: Sequence[str], holder: Token | None, ttl: timedelta | None) -> Permit | Refusal:
        parameters = {
            "names": texts(names),
            "incarnation": holder and holder.incarnation,
            "id": holder and holder.job,
            "run": holder and holder.run,
            "ttl": seconds(ttl),
            "now": self._database.now(),
        }
        rows = self._database.call("acquire_permit", parameters)
        if not rows and holder is not None:
            raise LeaseLost(
                f"job {holder.job} no longer belongs to this attempt; nothing was taken", job_id=holder.job
            )
        id, taken, until, refused, wait = rows[0]
        if refused is not None:
            return Refusal(refused, None if wait is None else timedelta(seconds=wait))
        incarnation = Incarnation(0) if holder is None else holder.incarnation
        return Permit(tuple(taken), id, incarnation, utc_or_none(until))

    def release(self, permit: Permit) -> bool:
        parameters = {
            "names": texts(permit.names),
            "id": permit.id,
            "incarnation": permit.incarnation,
            "now": self._database.now(),
        }
        return bool(self._database.call("release_permit", parameters)[0][0])

    def observe(self, calls: Sequence[Calls]) -> list[LimitRecord]:
        parameters = {
            "names": texts([seen.resource for seen in calls]),
            "calls": words([seen.calls for seen in calls]),
            "failures": words([seen.failures for seen in calls]),
            "now": self._database.now(),
        }
        changed = [name for (name,) in self._database.call("observe_calls", parameters)]
        return self.limits(changed) if changed else []

    def hold(self, name: str, wait: timedelta, by: str, reason: str) -> datetime:
        parameters = {"name": name, "wait": seconds(wait), **self._by(by, reason)}
        return utc(self._database.call("hold_limit", parameters)[0][0])

    def set_breaker(self, name: str, state: BreakerState | None, by: str, reason: str) -> bool:
        parameters = {"name": name, "state": state, **self._by(by, reason)}
        return bool(self._database.call("set_breaker", parameters)[0][0])

    def limits(self, names: Sequence[str] | None = None, most: int = 1000) -> list[LimitRecord]:
        parameters = {
            "names": None if names is None else texts(names[:most]),
            "most": most,
            "now": self._database.now(),
        }
        return [_limit(row) for row in self._database.call("read_limits", parameters)]

    def override(
        self,
        target: str,
        kind: OverrideKind,
        value: Mapping[str, object],
        lasting: timedelta | None,
        by: str,
        reason: str,
    ) -> Override:
        stored = dict(value)
        if "where" in value:
            condition = parse_where(str(value["where"]))
            stored["condition"] = {
                "path": condition.path,
                "operator": condition.operator,
                "value": condition.value,
            }
        parameters = {
            "target": target,
            "kind": kind,
            "value": json.encode(stored).decode(),
            "lasting": seconds(lasting),
            **self._by(by, reason),
        }
        id, at, until = self._database.call("make_override", parameters)[0]
        return Override(id, target, kind, dict(value), by, reason, utc(at), utc_or_none(until))

    def lift(self, id: int, by: str, reason: str) -> bool:
        return bool(self._database.call("lift_override", {"id": id, **self._by(by, reason)})[0][0])

    def overrides(self) -> list[Override]:
        rows = self._database.call("read_overrides", {"now": self._database.now()})
        return [_override(row) for row in rows]

    def set_plan(self, plan: TenantPlan, by: str, reason: str) -> None:
        parameters = {
            "name": plan.name,
            "weight": plan.weight,
            "most": plan.max_running,
            "interval": plan.rate and plan.rate.interval,
            "burst": plan.rate and plan.rate.burst,
            **self._by(by, reason),
        }
        self._database.call("set_plan", parameters)

    def plans(self) -> list[TenantPlan]:
        return [
            TenantPlan(name, weight, most, _rate(interval, burst))
            for name, weight, most, interval, burst in self._database.call("read_plans")
        ]

    def waits(self, tenant: str | None = None, most: int = 1000) -> list[TenantWait]:
        parameters = {"tenant": tenant, "most": most, "now": self._database.now()}
        found = [
            TenantWait(queue, name, ready, timedelta(seconds=max(oldest, 0.0)))
            for queue, name, ready, oldest in self._database.call("read_tenant_waits", parameters)
        ]
        return sorted(found, key=lambda wait: (wait.queue, wait.tenant))

    def keys(self, queue: str | None = None, most: int = 100) -> list[KeyRecord]:
        return [
            KeyRecord(name, tenant, key, head and JobId(head), state, waiting, utc(since), paused)
            for name, tenant, key, head, state, waiting, since, paused in self._database.call(
                "read_keys", {"queue": queue, "most": most}
            )
        ]

    def resume_key(self, queue: str, tenant: str, key: str, by: str, reason: str) -> bool:
        parameters = {"queue": queue, "tenant": tenant, "key": key, **self._by(by, reason)}
        return bool(self._database.call("resume_key", parameters)[0][0])

    def _by(self, by: str, reason: str) -> dict[str, object]:
        return {"by": by, "reason": reason, "now": self._database.now()}


def _rate(interval: float | None, burst: int | None) -> Rate | None:
    return None if interval is None else Rate(interval, burst or 1)


def _limit(row: Row) -> LimitRecord:
    name, most, pace, burst, held, waiting, next_at, held_until, *rest = row
    held_by, held_reason, breaker, breaker_until, override = rest
    return LimitRecord(
        name=name,
        max_running=most,
        rate=_rate(pace, burst),
        running=held,
        waiting=waiting,
        next_at=utc_or_none(next_at),
        held_until=utc_or_none(held_until),
        held_by=held_by,
        held_reason=held_reason,
        breaker=breaker,
        breaker_until=utc_or_none(breaker_until),
        override=override,
    )


def _override(row: Row) -> Override:
    id, target, kind, text, by, reason, at, until, lifted_at = row
    value: dict[str, object] = json.decode(text)
    value.pop("condition", None)
    return Override(id, target, kind, value, by, reason, utc(at), utc_or_none(until), utc_or_none(lifted_at))
