"""One limit as it stands inside a transaction: whether one more may start, how many, and when. Writes its row.

Holds are counted where they stand, so that there is no counter to leak. Knows no job.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import ceil
from typing import Final, NamedTuple

from duly.core.control import BreakerState, plan_limit
from duly.core.names import key_of
from duly.stores.sqlite.bounds import Bound, Bounds, rated
from duly.stores.sqlite.session import Row, Session
from duly.stores.sqlite.transport import ids_text

_MANY: Final = 1_000_000
_LOCK: Final = "lock:"
_TENANT: Final = "tenant:"
ONE: Final = Bound(1)


@lru_cache(maxsize=16_384)
def limit_key(name: str) -> int:
    return key_of(name)


class Refusal(NamedTuple):
    """A limit lets nothing start; `at`: until then, None: until a holder lets go."""

    at: int | None


class Use:
    """A limit and what holds it. Times are microseconds."""

    __slots__ = (
        "_state", "_tat", "bound", "changed", "forced", "held_by", "held_reason", "held_until", "key", "name",
        "next_at", "open_until", "running", "stored", "turn",
    )  # fmt: skip

    def __init__(self, name: str, bound: Bound, row: Row) -> None:
        self.name = name
        self.key = limit_key(name)
        self.bound = bound
        self._tat: int = row[0]
        self.held_until: int | None = row[1]
        self.next_at: int | None = row[2]
        self._state: str | None = row[3]
        self.open_until: int | None = row[4]
        self.forced: BreakerState | None = row[5]
        """Set by hand."""
        self.running: int = row[6]
        self.stored = bool(row[7])
        """Whether it has a row, which names it."""
        self.held_by: str | None = row[8]
        self.held_reason: str | None = row[9]
        self.turn: int = row[10]
        """The tenant that was let go on last."""
        self.changed = False

    @property
    def counts(self) -> bool:
        """Whether what runs must be counted: each job holds it."""
        return self.bound.max_running is not None or self.bound.breaker is not None

    def refusal(self, now: int, *, reserved: bool = False) -> Refusal | None:
        """Why one more may not start now; `reserved`: for a job that has its place already."""
        if self.held_until is not None and self.held_until > now:
            return Refusal(self.held_until)
        if self.breaker(now) == "open":
            return Refusal(None if self.forced else self.open_until)
        cap = self._cap(now)
        if cap is not None and self.running - reserved >= cap:
            return Refusal(None)
        allowed = self._allowed_at(now, 1)
        return Refusal(ceil(allowed)) if allowed > now else None

    def allowance(self, now: int) -> int:
        """How many may start now."""
        if self.refusal(now) is not None:
            return 0
        cap = self._cap(now)
        most = _MANY if cap is None else cap - self.running
        if self.bound.interval is not None:
            ahead = self.bound.burst * self.bound.interval - (max(self._tat, now) - now)
            most = min(most, max(1, int(ahead / self.bound.interval)))
        return most

    def opens_at(self, now: int, after: int = 0) -> int | None:
        """When time alone lets one more start, once `after` others have; None when a holder must let go first."""
        if after == 0 and (refusal := self.refusal(now)) is not None:
            return refusal.at
        cap = self._cap(now)
        if cap is not None and self.running + after >= cap:
            return None
        return ceil(self._allowed_at(now, after + 1))

    def start(self, now: int, *, reserved: bool = False) -> None:
        """Count one more; one that has reserved its place is counted already."""
        if not reserved:
            self.running += 1
        if self.bound.interval is not None:
            self._tat = round(max(self._tat, now) + self.bound.interval)
            self.changed = True

    def reserve(self) -> None:
        self.running += 1

    def look_at(self, at: int | None) -> None:
        """Another look is worth while then."""
        if at != self.next_at:
            self.next_at = at
            self.changed = True

    def pass_turn(self, tenant: int) -> None:
        """Of the tenants that wait, this one was let go on last."""
        if tenant != self.turn:
            self.turn = tenant
            self.changed = True

    def breaker(self, now: int) -> BreakerState | None:
        """How its breaker stands; None without one."""
        if self.bound.breaker is None:
            return None
        if self.forced is not None:
            return self.forced
        if self._state != "open":
            return "closed"
        return "half-open" if self.open_until is None or self.open_until <= now else "open"

    def row(self) -> Row:
        return (self.key, self.name, self._tat, self.next_at, self.turn)

    def _cap(self, now: int) -> int | None:
        cap = self.bound.max_running
        # One tries.
        return 1 if self.breaker(now) == "half-open" else cap

    def _allowed_at(self, now: int, count: int) -> float:
        """When the rate lets so many have started."""
        interval = self.bound.interval
        if interval is None:
            return now
        return max(self._tat, now) + (count - self.bound.burst) * interval


def uses_of(session: Session, bounds: Iterable[tuple[str, Bound]]) -> list[Use]:
    """Limits as they stand, by their instances' names and what bounds them, in the order given."""
    named = [*bounds]
    rows = session.rows(
        "select_limit_state", keys=ids_text([limit_key(name) for name, _ in named]), now=session.now
    )
    return [Use(name, bound, row) for (name, bound), row in zip(named, rows, strict=True)]


def use_of(session: Session, bounds: Bounds, name: str) -> Use:
    """An instance of any limit, by its name alone."""
    (use,) = uses_of(session, [(name, bound_of(session, bounds, name))])
    return use


def bound_of(session: Session, bounds: Bounds, name: str) -> Bound:
    """What bounds an instance of any limit now, by its name alone."""
    policy, is_instance, tenant = name.partition("=")
    if name.startswith(_LOCK):
        return bounds.bound(name, now=session.now, declared=ONE)
    if not name.startswith(_TENANT) or not is_instance:
        return bounds.of(name, session.now)
    row = session.row("select_plan", name=tenant)
    plan = None if row is None else plan_of(row)
    return bounds.bound(name, plan_limit(tenant), policy, now=session.now, declared=plan)


def plan_of(row: Row) -> Bound:
    """From (weight, max_running, interval, burst) of a tenant."""
    weight, max_running, interval, burst = row
    return Bound(max_running, *rated(interval, burst), weight=weight)


def keep(session: Session, uses: Iterable[Use]) -> None:
    """Write those that have changed."""
    changed = [use for use in uses if use.changed]
    session.tuples("upsert_limit_state", [use.row() for use in changed])
    for use in changed:
        use.changed, use.stored = False, True


def name_them(session: Session, names: Sequence[str]) -> None:
    """Let what jobs wait behind be found by its name."""
    session.tuples("upsert_limit_state", [(key_of(name), name, 0, None, 0) for name in names])
