"""What keys, versions, steps and follow-ups cost does not grow with how many there are: probes, never walks."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from msgspec.structs import replace

from duly.core.job import Cursor, FinishedStep, NewJob, UniqueKey
from duly.core.keys import idempotency_digest, unique_digest
from duly.core.registration import Schedule
from duly.stores.postgres.database import Database
from duly.stores.postgres.jobs import PostgresJobs
from duly.stores.postgres.keys import PostgresKeys, PostgresSteps
from duly.stores.postgres.operator import PostgresOperator
from duly.stores.postgres.schedules import PostgresSchedules
from duly.stores.postgres.store import PostgresStore
from duly.stores.postgres.upkeep import PostgresUpkeep
from tests.stores.postgres.acts import MINUTE, ended, put, request, worker
from tests.stores.postgres.explained import Explained
from tests.stores.postgres.test_plans import HOT, TOUCHED

WALKED = HOT | {"idempotency", "unique_key", "newest", "once", "step", "follow", "blob"}
ROWS = 20_000
FILL = f"""
insert into duly.idempotency select sha256(g::text::bytea), -g, '', '2100-01-01Z' from generate_series(1, {ROWS}) g;
insert into duly.unique_key select sha256(g::text::bytea), -g, 0, true from generate_series(1, {ROWS}) g;
insert into duly.newest select sha256(g::text::bytea), 1, -g, '2100-01-01Z' from generate_series(1, {ROWS}) g;
insert into duly.once select sha256(g::text::bytea), '2100-01-01Z' from generate_series(1, {ROWS}) g;
insert into duly.step select -g, 'step', '1', null from generate_series(1, {ROWS}) g;
insert into duly.follow select -g, 1, 1, '{{}}' from generate_series(1, {ROWS}) g;
insert into duly.blob select 'blob ' || g, -g from generate_series(1, {ROWS}) g;
insert into duly.finished (id, queue_key, enqueued_at, finished_at, run, failed, lost, interrupted, snoozed, status,
                           queue, task, tenant)
select -g, 1, '2100-01-01Z', '2100-01-01Z', 1, 0, 0, 0, 0, 'completed', 'other', 'ok', ''
  from generate_series(1, {ROWS}) g;
"""


def walks(explained: Explained, act: Callable[[], object]) -> list[str]:
    """Scans that read more rows than a handful of jobs has."""
    wrong = []
    for node in explained.of(act):
        kind, table = node["Node Type"], node.get("Relation Name")
        read = (node.get("Actual Rows", 0) + node.get("Rows Removed by Filter", 0)) * node.get(
            "Actual Loops", 1
        )
        if kind in {"Hash Join", "Merge Join"} or (
            table in WALKED and (kind == "Seq Scan" or read > TOUCHED)
        ):
            wrong.append(f"{kind} on {table} by {node.get('Index Name')}: {read} rows")
    return wrong


@pytest.mark.slow
@pytest.mark.parametrize("postgres", [15, 18], indirect=True)
def test_keys_steps_and_follow_ups_are_probed(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("vacuum analyze")
        connection.execute(FILL.encode())
    store, database = PostgresStore(url), Database(url, "duly", None, 1)
    explained = Explained(database)
    jobs, operator = PostgresJobs(database), PostgresOperator(database)
    me = worker(store)
    numbers = iter(range(10**6))
    follow = NewJob("default", "ok", b'{"result":\x01}')

    def keyed(**more: object) -> NewJob:
        key = str(next(numbers))
        job = NewJob(
            "default",
            "ok",
            b"{}",
            idempotency=idempotency_digest("ok", "", key),
            unique=UniqueKey(unique_digest("ok", "", key), live=True),
            version=1,
            then=(follow, replace(follow, unique=UniqueKey(unique_digest("ok", "", f"then {key}")))),
            blobs=(f"file {key}",),
        )
        return replace(job, **more)

    same = keyed()
    held = list(jobs.exchange(me, (), request(10)).claimed)

    def exchange() -> None:
        jobs.enqueue([keyed() for _ in range(3)])
        ends = [ended(job, cursors=(("rows", 3),)) for job in held]
        held[:] = jobs.exchange(me, ends, request(5)).claimed

    def repeat() -> None:
        jobs.enqueue([same, keyed(unique=replace(same.unique, replace=True))])  # type: ignore[type-var]

    def redrive() -> None:
        ids = [stored.id for stored in jobs.enqueue([keyed() for _ in range(3)])]
        operator.cancel(ids, "ann", "test")
        operator.redrive(ids, "ann", "test")
        operator.cancel(ids, "ann", "test")

    def fire() -> None:
        schedules = PostgresSchedules(database)
        at = datetime(2030, 1, 1, next(numbers) % 24, tzinfo=UTC)
        schedules.put(Schedule("hourly", every=timedelta(seconds=next(numbers) + 1), job=follow), at)
        schedules.fire("hourly", at, at + MINUTE, at, [keyed()], 0)
        schedules.due()

    acts: dict[str, Callable[[], object]] = {
        "enqueue": lambda: jobs.enqueue([keyed() for _ in range(5)]),
        "repeat": repeat,
        "exchange": exchange,
        "redrive": redrive,
        "fire": fire,
        "report": lambda: jobs.report(me, (), [Cursor(job.id, job.run, "rows", 1) for job in held]),
        "keep steps": lambda: PostgresSteps(database).keep_steps(
            me, [FinishedStep(job.id, run, "a", b"1") for job in held for run in (job.run, job.run + 1)]
        ),
        "steps": lambda: PostgresSteps(database).steps(held[0].id),
        "answer": lambda: PostgresKeys(database).answer(held[0].id),
        "once": lambda: PostgresKeys(database).once(str(next(numbers)).encode(), MINUTE),
        "unused blobs": lambda: PostgresKeys(database).unused_blobs(["blob 1", "blob x"]),
        "retain": lambda: PostgresUpkeep(database, int).retain({}, {}, timedelta(0), timedelta(0), 20),
    }
    wrong = {}
    for name, act in acts.items():
        for _ in range(6):
            act()
        if found := walks(explained, act):
            wrong[name] = found
    put(store)
    store.close()
    database.close()

    assert wrong == {}
