"""Tenants in turn: whose jobs a claim takes from a queue that goes round them, and how many of each.

Remembers per store whose turn it was last. What one tenant's lane gives is decided by the claim.
"""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from duly.core.control import plan_limit, tenant_limit
from duly.core.job import QueueClaim
from duly.stores.sqlite.bounds import Bound
from duly.stores.sqlite.limiting import Limits
from duly.stores.sqlite.session import Session
from duly.stores.sqlite.usage import Use, plan_of

_FIRST: Final = -(2**63)
_CHUNK: Final = 256
# Of so many nobody may run anything: the next claim looks at others.
_MOST_SEEN: Final = 1_024
_MOST_BARREN: Final = 16
_KNOWN: Final = 4096


class Turn(NamedTuple):
    """The tenant that was served last, and how much of its turn is left."""

    tenant: int
    left: int


class Turns:
    """Of each queue, for the claims of one store. Used under the write lock only."""

    def __init__(self) -> None:
        self._turns: dict[int, Turn] = {}
        self._barren: dict[int, int] = {}
        """Claims in a row that found nobody who may run anything, and had not seen all."""

    def goes_on(self, lane: int, found: bool) -> bool:
        """Whether it is worth to look at more tenants at once."""
        self._barren[lane] = 0 if found else self._barren.get(lane, 0) + 1
        return self._barren[lane] < _MOST_BARREN

    def last(self, lane: int) -> Turn:
        return self._turns.get(lane, Turn(_FIRST, 0))

    def keep(self, lane: int, turn: Turn) -> None:
        if len(self._turns) > _KNOWN:
            self._turns.clear()
        self._turns[lane] = turn


class Tenant(NamedTuple):
    """One with ready jobs."""

    key: int
    use: Use | None
    """Its limit; None for the jobs of no tenant."""
    weight: int


Take = Callable[[Tenant, int], int]
"""Take at most so many jobs of a tenant: how many there were."""


class Round:
    """One claim's way round the tenants of one queue."""

    def __init__(self, session: Session, limits: Limits, turns: Turns, claim: QueueClaim, lane: int) -> None:
        self._session = session
        self._limits = limits
        self._turns = turns
        self._claim = claim
        self._lane = lane
        self._shared = claim.most - claim.reserved
        """How many may still go to tenants of which something runs."""
        self.opens_at: int | None = None
        """The earliest time at which a rate lets one of the tenants go on that were jumped over."""
        self.left_off = False
        """Not all tenants were looked at."""
        self._looked_at = 0

    def serve(self, wanted: int, take: Take) -> int:
        """Take so many, if there are: how many there were."""
        taken = share = 0
        gave = True
        while taken < wanted and gave:
            gave = False
            for tenants in self._circle(wanted - taken):
                share = share or max(1, wanted // sum(tenant.weight for tenant in tenants))
                served = self._serve(tenants, share, wanted - taken, take)
                taken += served
                gave = gave or served > 0
                if taken >= wanted:
                    break
        self.left_off = self.left_off and taken < wanted and self._turns.goes_on(self._lane, taken > 0)
        return taken

    def _serve(self, tenants: list[Tenant], share: int, wanted: int, take: Take) -> int:
        """Each of them once."""
        taken = 0
        for tenant in tenants:
            last = self._turns.last(self._lane)
            quantum = last.left if last.left and last.tenant == tenant.key else share * tenant.weight
            most = min(quantum, wanted - taken, self._most(tenant))
            if most <= 0:
                continue
            idle = tenant.use is not None and tenant.use.running == 0
            served = take(tenant, most)
            taken += served
            self._shared -= served - (1 if idle and served else 0)
            # A turn that the claim cut short goes on with the next one.
            cut = served == most < quantum and taken == wanted
            self._turns.keep(self._lane, Turn(tenant.key, quantum - served if cut else 0))
            if taken >= wanted:
                break
        return taken

    def _most(self, tenant: Tenant) -> int:
        """How many may run of it."""
        if tenant.use is None:
            return self._shared
        if self._claim.reserved:
            running = min(tenant.use.running, 1)
            return min(tenant.use.allowance(self._session.now), self._shared + 1 - running)
        return tenant.use.allowance(self._session.now)

    def _circle(self, wanted: int) -> Iterator[list[Tenant]]:
        """The tenants that may run something, once round from the last one served: as many as are wanted, then more."""
        last = self._turns.last(self._lane)
        # Its turn may not be over yet.
        after = last.tenant - 1 if last.left else last.tenant
        ready: list[Tenant] = []
        for tenant in self._round(after, min(wanted, _CHUNK)):
            if self._may(tenant):
                ready.append(tenant)
            if len(ready) >= wanted:
                yield ready
                ready = []
        if ready:
            yield ready

    def _round(self, after: int, most: int) -> Iterator[Tenant]:
        """All tenants with ready jobs, beginning behind one of them; bounded."""
        for start, end in ((after, None), (_FIRST, after)):
            at, more = start, True
            while more:
                found = self._tenants(at, most)
                more = len(found) == most
                most = min(2 * most, _CHUNK)
                for tenant in found:
                    if end is not None and tenant.key > end:
                        return
                    yield tenant
                self._looked_at += len(found)
                if self._looked_at >= _MOST_SEEN:
                    self.left_off = True
                    self._turns.keep(self._lane, Turn(found[-1].key, 0))
                    return
                if found:
                    at = found[-1].key

    def _tenants(self, after: int, most: int) -> list[Tenant]:
        now, queue = self._session.now, self._claim.queue
        policy = tenant_limit(queue)
        rows = self._session.rows("select_lane_tenants", queue=self._lane, after=after, most=most)
        named: list[tuple[str, Bound]] = []
        for key, name, planned, *plan_row in rows:
            if not key:
                continue
            plan = plan_of(tuple(plan_row)) if planned else None
            names = (tenant_limit(queue, name), plan_limit(name), policy)
            named.append((names[0], self._limits.bounds.bound(*names, now=now, declared=plan)))
        uses = iter(self._limits.of(named))
        tenants = []
        for key, *_ in rows:
            use = next(uses) if key else None
            tenants.append(Tenant(key, use, 1 if use is None else max(1, use.bound.weight)))
        return tenants

    def _may(self, tenant: Tenant) -> bool:
        use = tenant.use
        if use is None or (refusal := use.refusal(self._session.now)) is None:
            return True
        if refusal.at is not None and (self.opens_at is None or refusal.at < self.opens_at):
            self.opens_at = refusal.at
        return False
