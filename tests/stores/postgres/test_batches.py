"""Batches on PostgreSQL under real concurrency: ends never wait for each other, and what follows comes exactly once."""

from datetime import timedelta
from functools import partial

import psycopg
import pytest

from duly.core.batch import BatchCounts, BatchState, CloseBatch, OpenBatch
from duly.core.job import ClaimedJob, Incarnation, JobId, NewJob
from duly.core.lifecycle import Event
from duly.stores.postgres.store import PostgresStore
from tests.stores.postgres.acts import claim, ended, together, worker
from tests.stores.postgres.conftest import Open
from tests.waiting import wait_until

HOUR = timedelta(hours=1)
THEN = NewJob("after", "after", b"{}")
FINISH = b"select duly.finish_batches_1(null)"


def make(store: PostgresStore, count: int) -> int:
    """A closed batch of so many ready jobs."""
    batch = store.batches.apply(OpenBatch("b", (THEN,)))
    store.jobs.enqueue([NewJob("default", "ok", b"{}", batch=batch)] * count)
    store.batches.apply(CloseBatch(batch))
    return batch


def followers(store: PostgresStore) -> int:
    return sum(one.ready for one in store.inspection.counts() if one.queue == "after")


def end(store: PostgresStore, incarnation: Incarnation, *jobs: ClaimedJob) -> None:
    store.jobs.exchange(incarnation, [ended(job) for job in jobs], None)


def counts(store: PostgresStore, batch: int) -> BatchCounts:
    found = store.batches.lookup([batch])[0]
    assert found is not None
    return found.counts


def swept(store: PostgresStore) -> None:
    """One sweep that really ran: another may have been a moment before."""
    wait_until(lambda: store.upkeep.sweep(HOUR, 3, HOUR).ran, what="a sweep that is due", timeout=30)


def test_an_end_in_an_open_transaction_holds_up_no_other_end_of_the_batch(store: PostgresStore) -> None:
    batch = make(store, 3)
    me = worker(store)
    first, second, third = claim(store, me, 3)

    with store.transaction() as connection:
        assert store.complete_on(connection, me, ended(first))
        end(store, me, second, third)
        store.batches.finish()
        meanwhile = (counts(store, batch).completed, followers(store))

    store.batches.finish()
    assert meanwhile == (2, 0)
    assert (counts(store, batch).completed, followers(store)) == (3, 1)


def test_an_addition_that_is_rolled_back_delays_what_follows_until_then(store: PostgresStore) -> None:
    batch = make(store, 1)
    me = worker(store)
    (job,) = claim(store, me)

    with pytest.raises(ZeroDivisionError), store.transaction() as connection:
        store.enqueue_on(connection, [NewJob("default", "ok", b"{}", batch=batch)])
        end(store, me, job)
        store.batches.finish()
        assert followers(store) == 0
        raise ZeroDivisionError

    store.batches.finish()
    assert (counts(store, batch).total, followers(store)) == (1, 1)


def test_a_finisher_that_dies_before_its_commit_has_done_nothing(store: PostgresStore, url: str) -> None:
    batch = make(store, 1)
    me = worker(store)
    end(store, me, *claim(store, me))

    with psycopg.connect(url) as connection, psycopg.connect(url, autocommit=True) as killer:
        looked = connection.execute(FINISH).fetchone()
        killer.execute("select pg_terminate_backend(%s, 5000)", [connection.info.backend_pid])
        # The block's own commit would be told that the connection is gone.
        connection.close()
    before = (counts(store, batch).completed, followers(store))
    store.batches.finish()

    assert (looked, before) == ((1,), (1, 0))
    assert (counts(store, batch).completed, followers(store)) == (1, 1)


def test_finishers_at_one_moment_follow_each_of_many_batches_once(
    store: PostgresStore, open_store: Open
) -> None:
    stores = [open_store() for _ in range(4)]
    me = worker(store)
    for _ in range(5):
        made = [make(store, 4) for _ in range(6)]
        claimed = claim(store, me, 24)
        before = followers(store)

        def work(one: PostgresStore, mine: tuple[ClaimedJob, ...]) -> None:
            for job in mine:
                end(one, me, job)
                one.batches.finish()

        together(*(partial(work, one, claimed[number::4]) for number, one in enumerate(stores)))

        assert followers(store) - before == len(made)
        found = store.batches.lookup(made)
        assert {one.state for one in found if one is not None} == {BatchState.completed}


def test_a_reader_sees_every_end_before_and_after_it_is_folded(store: PostgresStore) -> None:
    batch = make(store, 3)
    me = worker(store)
    first, second, _ = claim(store, me, 3)

    end(store, me, first)
    unfolded = counts(store, batch)
    store.batches.finish()
    store.jobs.exchange(me, [ended(second, Event.bury)], None)

    assert unfolded == BatchCounts(total=3, completed=1)
    assert counts(store, batch) == BatchCounts(total=3, completed=1, dead=1)


def test_a_cancel_that_died_after_its_first_step_is_completed_by_the_sweep(
    store: PostgresStore, url: str
) -> None:
    batch = make(store, 3)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("select duly.cancel_batch_2(%s, 'ann', 'no', false, null)", [batch])
    before = counts(store, batch)

    swept(store)

    assert before == BatchCounts(total=3)
    assert counts(store, batch) == BatchCounts(total=3, cancelled=3)


def test_what_is_kept_for_plain_jobs_costs_no_row_of_batches(store: PostgresStore, url: str) -> None:
    me = worker(store)
    store.jobs.enqueue([NewJob("default", "ok", b"{}")] * 10)
    end(store, me, *claim(store, me, 10))

    with psycopg.connect(url) as connection:
        rows = connection.execute(
            "select (select count(*) from duly.batch_done), (select count(*) from duly.job where batch is not null)"
        ).fetchone()

    assert rows == (0, 0)


@pytest.mark.long
def test_ends_of_a_hundred_thousand_jobs_of_one_batch_do_not_queue_up(
    store: PostgresStore, open_store: Open
) -> None:
    count = 100_000
    batch = make(store, count)
    stores = [open_store() for _ in range(3)]
    workers = [worker(one) for one in stores]
    taken: list[JobId] = []

    def drain(one: PostgresStore, me: Incarnation) -> None:
        while jobs := claim(one, me, 500):
            end(one, me, *jobs)
            taken.extend(job.id for job in jobs)
            one.batches.finish()

    together(*(partial(drain, one, me) for one, me in zip(stores, workers, strict=True)))

    assert len(taken) == len(set(taken)) == count
    assert (counts(store, batch), followers(store)) == (BatchCounts(total=count, completed=count), 1)
