"""A worker's figures in Prometheus' exposition format. Needs the extra `metrics`, imported at the first use.

Exposes only what metrics.py names, through `family`, which the collector over the store uses, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.metadata import version
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from duly.telemetry.metrics import ALL
from duly.telemetry.totals import BUCKETS, Counted, Times

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric as Family

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

Value = tuple[tuple[str, ...], float]
"""Label values in the order of the metric's labels, and the number."""


class WorkerFigures(Struct, frozen=True):
    """What one worker knows of itself."""

    supervisor: str
    counted: Counted
    """Since its start, by all its processes."""
    processes: dict[str, int]
    held: int
    exchange_age: float
    """Seconds."""
    ready: bool


def worker_exposition(figures: WorkerFigures) -> bytes:
    """The text that /metrics of a worker answers. ImportError without the extra."""
    return exposed(_families(figures))


def exposed(families: Iterable[Family]) -> bytes:
    """Families as text."""
    from prometheus_client import CollectorRegistry, generate_latest

    found = list(families)

    class Once:
        def collect(self) -> Iterator[Family]:
            yield from found

    registry = CollectorRegistry(auto_describe=False)
    registry.register(Once())
    return generate_latest(registry)


def family(name: str, values: Iterable[Value]) -> Family:
    """A counter, a gauge or an info of the table with its values. KeyError for a name that is not in it."""
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily

    metric = ALL[name]
    if metric.kind == "info":
        info = InfoMetricFamily(name, metric.help)
        for labels, _ in values:
            info.add_metric((), dict(zip(metric.labels, labels, strict=True)))
        return info
    made: CounterMetricFamily | GaugeMetricFamily
    made = (CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily)(
        name, metric.help, labels=metric.labels
    )
    for labels, value in values:
        made.add_metric(labels, value)
    return made


def histogram(name: str, values: Iterable[tuple[tuple[str, ...], Times]]) -> Family:
    """A histogram of the table."""
    from prometheus_client.core import HistogramMetricFamily

    metric = ALL[name]
    made = HistogramMetricFamily(name, metric.help, labels=metric.labels)
    bounds = [*(str(bound) for bound in BUCKETS), "+Inf"]
    for labels, times in values:
        made.add_metric(
            labels, [*zip(bounds, map(float, accumulate(times.counts)), strict=True)], times.seconds
        )
    return made


def _families(figures: WorkerFigures) -> Iterator[Family]:
    counted = figures.counted
    yield family("duly_worker_attempts", sorted(counted.outcomes.items()))
    yield histogram("duly_worker_attempt_seconds", sorted(counted.times.items(), key=lambda item: item[0]))
    yield family("duly_worker_dead", sorted(counted.dead.items()))
    yield family("duly_worker_events", [((name,), number) for name, number in sorted(counted.events.items())])
    yield family("duly_worker_processes", [((state,), n) for state, n in sorted(figures.processes.items())])
    yield family("duly_worker_held_jobs", [((), figures.held)])
    yield family("duly_worker_exchange_age_seconds", [((), figures.exchange_age)])
    yield family("duly_worker_ready", [((), float(figures.ready))])
    yield family("duly_worker", [((figures.supervisor, version("duly")), 1.0)])
