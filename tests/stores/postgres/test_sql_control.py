"""Enqueue from SQL where order, turns and batches are declared: the same rules as from Python, and old calls go on."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row, tuple_row

from duly.core.batch import CancelBatch, CloseBatch, OpenBatch
from duly.core.control import LimitPolicy
from duly.core.job import ClaimRequest, NewJob, QueueClaim
from duly.core.registration import QueuePolicy, Registration, TaskPolicy
from duly.stores.postgres.statements import TOKEN, migrations, statement
from duly.stores.postgres.store import PostgresStore
from tests.services import PostgresServer
from tests.stores.postgres.acts import ended, put, worker
from tests.stores.postgres.conftest import Open

# As a caller of the release before wrote it: every parameter by its place.
IN_ORDER = (
    "select * from duly.enqueue('ok', '{\"n\": 7}', 'default', 3, null, null, '1 hour', '90 s', 4, 'acme', '{a}', 'c', "
    "'once', 'mine', 'queued', 'return', null)"
)


@pytest.fixture
def session(store: PostgresStore, url: str) -> Iterator[psycopg.Connection[Any]]:
    """Somebody else's connection, in a database whose App has declared what bounds its jobs."""
    store.schema.declare(
        Registration(
            "shop:jobs",
            "1",
            (QueuePolicy("default", fair=True), QueuePolicy("lines", serialise=True), QueuePolicy("plain")),
            (
                TaskPolicy("ok", "default", 100),
                TaskPolicy("line", "lines", 100),
                TaskPolicy("note", "plain", 100),
            ),
            limits=(LimitPolicy("tenant:default", max_running=1),),
        )
    )
    with psycopg.connect(url, autocommit=True, row_factory=dict_row) as connection:
        yield connection


def enqueued(session: psycopg.Connection[Any], call: str) -> dict[str, Any]:
    row: dict[str, Any] | None = session.execute(f"select * from duly.enqueue({call})".encode()).fetchone()
    assert row is not None
    return row


def started(store: PostgresStore, *, queue: str = "default", fair: bool = False) -> list[int]:
    me = worker(store, "ok", "line", "note")
    found: list[int] = []
    while True:
        answer = store.jobs.exchange(me, (), ClaimRequest((QueueClaim(queue, 10, fair),), 10))
        found += [job.id for job in answer.claimed]
        if answer.again != timedelta(0):
            return found


def test_an_ordering_key_is_shared_with_python(
    session: psycopg.Connection[Any], store: PostgresStore
) -> None:
    first = enqueued(session, "'note', ordering_key => 'order:7'")["id"]
    (second,) = store.jobs.enqueue([NewJob("plain", "note", b"{}", ordering_key="order:7")])
    other = enqueued(session, "'note', ordering_key => 'order:8'")["id"]

    assert started(store, queue="plain") == [first, other]
    (record,) = store.inspection.lookup([first])
    assert record is not None
    assert record.ordering_key == "order:7"
    (waiting,) = store.inspection.lookup([second.id])
    assert waiting is not None
    assert waiting.waits_for == "key"


def test_producers_of_one_key_wait_for_each_other_where_the_queue_says_so(
    session: psycopg.Connection[Any], url: str
) -> None:
    with psycopg.connect(url) as other:
        other.execute("select duly.enqueue('line', ordering_key => 'a')")

        session.execute("set lock_timeout = '50ms'")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            enqueued(session, "'line', ordering_key => 'a'")

        assert enqueued(session, "'line', ordering_key => 'b'")["outcome"] == "created"
        assert enqueued(session, "'note', ordering_key => 'a'")["outcome"] == "created"


def test_a_job_from_sql_waits_in_its_tenants_turn_and_within_its_cap(
    session: psycopg.Connection[Any], store: PostgresStore
) -> None:
    flood = [enqueued(session, "'ok', tenant => 'acme'")["id"] for _ in range(3)]
    other = enqueued(session, "'ok', tenant => 'zeta'")["id"]
    plain = enqueued(session, "'ok'")["id"]

    assert sorted(started(store, fair=True)) == sorted([flood[0], other, plain])


