"""The bounds of jobs as declared and as overridden, read once per version of them. Decides nothing about a job.

An override lies over what is declared: it replaces the fields that it names, and no others.
"""

import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from duly.core.control import BreakerPolicy, queue_limit
from duly.core.errors import UsageError
from duly.core.filters import Filter
from duly.core.names import key_of
from duly.stores.sqlite.declaring import breaker_of
from duly.stores.sqlite.session import Row, Session

_SECOND: Final = 1_000_000
_KNOWN: Final = 16


class Bound(NamedTuple):
    """What one limit allows; None: unbounded in that respect."""

    max_running: int | None = None
    interval: float | None = None
    """Microseconds between two starts."""
    burst: int = 1
    weight: int = 1
    breaker: BreakerPolicy | None = None
    override: int | None = None
    """Which one lies over it."""


UNBOUNDED: Final = Bound()


class Take(NamedTuple):
    """A limit that the jobs of a task take; with `argument` one instance per value."""

    policy: str
    argument: str | None


class Block(NamedTuple):
    """An override that keeps jobs from starting."""

    id: int
    filter: Filter


class _Override(NamedTuple):
    id: int
    value: dict[str, Any]
    until: int | None


class Bounds:
    """One version of all bounds but the plans of tenants."""

    def __init__(
        self,
        limits: Mapping[str, Bound],
        takes: Sequence[tuple[int, str, str | None]],
        overrides: Sequence[Row] = (),
    ) -> None:
        self.some = bool(limits or takes or overrides)
        """Whether anything at all is bounded."""
        self._limits = limits
        self.takes: dict[int, list[Take]] = {}
        """By the key of the task."""
        for task, policy, argument in takes:
            self.takes.setdefault(task, []).append(Take(policy, argument))
        self._per_argument = {policy for _, policy, argument in takes if argument is not None}
        self._overrides: dict[str, list[_Override]] = {}
        self._blocks: dict[str, list[tuple[_Override, Block]]] = {}
        # The newest first.
        for id, target, kind, value, until in overrides:
            override = _Override(id, json.loads(value), until)
            if kind == "limit":
                self._overrides.setdefault(target, []).append(override)
                self._take_undeclared(target)
            elif kind == "block" and (filter := _filter_of(override.value)) is not None:
                self._blocks.setdefault(target, []).append((override, Block(id, filter)))

    def _take_undeclared(self, target: str) -> None:
        """A task's jobs take its limit, too, where only an override knows of one."""
        kind, _, task = target.partition(":")
        if kind == "task" and "#" not in task:
            takes = self.takes.setdefault(key_of(task), [])
            if all(take.policy != target for take in takes):
                takes.append(Take(target, None))

    def bound(self, *names: str, now: int, declared: Bound | None = None) -> Bound:
        """What holds now for a limit, given by its instance's name, then its policy's. `declared` stands for both."""
        if declared is None:
            declared = next((self._limits[name] for name in names if name in self._limits), UNBOUNDED)
        for name in names:
            for override in self._overrides.get(name, ()):
                if override.until is None or override.until > now:
                    return _over(declared, override)
        return declared

    def of(self, instance: str, now: int) -> Bound:
        """What holds now for an instance of a limit that is no tenant's."""
        return self.bound(*self.names(instance), now=now)

    def names(self, instance: str) -> tuple[str, ...]:
        """An instance's name, and its policy's where that is another."""
        at = instance.find("=")
        while at >= 0:
            if instance[:at] in self._per_argument:
                return instance, instance[:at]
            at = instance.find("=", at + 1)
        return (instance,)

    def blocks(self, queue: str, now: int) -> list[Block]:
        return [
            block
            for override, block in self._blocks.get(queue_limit(queue), ())
            if override.until is None or override.until > now
        ]

    def is_blocking(self, id: int, now: int) -> bool:
        """Whether a block is not over yet."""
        return any(
            block.id == id and (override.until is None or override.until > now)
            for blocks in self._blocks.values()
            for override, block in blocks
        )

    @property
    def limits(self) -> Mapping[str, Bound]:
        """The declared ones, by policy."""
        return self._limits

    @property
    def overridden(self) -> frozenset[str]:
        """The names that an override is about."""
        return frozenset(self._overrides)


_NONE: Final = Bounds({}, ())
# By a random number that every change makes anew, so that files cannot be taken for each other.
_known: OrderedDict[int, Bounds] = OrderedDict()


def bounds_of(session: Session, version: int | None = None) -> Bounds:
    """The bounds that hold in this transaction; `version` where it has been read already."""
    if version is None:
        version = int(session.value("select_control_version"))
    if version == 0:
        return _NONE
    known = _known.get(version)
    if known is None:
        known = _known[version] = _read(session)
        while len(_known) > _KNOWN:
            _known.popitem(last=False)
    return known


def rated(interval: float | None, burst: int | None) -> tuple[float | None, int]:
    """(microseconds between two starts, burst) from what is stored."""
    return (None if interval is None else interval * _SECOND), burst or 1


def _read(session: Session) -> Bounds:
    limits = {
        name: Bound(max_running, *rated(interval, burst), breaker=breaker_of(breaker))
        for name, max_running, interval, burst, breaker, _ in session.rows("select_limit_policies")
    }
    return Bounds(
        limits, session.rows("select_task_limits"), session.rows("select_live_overrides", now=session.now)
    )


def _over(declared: Bound, override: _Override) -> Bound:
    value = override.value
    bound = declared._replace(override=override.id)
    if "max_running" in value:
        bound = bound._replace(max_running=value["max_running"])
    if "interval" in value:
        bound = bound._replace(interval=rated(value["interval"], None)[0])
    if "burst" in value:
        bound = bound._replace(burst=value["burst"] or 1)
    if value.get("weight") is not None:
        bound = bound._replace(weight=value["weight"])
    return bound


def _filter_of(value: dict[str, Any]) -> Filter | None:
    try:
        return msgspec.convert(value, Filter)
    except (msgspec.ValidationError, UsageError):
        # Of a release that knows more; nothing is blocked that we cannot read.
        return None
