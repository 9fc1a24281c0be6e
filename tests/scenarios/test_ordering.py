"""Ordering keys: nobody overtakes the first of its key, no key stops another, a key ends with its holder's token."""

import os
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from duly import App
from duly.core.job import ClaimedJob, ClaimRequest, Incarnation, JobId, NewJob, QueueClaim
from duly.core.lifecycle import Event, State
from duly.core.registration import QueuePolicy
from duly.stores.protocol import Store
from duly.testing.conformance import Bench
from duly.testing.conformance.bench import DAY, HOUR, POISON, SECOND, ended, new_job, together
from tests.e2e.chores_app import hold_alone
from tests.e2e.workers import Place, a_place
from tests.scenarios.crowd import register
from tests.scenarios.inside import record_of
from tests.waiting import wait_until

BACKOFF = 30 * SECOND
MANY = 60
CROWD = 12


@pytest.fixture
def place(url: str, tmp_path: Path) -> Iterator[Place]:
    with a_place(url, tmp_path) as made:
        yield made


def test_nothing_overtakes_a_head_that_fails_and_other_keys_go_on(bench: Bench) -> None:
    workers = [bench.worker(), bench.worker()]
    keys = ("acct1", "acct1", "acct1", "acct2")
    ids = bench.put_all([new_job(ordering_key=key) for key in keys])
    order: list[JobId] = []
    held: dict[Incarnation, list[ClaimedJob]] = {worker: [] for worker in workers}

    for _ in range(40):
        for worker in workers:
            ends = [
                ended(job, Event.fail, delay=BACKOFF)
                if job.id == ids[0] and job.counters.failed < 2
                else ended(job, Event.complete)
                for job in held[worker]
            ]
            held[worker] = bench.start(worker, 10, ends=ends)
            order += [job.id for job in held[worker]]
            running = Counter(job.ordering_key for jobs in held.values() for job in jobs)
            assert max(running.values(), default=0) <= 1
        bench.pass_time(5 * SECOND)

    assert order.index(ids[3]) <= 1
    assert [id for id in order if id != ids[3]] == [ids[0], ids[0], *ids[:3]]
    assert bench.states(ids) == [State.completed] * 4


def test_a_busy_key_with_thousands_behind_it_hides_no_other_key(bench: Bench) -> None:
    worker = bench.worker()
    hot = bench.put_many(5_001, ordering_key="hot")
    assert bench.start_ids(worker, 1) == hot[:1]
    cool = bench.put_all([new_job(ordering_key=f"cool-{n}") for n in range(20)])

    claimed = [job.id for _ in range(2) for job in bench.start(worker, 10)]

    assert claimed == cool
    # Those of the hot key were set aside once: the next claim does not meet them again.
    request = ClaimRequest((QueueClaim("default", 10),), 10)
    before = bench.put()
    assert [job.id for job in bench.store.jobs.exchange(worker, [], request).claimed] == [before]
    assert bench.states(hot[1:]) == [State.blocked] * 5_000


def test_a_job_for_tomorrow_keeps_its_key_and_says_so(jobs: App) -> None:
    @jobs.task(name="ok", ordering_key="k")  # the one task that the crowd knows
    def step(n: int) -> None: ...

    tomorrow = step.using(delay=DAY).enqueue(1)
    today = step.enqueue(2)
    worker = register(jobs.store)
    request = ClaimRequest((QueueClaim("default", 10),), 10)

    assert jobs.store.jobs.exchange(worker, [], request).claimed == ()
    why = jobs.inspect.why(today.id)

    assert record_of(jobs, today.id).state is State.blocked
    (reason,) = [reason for reason in why.reasons if reason.kind == "key"]
    assert str(tomorrow.id) in reason.text
    jobs.operate.run_now(tomorrow.id)
    assert [job.id for job in jobs.store.jobs.exchange(worker, [], request).claimed] == [tomorrow.id]


def test_a_crowd_of_workers_on_one_key_runs_one_at_a_time(bench: Bench) -> None:
    ids = bench.put_many(MANY, ordering_key="k")
    guard = threading.Lock()
    order: list[JobId] = []
    inside: set[JobId] = set()

    def work(store: Store) -> None:
        worker = bench.worker(store=store)
        finished = threading.Event()
        while not finished.is_set():
            for job in bench.start(worker, 1, store=store):
                with guard:
                    assert not inside, f"{job.id} runs beside {inside}"
                    inside.add(job.id)
                    order.append(job.id)
                with guard:
                    inside.remove(job.id)
                store.jobs.exchange(worker, [ended(job, Event.complete)], None)
            with guard:
                if len(order) == MANY:
                    finished.set()
            # Who came too late for the key looks again in some milliseconds.
            bench.clock.advance("10ms")

    together(*(partial(work, bench.another()) for _ in range(CROWD)))

    assert order == ids
    assert bench.states(ids) == [State.completed] * MANY


def kill_all(place: Place) -> None:
    for row in place.workers():
        os.kill(row.pid, signal.SIGKILL)


