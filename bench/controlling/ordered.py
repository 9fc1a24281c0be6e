"""One ordering key with many jobs, and many with some: how fast does a worker run them, one after another of each?"""

import statistics
import time

from bench.controlling.place import QUEUE, Make, Place
from bench.controlling.report import Report, number
from duly.core.job import NewJob
from tests.services import PostgresServer

LEAST = 5_000.0
KEYS = 1_000


def run(store: str, make: Make, server: PostgresServer | None, report: Report, jobs: int, turns: int) -> None:
    rates: dict[str, list[float]] = {"plain": [], "one key": [], "many keys": []}
    watched = report.watch(server)
    for _ in range(turns):
        for kind, found in rates.items():
            with make() as place:
                found.append(_drain(place, kind, jobs))
    report.saw(watched)
    plain, one, many = (statistics.median(found) for found in rates.values())
    what = "drain of one ordering key, jobs/s, beside jobs without one"
    report.row(store, what, (number(plain), number(one)), one, LEAST, "/s", at_least=True)
    what = f"drain of {KEYS:,} ordering keys, jobs/s, beside jobs without one"
    report.row(store, what, (number(plain), number(many)), many, None, "/s")


def _drain(place: Place, kind: str, jobs: int) -> float:
    """Jobs a second, without the first tenth."""
    place.store.operator.pause("queue:default", None, "bench", "measuring")
    if kind == "plain":
        place.put(lambda _: NewJob(QUEUE, "noop", b'{"x":1}'), jobs)
    else:
        keys = 1 if kind == "one key" else KEYS
        place.put(lambda number: _of(str(number % keys)), jobs)
    with place.worker() as worker:
        place.store.operator.resume("queue:default", "bench", "measuring")
        worker.until(jobs // 10)
        first, began = worker.counter.value, time.monotonic()
        worker.until(jobs)
        return (jobs - first) / (time.monotonic() - began)


def _of(key: str) -> NewJob:
    return NewJob(QUEUE, "ordered", b'{"key":"%s"}' % key.encode(), ordering_key=key)
