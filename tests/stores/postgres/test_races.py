"""Races that only a database with many writers has: reaping beside a claim, open transactions, deadlocks."""

import threading
from datetime import timedelta
from functools import partial
from typing import Any

import psycopg
import pytest

from duly.core.filters import Filter
from duly.core.job import ClaimedJob, JobId, NewJob
from duly.core.lifecycle import Event, State
from duly.stores.postgres.store import PostgresStore
from tests.services import PostgresServer
from tests.stores.postgres.acts import claim, ended, put, request, states, together, worker
from tests.stores.postgres.conftest import Open
from tests.waiting import wait_until

POISON = 3
MINUTE = timedelta(minutes=1)


def waits_for_lock(connection: psycopg.Connection[tuple[int]], of: str, by: int = 1) -> bool:
    """Whether as many sessions of this database as `by` wait for a lock while they run a statement that names `of`."""
    row = connection.execute(
        "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' "
        "and query like %s",
        (f"%{of}%",),
    ).fetchone()
    return row is not None and row[0] >= by


def test_a_claim_that_commits_between_the_reapers_two_looks_is_taken_back(
    store: PostgresStore, url: str
) -> None:
    me = worker(store)
    (id,) = put(store)
    late = put(store)[0]
    claim(store, me)
    with psycopg.connect(url, autocommit=True) as gate, psycopg.connect(url, autocommit=True) as watcher:
        # Holds the reaper right behind its first statement: its snapshot is older than what commits meanwhile.
        gate.execute("select pg_advisory_lock(7)")
        gate.execute(
            "create function wait_at_gate() returns trigger language plpgsql as "
            "$$ begin perform pg_advisory_xact_lock_shared(7); return null; end $$"
        )
        gate.execute(
            "create trigger gate after delete on duly.worker for each statement execute function wait_at_gate()"
        )
        beats = store.leases.beats()
        reaper = threading.Thread(target=store.leases.reap, args=(beats, POISON))
        reaper.start()
        wait_until(lambda: waits_for_lock(watcher, "reap_1"), what="the reaper stands at the gate")
        gate.execute(
            "with gone as (delete from duly.ready where id = %s returning *) insert into duly.claimed "
            "(incarnation, id, queue, task, claimed_at, deadline, run, priority, failed, lost, interrupted, snoozed) "
            "select %s, id, queue, task, clock_timestamp(), clock_timestamp(), 1, priority, 0, 0, 0, 0 from gone",
            (late, me),
        )
        gate.execute("select pg_advisory_unlock(7)")
        reaper.join()

    assert states(store, [id, late]) == [State.ready, State.ready]


def test_claims_and_reaps_at_once_leave_no_claim_without_a_worker(store: PostgresStore, url: str) -> None:
    put(store, 200)
    for _ in range(15):
        me = worker(store)
        beats = [beat for beat in store.leases.beats() if beat.incarnation == me]
        together(partial(store.jobs.exchange, me, (), request(5)), partial(store.leases.reap, beats, POISON))
        store.leases.reap([beat for beat in store.leases.beats() if beat.incarnation == me], POISON)

    with psycopg.connect(url) as connection:
        orphans = connection.execute(
            "select count(*) from duly.claimed c where not exists "
            "(select 1 from duly.worker w where w.incarnation = c.incarnation)"
        ).fetchone()
    assert orphans == (0,)


def test_a_callers_open_completion_does_not_hold_up_the_reaper(store: PostgresStore, url: str) -> None:
    me = worker(store)
    first, second = put(store, 2)
    done, _ = claim(store, me, 2)
    with psycopg.connect(url) as connection:
        assert store.complete_on(connection, me, ended(done))

        moved = store.leases.reap(store.leases.beats(), POISON)

        assert moved == 1
        assert states(store, [first, second]) == [State.running, State.ready]
        connection.commit()
    assert states(store, [first, second]) == [State.completed, State.ready]


def test_a_completion_rolled_back_after_the_reap_comes_back_with_the_sweep(
    store: PostgresStore, url: str
) -> None:
    me = worker(store)
    (id,) = put(store)
    (job,) = claim(store, me)
    with psycopg.connect(url) as connection:
        store.complete_on(connection, me, ended(job))
        store.leases.reap(store.leases.beats(), POISON)
        connection.rollback()
    assert states(store, [id]) == [State.running]

    assert store.upkeep.sweep(MINUTE, POISON, MINUTE).orphans == 1

    assert states(store, [id]) == [State.ready]