@pytest.mark.process
def test_a_killed_holder_of_a_key_runs_again_before_the_one_behind_it(place: Place) -> None:
    job = NewJob("default", "hold", b"{}", ordering_key="k")
    first, second = (stored.id for stored in place.store.jobs.enqueue([job, job]))
    place.start()
    place.wait_started(first)
    wait_until(lambda: place.job(second).state is State.blocked, what="the second to wait")

    kill_all(place)
    place.wait_started(first, attempt=2)
    behind = place.job(second)
    place.release()
    records = place.wait_final([first, second])

    assert (behind.state, behind.run) == (State.blocked, 0)
    assert [record.state for record in records] == [State.completed] * 2
    assert [record.counters.lost for record in records] == [1, 0]
    assert [line.id for line in place.ledger("started")] == [first, first, second]
    assert [line.id for line in place.ledger("ended")] == [first, second]


@pytest.mark.process
def test_a_killed_holder_of_a_limit_keeps_it_from_nobody(place: Place) -> None:
    first, second = place.enqueue(hold_alone, 2)
    place.start()
    place.wait_started(first)
    wait_until(lambda: place.job(second).state is State.blocked, what="the second to wait")

    kill_all(place)
    place.release()
    records = place.wait_final([first, second])

    assert [record.state for record in records] == [State.completed] * 2
    assert [record.counters.lost for record in records] == [1, 0]
    # One at a time: whoever began after the kill has ended before the other began.
    lines = [line for line in place.ledger() if line not in place.ledger("started")[:1]]
    assert [line.what for line in lines] == ["started", "ended"] * 2
    assert [line.id for line in lines[::2]] == [line.id for line in lines[1::2]]
    assert [limit.running for limit in place.store.control.limits(["task:hold_alone"])] == [0]


@pytest.mark.process
def test_a_job_cut_by_a_stop_leaves_nothing_of_its_limit_behind(place: Place) -> None:
    first = place.enqueue_one(hold_alone)
    worker = place.start(grace=0.2)
    place.wait_started(first)

    assert worker.stop() == 0
    second = place.enqueue_one(hold_alone)
    cut = place.job(first)
    place.release()
    # A lease far beyond the test: nothing is waited for that a former worker holds.
    place.start(lease=600.0, heartbeat=1.0)
    records = place.wait_final([first, second])

    assert (cut.state, cut.counters.interrupted) in {(State.ready, 1), (State.blocked, 1)}
    assert [record.state for record in records] == [State.completed] * 2
    assert [limit.running for limit in place.store.control.limits(["task:hold_alone"])] == [0]


@pytest.mark.parametrize("priorities", [(100,), (100, 5, 50)])
def test_jobs_of_one_moment_run_in_the_order_of_their_enqueue(
    bench: Bench, priorities: tuple[int, ...]
) -> None:
    said = [priorities[n % len(priorities)] for n in range(1_000)]
    ids = bench.put_all([new_job(priority=priority) for priority in said])
    worker = bench.worker()

    claimed = [job for _ in range(100) for job in bench.claim(worker, 10)]

    assert sorted(job.id for job in claimed) == ids
    for priority in priorities:
        own = [id for id, chosen in zip(ids, said, strict=True) if chosen == priority]
        assert [job.id for job in claimed if said[ids.index(job.id)] == priority] == own
    listed = [row.id for row in bench.store.inspection.lookup(ids) if row is not None]
    assert listed == ids
    assert len({row.enqueued_at for row in bench.store.inspection.lookup(ids) if row is not None}) == 1


def test_a_redrive_and_a_run_now_pass_nobody_of_their_key(bench: Bench) -> None:
    bench.declare(queues=[QueuePolicy("default", ordering="skip_dead")])
    ids = bench.put_many(2, ordering_key="k")
    worker, other = bench.worker(), bench.worker()
    for id in ids:
        (job,) = bench.start(worker, 10)
        assert job.id == id
        bench.end(worker, ended(job, Event.bury))
    delayed = bench.put(ordering_key="k", delay=HOUR)

    assert bench.store.operator.redrive(list(reversed(ids)), "ada", "fixed")
    assert bench.store.operator.run_now([delayed], "ada", "now") == [delayed]
    order: list[JobId] = []
    while started := [(at, job) for at in (worker, other) for job in bench.start(at, 10)]:
        assert len(started) == 1, f"{started} run at once"
        ((at, job),) = started
        order.append(job.id)
        bench.end(at, ended(job, Event.complete))

    assert order == [*ids, delayed]


def test_a_key_ends_with_the_token_of_its_holder_and_never_by_age(bench: Bench) -> None:
    short = 2 * SECOND
    holder, other = bench.worker(lease=short), bench.worker(lease=HOUR)
    first, second = bench.put_many(2, ordering_key="k")
    (job,) = bench.start(holder, 10)

    for _ in range(9):
        bench.clock.advance(SECOND)
        bench.store.leases.beat([holder, other])
        bench.store.upkeep.sweep(HOUR, POISON, SECOND)
        assert bench.start_ids(other) == []
    bench.reap(holder)
    (again,) = bench.start(other, 10, suspects=True)
    late = bench.store.jobs.exchange(holder, [ended(job, Event.complete)], None)

    assert (job.id, again.id, again.attempt) == (first, first, 2)
    assert late.acked == frozenset()
    assert bench.start_ids(bench.worker()) == []
    assert bench.start_ids(other, ends=[ended(again, Event.complete)]) == [second]