def test_a_job_from_sql_joins_a_batch(session: psycopg.Connection[Any], store: PostgresStore) -> None:
    batch = store.batches.apply(OpenBatch("b", (NewJob("plain", "after", b"{}"),)))
    id = enqueued(session, f"'note', batch => {batch}")["id"]
    store.batches.apply(CloseBatch(batch))

    me = worker(store, "note")
    (job,) = store.jobs.exchange(me, (), ClaimRequest((QueueClaim("plain", 1),), 1)).claimed
    store.jobs.exchange(me, [ended(job)], None)
    store.batches.finish()

    assert (job.id, job.in_batch) == (id, True)
    assert sum(one.ready for one in store.inspection.counts() if one.queue == "plain") == 1


def test_a_batch_that_takes_nothing_more_is_refused(
    session: psycopg.Connection[Any], store: PostgresStore
) -> None:
    batch = store.batches.apply(OpenBatch("b"))
    store.batches.apply(CancelBatch(batch, "ann", "no use"))

    for call, words in (
        (f"'ok', batch => {batch}", f"batch {batch} is cancelled: nothing can be added to it"),
        ("'ok', batch => 999", "no batch 999: its transaction was rolled back"),
        ("'ok', ordering_key => ''", "key '' must not be empty"),
        ("'ok', ordering_key => repeat('k', 256)", "at most 255 fit"),
    ):
        with pytest.raises(psycopg.Error) as caught:
            enqueued(session, call)
        assert (words in str(caught.value), caught.value.sqlstate) == (True, "22023")


def test_a_call_as_it_was_written_before_stores_the_same_job(
    session: psycopg.Connection[Any], store: PostgresStore
) -> None:
    row = session.execute(IN_ORDER.encode()).fetchone()

    assert row is not None
    assert list(row) == ["id", "outcome", "run_at"]
    (record,) = store.inspection.lookup([row["id"]])
    assert record is not None
    assert (record.queue, record.priority, record.tenant, record.tags) == ("default", 3, "acme", ("a",))
    assert (record.timeout, record.attempts, record.ordering_key) == (timedelta(seconds=90), 4, None)


@pytest.fixture
def before(postgres: PostgresServer) -> Iterator[str]:
    """A database with the schema of the release before, where somebody has dealt out rights and made views."""
    with postgres.database() as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("create schema duly")
            connection.execute(statement("create_schema_version", "duly"))
            for one in migrations()[:2]:
                connection.execute(one.text.replace(TOKEN, '"duly"').encode())
                connection.execute(
                    statement("record_migration", "duly"),
                    {"version": one.version, "name": one.name, "checksum": one.checksum},
                )
        yield url


def rights(connection: psycopg.Connection[Any]) -> list[tuple[Any, ...]]:
    with psycopg.Cursor(connection, row_factory=tuple_row) as cursor:
        return cursor.execute(
            "select a.grantee <> 0 and a.grantee <> p.proowner, a.is_grantable from pg_proc p"
            " cross join lateral aclexplode(p.proacl) a where p.oid = 'duly.enqueue'::regproc order by 1, 2"
        ).fetchall()


@pytest.mark.parametrize("postgres", [15, 18], indirect=True)
def test_rights_on_the_function_outlive_the_migration(before: str, open_store: Open) -> None:
    with psycopg.connect(before, autocommit=True) as connection:
        connection.execute("create role cashier")
        try:
            connection.execute("revoke execute on function duly.enqueue from public")
            connection.execute("grant execute on function duly.enqueue to cashier with grant option")
            had = rights(connection)

            open_store(before).schema.migrate()

            assert rights(connection) == had == [(False, False), (True, True)]
            connection.execute("select duly.enqueue('ok', queue => 'default', ordering_key => 'k')")
        finally:
            connection.execute("drop owned by cashier")
            connection.execute("drop role cashier")


def test_a_view_on_the_function_outlives_the_migration(before: str, open_store: Open) -> None:
    with psycopg.connect(before, autocommit=True) as connection:
        connection.execute("create view public.door as select * from duly.enqueue('ok', queue => 'default')")

        store = open_store(before)
        store.schema.migrate()

        assert connection.execute("select outcome from public.door").fetchone() == ("created",)
        assert put(store)
        assert len(started(store)) == 2
