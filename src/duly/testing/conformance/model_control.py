"""The model's control: locks and permits, breakers, overrides, plans of tenants, and ordering keys as read."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from msgspec.structs import replace

from duly.core.control import (
    MOST_WAITING,
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
from duly.core.errors import LeaseLost
from duly.core.job import Incarnation, Token
from duly.core.lifecycle import LIVE, State

from .model import LimitState, OrderingKey
from .model_bounds import LOCK, BoundedModel, Limit


class ModelControl:
    """See duly.stores.protocol.ControlStore."""

    def __init__(self, model: BoundedModel) -> None:
        self._model = model

    def acquire(self, names: Sequence[str], holder: Token | None, ttl: timedelta | None) -> Permit | Refusal:
        with self._model.act():
            tables, now = self._model.tables, self._model.clock()
            mine: set[str] = set()
            if holder is not None:
                entry = self._model.holder(holder.incarnation, holder.job, holder.run)
                if entry is None:
                    raise LeaseLost("not the holder", job_id=holder.job)
                mine = set(entry.holds).union(
                    *(one.names for one in tables.permits.values() if one.id == entry.id)
                )
            wanted = sorted(name for name in set(names) if name not in mine or name.startswith(LOCK))
            limits = sorted((self._model.limit_named(name) for name in wanted), key=lambda one: one.key)
            for limit in limits:
                found = self._model.refused(limit)
                if found is not None:
                    return Refusal(found.what, None if found.until is None else found.until - now)
            self._model.start(limits)
            number = self._model.number()
            until = None if holder is not None or ttl is None else now + ttl
            permit = Permit(
                tuple(limit.name for limit in limits),
                -number if holder is None else holder.job,
                Incarnation(0) if holder is None else holder.incarnation,
                until,
            )
            tables.permits[number] = permit
            return permit

    def release(self, permit: Permit) -> bool:
        with self._model.act():
            tables, now = self._model.tables, self._model.clock()
            for number, known in tables.permits.items():
                if known == permit:
                    del tables.permits[number]
                    return known.until is None or known.until > now
            return False

    def observe(self, calls: Sequence[Calls]) -> list[LimitRecord]:
        with self._model.act():
            changed = [one.resource for one in calls if self._observe(one)]
            return self._records(changed)

    def _observe(self, seen: Calls) -> bool:
        limit = self._model.limit_named(seen.resource)
        breaker = self._model.policy_of(limit).breaker
        state, now = self._model.state_of(limit.name), self._model.clock()
        if breaker is None or state.forced or not seen.calls:
            return False
        match self._model.breaker_of(limit):
            case "open":
                return False
            case "half-open":
                self._set(state, "open" if seen.failures else "closed", now + breaker.cool_down)
                return True
        if state.window_at is None or state.window_at + breaker.window <= now:
            state.window_at, state.calls, state.failures = now, 0, 0
        state.calls += seen.calls
        state.failures += seen.failures
        if state.calls < breaker.min_calls or state.failures < breaker.failures * state.calls:
            return False
        self._set(state, "open", now + breaker.cool_down)
        return True

    def _set(self, state: LimitState, to: BreakerState, until: datetime | None) -> None:
        state.opened = to != "closed"
        state.open_until = until if state.opened else None
        state.calls, state.failures, state.window_at = 0, 0, None

    def hold(self, name: str, wait: timedelta, by: str, reason: str) -> datetime:
        with self._model.act():
            self._model.note("hold", name, by, reason)
            state, until = self._model.state_of(name), self._model.clock() + wait
            if state.held_until is None or state.held_until <= until:
                state.held_until, state.held_by, state.held_reason = until, by, reason
            return state.held_until

    def set_breaker(self, name: str, state: BreakerState | None, by: str, reason: str) -> bool:
        with self._model.act():
            limit = self._model.limit_named(name)
            if self._model.policy_of(limit).breaker is None:
                return False
            known = self._model.state_of(name)
            known.forced = state is not None
            self._model.note("breaker", f"{name} {state or 'by its counts'}", by, reason)
            self._set(known, state or "closed", self._model.clock() if state == "half-open" else None)
            return True

    def limits(self, names: Sequence[str] | None = None, most: int = 1000) -> list[LimitRecord]:
        with self._model.tables.lock:
            tables = self._model.tables
            if names is None:
                used = {name for entry in tables.entries.values() for name in entry.holds}
                names = sorted({*tables.limits, *tables.limit_states, *used})
            return self._records(names[:most])

    def _records(self, names: Sequence[str]) -> list[LimitRecord]:
        return [self._record(self._model.limit_named(name)) for name in names]

    def _record(self, limit: Limit) -> LimitRecord:
        model = self._model
        policy, state = model.policy_of(limit), model.state_of(limit.name)
        behind = model.refused(limit)
        over = [one.id for one in model.live_overrides() if one.target in {limit.name, limit.policy}]
        return LimitRecord(
            limit.name,
            policy.max_running,
            policy.rate,
            model.held(limit.name),
            sum(entry.bounded and entry.parked == limit.name for entry in model.tables.entries.values()),
            None if behind is None else behind.until,
            state.held_until,
            state.held_by,
            state.held_reason,
            model.breaker_of(limit),
            state.open_until,
            over[0] if over else None,
        )

    def override(
        self,
        target: str,
        kind: OverrideKind,
        value: Mapping[str, object],
        lasting: timedelta | None,
        by: str,
        reason: str,
    ) -> Override:
        with self._model.act():
            now, id = self._model.clock(), self._model.number()
            self._model.note(kind, target, by, reason)
            until = None if lasting is None else now + lasting
            self._model.tables.overrides[id] = Override(id, target, kind, dict(value), by, reason, now, until)
            return self._model.tables.overrides[id]

    def lift(self, id: int, by: str, reason: str) -> bool:
        with self._model.act():
            found = next((one for one in self._model.live_overrides() if one.id == id), None)
            if found is not None:
                self._model.tables.overrides[id] = replace(found, lifted_at=self._model.clock())
                self._model.note("lift", found.target, by, reason)
            return found is not None

    def overrides(self) -> list[Override]:
        with self._model.tables.lock:
            return self._model.live_overrides()

    def set_plan(self, plan: TenantPlan, by: str, reason: str) -> None:
        with self._model.act():
            self._model.note("plan", plan.name, by, reason)
            self._model.tables.plans[plan.name] = plan

    def plans(self) -> list[TenantPlan]:
        with self._model.tables.lock:
            return [plan for _, plan in sorted(self._model.tables.plans.items())]

    def waits(self, tenant: str | None = None, most: int = 1000) -> list[TenantWait]:
        with self._model.tables.lock:
            now, lanes = self._model.clock(), dict[tuple[str, str], list[timedelta]]()
            for entry in self._model.tables.entries.values():
                policy = self._model.tables.policies.get(entry.new.queue)
                fair = policy is not None and policy.fair and not entry.counters.lost
                waits = entry.state is State.ready and tenant in {None, entry.lane}
                if fair and waits and entry.lane and entry.waiting_since:
                    lanes.setdefault((entry.new.queue, entry.lane), []).append(now - entry.waiting_since)
            found = [
                TenantWait(*lane, min(len(ages), MOST_WAITING + 1), max(ages))
                for lane, ages in sorted(lanes.items())
            ]
            return found[:most]

    def keys(self, queue: str | None = None, most: int = 100) -> list[KeyRecord]:
        with self._model.tables.lock:
            known = {entry.key for entry in self._model.tables.entries.values() if entry.key is not None}
            records = [self._key(key) for key in known if queue is None or key.queue == queue]
            found = [record for record in records if record is not None]
            return sorted(
                found, key=lambda record: (-record.waiting, record.queue, record.tenant, record.key)
            )[:most]

    def _key(self, key: OrderingKey) -> KeyRecord | None:
        tables, members = self._model.tables, self._model.members(key)
        if not members:
            return None
        head = tables.entries.get(tables.heads[key]) if key in tables.heads else None
        return KeyRecord(
            *key,
            head=None if head is None else head.id,
            state=None if head is None else head.state.value,
            waiting=sum(entry is not head and entry.state in LIVE for entry in members),
            since=tables.heads_since.get(key, members[0].enqueued_at),
            paused=key in tables.paused_keys,
        )

    def resume_key(self, queue: str, tenant: str, key: str, by: str, reason: str) -> bool:
        with self._model.act():
            tables, ordering = self._model.tables, OrderingKey(queue, tenant, key)
            head = self._model.head(ordering)
            is_dead = head is not None and head.state is State.dead
            if not is_dead and ordering not in tables.paused_keys:
                return False
            tables.paused_keys.discard(ordering)
            self._model.note("resume", f"key {key} of {queue}", by, reason)
            if head is not None and is_dead:
                head.keeps_key = False
                self._model.head(ordering)
            return True
