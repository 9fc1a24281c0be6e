"""Leases as the stores keep them: waiting is no lease, a former holder changes nothing, nobody is stranded."""

import itertools
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from functools import partial
from pathlib import Path

import psycopg
import pytest

from duly import App, UsageError
from duly.core.job import ClaimedJob, Counters, Incarnation, JobId
from duly.core.leases import Beat, Watch
from duly.core.lifecycle import Event, State
from duly.testing.conformance import Bench
from duly.testing.conformance.bench import (
    DAY,
    HOUR,
    LEASE,
    MINUTE,
    POISON,
    SECOND,
    SWEEP_EVERY,
    ended,
    together,
)
from duly.worker.options import WorkerOptions, plan


@pytest.mark.parametrize(
    ("lease", "delay", "step"), [(2 * SECOND, 5 * SECOND, SECOND), (30 * SECOND, 6 * HOUR, 10 * MINUTE)]
)
def test_a_delay_longer_than_the_lease_is_waited_for_once(
    bench: Bench, lease: timedelta, delay: timedelta, step: timedelta
) -> None:
    workers = [bench.worker("mail", lease=lease) for _ in range(2)]
    start = bench.clock()
    id = bench.put("mail", delay=delay, args=b'{"n":1}')
    got: list[ClaimedJob] = []

    while bench.clock() < start + delay + 3 * step:
        bench.clock.advance(step)
        bench.store.leases.beat(workers)
        bench.store.upkeep.promote()
        bench.store.upkeep.sweep(HOUR, POISON, timedelta(0))
        for worker in workers:
            claimed = bench.claim(worker, 10)
            got += claimed
            assert all(bench.clock() >= start + delay for _ in claimed)

    assert [(job.id, job.run, job.attempt) for job in got] == [(id, 1, 1)]
    assert got[0].claimed_at == start + delay


def test_no_order_of_clean_up_reap_and_sweep_strands_a_job(bench: Bench) -> None:
    def forget(worker: Incarnation, _: Beat) -> None:
        bench.database.forget_worker(worker)

    def reap(_: Incarnation, seen: Beat) -> None:
        bench.store.leases.reap([seen], POISON)

    def sweep(_: Incarnation, __: Beat) -> None:
        bench.sweep()

    acts: list[Callable[[Incarnation, Beat], None]] = [forget, reap, sweep]
    for order in itertools.permutations(acts):
        id = bench.put()
        dead = bench.worker()
        bench.claim_one(dead)
        seen = bench.beat_of(dead)

        for act in order:
            act(dead, seen)
        bench.sweep()

        assert bench.row(id).counters == Counters(lost=1), order
        heir = bench.worker()
        again = bench.claim_one(heir, suspects=True)
        assert bench.end(heir, ended(again, Event.complete)) == {(id, 2)}


def test_a_claim_without_a_deadline_is_impossible(bench: Bench, url: str) -> None:
    worker = bench.worker()
    id = bench.put()
    bench.claim_one(worker)

    with pytest.raises((sqlite3.IntegrityError, psycopg.errors.NotNullViolation)):
        execute(url, "update {claimed} set deadline = null")

    assert bench.row(id).deadline is not None


def test_a_deadline_of_the_far_future_keeps_no_job_of_a_dead_worker(bench: Bench, url: str) -> None:
    far = "253370764800000000" if url.startswith("sqlite") else "'9999-01-01 00:00:00+00'"
    dead, gone = bench.worker(), bench.worker()
    ids = bench.put_many(2)
    bench.claim_one(dead)
    bench.claim_one(gone)
    execute(url, "update {claimed} set deadline = " + far)
    bench.database.forget_worker(gone)

    swept = bench.sweep()
    reaped = bench.reap(dead)

    assert (swept.orphans, reaped) == (1, 1)
    assert [bench.row(id).counters for id in ids] == [Counters(lost=1)] * 2
    assert bench.row(ids[0]).deadline is None


