"""The readings of the load: kept by the sweep, and what is ours of it, with and without pg_stat_statements."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from duly.core.share import DatabaseLoad
from duly.stores.postgres.store import PostgresStore
from tests.databases import migrate
from tests.services import PostgresServer
from tests.stores.postgres.acts import MINUTE, put
from tests.waiting import wait_until

START = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Moving:
    """A clock that only the test moves."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture(scope="module")
def told_server() -> Iterator[PostgresServer]:
    with PostgresServer(15, {"shared_preload_libraries": "pg_stat_statements"}) as server:
        yield server


def sessions(url: str) -> list[int]:
    """The server's processes for this database, but for the one that is asked."""
    with psycopg.connect(url, autocommit=True) as connection:
        rows = connection.execute(
            "select pid from pg_stat_activity where datname = current_database() and usesysid is not null "
            "and pid <> pg_backend_pid() and backend_type is distinct from 'autovacuum worker'"
        ).fetchall()
    return [int(pid) for (pid,) in rows]


def load_of(url: str, jobs: int, rows: int) -> DatabaseLoad:
    """After a minute in which so many jobs and so many rows of somebody else were stored, one by one."""
    clock = Moving()
    store = PostgresStore(url, clock=clock)
    store.upkeep.sweep(MINUTE, 3, MINUTE)
    # Whoever made the schema may not be gone yet.
    (store_session,) = wait_until(
        lambda: found if len(found := sessions(url)) == 1 else [], what="one session"
    )
    producer = PostgresStore(url, clock=clock)
    for _ in range(jobs):
        put(producer)
    # A session's counters are in the statistics when it is gone, which is a little after it was closed.
    producer.close()
    with psycopg.connect(url, autocommit=True) as somebody:
        somebody.execute("create table basket (item int)")
        for item in range(rows):
            somebody.execute("insert into basket values (%s)", (item,))
    wait_until(lambda: sessions(url) == [store_session], what="the end of the other sessions")
    clock.now += MINUTE
    store.upkeep.sweep(MINUTE, 3, MINUTE)
    found = store.inspection.load()
    store.close()
    assert found is not None
    return found


def test_without_pg_stat_statements_rows_and_connections_are_known(url: str) -> None:
    found = load_of(url, jobs=30, rows=30)

    assert found.span == MINUTE
    assert found.own_commits_per_s is None
    assert found.own_wal_per_s is None
    assert found.commits_per_s is not None
    assert found.commits_per_s >= 1
    assert found.wal_per_s is not None
    assert found.wal_per_s > 0
    assert found.written_per_s is not None
    assert found.own_written_per_s is not None
    # Each job is at least its own row and one in `ready`.
    assert found.own_written_per_s >= 1
    assert found.written_per_s >= found.own_written_per_s + 0.5
    assert found.connections >= found.own_connections >= 1
    assert found.most_connections == 97


def test_pg_stat_statements_tells_our_commits_and_our_wal(told_server: PostgresServer) -> None:
    with told_server.database() as url:
        told_server.execute("create extension pg_stat_statements", database=url.rsplit("/", 1)[1])
        migrate(url)

        found = load_of(url, jobs=60, rows=60)

    assert found.own_commits_per_s is not None
    assert found.commits_per_s is not None
    assert 1 <= found.own_commits_per_s < found.commits_per_s
    assert found.own_wal_per_s is not None
    assert found.wal_per_s is not None
    assert 0 < found.own_wal_per_s < found.wal_per_s


def test_statements_that_the_owner_may_not_see_leave_our_part_unknown(told_server: PostgresServer) -> None:
    with told_server.database() as url:
        name = url.rsplit("/", 1)[1]
        told_server.execute("create extension pg_stat_statements", database=name)
        told_server.execute(f"create role owner_{name} login")
        told_server.execute(f"grant all on database {name} to owner_{name}")
        told_server.execute("grant all on schema public to public", database=name)
        own_url = told_server.url(name, user=f"owner_{name}")
        migrate(own_url)
        told_server.execute("select 'of somebody else'", database=name)

        hidden = load_of(own_url, jobs=1, rows=1)
        told_server.execute(f"grant pg_read_all_stats to owner_{name}")
        told_server.execute("drop table basket", database=name)
        told_server.execute("truncate duly.load_sample", database=name)
        told_server.execute("delete from duly.sweep", database=name)
        seen = load_of(own_url, jobs=1, rows=1)

    assert hidden.own_commits_per_s is None
    assert hidden.own_wal_per_s is None
    assert seen.own_commits_per_s is not None
    assert seen.own_commits_per_s > 0


def test_an_extension_that_the_server_has_not_loaded_is_as_good_as_absent(
    url: str, postgres: PostgresServer
) -> None:
    postgres.execute("create extension pg_stat_statements", database=url.rsplit("/", 1)[1])

    found = load_of(url, jobs=1, rows=1)

    assert found.own_commits_per_s is None
    assert found.own_written_per_s is not None


def test_a_reading_is_kept_every_half_minute_for_two_hours(url: str, postgres: PostgresServer) -> None:
    clock = Moving()
    store = PostgresStore(url, clock=clock)
    for seconds in (0, 29, 30, 2 * 3600 + 29, 2 * 3600 + 60):
        clock.now = START + timedelta(seconds=seconds)
        store.upkeep.sweep(MINUTE, 3, MINUTE)

    kept = postgres.execute("select at from duly.load_sample order by at", database=url.rsplit("/", 1)[1])

    assert [at - START for (at,) in kept] == [
        timedelta(seconds=2 * 3600 + 29),
        timedelta(seconds=2 * 3600 + 60),
    ]
    store.close()
