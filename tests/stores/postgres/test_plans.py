"""Every hot statement has one plan, also when the tables were empty when they were analysed.

The server itself tells the plans of the statements inside our functions (auto_explain), over tables that hold 50,000
rows and as many dead entries by then.
"""

from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from duly.core.job import NewJob, Progress
from duly.core.lifecycle import Event
from duly.stores.postgres.database import Database
from duly.stores.postgres.jobs import PostgresJobs
from duly.stores.postgres.leases import PostgresLeases
from duly.stores.postgres.operator import PostgresOperator
from duly.stores.postgres.store import PostgresStore
from duly.stores.postgres.upkeep import PostgresUpkeep
from tests.stores.postgres.acts import MINUTE, ended, put, request, worker
from tests.stores.postgres.explained import Explained

HOT = {
    "job",
    "ready",
    "scheduled",
    "blocked",
    "claimed",
    "finished",
    "dead",
    "attempt",
    "worker",
    "result",
    "wish",
}
ROWS = 50_000
RARE = NewJob("default", "ok", b"{}", tags=("a", "b"), delay=MINUTE, expires=MINUTE)
TOUCHED = 60
"""More index entries than this for a handful of jobs: some scan walks what is not its business."""

pytestmark = [pytest.mark.slow, pytest.mark.parametrize("postgres", [15, 18], indirect=True)]


@pytest.fixture
def filled(url: str) -> str:
    """Analysed when empty, then filled: what a queue looks like to the planner on every morning."""
    store = PostgresStore(url)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("vacuum analyze")
        connection.execute("alter system set autovacuum to off")
        connection.execute("select pg_reload_conf()")
        busy = worker(store)
        for queue in ("default", "other"):
            for _ in range(ROWS // 2 // 1000):
                put(store, 1000, queue=queue)
        for _ in range(20):
            store.jobs.exchange(
                busy, [ended(job) for job in store.jobs.exchange(busy, (), request(500)).claimed], None
            )
        store.jobs.exchange(busy, (), request(500, "other"))
        connection.execute(
            "insert into duly.scheduled (id, run_at, queue, task, priority)"
            " select g, clock_timestamp() + g * interval '1 s', 1, 1, 1 from generate_series(1000000, 1050000) g"
        )
        connection.execute("alter system reset autovacuum")
        connection.execute("select pg_reload_conf()")
    store.close()
    return url


def faults(found: list[dict[str, Any]]) -> list[str]:
    wrong = []
    for node in found:
        kind, table = node["Node Type"], node.get("Relation Name")
        if kind in {"Hash Join", "Merge Join"} or (kind == "Seq Scan" and table in HOT):
            wrong.append(f"{kind} on {table}")
        removed = node.get("Rows Removed by Filter", 0) * node.get("Actual Loops", 1)
        if table in HOT and removed > TOUCHED:
            wrong.append(f"{kind} on {table} by {node.get('Index Name')}: {removed} rows in vain")
        if table in HOT and node.get("Actual Rows", 0) * node.get("Actual Loops", 1) > TOUCHED:
            wrong.append(f"{kind} on {table} by {node.get('Index Name')}: {node['Actual Rows']} rows")
    return wrong


def test_the_hot_statements_touch_only_what_they_are_about(filled: str) -> None:
    database = Database(filled, "duly", None, 1)
    explained = Explained(database)
    jobs, leases = PostgresJobs(database), PostgresLeases(database)
    store = PostgresStore(filled)
    me = worker(store)
    held = list(jobs.exchange(me, (), request(10)).claimed)

    def exchange() -> None:
        ends = [ended(held.pop()), ended(held.pop(), Event.fail), ended(held.pop(), Event.bury)]
        ends.append(ended(held.pop(), Event.interrupt))
        held.extend(jobs.exchange(me, ends, request(10)).claimed)

    acts: dict[str, Callable[[], object]] = {
        "enqueue": lambda: put(store_on(database), 5),
        "enqueue rare jobs": lambda: jobs.enqueue([RARE] * 5),
        "exchange": exchange,
        "extend": lambda: jobs.extend(me, held[0].id, held[0].run, MINUTE),
        "arguments": lambda: jobs.arguments([job.id for job in held]),
        "beat": lambda: leases.beat([me]),
        "report": lambda: jobs.report(me, [Progress(held[0].id, held[0].run, 1)]),
        "promote": lambda: PostgresUpkeep(database, int).promote(10),
        "cancel": lambda: PostgresOperator(database).cancel(put(store, 5), "ann", "test"),
    }
    wrong = {}
    for name, act in acts.items():
        for _ in range(6):
            act()
        found = faults(explained.of(act))
        if found:
            wrong[name] = found
    gone = [worker(store) for _ in range(3)]
    for one in gone:
        jobs.exchange(one, (), request(5))
    wrong["reap"] = faults(
        explained.of(lambda: leases.reap([beat for beat in leases.beats() if beat.incarnation == gone[0]], 3))
    )
    wrong["disown"] = faults(explained.of(lambda: leases.disown(gone[1], (), "died", 3)))
    store.close()
    database.close()

    assert {name: found for name, found in wrong.items() if found} == {}


def store_on(database: Database) -> PostgresStore:
    """A store whose calls go through this database, so that their plans are seen."""
    store = PostgresStore("postgresql://")
    store.jobs = PostgresJobs(database)
    return store


def test_a_lookup_probes_by_id(filled: str) -> None:
    store = PostgresStore(filled)
    ids = put(store, 5)
    database = Database(filled, "duly", None, 1)
    explained = Explained(database)

    found = explained.of(lambda: database.call("lookup_jobs", {"ids": ids}))

    store.close()
    database.close()
    assert faults(found) == []