def execute(url: str, statement: str) -> None:
    """Damage that only SQL can do."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)) as connection:
            connection.execute(statement.format(claimed="duly_claimed"))
    else:
        with psycopg.connect(url, autocommit=True) as server:
            server.execute(statement.format(claimed="duly.claimed").encode())


def test_jobs_of_a_lapsed_lease_are_recovered_once_and_claimed_once(bench: Bench) -> None:
    dead = [bench.worker() for _ in range(20)]
    ids = bench.put_many(200)
    for worker in dead:
        bench.claim(worker, 10)
    seen = bench.store.leases.beats()
    stores = [bench.another() for _ in range(8)]
    bench.clock.advance(SWEEP_EVERY)

    def recover(number: int) -> int:
        moved = stores[number].leases.reap(seen, POISON)
        return moved + stores[number].upkeep.sweep(HOUR, POISON, timedelta(0)).orphans

    moved = together(*(partial(recover, number) for number in range(8)))
    left = bench.store.leases.reap(seen, POISON)
    claimers = [bench.worker() for _ in range(8)]
    taken: list[list[JobId]] = together(
        *(partial(all_suspects, bench, number, claimers[number]) for number in range(8))
    )

    assert sum(moved) + left == 200
    assert all([attempt.event for attempt in bench.history(id)] == [Event.lose] for id in ids)
    assert {bench.row(id).counters.lost for id in ids} == {1}
    late = [job.id for job in bench.claim(claimers[0], 200, suspects=True)]
    assert sorted([id for share in taken for id in share] + late) == ids


def all_suspects(bench: Bench, number: int, worker: Incarnation) -> list[JobId]:
    store = bench.another()
    taken: list[JobId] = []
    while claimed := bench.claim(worker, 5, suspects=True, store=store):
        assert [job.attempt for job in claimed] == [2] * len(claimed)
        taken += [job.id for job in claimed]
    return taken


def test_a_late_word_of_the_former_holder_is_refused_and_the_holders_counts(bench: Bench) -> None:
    former, holder = bench.worker(lease=10 * SECOND), bench.worker(lease=10 * SECOND)
    id = bench.put(attempts=2)
    stale = bench.claim_one(former)
    bench.clock.advance(11 * SECOND)
    bench.store.leases.beat([holder])
    bench.reap(former)
    live = bench.claim_one(holder, suspects=True)
    before = bench.picture(id)

    for event, to in [
        (Event.complete, State.completed),
        (Event.fail, State.scheduled),
        (Event.snooze, State.scheduled),
        (Event.bury, State.dead),
        (Event.interrupt, State.ready),
    ]:
        assert bench.end(former, ended(stale, event, to)) == frozenset(), event
    assert not bench.store.jobs.extend(former, id, stale.run, HOUR)
    # The token decides: neither the job's id with the live run nor the worker with another run will do.
    assert bench.end(former, ended(live, Event.complete)) == frozenset()
    assert bench.end(holder, ended(stale, Event.complete)) == frozenset()

    assert bench.picture(id) == before
    assert (live.run, live.attempt) == (2, 2)
    assert bench.end(holder, ended(live, Event.complete)) == {(id, 2)}
    assert bench.state(id) is State.completed
    assert [attempt.event for attempt in bench.history(id)] == [Event.lose, Event.complete]


def test_a_healthy_job_is_never_taken_back_for_its_age(bench: Bench) -> None:
    worker = bench.worker(timeout=30 * DAY)
    id = bench.put()
    claimed = bench.claim_one(worker)
    seen = bench.beat_of(worker)

    for _ in range(40):
        bench.clock.advance(LEASE)
        bench.store.leases.beat([worker])
        # A reaper that acts on what it saw before the beat finds the beat has moved.
        assert bench.store.leases.reap([seen], POISON) == 0
        assert bench.sweep().overdue == 0

    assert bench.end(worker, ended(claimed, Event.complete)) == {(id, 1)}
    assert bench.history(id) == []


@pytest.mark.parametrize(
    ("lease", "heartbeat", "fits"), [(30, 5, True), (9, 3, True), (8, 3, False), (1, 1, False)]
)
def test_a_lease_that_two_late_heartbeats_could_end_is_refused_with_the_fix(
    tmp_path: Path, lease: int, heartbeat: int, fits: bool
) -> None:
    app = App(f"sqlite:///{tmp_path / 'jobs.db'}")
    options = WorkerOptions(lease=lease * SECOND, heartbeat=heartbeat * SECOND)

    if fits:
        assert plan(options, app.settings, []).lease == lease
    else:
        with pytest.raises(UsageError, match=f"write a lease of '{3 * heartbeat}s' or more"):
            plan(options, app.settings, [])


def test_a_job_longer_than_its_lease_is_never_dead_while_its_worker_beats(bench: Bench) -> None:
    worker, other = bench.worker(lease=9 * SECOND), bench.worker(lease=9 * SECOND)
    id = bench.put(attempts=1, timeout=300 * SECOND)
    claimed = bench.claim_one(worker)
    watch = Watch()

    for second in range(0, 120, 3):
        overdue = watch.overdue(bench.store.leases.beats(), float(second), 9.0)
        assert bench.store.leases.reap(overdue, POISON) == 0
        bench.store.upkeep.sweep(HOUR, POISON, timedelta(0))
        assert bench.claim(other, 1) == bench.claim(other, 1, suspects=True) == ()
        bench.store.leases.beat([worker, other])
        bench.clock.advance(3 * SECOND)

    assert bench.end(worker, ended(claimed, Event.complete)) == {(id, 1)}
    assert bench.state(id) is State.completed
