"""Turns: a flood of one tenant, a stream of urgent jobs, long jobs and a rate leave everybody else their share."""

import threading
from collections.abc import Sequence
from typing import Any

import pytest

from duly import App, Enqueued
from duly.core.control import LimitPolicy, TaskLimit, read_rate
from duly.core.job import JobId
from duly.core.lifecycle import Event, State
from duly.core.registration import QueuePolicy
from duly.testing.conformance import Bench
from duly.testing.conformance.bench import SECOND, ended
from duly.worker.embedded import Embedded
from duly.worker.options import WorkerOptions
from tests.scenarios.inside import final, record_of
from tests.waiting import wait_until

URGENT = 1
FAIR = QueuePolicy("default", fair=True)


def test_a_flood_of_one_tenant_delays_the_others_by_their_turn_only(bench: Bench) -> None:
    bench.declare(queues=[FAIR])
    worker = bench.worker()
    bench.put_many(1_000, tenant="a", fair=True)
    slots = bench.start(worker, 2, fair=True)
    bench.put(tenant="b", fair=True)
    bench.put_many(10, tenant="c", fair=True)

    order = ""
    while len(order) < 60:
        done = slots.pop(0)
        (job,) = bench.start(worker, 1, ends=[ended(done, Event.complete)], fair=True)
        slots.append(job)
        order += job.tenant

    assert order.index("b") < 4
    assert order.rindex("c") < 40
    assert order.count("c") == 10
    assert order[40:] == "a" * 20


@pytest.mark.parametrize("fair", [False, True])
def test_a_stream_of_urgent_jobs_starves_nobody(bench: Bench, fair: bool) -> None:
    bench.declare(queues=[QueuePolicy("default", fair=fair)])
    worker = bench.worker()
    low = bench.put(priority=100, tenant="t", fair=fair)
    order: list[JobId] = []

    # An urgent one every 40 ms, each runs for 50 ms, one slot: five come while four run.
    for number in range(120):
        bench.put_many(2 if number % 4 == 0 else 1, priority=URGENT, tenant="t", fair=fair)
        (job,) = bench.start(worker, 1, fair=fair)
        order.append(job.id)
        bench.clock.advance(SECOND / 20)
        bench.end(worker, ended(job, Event.complete))

    assert order.index(low) < 16
    assert bench.state(low) is State.completed
    # Of what came later, the most urgent goes first all the same.
    (later,) = bench.put_many(1, priority=URGENT - 1, tenant="t", fair=fair)
    assert later in bench.start_ids(worker, 2, fair=fair)


class Gate:
    """Long jobs wait at it; who has begun is noted."""

    def __init__(self, app: App) -> None:
        self.opened = threading.Event()
        self.begun: list[str] = []

        @app.task(queue="reports" if "reports" in app.queues else "default")
        def long() -> None:
            self.begun.append("long")
            assert self.opened.wait(60)

        @app.task(queue="mail" if "mail" in app.queues else "default")
        def short() -> None:
            self.begun.append("short")

        self.long, self.short = long, short


def _done(app: App, sent: Sequence[Enqueued[Any]]) -> bool:
    return final(app, [one.id for one in sent]) is not None


def test_nothing_waits_behind_a_long_job_while_another_worker_is_idle(url: str) -> None:
    apps = [App(url), App(url)]
    gates = [Gate(app) for app in apps]
    one_slot = WorkerOptions(threads=1, concurrency=1, isolated=1)

    with Embedded(apps[0], one_slot):
        sent = gates[0].long.enqueue()
        wait_until(lambda: gates[0].begun, what="the long one to begin")
        with Embedded(apps[1], one_slot):
            shorts = apps[0].enqueue_many(gates[0].short.draft() for _ in range(10))
            wait_until(lambda: _done(apps[0], shorts), what="the short ones")
            still = record_of(apps[0], sent.id).state
            gates[0].opened.set()
        wait_until(lambda: _done(apps[0], [sent]), what="the long one")

    assert still is State.running
    assert (gates[0].begun, gates[1].begun) == (["long"], ["short"] * 10)
    for app in apps:
        app.close()


def test_long_reports_leave_mail_the_slots_that_they_may_not_have(url: str) -> None:
    app = App(url)
    app.queue("mail")
    app.queue("reports", max_running=2)
    gate = Gate(app)
    reports = app.enqueue_many(gate.long.draft() for _ in range(10))

    with Embedded(app, WorkerOptions(threads=4, concurrency=1, isolated=1)):
        wait_until(lambda: gate.begun.count("long") == 2, what="two reports")
        mails = app.enqueue_many(gate.short.draft() for _ in range(5))
        wait_until(lambda: _done(app, mails), what="the mails")
        states = [record_of(app, one.id).state for one in reports]
        mail = next(row.counts for row in app.inspect.status().queues if row.counts.queue == "mail")
        gate.opened.set()
        wait_until(lambda: _done(app, reports), what="the reports")

    assert states.count(State.running) == 2
    assert (mail.ready, mail.running) == (0, 0)
    app.close()


def test_a_rate_shared_by_three_workers_lets_five_a_minute_start(bench: Bench, url: str) -> None:
    bench.declare(LimitPolicy("task:ok", rate=read_rate("5/min")), takes=[TaskLimit("ok", "task:ok")])
    ids = bench.put_many(30)
    workers = [bench.worker() for _ in range(3)]
    stores = [bench.store, bench.another(), bench.another()]
    starts: list[tuple[int, JobId]] = []

    for second in range(0, 600, 2):
        if second <= 180:
            ids.append(bench.put())
        if second % 60 == 30:
            # A worker is replaced, and with it all that it had in memory.
            bench.store.leases.retire(workers.pop(0))
            stores.append(bench.another())
            stores.pop(0)
            workers.append(bench.worker())
        for worker, store in zip(workers, stores, strict=True):
            for job in bench.start(worker, 10, store=store):
                starts.append((second, job.id))
                bench.end(worker, ended(job, Event.complete))
        bench.pass_time(2 * SECOND)

    moments = [second for second, _ in starts]
    assert max(sum(start <= other < start + 60 for other in moments) for start in moments) == 5
    assert len(starts) >= 48
    assert [id for _, id in starts] == ids[: len(starts)]
    assert {row.state for row in bench.store.inspection.lookup(ids[len(starts) :]) if row} <= {
        State.blocked,
        State.ready,
    }
