"""The state of a store as metrics: depth, age, slope and limits of every queue, read when somebody scrapes.

The same for whoever asks, so that it belongs on one server and not on each worker; what workers count themselves has
other names. Reads through `inspect`. Needs the extra `metrics`.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from duly.client.inspect import Inspect, QueueStatus, Status
from duly.core.alerting import RULES
from duly.core.errors import DulyError
from duly.core.runs import TaskRuns
from duly.telemetry.prometheus import CONTENT_TYPE, Value, exposed, family

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric as Family

    from duly.app import App

__all__ = ["CONTENT_TYPE", "Collector", "collector", "exposition"]

_DEAD_EVERY: Final = 60.0
_STATES: Final = ("ready", "scheduled", "blocked", "running", "dead")
_LIMITS: Final = ("queue:", "task:", "resource:")


class Collector:
    """For `prometheus_client.CollectorRegistry.register`, and for `exposition`. Blocks for a few round trips."""

    def __init__(self, inspect: Inspect, clock: Callable[[], float] = time.monotonic) -> None:
        self._inspect = inspect
        self._clock = clock
        self._dead_at = -math.inf
        self._dead: dict[str, datetime] = {}

    def describe(self) -> Iterable[Family]:
        """Nothing: registering a collector must not ask a store."""
        return ()

    def collect(self) -> Iterator[Family]:
        """All families; of a store that does not answer only that it does not."""
        began = self._clock()
        try:
            found = [*self._families()]
        except DulyError:
            yield family("duly_store_up", [((), 0)])
            return
        yield family("duly_store_up", [((), 1)])
        yield family("duly_store_seconds", [((), self._clock() - began)])
        yield from found

    def _families(self) -> Iterator[Family]:
        status = self._inspect.status()
        yield from _of_queues(status.queues)
        yield from _of_fleet(status)
        yield from self._of_dead(status.now)
        yield from self._of_limits()
        late = [
            ((one.name,), _seconds(status.now - one.next_at))
            for one in self._inspect.schedules()
            if not one.paused
        ]
        yield family("duly_schedule_late_seconds", late)
        firing = Counter(one.rule for one in self._inspect.alerts() if one.state == "firing")
        yield family("duly_alerts_firing", [((rule,), firing[rule]) for rule in RULES])
        yield from _of_runs(self._inspect.runs("1h").tasks)

    def _of_dead(self, now: datetime) -> Iterator[Family]:
        # Groups are counted over all dead letters, which is more work than a scrape should be each time.
        if self._clock() - self._dead_at >= _DEAD_EVERY:
            firsts: dict[str, datetime] = {}
            for group in self._inspect.dead_groups():
                firsts[group.queue] = min(group.first, firsts.get(group.queue, group.first))
            self._dead, self._dead_at = firsts, self._clock()
        yield family(
            "duly_dead_oldest_seconds",
            [((queue,), _seconds(now - first)) for queue, first in sorted(self._dead.items())],
        )

    def _of_limits(self) -> Iterator[Family]:
        # One of a tenant or a key each would be as many series as there are tenants.
        limits = [
            one for one in self._inspect.limits() if one.name.startswith(_LIMITS) and "=" not in one.name
        ]
        yield family("duly_limit_running", [((one.name,), one.running) for one in limits])
        yield family("duly_limit_waiting", [((one.name,), one.waiting) for one in limits])
        bound: list[Value] = []
        for one in limits:
            most = one.max_running if one.override is None else one.override
            if most is not None:
                bound.append(((one.name,), most))
        yield family("duly_limit_max_running", bound)
        yield family(
            "duly_breaker_open",
            [
                ((one.name.removeprefix("resource:"),), float(one.breaker != "closed"))
                for one in limits
                if one.breaker is not None
            ],
        )


def collector(app: App) -> Collector:
    """A collector over the store of an App."""
    return Collector(app.inspect)


def exposition(source: App | Collector) -> bytes:
    """What /metrics of a server answers, of type CONTENT_TYPE. Blocks; ImportError without the extra.

    A server keeps one collector and hands that in: it reads dead letters once a minute, an App's each time anew.
    """
    found = source if isinstance(source, Collector) else collector(source)
    return exposed(found.collect())


def _of_queues(queues: Iterable[QueueStatus]) -> Iterator[Family]:
    found = [(queue.counts.queue, queue) for queue in queues]
    jobs: list[Value] = [
        ((name, state), getattr(queue.counts, state)) for name, queue in found for state in _STATES
    ]
    yield family("duly_queue_jobs", jobs)
    each: dict[str, Callable[[QueueStatus], float | None]] = {
        "duly_queue_oldest_ready_seconds": lambda queue: _seconds(queue.counts.oldest_ready),
        "duly_queue_arrivals_per_second": lambda queue: queue.counts.in_per_s,
        "duly_queue_departures_per_second": lambda queue: queue.counts.out_per_s,
        "duly_queue_slope_per_second": lambda queue: queue.counts.slope_per_s,
        "duly_queue_drain_seconds": _drain,
        "duly_queue_full_in_seconds": _full_in,
        "duly_queue_workers_needed": lambda queue: queue.workers_needed,
        "duly_queue_wait_target_seconds": _wait_target,
        "duly_queue_max_depth": _max_depth,
        "duly_queue_refused_last_hour": lambda queue: queue.pressure.refused,
        "duly_queue_shed_last_hour": lambda queue: queue.pressure.shed,
        "duly_queue_paused": lambda queue: float(queue.counts.paused),
        "duly_queue_workers": lambda queue: queue.workers,
    }
    for metric, read in each.items():
        values = [((name,), read(queue)) for name, queue in found]
        yield family(metric, [(labels, value) for labels, value in values if value is not None])


def _of_fleet(status: Status) -> Iterator[Family]:
    yield family("duly_workers", [((), status.workers)])
    if status.newest_progress is not None:
        yield family("duly_workers_progress_age_seconds", [((), _seconds(status.newest_progress))])
    if status.room is not None:
        yield family("duly_store_bytes", [((), status.room.used)])
        yield family("duly_store_filled_ratio", [((), status.room.filled)])


def _of_runs(tasks: Iterable[TaskRuns]) -> Iterator[Family]:
    found = list(tasks)
    each = [((one.task,), one.per_completed) for one in found]
    yield family(
        "duly_runs_per_completed_last_hour", [(labels, value) for labels, value in each if value is not None]
    )
    causes: list[Value] = [
        ((one.task, cause), number) for one in found for cause, number in one.by_cause.items()
    ]
    yield family("duly_second_runs_last_hour", causes)
    yield family("duly_suppressed_copies_last_hour", [((one.task,), one.suppressed) for one in found])


def _drain(queue: QueueStatus) -> float | None:
    if not queue.rates_known:
        return None
    return math.inf if queue.drain is None else queue.drain.total_seconds()


def _full_in(queue: QueueStatus) -> float | None:
    return None if queue.full_in is None else queue.full_in.total_seconds()


def _wait_target(queue: QueueStatus) -> float | None:
    target = queue.pressure.wait_target
    return None if target is None else target.total_seconds()


def _max_depth(queue: QueueStatus) -> float | None:
    bound = queue.pressure.bound
    return None if bound is None else bound.max_depth


def _seconds(span: timedelta | None) -> float:
    return 0.0 if span is None else max(0.0, span.total_seconds())
