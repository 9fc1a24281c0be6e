"""Sessions that keep old snapshots while jobs flow through: does the queue slow down with every job that ran?

A reader in a repeatable-read transaction, an open transaction that has written, a logical slot that nobody reads, and
nothing of the kind to compare with.
"""

import contextlib
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bench.flatness import tasks
from bench.flatness.product import BATCH, Drained, Product, product
from bench.flatness.report import Report, ratio
from bench.flatness.server import Used
from tests.services import PostgresServer

PINS = {"none": 0.80, "reader": 0.80, "writer": 0.70, "slot": 0.80}
"""What is left behind, and the share of the first drain rate that the last must reach."""
_LATENCY = 1.5
_SLOT = "left_behind"
_PATIENCE = 5.0
_ENDED = "select true from duly.finished where id = %s"


@contextlib.contextmanager
def pinned(made: Product, kind: str) -> Iterator[None]:
    """Hold back this database's horizon in one of the ways people do by accident."""
    if kind == "none":
        yield
    elif kind == "slot":
        made.execute(f"select pg_create_logical_replication_slot('{_SLOT}', 'pgoutput')")
        try:
            yield
        finally:
            made.execute(f"select pg_drop_replication_slot('{_SLOT}')")
    else:
        made.execute("create table if not exists of_the_application (n int)")
        with made.connect() as connection:
            connection.execute("begin isolation level repeatable read")
            connection.execute("select count(*) from duly.job")
            if kind == "writer":
                connection.execute("insert into of_the_application values (1)")
            yield
            connection.execute("rollback")


@dataclass(frozen=True, slots=True)
class Single:
    """Single jobs, each awaited: from the call of enqueue until the row of its end is committed."""

    p50: float
    """Milliseconds."""
    used: Used
    jobs: int

    @property
    def us(self) -> float:
        return (self.used.server + self.used.worker) / self.jobs * 1e6


def singles(made: Product, count: int) -> Single:
    times = []
    meter = made.meter()
    noop = tasks.noop.using(app=made.app)
    assert made.worker is not None
    with made.connect() as connection:
        connection.execute("set enable_seqscan = off")
        before = meter.read()
        for number in range(count):
            began = time.perf_counter()
            ran = made.worker.counter.value
            id = int(noop.enqueue(number).id)
            # First on the page that the handler writes: asking the server would be work for the server.
            while made.worker.counter.value == ran and time.perf_counter() - began < _PATIENCE:
                time.sleep(0.0001)
            pause = 0.0001
            while connection.execute(_ENDED, (id,), prepare=True).fetchone() is None:
                time.sleep(pause)
                pause = min(1.2 * pause, 0.002)
            times.append((time.perf_counter() - began) * 1e3)
        after = meter.read()
    meter.close()
    return Single(statistics.median(times), after - before, count)


@dataclass(frozen=True, slots=True)
class Moment:
    """How fast it was after so many jobs."""

    flowed: int
    drained: Drained
    single: Single


def run(server: PostgresServer, report: Report, jobs: int, kinds: Sequence[str], probes: int) -> None:
    report.title(f"An old snapshot held while {jobs:,} jobs flow through")
    step = min(BATCH, max(1, jobs // 10))
    for kind in kinds:
        with product(server) as made:
            moments = _flow(made, kind, jobs, step, probes)
        report.saw(*(moment.drained.used for moment in moments))
        report.say(f"{kind}:\n")
        report.table(
            (
                "flowed",
                "drained jobs/s",
                "CPU us/job",
                "PostgreSQL",
                "worker",
                "WAL B/job",
                "single p50 ms",
                "single CPU us",
                "foreign",
            ),
            (_row(moment) for moment in moments),
        )
        _verdict(report, kind, moments[0], moments[-1])


def _flow(made: Product, kind: str, jobs: int, step: int, probes: int) -> list[Moment]:
    worker = made.start_worker()
    # Caches, plans and the first pages are no business of what follows.
    made.flow(step)
    moments = []
    flowed = 0
    marks = [int(jobs * part) for part in (0, 0.05, 0.2, 0.5, 1)]
    with pinned(made, kind):
        for mark in marks:
            while flowed < mark:
                some = min(step, mark - flowed)
                made.flow(some)
                flowed += some
            drained = made.drain(step)
            moments.append(Moment(flowed, drained, singles(made, probes)))
            flowed += step + probes
    assert worker.counter.value >= jobs
    return moments


def _row(moment: Moment) -> tuple[str, ...]:
    drained, single = moment.drained, moment.single
    return (
        f"{moment.flowed:,}",
        f"{drained.rate:,.0f}",
        f"{drained.us:.1f}",
        f"{drained.server_us:.1f}",
        f"{drained.worker_us:.1f}",
        f"{drained.wal:.0f}",
        f"{single.p50:.2f}",
        f"{single.us:.0f}",
        f"{drained.used.foreign:.0%}",
    )


def _verdict(report: Report, kind: str, first: Moment, last: Moment) -> None:
    if report.busy(first.drained.used, last.drained.used):
        pace, by = ratio(first.drained.us, last.drained.us), "by CPU per job"
    else:
        pace, by = ratio(last.drained.rate, first.drained.rate), "by the clock"
    report.target(f"{kind}: drain at the end / at the start ({by})", pace, PINS[kind], at_least=True)
    if report.busy(first.single.used, last.single.used):
        slower, by = ratio(last.single.us, first.single.us), "by CPU per job"
    else:
        slower, by = ratio(last.single.p50, first.single.p50), "by the clock"
    report.target(f"{kind}: one enqueue -> done at the end / at the start ({by})", slower, _LATENCY)
