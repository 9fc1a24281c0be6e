"""One ordering key with many jobs: how fast does a worker run them, one after another?"""

import statistics
import time

from bench.controlling.place import QUEUE, Make, Place
from bench.controlling.report import Report, number
from duly.core.job import NewJob
from tests.services import PostgresServer

LEAST = 5_000.0


def run(store: str, make: Make, server: PostgresServer | None, report: Report, jobs: int, turns: int) -> None:
    rates: dict[str, list[float]] = {"plain": [], "ordered": []}
    watched = report.watch(server)
    for _ in range(turns):
        for kind, found in rates.items():
            with make() as place:
                found.append(_drain(place, kind, jobs))
    report.saw(watched)
    plain, ordered = (statistics.median(rates[kind]) for kind in ("plain", "ordered"))
    report.row(
        store,
        "drain of one ordering key, jobs/s, beside jobs without one",
        (number(plain), number(ordered)),
        ordered,
        LEAST,
        "/s",
        at_least=True,
    )


def _drain(place: Place, kind: str, jobs: int) -> float:
    """Jobs a second, without the first tenth."""
    place.store.operator.pause("queue:default", None, "bench", "measuring")
    if kind == "plain":
        place.put(lambda _: NewJob(QUEUE, "noop", b'{"x":1}'), jobs)
    else:
        place.put(lambda _: NewJob(QUEUE, "ordered", b'{"key":"one"}', ordering_key="one"), jobs)
    with place.worker() as worker:
        place.store.operator.resume("queue:default", "bench", "measuring")
        worker.until(jobs // 10)
        first, began = worker.counter.value, time.monotonic()
        worker.until(jobs)
        return (jobs - first) / (time.monotonic() - began)
