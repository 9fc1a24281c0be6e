"""What a person changes of the bounds of jobs: limits, blocks, plans, breakers, keys. The control part of `operate`.

Says who and why to the store; what is changed for a time ends by itself. Decides nothing about a job.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final, Literal

from duly.client.authorship import author, reason_given
from duly.client.client import Client
from duly.client.options import whole_number
from duly.client.registry import nearest
from duly.client.twins import blocking, twin
from duly.core.batch import BatchRecord, CancelBatch
from duly.core.control import (
    BreakerState,
    Override,
    TenantPlan,
    plan_limit,
    read_cap,
    read_rate,
    read_weight,
    resource_limit,
    tenant_limit,
)
from duly.core.durations import Duration, parse_duration
from duly.core.errors import NotFound, UsageError
from duly.core.filters import Filter
from duly.core.names import Kind, check_name
from duly.core.why import quoted
from duly.stores.batches import batch_refused

Unbounded = Literal["none"]

_BLOCKABLE: Final = {"queue", "task", "tenant", "tag", "where"}
_KINDS: Final[dict[str, Kind]] = {"queue": "queue", "task": "task", "resource": "resource"}


class ControlActs:
    """Base of `Operate`."""

    def __init__(self, client: Client, actor: str | None = None) -> None:
        self._client = client
        self._actor = actor

    @property
    def client(self) -> Client:
        return self._client

    def actor(self) -> str:
        """Whose name stands on acts: the one it was made with, else DULY_ACTOR, else user@host."""
        return self._actor if self._actor is not None else author(self._client.settings)

    @blocking
    def cancel_batch(self, id: int, *, reason: str = "") -> BatchRecord:
        """-> cancelled, with the batches inside: waiting jobs are cancelled, running ones asked to stop.

        Nothing follows it. One that has ended stays as it is. NotFound when there is none.
        """
        batches = self._client.store.batches
        batches.apply(CancelBatch(id, self.actor(), reason_given(reason)))
        found = batches.lookup([id])[0]
        if found is None:
            raise batch_refused(id, "missing")
        return found

    acancel_batch = twin(cancel_batch)

    @blocking
    def limit(
        self,
        target: str | None = None,
        *,
        lasting: Duration,
        tenant: str | None = None,
        max_running: int | Unbounded | None = None,
        rate: str | Unbounded | None = None,
        weight: int | None = None,
        reason: str = "",
    ) -> Override:
        """Bound a queue ("mail"), "task:send" or "resource:stripe" otherwise than declared, for so long.

        With `tenant` that tenant's share of the queue, or without a target its share of every queue. What is left out
        stays as declared; "none" takes a bound away. What runs already goes on. NotFound names the nearest target.
        """
        name = self._limited(target, tenant)
        value: dict[str, object] = {}
        if max_running is not None:
            value["max_running"] = None if max_running == "none" else read_cap(max_running)
        if rate is not None:
            value["interval"] = value["burst"] = None
            if rate != "none":
                read = read_rate(rate)
                value["interval"], value["burst"] = read.interval, read.burst
        if weight is not None:
            if tenant is None:
                raise UsageError("a weight is a tenant's: say which with tenant='…'")
            value["weight"] = read_weight(weight)
        if not value:
            raise UsageError("nothing is bounded: give max_running, rate or weight")
        span = parse_duration(lasting, "lasting", positive=True)
        return self._client.store.control.override(
            name, "limit", value, span, self.actor(), reason_given(reason)
        )

    @blocking
    def block(self, jobs: Filter, *, lasting: Duration, reason: str = "") -> Override:
        """Start no job of a queue that fits, for so long: by task, tenant, tag, or `where` on an argument.

        They are stored as always, wait as blocked, and go on in their old order. What runs already goes on.
        """
        given = jobs.parts()
        if unfit := given.keys() - _BLOCKABLE:
            raise UsageError(
                f"a block looks at queue, task, tenant, tag and where, not at {', '.join(sorted(unfit))}; leave it out"
            )
        queue = given.pop("queue", None)
        if queue is None:
            raise UsageError("a block is of one queue: name it with queue='…'; make one for each queue")
        if not given:
            raise UsageError(f"that is every job of the queue: pause it with duly pause {queue}")
        target = self._target(queue)
        span = parse_duration(lasting, "lasting", positive=True)
        return self._client.store.control.override(
            target, "block", dict(given), span, self.actor(), reason_given(reason)
        )

    @blocking
    def lift(self, id: int, *, reason: str = "") -> bool:
        """End an override before its time; False when it is over already."""
        return self._client.store.control.lift(whole_number(id, "id"), self.actor(), reason_given(reason))

    @blocking
    def tenant(
        self,
        name: str,
        *,
        weight: int = 1,
        max_running: int | None = None,
        rate: str | None = None,
        reason: str = "",
    ) -> TenantPlan:
        """Store what a tenant may have in each fair queue; it replaces the queue's own values as a whole, and lasts."""
        plan = TenantPlan(
            check_name("tenant", name),
            read_weight(weight),
            None if max_running is None else read_cap(max_running),
            None if rate is None else read_rate(rate),
        )
        self._client.store.control.set_plan(plan, self.actor(), reason_given(reason))
        return plan

    @blocking
    def breaker(self, resource: str, state: BreakerState | None, *, reason: str = "") -> None:
        """Set a resource's breaker by hand until it is set again; None leaves it to its counts, from closed.

        NotFound where no such resource has a breaker.
        """
        if state not in {None, "open", "closed"}:
            raise UsageError(f"state={state!r:.40}: write 'open', 'closed', or None for its own counts")
        # With the prefix, as the other verbs and reads name it.
        resource = check_name("resource", resource).removeprefix("resource:")
        name = resource_limit(resource)
        if not self._client.store.control.set_breaker(name, state, self.actor(), reason_given(reason)):
            raise NotFound(
                f"no resource {resource!r} has a breaker; declare it with jobs.resource({resource!r}, "
                "breaker=Breaker()) and start a worker",
                kind="resource",
                name=resource,
            )

    @blocking
    def hold(self, resource: str, wait: Duration, *, reason: str = "") -> datetime:
        """Let nobody in the fleet begin to use a resource for so long; until when. Who uses it goes on.

        An earlier, longer hold stays. NotFound names the nearest resource.
        """
        name = self._target(f"resource:{resource}", resources=True)
        pause = parse_duration(wait, "hold(wait)", positive=True)
        return self._client.store.control.hold(name, pause, self.actor(), reason_given(reason))

    @blocking
    def resume_key(self, queue: str, key: str, *, tenant: str = "", reason: str = "") -> bool:
        """Go on behind a paused ordering key or a dead head, which stays dead; False when the key does not wait."""
        check_name("queue", queue)
        return self._client.store.control.resume_key(queue, tenant, key, self.actor(), reason_given(reason))

    alimit = twin(limit)
    ablock = twin(block)
    alift = twin(lift)
    atenant = twin(tenant)
    abreaker = twin(breaker)
    ahold = twin(hold)
    aresume_key = twin(resume_key)

    def _limited(self, target: str | None, tenant: str | None) -> str:
        """The name that an override is about."""
        if tenant is not None:
            check_name("tenant", tenant)
            if target is None:
                return plan_limit(tenant)
            found = self._target(target)
            if not found.startswith("queue:"):
                raise UsageError(
                    f"a tenant's bounds are a queue's: {target!r} is none; leave tenant or it out"
                )
            queue = found.removeprefix("queue:")
            policy = self._client.registry.queues.get(queue)
            if policy is not None and not policy.fair:
                raise UsageError(
                    f"queue {queue!r} gives tenants no turns, so that one's bound would hold nothing back there; "
                    "declare it with fair=True, or block the tenant's jobs for a time: "
                    f"duly block --queue {quoted(queue)} --tenant {quoted(tenant)} --for 30m"
                )
            return tenant_limit(queue, tenant)
        if target is None:
            raise UsageError("what is bounded? Name a queue, task:NAME, resource:NAME, or a tenant")
        return self._target(target, resources=True)

    def _target(self, target: str, *, resources: bool = False) -> str:
        """`queue:NAME` or `task:NAME` (with `resources` `resource:NAME`, too), of a name that somebody knows."""
        kind, colon, name = target.partition(":")
        if not colon:
            kind, name = "queue", target
        if kind not in ({*_KINDS} if resources else {"queue", "task"}):
            more = " or resource:NAME" if resources else ""
            raise UsageError(
                f"{target!r} is neither a queue nor task:NAME{more}; write 'mail' or 'task:send_receipt'"
            )
        if resources and kind == "task" and "#" in name:
            return self._argument(target)
        check_name(_KINDS[kind], name)
        known = self._known(kind)
        if name not in known:
            raise NotFound(f"no {kind} is named {name!r}{nearest(name, known)}", kind=kind, name=name)
        return f"{kind}:{name}"

    def _argument(self, target: str) -> str:
        """`task:NAME#ARGUMENT` or one value's `task:NAME#ARGUMENT=VALUE`, of a limit that is declared."""
        policy = target.partition("=")[0]
        known = {limit.name for limit in self._client.store.control.limits()}
        if policy not in known:
            raise NotFound(
                f"no limit is named {policy!r}: declare it with Annotated[…, PerKey(max_running=…)]",
                kind="limit",
                name=policy,
            )
        return target

    def _known(self, kind: str) -> set[str]:
        registry, store = self._client.registry, self._client.store
        if kind == "resource":
            names = {limit.name for limit in store.control.limits()}
            found = {name.removeprefix("resource:") for name in names if name.startswith("resource:")}
            return {*found, *registry.resources}
        queues, tasks = store.schema.declared()
        if kind == "task":
            return {*tasks, *registry.tasks}
        return {
            *queues,
            *registry.queues,
            "default",
            *(count.queue for count in store.inspection.counts()),
        }