def test_an_end_beside_an_extension_of_the_same_attempt_is_applied(store: PostgresStore, url: str) -> None:
    me = worker(store)
    put(store)
    (job,) = claim(store, me)
    acked: list[object] = []
    with psycopg.connect(url) as extending, psycopg.connect(url, autocommit=True) as watcher:
        extending.execute("select duly.extend_1(%s, %s, %s, 60, null)", (me, job.id, job.run))
        ending = threading.Thread(
            target=lambda: acked.append(store.jobs.exchange(me, [ended(job)], None).acked)
        )
        ending.start()
        # It has chosen the row as it was, and finds it moved when the extension commits.
        wait_until(lambda: waits_for_lock(watcher, "exchange_3"), what="the end waits for the extension")
        extending.commit()
        ending.join()

    assert acked == [{(job.id, job.run)}]
    assert states(store, [job.id]) == [State.completed]


def test_a_completion_that_another_call_makes_meanwhile_is_acknowledged(
    store: PostgresStore, url: str
) -> None:
    me = worker(store)
    put(store)
    (job,) = claim(store, me)
    acked: list[object] = []
    with psycopg.connect(url) as gate, psycopg.connect(url, autocommit=True) as watcher:
        # Both have chosen the row before one of them may delete it.
        gate.execute("select from duly.claimed for update")
        ends = [
            threading.Thread(target=lambda: acked.append(store.jobs.exchange(me, [ended(job)], None).acked))
            for _ in range(2)
        ]
        for end in ends:
            end.start()
        wait_until(lambda: waits_for_lock(watcher, "exchange_3", by=2), what="both stand at the row")
        gate.rollback()
        for end in ends:
            end.join()

    assert acked == [{(job.id, job.run)}] * 2
    assert states(store, [job.id]) == [State.completed]


def test_an_open_enqueue_delays_nobody_else(store: PostgresStore, url: str) -> None:
    with psycopg.connect(url) as connection:
        late = put_on(store, connection)
        ids = put(store, 3)

        assert [job.id for job in claim(store, worker(store), 10)] == ids
        assert states(store, [late]) == [None]


def put_on(store: PostgresStore, connection: psycopg.Connection[Any]) -> JobId:
    return store.enqueue_on(connection, [NewJob("default", "ok", b"{}")])[0].id


def test_deadlocks_reach_no_caller_and_no_job_is_lost(open_store: Open, postgres: PostgresServer) -> None:
    before = len(postgres.log)
    rounds, batch = 25, 40
    stores = [open_store() for _ in range(4)]
    me = [worker(store) for store in stores[:2]]

    def produce() -> None:
        for _ in range(rounds):
            put(stores[2], batch)

    def work(number: int) -> None:
        held: list[ClaimedJob] = []
        for turn in range(rounds * 2):
            event = Event.bury if turn % 3 else Event.complete
            ends = [ended(job, event) for job in held]
            held = list(stores[number].jobs.exchange(me[number], ends, request(batch)).claimed)
        stores[number].jobs.exchange(me[number], [ended(job) for job in held], None)

    def operate() -> None:
        for _ in range(rounds):
            page = stores[3].inspection.page(Filter(), limit=100)
            ids = [job.id for job in page.jobs]
            stores[3].operator.redrive(ids[::2], "ann", "torture")
            stores[3].operator.reprioritise(ids[::-3], 5, "ann", "torture")
            stores[3].operator.cancel(ids[1::4], "ann", "torture")

    def sweep() -> None:
        for _ in range(rounds):
            stores[3].upkeep.sweep(MINUTE, POISON, MINUTE)
            stores[3].upkeep.promote()
            stores[3].upkeep.retain({}, {}, timedelta(days=1), timedelta(days=1))

    together(produce, produce, lambda: work(0), lambda: work(1), operate, operate, sweep, sweep)

    with stores[0].transaction() as connection:
        total = connection.execute(
            "select (select count(*) from duly.job), (select count(*) from duly.ready) + "
            "(select count(*) from duly.claimed) + (select count(*) from duly.finished) + "
            "(select count(*) from duly.dead) + (select count(*) from duly.scheduled) + "
            "(select count(*) from duly.blocked)"
        ).fetchone()
    assert total == (2 * rounds * batch, 2 * rounds * batch)
    assert "deadlock detected" not in postgres.log[before:]


@pytest.mark.parametrize("purgers", [3])
def test_purgers_share_the_work_instead_of_fighting(open_store: Open, purgers: int) -> None:
    stores = [open_store() for _ in range(purgers)]
    me = worker(stores[0])
    put(stores[0], 600)
    jobs = claim(stores[0], me, 600)
    stores[0].jobs.exchange(me, [ended(job) for job in jobs], None)
    deleted: list[int] = []

    def purge(store: PostgresStore) -> None:
        while some := store.upkeep.retain({}, {}, timedelta(0), timedelta(0), most=50):
            deleted.append(some)

    together(*(partial(purge, store) for store in stores))

    assert sum(deleted) == 600
    assert max(deleted) <= 50
    with stores[0].transaction() as connection:
        left = connection.execute(
            "select (select count(*) from duly.job), (select count(*) from duly.finished)"
        )
        assert left.fetchone() == (0, 0)
