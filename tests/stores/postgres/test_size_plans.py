"""Retention, the sweep and what people read keep their plans on tables that were analysed when they were empty."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import psycopg
import pytest

from duly.core.filters import Filter
from duly.core.lifecycle import State
from duly.stores.postgres.database import Database
from duly.stores.postgres.inspection import PostgresInspection
from duly.stores.postgres.store import PostgresStore
from duly.stores.postgres.upkeep import PostgresUpkeep
from tests.databases import migrate
from tests.services import PostgresServer
from tests.stores.postgres.acts import put, worker
from tests.stores.postgres.explained import Explained
from tests.stores.postgres.test_plans import HOT, faults

ROWS = 30_000
DAY = timedelta(days=1)
NOW = datetime(2100, 1, 2, tzinfo=UTC)
# By SQL, because so many jobs would take minutes; what the statements look at is filled, the rest left as it is.
FILL = f"""
insert into duly.job (id, queue_key, suspect_key, task_key, enqueued_at, priority, queue, task, args)
select -g, 1, 2, 3, '2100-01-01Z', 100, 'other', 'ok', '' from generate_series(1, {ROWS}) g;
insert into duly.finished (id, queue_key, enqueued_at, finished_at, run, failed, lost, interrupted, snoozed, status,
                           queue, task, tenant)
select -g, 1, '2100-01-01Z', '2100-01-01Z'::timestamptz + g * interval '1 s', 1, 0, 0, 0, 0, 'completed', 'other', 'ok',
       '' from generate_series(1, {ROWS}) g;
insert into duly.attempt (id, run, incarnation, ended_at, event)
select -g, 1, 1, '2100-01-01Z', 'fail' from generate_series(1, {ROWS}) g;
insert into duly.job_tag select 'tag', -g from generate_series(1, {ROWS}) g;
insert into duly.idempotency select sha256(g::text::bytea), -g, '', '2200-01-01Z' from generate_series(1, {ROWS}) g;
insert into duly.ready (queue, pos, id, task, ready_at, priority)
select 1, -g, -g, 3, '2100-01-01Z', 100 from generate_series(1, {ROWS}) g;
insert into duly.scheduled (id, run_at, queue, task, priority)
select -g, '2200-01-01Z'::timestamptz + g * interval '1 s', 1, 3, 100 from generate_series(1, {ROWS}) g;
"""
WALKED = 20_000
"""Rows of `ready` and `scheduled` that one round of the sweep looks at, at most."""

pytestmark = [pytest.mark.slow, pytest.mark.parametrize("postgres", [15, 18], indirect=True)]


def fill(url: str) -> None:
    migrate(url)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("vacuum analyze")
        connection.execute(FILL.encode())


@pytest.fixture
def filled(postgres: PostgresServer) -> Iterator[str]:
    with postgres.database(postgres.template("size-plans", fill)) as url:
        yield url


@pytest.fixture
def explained(filled: str) -> Any:
    database = Database(filled, "duly", lambda: NOW, 1)
    yield Explained(database)
    database.close()


def retaining(database: Database) -> Callable[[], object]:
    return lambda: PostgresUpkeep(database, int).retain({}, {}, timedelta(hours=20), 30 * DAY, 10)


def test_a_chunk_of_retention_touches_only_what_it_deletes(explained: Explained) -> None:
    retain = retaining(explained.database)
    for _ in range(6):
        assert retain() == 10

    assert faults(explained.of(retain)) == []


def test_a_chunk_of_retention_does_not_wade_through_what_an_old_snapshot_keeps(
    explained: Explained, filled: str
) -> None:
    with psycopg.connect(filled) as reader:
        reader.execute("set transaction isolation level repeatable read")
        reader.execute("select count(*) from duly.finished")
        upkeep = PostgresUpkeep(explained.database, int)
        while upkeep.retain({}, {}, timedelta(hours=20), 30 * DAY, 2000) == 2000:
            pass
        # One more to go in a queue where so many have gone.
        with psycopg.connect(filled, autocommit=True) as connection:
            connection.execute("update duly.finished set finished_at = '2100-01-01 04:00Z' where id = -29999")
        retain = retaining(explained.database)

        found = explained.of(retain)

    assert read(found, "finished") < 1000


def read(found: list[dict[str, Any]], table: str) -> int:
    """Pages of index and table that the scans of a table touched."""
    return sum(
        node["Shared Hit Blocks"] + node["Shared Read Blocks"]
        for node in found
        if node.get("Relation Name") == table and "Scan" in node["Node Type"]
    )


def test_a_page_of_jobs_is_read_by_an_index(explained: Explained, filled: str) -> None:
    store = PostgresStore(filled)
    put(store, 5)
    store.close()
    inspection = PostgresInspection(explained.database)
    pages: dict[str, Callable[[], object]] = {
        str(state): partial(inspection.page, Filter(state=state), limit=5)
        for state in (None, State.ready, State.scheduled, State.completed, State.running, State.dead)
    }
    pages["tag"] = lambda: inspection.page(Filter(tag="tag"), limit=5)
    pages["after"] = lambda: inspection.page(Filter(), after=-100, limit=5)
    wrong = {}
    for name, page in pages.items():
        for _ in range(6):
            page()
        # With a filter, 250 are read at a time.
        found = [
            node
            for node in explained.of(page)
            if node["Node Type"] in {"Seq Scan", "Hash Join", "Merge Join"}
        ]
        found += [
            node for node in explained.of(page) if "Relation Name" in node and node["Actual Rows"] > 250
        ]
        if found:
            wrong[name] = [f"{node['Node Type']} on {node.get('Relation Name')}" for node in found]

    assert wrong == {}


def test_the_sweep_walks_by_indexes_and_no_further_than_its_round(explained: Explained, filled: str) -> None:
    store = PostgresStore(filled)
    worker(store)
    store.close()
    upkeep = PostgresUpkeep(explained.database, int)

    found = explained.of(lambda: upkeep.sweep(DAY, 3, DAY))

    wrong = []
    for node in found:
        kind, table = node["Node Type"], node.get("Relation Name")
        if kind in {"Hash Join", "Merge Join"} or (kind == "Seq Scan" and table in HOT - {"claimed", "wish"}):
            wrong.append(f"{kind} on {table}")
        counts_all = node.get("Index Name") == "ready_pkey" and node.get("Plan Rows", 0) > 1
        # As many blocks whatever the size of the table.
        samples = kind == "Sample Scan"
        if table in HOT and node.get("Actual Rows", 0) > WALKED and not counts_all and not samples:
            wrong.append(f"{kind} on {table} by {node.get('Index Name')}: {node['Actual Rows']} rows")
    assert wrong == []
