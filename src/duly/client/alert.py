"""What an App says about alerts: for one queue, or for all. Reads people's words into thresholds; decides nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import timedelta
from typing import Any, Final

from msgspec import structs

from duly.core.alerting import RULES, Rule, Thresholds
from duly.core.control import read_share
from duly.core.durations import Duration, parse_duration
from duly.core.errors import UsageError

_NOT_THRESHOLDS: Final = frozenset({"to", "off"})


@dataclass(frozen=True, slots=True, init=False)
class Alert:
    """What differs from the defaults, for `App.queue(alert=…)` or, for all queues, `App.alert(…)`.

    What a queue says goes before what is said for all, and that before the defaults.

    Args:
        to: names of sinks, as `App.sink` or DULY_ALERTS gives them; all unless given.
        off: rules that are not looked at, as "late" or ["late", "rising"].
        dead_within: dead letters that come within this time are one alert, which is over after as long without one.
        purge_notice: how long before dead letters are deleted it says so; at most the seven days of their notice.
        late_for: how long a queue must be late, or near its bound, without a break.
        rising_for: how long it must rise, or have a hot key.
        rising_jobs: by how many jobs in ten minutes at least.
        bound_share: of max_depth, max_age or the store's budget, as "80%".
        full_within: full at the present slope within this time.
        disk_within: the same for the store.
        no_worker_for: how long jobs may be without a worker.
        stalled_after: how long a worker that holds jobs may end none; longer than any time to run.
        hot_share: of what waits in a queue, in one ordering key.
        hot_jobs: at least so many of them.
        lost: so many attempts whose worker vanished within ten minutes.
        clear_after: how long all must be well until it says so.

    """

    to: tuple[str, ...] | None
    off: frozenset[Rule] | None
    dead_within: timedelta | None
    purge_notice: timedelta | None
    late_for: timedelta | None
    rising_for: timedelta | None
    rising_jobs: int | None
    bound_share: float | None
    full_within: timedelta | None
    disk_within: timedelta | None
    no_worker_for: timedelta | None
    stalled_after: timedelta | None
    hot_share: float | None
    hot_jobs: int | None
    lost: int | None
    clear_after: timedelta | None

    def __init__(
        self,
        to: str | Iterable[str] | None = None,
        *,
        off: str | Iterable[str] | None = None,
        dead_within: Duration | None = None,
        purge_notice: Duration | None = None,
        late_for: Duration | None = None,
        rising_for: Duration | None = None,
        rising_jobs: int | None = None,
        bound_share: str | None = None,
        full_within: Duration | None = None,
        disk_within: Duration | None = None,
        no_worker_for: Duration | None = None,
        stalled_after: Duration | None = None,
        hot_share: str | None = None,
        hot_jobs: int | None = None,
        lost: int | None = None,
        clear_after: Duration | None = None,
    ) -> None:
        read: dict[str, Any] = {
            "to": None if to is None else _words(to, "to"),
            "off": None if off is None else frozenset(_rule(word) for word in _words(off, "off")),
            "bound_share": None if bound_share is None else read_share(bound_share, "bound_share"),
            "hot_share": None if hot_share is None else read_share(hot_share, "hot_share"),
            "rising_jobs": _count(rising_jobs, "rising_jobs"),
            "hot_jobs": _count(hot_jobs, "hot_jobs"),
            "lost": _count(lost, "lost"),
            **_spans(
                dead_within=dead_within,
                purge_notice=purge_notice,
                late_for=late_for,
                rising_for=rising_for,
                full_within=full_within,
                disk_within=disk_within,
                no_worker_for=no_worker_for,
                stalled_after=stalled_after,
                clear_after=clear_after,
            ),
        }
        for name, value in read.items():
            object.__setattr__(self, name, value)

    def over(self, base: Thresholds) -> Thresholds:
        """`base` with what is said here."""
        said = {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if field.name not in _NOT_THRESHOLDS and getattr(self, field.name) is not None
        }
        made = structs.replace(base, **said)
        if self.off is not None:
            made = structs.replace(made, off=base.off | self.off)
        return made if self.to is None else structs.replace(made, sinks=self.to)


def read_alert(said: object) -> Alert:
    """An Alert, or the name or names of sinks. UsageError for anything else."""
    if isinstance(said, Alert):
        return said
    if isinstance(said, str) or (
        isinstance(said, list | tuple) and all(isinstance(word, str) for word in said)
    ):
        return Alert(said)
    raise UsageError(f"alert={said!r:.60}: write the name of a sink, or Alert('oncall', late_for='5m')")


def _words(said: str | Iterable[str], what: str) -> tuple[str, ...]:
    words = (said,) if isinstance(said, str) else tuple(said)
    if not words or not all(word.strip() for word in words):
        raise UsageError(f"{what}={said!r:.60} names nothing; write a name or a list of names")
    return words


def _rule(word: str) -> Rule:
    for rule in RULES:
        if rule == word:
            return rule
    raise UsageError(f"off={word!r:.40} is no rule; they are {', '.join(RULES)}")


def _count(said: object, what: str) -> int | None:
    if said is None:
        return None
    if isinstance(said, bool) or not isinstance(said, int) or said < 1:
        raise UsageError(f"{what}={said!r:.40} must be a whole number from 1")
    return said


def _spans(**said: Duration | None) -> Mapping[str, timedelta | None]:
    return {name: None if value is None else parse_duration(value, name) for name, value in said.items()}
