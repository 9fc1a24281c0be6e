"""What bounds jobs, as people look at it: limits, overrides, tenants, ordering keys. The control part of `inspect`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Final

import msgspec

from duly.client.client import Client
from duly.client.options import whole_number
from duly.client.twins import blocking, twin
from duly.core.batch import BatchRecord
from duly.core.control import KeyRecord, LimitRecord, Override, TenantPlan, TenantWait
from duly.core.key_health import key_trouble
from duly.core.names import check_name
from duly.stores.batches import batch_refused

MOST_LIMITS: Final = 1_000
_KEYS: Final = 1_000


class TenantStatus(msgspec.Struct, frozen=True):
    """One tenant: its plan, and what it uses of each fair queue."""

    name: str
    plan: TenantPlan | None
    """None: each queue's own values hold."""
    limits: tuple[LimitRecord, ...] = ()
    """Named `tenant:QUEUE=NAME`; a queue where it uses nothing may be missing."""
    waits: tuple[TenantWait, ...] = ()
    """What it has ready in each fair queue, and for how long."""

    @property
    def running(self) -> int:
        return sum(limit.running for limit in self.limits)

    @property
    def ready(self) -> int:
        return sum(wait.ready for wait in self.waits)

    @property
    def oldest(self) -> timedelta | None:
        """How long the one of its jobs has waited that is ready longest."""
        return max((wait.oldest for wait in self.waits), default=None)


class ControlReads:
    """Base of `Inspect`."""

    def __init__(self, client: Client) -> None:
        self._client = client

    @property
    def client(self) -> Client:
        return self._client

    @blocking
    def limits(
        self, names: Iterable[str] | None = None, *, limit: int = MOST_LIMITS
    ) -> tuple[LimitRecord, ...]:
        """Those named ("queue:mail", "resource:stripe"), else those declared or in use, at most so many, by name.

        Of what waits at most 10,000 jobs of each are counted.
        """
        wanted = None if names is None else list(names)
        return tuple(self._client.store.control.limits(wanted, whole_number(limit, "limit")))

    @blocking
    def overrides(self) -> tuple[Override, ...]:
        """What was changed for a time and still holds, the newest first."""
        return tuple(self._client.store.control.overrides())

    @blocking
    def tenants(self) -> tuple[TenantStatus, ...]:
        """Tenants with a plan, or with something running or ready in a fair queue, by name; of at most 1,000 each."""
        control = self._client.store.control
        plans = {plan.name: plan for plan in control.plans()}
        used: dict[str, list[LimitRecord]] = {}
        for limit in control.limits():
            _, equals, name = limit.name.partition("=")
            if limit.name.startswith("tenant:") and equals:
                used.setdefault(name, []).append(limit)
        waits: dict[str, list[TenantWait]] = {}
        for wait in control.waits():
            waits.setdefault(wait.tenant, []).append(wait)
        return tuple(
            TenantStatus(name, plans.get(name), tuple(used.get(name, ())), tuple(waits.get(name, ())))
            for name in sorted({*plans, *used, *waits})
        )

    @blocking
    def tenant(self, name: str) -> TenantStatus:
        """One tenant, in every queue that is known; one of which nothing is known has no plan and uses nothing."""
        return self._tenant(name)

    def _tenant(self, name: str) -> TenantStatus:
        check_name("tenant", name)
        store = self._client.store
        queues, _ = store.schema.declared()
        known = sorted(
            {*queues, *self._client.registry.queues, *(one.queue for one in store.inspection.counts())}
        )
        plan = next((plan for plan in store.control.plans() if plan.name == name), None)
        found = store.control.limits([f"tenant:{queue}={name}" for queue in known])
        held = [one for one in found if one.running or one.waiting or one.max_running or one.rate]
        return TenantStatus(name, plan, tuple(held), tuple(store.control.waits(name)))

    @blocking
    def keys(self, queue: str | None = None, *, limit: int = 100) -> tuple[KeyRecord, ...]:
        """Ordering keys with work, those with the most waiting first."""
        return tuple(self._client.store.control.keys(queue, whole_number(limit, "limit")))

    @blocking
    def key_troubles(self, queue: str | None = None) -> tuple[str, ...]:
        """A sentence for each key that is stuck or hot, with what frees it; of the 1,000 with the most waiting."""
        return tuple(key_troubles(self._client, queue))

    @blocking
    def batch(self, id: int) -> BatchRecord:
        """One batch: where it stands and how its jobs have ended. NotFound after 30 days, or when it never was."""
        found = self._client.store.batches.lookup([id])[0]
        if found is None:
            raise batch_refused(id, "missing")
        return found

    @blocking
    def batches(self, *, limit: int = 50, before: int | None = None) -> tuple[BatchRecord, ...]:
        """The newest first; go on with `before` the id of the last."""
        return tuple(self._client.store.batches.page(before, whole_number(limit, "limit")))

    abatch = twin(batch)
    abatches = twin(batches)
    alimits = twin(limits)
    aoverrides = twin(overrides)
    atenants = twin(tenants)
    atenant = twin(tenant)
    akeys = twin(keys)
    akey_troubles = twin(key_troubles)


def key_troubles(client: Client, queue: str | None = None) -> Iterator[str]:
    """See `ControlReads.key_troubles`."""
    keys = client.store.control.keys(queue, _KEYS)
    now = client.store.inspection.now() if keys else None
    for key in keys:
        if now is not None and (text := key_trouble(key, now)) is not None:
            yield text
