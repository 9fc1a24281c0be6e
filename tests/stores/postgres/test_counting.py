"""What `status` counts when there is so much of it that counting would take long: estimates that say so, exact ages."""

from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from duly.cli.status import row
from duly.client.inspect import QueueStatus
from duly.core.job import NewJob
from duly.core.lifecycle import Event
from duly.stores.postgres.counting import queue_counts
from duly.stores.postgres.database import Database
from duly.stores.postgres.store import PostgresStore
from duly.stores.protocol import QueueCount
from tests.stores.postgres.acts import MINUTE, claim, ended, put, worker

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
DUE = datetime(2020, 1, 1, 12, tzinfo=UTC)
MANY = 8_000


def told(database: Database, *, exact: int = 100) -> dict[str, QueueCount]:
    """As the store tells it, with tables counted as large that have more than 64 pages."""
    rows = database.call("count_queues", {"now": NOW, "exact": exact, "pages": 1, "sample": 1})
    return {count.queue: count for count in queue_counts(rows, (), NOW)}


def put_many(store: PostgresStore, queue: str, delay: timedelta | None = None) -> None:
    for _ in range(MANY // 1000):
        store.jobs.enqueue([NewJob(queue, "ok", b"{}", delay=delay)] * 1000)


def test_many_ready_jobs_are_estimated_and_few_beside_them_counted(
    store: PostgresStore, database: Database, url: str
) -> None:
    put(store, 3, queue="few", priority=1)
    put(store, 2, queue="few", priority=2)
    put_many(store, "many")
    with psycopg.connect(url, autocommit=True) as connection:
        # Heads of three lanes, and one that somebody has moved behind younger ones.
        connection.execute("update duly.ready set ready_at = %s", (NOW - MINUTE,))
        heads = "select min(id) from duly.ready group by queue, priority"
        connection.execute(
            f"update duly.ready set ready_at = %s - priority * interval '1 s' where id in ({heads})",
            (NOW - 2 * MINUTE,),
        )
        moved = (
            "update duly.ready set pos = nextval('duly.pos'), ready_at = %s where id ="
            " (select id from duly.ready where priority = 100 order by id offset 1 limit 1)"
        )
        connection.execute(moved, (NOW - 9 * MINUTE,))

    counts = told(database)

    few, many = counts["few"], counts["many"]
    assert (few.ready, few.estimated) == (5, ())
    assert many.estimated == ("ready",)
    assert MANY * 0.7 < many.ready < MANY * 1.3
    assert few.oldest_ready == 2 * MINUTE + timedelta(seconds=2)
    assert many.oldest_ready == 9 * MINUTE


def test_a_lane_among_dead_entries_is_counted(store: PostgresStore, database: Database, url: str) -> None:
    put_many(store, "default")
    with psycopg.connect(url) as reader:
        reader.execute("set transaction isolation level repeatable read")
        reader.execute("select count(*) from duly.ready")
        me = worker(store)
        while held := claim(store, me, 1000):
            store.jobs.exchange(me, [ended(job) for job in held], None)
        put(store, 7)

        counts = told(database)

    assert (counts["default"].ready, counts["default"].estimated) == (7, ())


def test_many_scheduled_jobs_are_estimated_and_the_next_due_is_exact(
    store: PostgresStore, database: Database, url: str
) -> None:
    put_many(store, "many", delay=MINUTE)
    put_many(store, "later", delay=2 * MINUTE)
    store.jobs.enqueue([NewJob("few", "ok", b"{}", delay=MINUTE)])
    with psycopg.connect(url, autocommit=True) as connection:
        last = "select max(id) from duly.scheduled"
        connection.execute(f"update duly.scheduled set run_at = %s where id = ({last})", (DUE,))

    counts = told(database)

    assert counts["few"].next_due == DUE
    assert counts["few"].scheduled >= 1
    for name in ("many", "later"):
        assert counts[name].estimated == ("scheduled",)
        assert MANY * 0.7 < counts[name].scheduled < MANY * 1.3


def test_many_blocked_jobs_are_estimated(store: PostgresStore, database: Database) -> None:
    put_many(store, "default")
    me = worker(store, "another")
    while claim(store, me, 1000) or told(database, exact=MANY)["default"].ready:
        pass

    counts = told(database)

    assert counts["default"].estimated == ("blocked",)
    assert MANY * 0.7 < counts["default"].blocked < MANY * 1.3


def test_many_dead_letters_are_estimated_and_few_beside_them_counted(
    store: PostgresStore, database: Database
) -> None:
    put_many(store, "many")
    put(store, 3, queue="few")
    me = worker(store)
    for queue in ("many", "few"):
        while held := claim(store, me, 1000, queue):
            store.jobs.exchange(me, [ended(job, Event.bury) for job in held], None)

    counts = told(database)

    assert (counts["few"].dead, counts["few"].estimated) == (3, ())
    assert counts["many"].estimated == ("dead",)
    assert MANY * 0.7 < counts["many"].dead < MANY * 1.3


@pytest.mark.parametrize(("ready", "shown"), [(1_234_567, "~1,200,000"), (99_500, "~100,000"), (7, "~7")])
def test_an_estimate_is_shown_as_one(ready: int, shown: str) -> None:
    counts = QueueCount("mail", ready=ready, dead=1_234_567, estimated=("ready",))
    status = QueueStatus(counts, owner=None, workers=1, rates_known=False, drain=None, health="idle")

    cells = row(status)

    assert cells[1] == shown
    assert cells[5] == "1,234,567"


def test_counting_for_the_rates_takes_a_hundredth_of_a_backend_at_most(database: Database, url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("set search_path to duly")

        def sampled(at: datetime) -> bool:
            connection.execute("select keep_sample_2(%s)", (at,))
            found = connection.execute("select last_at from sweep where name = 'sample'").fetchone()
            return found == (at,)

        assert sampled(NOW)
        connection.execute("update sweep set cost = '300 milliseconds' where name = 'sample'")
        assert not sampled(NOW + timedelta(seconds=29))
        assert sampled(NOW + timedelta(seconds=31))
        connection.execute("update sweep set cost = '1 hour' where name = 'sample'")
        assert sampled(NOW + timedelta(seconds=92))
