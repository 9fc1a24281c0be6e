"""What is left to be looked at again costs no walk through what was looked at, and is found however late it commits."""

from datetime import timedelta

import psycopg

from duly.core.job import ClaimRequest, NewJob, QueueClaim
from duly.core.lifecycle import Event, State
from duly.stores.postgres.database import Database
from duly.stores.postgres.jobs import PostgresJobs
from duly.stores.postgres.store import PostgresStore
from duly.testing.clock import FakeClock
from tests.stores.postgres.acts import MINUTE, ended, states, worker
from tests.stores.postgres.conftest import Open
from tests.stores.postgres.explained import Explained

ASKED = ClaimRequest((QueueClaim("default", 1),), 1)
HOUR = timedelta(hours=1)
MANY = 10_000


def sweep(store: PostgresStore, clock: FakeClock, times: int) -> None:
    for _ in range(times):
        clock.advance(2 * MINUTE)
        assert store.upkeep.sweep(HOUR, 3, HOUR).ran


def touched(database: Database, store: PostgresStore) -> int:
    """Blocks of `released` and its index that one claim reads."""
    explained, jobs, me = Explained(database), PostgresJobs(database), worker(store)
    told = explained.of(lambda: jobs.exchange(me, (), ASKED))
    return sum(
        node["Shared Hit Blocks"] + node["Shared Read Blocks"]
        for node in told
        if node.get("Relation Name") == "released"
    )


def test_a_claim_does_not_wade_through_words_that_an_old_snapshot_keeps(open_store: Open, url: str) -> None:
    clock = FakeClock()
    store = open_store(clock=clock)
    with psycopg.connect(url) as reader, psycopg.connect(url, autocommit=True) as other:
        reader.execute("set transaction isolation level repeatable read")
        reader.execute("select from duly.job").fetchall()
        for due in ("-infinity", str(clock())):
            other.execute(
                "insert into duly.released (due, kind, key) select %s, 2, n from generate_series(1, %s) n",
                [due, MANY],
            )
        other.execute("delete from duly.released")
        database = Database(url, "duly", clock, 1)
        before = touched(database, store)

        sweep(store, clock, 3)
        after = touched(database, store)

        database.close()
    assert (before > 100, after < 20) == (True, True), f"{before} blocks before, {after} after"


def test_a_word_that_commits_after_the_sweep_has_passed_it_is_told_again(open_store: Open) -> None:
    clock = FakeClock()
    store = open_store(clock=clock)
    me = worker(store)
    first, second = (
        stored.id for stored in store.jobs.enqueue([NewJob("default", "ok", b"{}", ordering_key="a")] * 2)
    )
    (job,) = store.jobs.exchange(me, (), ASKED).claimed
    assert store.jobs.exchange(me, (), ASKED).claimed == ()
    with store.transaction() as connection:
        assert store.complete_on(connection, me, ended(job, Event.complete))
        sweep(open_store(clock=clock), clock, 4)
    assert states(store, [first, second]) == [State.completed, State.blocked]

    sweep(store, clock, 1)

    assert [one.id for one in store.jobs.exchange(me, (), ASKED).claimed] == [second]


def test_a_word_that_nobody_has_looked_at_stays_in_sight(open_store: Open) -> None:
    clock = FakeClock()
    store = open_store(clock=clock)
    me = worker(store)
    ids = [stored.id for stored in store.jobs.enqueue([NewJob("default", "ok", b"{}", ordering_key="a")] * 2)]
    (job,) = store.jobs.exchange(me, (), ASKED).claimed
    assert store.jobs.exchange(me, (), ASKED).claimed == ()
    store.jobs.exchange(me, [ended(job)], None)

    sweep(store, clock, 4)

    assert [one.id for one in store.jobs.exchange(me, (), ASKED).claimed] == ids[1:]
