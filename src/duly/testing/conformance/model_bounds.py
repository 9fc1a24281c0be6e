"""The model's bounds: who owns an ordering key, who holds which limit, and who may therefore start."""

import json
from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from msgspec.structs import replace

from duly.core.control import (
    PATIENCE,
    BreakerState,
    LimitPolicy,
    Override,
    Rate,
    argument_limit,
    plan_limit,
    queue_limit,
    task_limit,
    tenant_limit,
)
from duly.core.filters import parse_where
from duly.core.job import NewJob
from duly.core.lifecycle import LIVE, State
from duly.core.names import key_of
from duly.stores.protocol import Clock

from .model import BEHIND_KEY, Entry, LimitState, OrderingKey, Tables
from .model_keys import KeyedModel

LOCK = "lock:"


class Limit(NamedTuple):
    """One instance of a limit, and the policy that bounds it."""

    name: str
    policy: str

    @property
    def key(self) -> int:
        return key_of(self.name)


class Behind(NamedTuple):
    """What keeps a job from starting, and until when if that is known."""

    what: str
    until: datetime | None = None


class BoundedModel(KeyedModel):
    """Ordering keys and limits. Nothing is counted: it is read off the jobs that run."""

    def __init__(self, clock: Clock, tables: Tables | None = None) -> None:
        super().__init__(clock, tables)
        self._let_go_last: dict[str, int] = {}
        """The tenant's place that went on last behind a limit."""

    # Ordering keys

    def members(self, key: OrderingKey) -> list[Entry]:
        """All that stand in a key's order, first to last."""
        found = [
            entry
            for entry in self.tables.entries.values()
            if entry.key == key and (entry.state in LIVE or entry.keeps_key)
        ]
        return sorted(found, key=lambda entry: entry.id)

    def head(self, key: OrderingKey) -> Entry | None:
        """Who owns the key; where nobody does, its first one from now on."""
        members = self.members(key)
        for entry in members:
            if entry.id == self.tables.heads.get(key):
                return entry
        self.tables.heads.pop(key, None)
        self.tables.heads_since.pop(key, None)
        if not members:
            return None
        self.tables.heads[key] = members[0].id
        self.tables.heads_since[key] = self.clock()
        return members[0]

    def pass_on(self, entry: Entry) -> None:
        key = entry.key
        if key is None:
            return
        policy = self.tables.policies.get(entry.new.queue)
        ordering = "wait" if policy is None else policy.ordering
        entry.keeps_key = entry.state is State.dead and ordering != "skip_dead"
        if entry.keeps_key and ordering == "pause_key":
            self.tables.paused_keys.add(key)
        if self.tables.heads.get(key) == entry.id:
            self.head(key)

    def skip_dead(self) -> None:
        """Where a queue skips its dead since, they keep no key any more, unless that waits for a person."""
        for entry in self.tables.entries.values():
            policy = self.tables.policies.get(entry.new.queue)
            if entry.keeps_key and policy is not None and policy.ordering == "skip_dead":
                entry.keeps_key = entry.key in self.tables.paused_keys

    def forget(self, entry: Entry) -> None:
        super().forget(entry)
        if entry.key is not None and self.tables.heads.get(entry.key) == entry.id:
            self.head(entry.key)

    # Limits

    def limits_of(self, entry: Entry) -> list[Limit]:
        """The job-level ones, in the order in which they are taken."""
        found: list[Limit] = []
        for declared in self.tables.task_limits.values():
            for limit in declared:
                if limit.task != entry.new.task:
                    continue
                if limit.argument is None:
                    found.append(Limit(limit.policy, limit.policy))
                    continue
                value = _text_of(entry.new.args, limit.argument)
                if value is not None:
                    name = argument_limit(limit.task, limit.argument, value)
                    found.append(Limit(name, limit.policy))
        own = task_limit(entry.new.task)
        if any(one.kind == "limit" and one.target == own for one in self.live_overrides()):
            found.append(Limit(own, own))
        return sorted(set(found), key=lambda limit: limit.key)

    def lane_limits(self, entry: Entry, fair: bool) -> list[Limit]:
        """What bounds how many of a queue, and of one of its tenants, may run."""
        queue = queue_limit(entry.new.queue)
        found = [Limit(queue, queue)]
        if fair and entry.lane:
            found.append(self.tenant_of(entry.new.queue, entry.lane))
        return found

    def tenant_of(self, queue: str, tenant: str) -> Limit:
        return Limit(tenant_limit(queue, tenant), tenant_limit(queue))

    def limit_named(self, name: str) -> Limit:
        """An instance by its name alone."""
        if name in self.tables.limits:
            return Limit(name, name)
        before = [policy for policy in self.tables.limits if name.startswith(f"{policy}=")]
        if not before and name.startswith("tenant:") and "=" in name:
            before = [name.partition("=")[0]]
        return Limit(name, max(before, key=len, default=name))

    def policy_of(self, limit: Limit) -> LimitPolicy:
        """What bounds it now: what was declared or sold, and the newest override over it."""
        policy = self.tables.limits.get(limit.policy, LimitPolicy(limit.policy))
        if limit.name.startswith(LOCK):
            policy = replace(policy, max_running=1)
        plan_name = ""
        if limit.name.startswith("tenant:") and limit.name != limit.policy:
            tenant = limit.name.removeprefix(f"{limit.policy}=")
            plan = self.tables.plans.get(tenant)
            if plan is not None:
                plan_name = plan_limit(tenant)
                policy = LimitPolicy(plan_name, plan.max_running, plan.rate)
        over = [one for one in self.live_overrides() if one.kind == "limit"]
        for name in (limit.name, plan_name, limit.policy):
            of_this = [one for one in over if one.target == name]
            if of_this:
                return _overridden(policy, of_this[0])
        return policy

    def live_overrides(self) -> list[Override]:
        """Newest first."""
        now = self.clock()
        return [
            one
            for _, one in sorted(self.tables.overrides.items(), reverse=True)
            if one.lifted_at is None and (one.until is None or one.until > now)
        ]

    def held(self, name: str, *, but: Entry | None = None) -> int:
        """How many hold a limit, those included that keep it while they wait."""
        now = self.clock()
        jobs = [entry for entry in self.tables.entries.values() if entry is not but]
        permits = [
            permit
            for permit in self.tables.permits.values()
            if name in permit.names and (permit.until is None or permit.until > now)
        ]
        return len(permits) + sum((name in entry.holds) + (name in entry.reserved) for entry in jobs)

    def state_of(self, name: str) -> LimitState:
        return self.tables.limit_states.setdefault(name, LimitState())

    def breaker_of(self, limit: Limit) -> BreakerState | None:
        if self.policy_of(limit).breaker is None:
            return None
        state = self.state_of(limit.name)
        if not state.opened:
            return "closed"
        is_open = state.open_until is None or state.open_until > self.clock()
        return "open" if is_open else "half-open"

    def refused(self, limit: Limit, promised: int = 0, *, but: Entry | None = None) -> Behind | None:
        """Why this limit lets nobody start now, with `promised` others about to."""
        policy, state, now = self.policy_of(limit), self.state_of(limit.name), self.clock()
        breaker = self.breaker_of(limit)
        if state.held_until is not None and state.held_until > now:
            return Behind(limit.name, state.held_until)
        if breaker == "open":
            return Behind(limit.name, state.open_until)
        most = 1 if breaker == "half-open" else policy.max_running
        if most is not None and self.held(limit.name, but=but) + promised >= most:
            return Behind(limit.name)
        opens = self._opens_at(policy.rate, state, promised)
        return None if opens is None or opens <= now else Behind(limit.name, opens)

    def _opens_at(self, rate: Rate | None, state: LimitState, promised: int) -> datetime | None:
        if rate is None:
            return None
        due = max(state.due or self.clock(), self.clock())
        return due + timedelta(seconds=rate.interval * (promised - rate.burst + 1))

    def start(self, limits: Iterable[Limit]) -> frozenset[str]:
        """Count a start; the names of those that are held from now on: where nothing bounds how many, none is."""
        limits = list(limits)
        for limit in limits:
            rate, state = self.policy_of(limit).rate, self.state_of(limit.name)
            if rate is not None:
                due = max(state.due or self.clock(), self.clock())
                state.due = due + timedelta(seconds=rate.interval)
        return frozenset(limit.name for limit in limits if self._is_counted(limit))

    def _is_counted(self, limit: Limit) -> bool:
        policy = self.policy_of(limit)
        return (
            policy.max_running is not None or policy.breaker is not None or limit.name.startswith("tenant:")
        )

    # Who may start

    def behind(self, entry: Entry, promised: Counter[str] | None = None) -> Behind | None:
        """What a waiting job is behind; None when it may start."""
        key = entry.key
        if key is not None and (key in self.tables.paused_keys or self.head(key) is not entry):
            return Behind(BEHIND_KEY)
        block = self.blocks(entry)
        if block is not None:
            return block
        for limit in self.limits_of(entry):
            # A place that it has kept counts as free for it alone, unless the cap was lowered below what runs.
            found = self.refused(limit, (promised or Counter())[limit.name], but=entry)
            if found is not None:
                return found
        return None

    def blocks(self, entry: Entry) -> Behind | None:
        """The override that keeps jobs with such arguments from starting."""
        for override in self.live_overrides():
            if override.kind != "block" or override.target != queue_limit(entry.new.queue):
                continue
            if _fits(override, entry.new):
                return Behind(f"block:{override.id}")
        return None

    def let_go(self) -> int:
        """Blocked jobs that nothing holds back become ready, as many as may start, the first first; how many."""
        gone = 0
        waiting = [
            entry for entry in self.tables.entries.values() if entry.bounded and not self.expire(entry)
        ]
        promised = Counter(
            limit.name
            for entry in self.tables.entries.values()
            if entry.state is State.ready and entry.let_go
            for limit in self.limits_of(entry)
        )
        for entry in self._in_turn(waiting):
            self._reserve(entry)
            found = self.behind(entry, promised)
            if found is not None:
                entry.parked = found.what
                continue
            promised.update(limit.name for limit in self.limits_of(entry))
            pos, gate = entry.pos, entry.parked
            self.leave(entry)
            entry.state, entry.pos, entry.let_go = State.ready, pos, True
            entry.waiting_since = self.clock()
            self._let_go_last[gate] = place_of(entry.lane)
            gone += 1
        return gone

    def _in_turn(self, waiting: list[Entry]) -> list[Entry]:
        """By priority and position; of those behind one limit one of each tenant after the other, after the last."""
        line = sorted(waiting, key=lambda entry: (entry.priority, entry.pos))
        rounds: Counter[tuple[str, str]] = Counter()
        order = []
        for entry in line:
            last, place = self._let_go_last.get(entry.parked, 0), place_of(entry.lane)
            order.append((rounds[entry.parked, entry.lane], place <= last, place))
            rounds[entry.parked, entry.lane] += 1
        several = {gate for gate, lane in rounds if sum(one == gate for one, _ in rounds) > 1}
        keyed = [
            (turn if entry.parked in several else (0, False, 0), entry.priority, entry.pos, number)
            for number, (turn, entry) in enumerate(zip(order, line, strict=True))
        ]
        return [line[number] for *_, number in sorted(keyed)]

    def _reserve(self, entry: Entry) -> None:
        """A job that has waited too long for several limits takes them one after another."""
        limits = self.limits_of(entry)
        since = entry.limited_at
        if len(limits) < 2 or since is None or since + PATIENCE > self.clock():
            return
        if entry.key is not None and self.head(entry.key) is not entry:
            return
        for limit in limits:
            if limit.name in entry.reserved:
                continue
            if self.refused(limit, but=entry) is not None:
                break
            entry.reserved |= {limit.name}


def place_of(lane: str) -> int:
    """Where a tenant stands among others, as in the stores."""
    return key_of(lane) if lane else 0


def _fits(block: Override, job: NewJob) -> bool:
    """Whether a block names this job: by all that it says."""
    value = block.value
    named = {"task": job.task, "tenant": job.tenant}
    return (
        all(value.get(what, own) == own for what, own in named.items())
        and ("tag" not in value or value["tag"] in job.tags)
        and ("where" not in value or parse_where(str(value["where"])).holds(json.loads(job.args)))
    )


def _overridden(policy: LimitPolicy, override: Override) -> LimitPolicy:
    value = override.value
    if "max_running" in value:
        most = value["max_running"]
        policy = replace(policy, max_running=None if most is None else int(str(most)))
    if "interval" in value:
        interval = value["interval"]
        rate = None if interval is None else Rate(float(str(interval)), int(str(value.get("burst", 1))))
        policy = replace(policy, rate=rate)
    return policy


def _text_of(args: bytes, argument: str) -> str | None:
    """An argument's value as the text that names its instance."""
    value = json.loads(args).get(argument)
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, separators=(",", ":"))
