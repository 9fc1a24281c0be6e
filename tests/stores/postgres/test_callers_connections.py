"""Jobs in the transaction of a caller's psycopg connection, sync and async, and which connections are refused."""

import sqlite3
from collections.abc import Callable
from datetime import timedelta

import psycopg
import pytest
from psycopg.rows import dict_row

from duly.core.errors import ConnectionMismatch, LeaseLost
from duly.core.job import NewJob, Token
from duly.core.lifecycle import State
from duly.stores.faults import ReadOnly
from duly.stores.postgres.store import PostgresStore
from tests.databases import migrate
from tests.services import PostgresServer
from tests.stores.postgres.acts import claim, ended, put, states, worker

JOB = NewJob("default", "ok", b"{}")
LEVELS = list(psycopg.IsolationLevel)


def test_what_is_rolled_back_never_existed(store: PostgresStore, url: str) -> None:
    with psycopg.connect(url) as connection:
        (gone,) = store.enqueue_on(connection, [JOB])
        connection.rollback()
        (kept,) = store.enqueue_on(connection, [JOB])
        connection.commit()

    assert states(store, [gone.id, kept.id]) == [None, State.ready]


def test_a_transaction_block_on_an_autocommit_connection_will_do(store: PostgresStore, url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        with connection.transaction():
            (kept,) = store.enqueue_on(connection, [JOB])

        assert states(store, [kept.id]) == [State.ready]


def test_a_savepoint_takes_its_jobs_back(store: PostgresStore, url: str) -> None:
    with psycopg.connect(url) as connection:
        (kept,) = store.enqueue_on(connection, [JOB])
        with connection.transaction() as savepoint:
            (gone,) = store.enqueue_on(connection, [JOB])
            raise psycopg.Rollback(savepoint)
        connection.commit()

    assert states(store, [kept.id, gone.id]) == [State.ready, None]


def test_the_callers_own_factories_do_not_matter(store: PostgresStore, url: str) -> None:
    with psycopg.connect(url, row_factory=dict_row, cursor_factory=psycopg.ClientCursor) as connection:
        (kept,) = store.enqueue_on(connection, [JOB])

    assert states(store, [kept.id]) == [State.ready]


@pytest.mark.parametrize("level", LEVELS, ids=[level.name for level in LEVELS])
def test_enqueueing_never_fails_by_itself_at_any_isolation(
    level: psycopg.IsolationLevel, store: PostgresStore, url: str
) -> None:
    me = worker(store)
    with psycopg.connect(url) as first, psycopg.connect(url) as second:
        for connection in (first, second):
            connection.isolation_level = level
            connection.execute("select 1 from duly.schema_version")
        put(store, 20)
        for turn in range(10):
            store.enqueue_on((first, second)[turn % 2], [JOB] * 3)
            store.jobs.exchange(me, [ended(job) for job in claim(store, me, 2)], None)
        first.commit()
        second.commit()

    assert len(claim(store, me, 100)) == 30


def test_an_enqueue_by_a_former_holder_stores_nothing_and_breaks_nothing(
    store: PostgresStore, url: str
) -> None:
    me = worker(store)
    put(store)
    (job,) = claim(store, me)
    child = NewJob("default", "ok", b"{}", holder=Token(me, job.id, job.run))
    with psycopg.connect(url) as connection:
        (kept,) = store.enqueue_on(connection, [child])
        store.leases.retire(me)

        with pytest.raises(LeaseLost):
            store.enqueue_on(connection, [child])

        # The caller's transaction goes on.
        connection.commit()
    assert states(store, [kept.id]) == [State.ready]


def test_a_completion_is_the_callers_to_commit(store: PostgresStore, url: str) -> None:
    me = worker(store)
    (id,) = put(store)
    (job,) = claim(store, me)
    with psycopg.connect(url) as connection:
        assert store.complete_on(connection, me, ended(job, result=b'"sent"'))
        connection.rollback()
        assert states(store, [id]) == [State.running]
        assert store.complete_on(connection, me, ended(job, result=b'"sent"'))
        connection.commit()
        assert not store.complete_on(connection, me, ended(job, result=b'"sent"'))

    (record,) = store.inspection.lookup([id])
    assert record is not None
    assert (record.state, record.result) == (State.completed, b'"sent"')


@pytest.mark.asyncio
async def test_an_async_connection_carries_jobs_and_completions(store: PostgresStore, url: str) -> None:
    me = worker(store)
    put(store)
    (job,) = claim(store, me)
    async with await psycopg.AsyncConnection.connect(url) as connection:
        (gone,) = await store.aenqueue_on(connection, [JOB])
        await connection.rollback()
        (kept,) = await store.aenqueue_on(connection, [JOB])
        assert await store.acomplete_on(connection, me, ended(job))
        await connection.commit()

    assert states(store, [gone.id, kept.id, job.id]) == [None, State.ready, State.completed]


@pytest.mark.asyncio
async def test_our_own_async_transaction_commits_at_its_end(store: PostgresStore) -> None:
    async with store.atransaction() as connection:
        (kept,) = await store.aenqueue_on(connection, [JOB])
    with pytest.raises(ZeroDivisionError):
        async with store.atransaction() as connection:
            (gone,) = await store.aenqueue_on(connection, [JOB])
            raise ZeroDivisionError

    assert states(store, [kept.id, gone.id]) == [State.ready, None]


@pytest.mark.asyncio
async def test_blocking_and_async_connections_are_told_apart(store: PostgresStore, url: str) -> None:
    with psycopg.connect(url) as blocking:
        async with await psycopg.AsyncConnection.connect(url) as turning:
            with pytest.raises(ConnectionMismatch, match="aenqueue"):
                store.enqueue_on(turning, [JOB])
            with pytest.raises(ConnectionMismatch, match="without an a"):
                await store.aenqueue_on(blocking, [JOB])


def test_autocommit_without_a_transaction_stores_at_once_and_says_so(store: PostgresStore, url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        (stored,) = store.enqueue_on(connection, [JOB])
        with connection.transaction():
            (pending,) = store.enqueue_on(connection, [JOB])

            assert states(store, [stored.id, pending.id]) == [State.ready, None]

    assert (stored.pending, pending.pending) == (False, True)


def test_a_failed_transaction_is_said_to_have_failed(store: PostgresStore, url: str) -> None:
    with psycopg.connect(url) as connection:
        with pytest.raises(psycopg.Error):
            connection.execute("select 1 / 0")

        with pytest.raises(ConnectionMismatch, match="failed already"):
            store.enqueue_on(connection, [JOB])


def test_a_closed_connection_is_refused(store: PostgresStore, url: str) -> None:
    connection = psycopg.connect(url)
    connection.close()

    with pytest.raises(ConnectionMismatch, match="closed"):
        store.enqueue_on(connection, [JOB])


def test_a_read_only_transaction_gets_an_error_of_its_own(store: PostgresStore, url: str) -> None:
    with psycopg.connect(url) as connection:
        connection.read_only = True

        with pytest.raises(ReadOnly, match="read-only"):
            store.enqueue_on(connection, [JOB])


def test_another_database_is_refused_even_with_our_schema_in_it(
    store: PostgresStore, postgres: PostgresServer
) -> None:
    with (
        postgres.database(postgres.template("duly", migrate)) as other,
        psycopg.connect(other) as connection,
    ):
        with pytest.raises(ConnectionMismatch, match="another database"):
            store.enqueue_on(connection, [JOB])

        # What was refused has not broken the caller's transaction.
        assert connection.execute("select 1").fetchone() == (1,)


@pytest.mark.parametrize("make", [lambda: sqlite3.connect(":memory:"), object, lambda: None])
def test_any_other_object_is_refused_by_name(store: PostgresStore, make: Callable[[], object]) -> None:
    connection = make()

    with pytest.raises(ConnectionMismatch, match=type(connection).__qualname__):
        store.enqueue_on(connection, [JOB])
    if isinstance(connection, sqlite3.Connection):
        connection.close()


def test_jobs_of_a_caller_may_be_due_later(store: PostgresStore, url: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("set local timezone to 'Asia/Tokyo'")
        (later,) = store.enqueue_on(connection, [NewJob("default", "ok", b"{}", delay=timedelta(days=1))])

    assert states(store, [later.id]) == [State.scheduled]
    assert later.run_at is not None
    assert later.run_at.utcoffset() == timedelta(0)
