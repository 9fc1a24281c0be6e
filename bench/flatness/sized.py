"""Millions of jobs kept, scheduled and waiting: do the hot statements, and the questions of people, stay as quick?

Two databases of one server, empty and full, take turns, so that both see the same noise.
"""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from bench.flatness import tasks
from bench.flatness.filling import fill
from bench.flatness.product import Product, product
from bench.flatness.report import Report, ratio
from bench.flatness.server import Used
from duly.core.durations import format_duration
from duly.core.filters import Filter
from duly.core.job import ClaimRequest, Counters, Ended, QueueClaim, WorkerInfo
from duly.core.lifecycle import Event, State
from tests.services import PostgresServer

_WITHIN = 1.2
_ANSWER_MS = 200.0
_ASKED = 15


@dataclass(frozen=True, slots=True)
class Sizes:
    finished: int
    scheduled: int
    ready: int
    one: int = 1_000
    """Jobs per slice of W1; W2 and W3 take 20 times as many, the exchange 5 times."""
    rounds: int = 5


def run(server: PostgresServer, report: Report, sizes: Sizes) -> None:
    report.title(
        f"{sizes.finished:,} finished jobs kept, {sizes.scheduled:,} scheduled and {sizes.ready:,} ready, beside none"
    )
    with product(server) as empty, product(server) as full:
        took = fill(
            full,
            finished=sizes.finished,
            scheduled=sizes.scheduled,
            ready=sizes.ready,
            age=timedelta(hours=12),
        )
        full.stop_worker()
        full.app.operate.resume("default", reason="filled")
        report.say(f"filled in {format_duration(timedelta(seconds=round(took)))}, {_size(full)} on disk\n")
        _questions(report, full)
        _workloads(report, empty, full, sizes)


def _size(made: Product) -> str:
    return str(made.execute("select pg_size_pretty(pg_database_size(current_database()))")[0][0])


def _questions(report: Report, full: Product) -> None:
    """`status`, `jobs` and `job ID` as the CLI and the dashboard ask them."""
    inspect = full.app.inspect
    newest = inspect.jobs(limit=1).jobs[0].id
    middle = newest // 2
    asked: dict[str, Callable[[], object]] = {
        "status": inspect.status,
        "queue default": lambda: inspect.queue("default"),
        "jobs": inspect.jobs,
        **{
            f"jobs --state {state}": lambda state=state: inspect.jobs(Filter(state=state))
            for state in (State.ready, State.scheduled, State.completed, State.running, State.dead)
        },
        "jobs --queue default --task noop": lambda: inspect.jobs(Filter(queue="default", task="noop")),
        "jobs --before": lambda: inspect.jobs(before=middle),
        "dead groups": inspect.dead_groups,
        "job ID": lambda: inspect.job(middle),
        "job ID (newest)": lambda: inspect.job(newest),
    }
    rows = []
    slowest = ("", 0.0)
    for name, ask in asked.items():
        times = []
        for _ in range(_ASKED):
            began = time.perf_counter()
            ask()
            times.append((time.perf_counter() - began) * 1e3)
        middle_time = statistics.median(times)
        slowest = max(slowest, (name, middle_time), key=lambda one: one[1])
        rows.append((name, f"{min(times):.1f}", f"{middle_time:.1f}", f"{max(times):.1f}"))
    report.table(("question", "quickest ms", "median", "slowest"), rows)
    report.target(f"the slowest question, {slowest[0]}, in the median", slowest[1], _ANSWER_MS, " ms")


@dataclass(frozen=True, slots=True)
class Slice:
    jobs: int
    used: Used

    @property
    def us(self) -> float:
        return (self.used.server + self.used.worker) / self.jobs * 1e6


def _workloads(report: Report, empty: Product, full: Product, sizes: Sizes) -> None:
    workloads: dict[str, Callable[[Product], Slice]] = {
        "W1 one enqueue per call": lambda made: _one(made, sizes.one),
        "W2 bulk": lambda made: _bulk(made, 20 * sizes.one),
        "exchange of 500": lambda made: _exchange(made, 5 * sizes.one, 500),
        "exchange of 1": lambda made: _exchange(made, sizes.one // 2, 1),
        "W3 drain": lambda made: _drain(made, full, 20 * sizes.one),
    }
    rows, verdicts = [], []
    for name, workload in workloads.items():
        with_both = [(workload(empty), workload(full)) for _ in range(sizes.rounds)]
        # Those of one round met the same noise; the first still fills caches.
        told = with_both[1:] or with_both
        report.saw(*(one.used for pair in told for one in pair))
        costs = [statistics.median(pair[place].us for pair in told) for place in (0, 1)]
        wal = [
            statistics.median(pair[place].used.wal / pair[place].jobs for pair in told) for place in (0, 1)
        ]
        share = statistics.median(ratio(b.us, a.us) for a, b in told)
        rows.append(
            (name, f"{costs[0]:.1f}", f"{costs[1]:.1f}", f"{share:.2f}", f"{wal[0]:.0f}", f"{wal[1]:.0f}")
        )
        verdicts.append((name, share))
    report.table(("workload", "empty CPU us/job", "full", "full / empty", "empty WAL B/job", "full"), rows)
    for name, share in verdicts:
        report.target(f"{name}: CPU full / empty", share, _WITHIN)


def _one(made: Product, count: int) -> Slice:
    noop = tasks.noop.using(app=made.app)
    return _measured(made, count, lambda: [noop.enqueue(number) for number in range(count)])


def _bulk(made: Product, count: int) -> Slice:
    return _measured(made, count, lambda: made.enqueue(count))


def _exchange(made: Product, count: int, most: int) -> Slice:
    """The store's own call, fused as a worker makes it: complete these and claim those."""
    store = made.app.store
    names = {"noop": timedelta(minutes=15)}
    me = store.leases.register(
        WorkerInfo(
            "bench", 1, "bench:1", ("default",), names, timedelta(minutes=5), timedelta(seconds=5), most, "0"
        )
    )
    made.enqueue(count + most)
    request = ClaimRequest((QueueClaim("default", most),), most)

    def exchange() -> None:
        ends: Sequence[Ended] = ()
        done = 0
        while done < count:
            claimed = store.jobs.exchange(me, ends, request).claimed
            done += len(ends)
            ends = [
                Ended(job.id, job.run, Event.complete, State.completed, Counters(), elapsed=timedelta(0))
                for job in claimed
            ]
        store.jobs.exchange(me, ends, None)

    found = _measured(made, count, exchange)
    store.leases.disown(me, (), "bench", 3)
    return found


def _drain(made: Product, full: Product, count: int) -> Slice:
    """By a real worker. The full one takes from what waits there; what the other workloads left is drained first."""
    made.start_worker()
    backlog = made is full
    if not backlog:
        made.worker_catches_up()
    drained = made.drain(count, backlog=backlog)
    made.stop_worker()
    return Slice(drained.jobs, drained.used)


def _measured(made: Product, count: int, act: Callable[[], object]) -> Slice:
    meter = made.meter()
    before = meter.read()
    act()
    after = meter.read()
    meter.close()
    return Slice(count, after - before)
