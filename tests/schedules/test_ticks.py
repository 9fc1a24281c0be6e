"""A tick: ready rows become jobs, each once, whoever reads them and whoever dies while reading."""

import sqlite3
import subprocess
import sys
import threading
from collections import namedtuple
from collections.abc import Callable, Iterable
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest
from msgspec.structs import replace

from duly import App, UsageError
from duly.telemetry.schedules import RowsRefused, ScheduleFailed
from duly.testing.clock import FakeClock
from duly.worker.embedded import Embedded
from duly.worker.registration import declare
from tests.scenarios.schedulers import ROOT, Scheduler, made, record, set_clock
from tests.schedules.conftest import app_on
from tests.schedules.ticker import READY, app_at
from tests.waiting import wait_until

TEN = timedelta(seconds=10)


@pytest.fixture
def execute(url: str) -> Callable[[str], None]:
    """Run SQL of the user's own; the table is there."""

    def run(sql: str) -> None:
        if url.startswith("sqlite"):
            with (
                closing(sqlite3.connect(url.removeprefix("sqlite:///"), timeout=30)) as connection,
                connection,
            ):
                connection.execute(sql)
        else:
            with psycopg.connect(url) as server:
                server.execute(sql.encode())

    run("create table purchase (id integer primary key, amount integer not null, ready boolean not null)")
    return run


def ship(purchase_id: int, amount: int) -> None:
    pass


def ticking(app: App, source: Any = READY, key: str = "purchase:{purchase_id}") -> Scheduler:
    """A scheduler of an App with this tick, which is declared."""
    app.tick("10s", source=source, key=key)(app.task(ship))
    declare(app)
    return Scheduler(app.store, app.client.registry.schedules)


def look(scheduler: Scheduler, clock: FakeClock) -> list[bytes]:
    """Ten seconds later; the arguments of all jobs so far."""
    clock.advance(TEN)
    scheduler.work()
    return [job.args for job in made(scheduler.store, "ship")]


def test_each_ready_row_becomes_one_job(jobs: App, clock: FakeClock, execute: Callable[[str], None]) -> None:
    scheduler = ticking(jobs)

    nothing = look(scheduler, clock)
    execute("insert into purchase values (1, 10, true), (2, 20, false), (3, 30, true)")
    two = look(scheduler, clock)
    again = look(scheduler, clock)
    execute("update purchase set ready = true where id = 2")
    three = look(scheduler, clock)

    assert nothing == []
    assert two == again == [b'{"purchase_id":1,"amount":10}', b'{"purchase_id":3,"amount":30}']
    assert three[2:] == [b'{"purchase_id":2,"amount":20}']
    assert made(jobs.store, "ship")[2].trigger == "schedule:ship@2030-05-01T12:00:40Z"
    assert record(jobs.store, "ship").fired == 4


def test_a_worker_runs_the_jobs_of_ready_rows(file_url: str) -> None:
    ran: list[int] = []
    app = App(file_url)
    with closing(sqlite3.connect(file_url.removeprefix("sqlite:///"))) as connection, connection:
        connection.execute("create table purchase (id integer primary key)")
        connection.execute("insert into purchase values (7)")

    @app.tick("1s", source="select id from purchase", key="purchase:{id}")
    @app.task
    def ship_it(id: int) -> None:
        ran.append(id)

    with Embedded(app):
        wait_until(lambda: ran)
    app.close()

    assert ran == [7]


class Row(NamedTuple):
    purchase_id: int
    amount: int


Other = namedtuple("Other", "amount purchase_id")  # noqa: PYI024 - as libraries make them


@pytest.mark.parametrize(
    "rows",
    [
        [{"purchase_id": 1, "amount": 10}],
        [(1, 10)],
        [Row(1, 10)],
        [Other(10, 1)],
        iter([{"amount": 10, "purchase_id": 1}]),
    ],
    ids=["mapping", "tuple", "named tuple", "other order", "iterator"],
)
def test_a_row_is_a_mapping_a_tuple_or_a_named_tuple(
    filed: App, clock: FakeClock, rows: Iterable[object]
) -> None:
    scheduler = ticking(filed, lambda connection: rows)

    found = look(scheduler, clock)

    assert found == [b'{"purchase_id":1,"amount":10}']


def test_a_row_of_the_driver_is_taken_by_its_columns(filed: App, clock: FakeClock, file_url: str) -> None:
    def rows(connection: Any) -> list[Any]:
        cursor = connection.cursor()
        cursor.row_factory = sqlite3.Row
        return list(cursor.execute("select 10 as amount, 1 as purchase_id"))

    found = look(ticking(filed, rows), clock)

    assert found == [b'{"purchase_id":1,"amount":10}']


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (lambda connection: [7], "a row is a mapping"),
        (lambda connection: [(1, 2, 3)], "too many positional"),
        (lambda connection: [{"purchase": 1}], "missing a required argument"),
        (lambda connection: [("one", 2)], "purchase_id"),
        ("select id from nowhere", "nowhere"),
        ("create table spoiled (id integer)", "returns no rows"),
        (lambda connection: 1 / 0, "ZeroDivisionError"),
    ],
)
def test_a_source_that_fails_is_told_and_stores_nothing(
    filed: App, clock: FakeClock, source: Any, words: str
) -> None:
    scheduler = ticking(filed, source)
    before = record(filed.store, "ship")

    found = look(scheduler, clock)

    (failed,) = [event for event in scheduler.said if isinstance(event, ScheduleFailed)]
    assert words in failed.sentence()
    assert found == []
    after = record(filed.store, "ship")
    assert (after.failure, after.failures) == (failed.error, 1)
    assert replace(after, failure=None, failed_at=None, failures=0) == before


def test_a_row_whose_key_had_other_arguments_is_refused_alone(
    jobs: App, clock: FakeClock, execute: Callable[[str], None]
) -> None:
    scheduler = ticking(jobs)
    execute("insert into purchase values (1, 10, true)")
    look(scheduler, clock)

    execute("update purchase set amount = 11")
    execute("insert into purchase values (2, 20, true)")
    found = look(scheduler, clock)

    (refused,) = [event for event in scheduler.said if isinstance(event, RowsRefused)]
    assert found == [b'{"purchase_id":1,"amount":10}', b'{"purchase_id":2,"amount":20}']
    assert refused.rows == 1
    assert "1 rows made no job" in refused.sentence()


def test_two_workers_that_look_at_once_make_no_job_twice(
    url: str, jobs: App, clock: FakeClock, execute: Callable[[str], None]
) -> None:
    ticking(jobs)
    apps = [app_on(url, clock) for _ in range(2)]
    schedulers = [ticking(app) for app in apps]
    barrier = threading.Barrier(3, timeout=60)

    def work(scheduler: Scheduler) -> None:
        for _ in range(5):
            barrier.wait()
            scheduler.work()
            barrier.wait()

    threads = [threading.Thread(target=work, args=[each]) for each in schedulers]
    for thread in threads:
        thread.start()
    for tick in range(5):
        execute(f"insert into purchase values ({2 * tick}, 1, true), ({2 * tick + 1}, 1, true)")
        clock.advance(TEN)
        barrier.wait()
        barrier.wait()
    for thread in threads:
        thread.join(60)
    for app in apps:
        app.close()

    assert [job.args for job in made(jobs.store, "ship")] == [
        f'{{"purchase_id":{n},"amount":1}}'.encode() for n in range(10)
    ]
    assert record(jobs.store, "ship").fired == 5
    assert [event for each in schedulers for event in each.said if isinstance(event, RowsRefused)] == []


def test_a_tick_whose_key_an_open_transaction_holds_fails_soon_is_shown_and_comes_again(
    server_url: str, clock: FakeClock
) -> None:
    app = app_on(server_url, clock)
    scheduler = ticking(app, lambda connection: [(1, 10)])
    with psycopg.connect(server_url) as user:
        app.tasks["ship"].using(idempotency_key="purchase:1", connection=user).enqueue(1, 10)

        held = look(scheduler, clock)

        shown = record(app.store, "ship")
        user.rollback()
    freed = look(scheduler, clock)

    assert (held, freed) == ([], [b'{"purchase_id":1,"amount":10}'])
    assert "lock timeout" in (shown.failure or "")
    assert (shown.fired, shown.failures) == (0, 1)
    assert (record(app.store, "ship").fired, record(app.store, "ship").failures) == (1, 0)
    with app.transaction() as connection:
        assert connection.execute("show lock_timeout").fetchone() == ("0",)
    app.close()


@pytest.mark.process
def test_a_process_killed_in_the_middle_of_a_tick_leaves_nothing_and_the_next_does_it_all(
    url: str, clock: FakeClock, tmp_path: Path, execute: Callable[[str], None]
) -> None:
    file = tmp_path / "clock"
    # More than go into one round trip, so that most jobs are stored when it dies.
    execute(
        "insert into purchase with recursive n(x) as (select 1 union all select x + 1 from n where x < 1001) "
        "select x, 10, true from n"
    )
    app = app_at(url)
    app.client.clock = clock
    declare(app)
    set_clock(file, clock() + TEN)

    died = subprocess.run(
        [sys.executable, "-m", "tests.schedules.ticker", url, str(file), "die"], cwd=ROOT, timeout=60
    )
    after_death = (made(app.store, "ship"), record(app.store, "ship").fired)
    look(Scheduler(app.store, app.client.registry.schedules), clock)

    assert died.returncode == -9
    assert after_death == ([], 0)
    assert [job.args for job in made(app.store, "ship")] == [
        f'{{"purchase_id":{n},"amount":10}}'.encode() for n in range(1, 1002)
    ]
    app.close()


def test_after_a_downtime_a_tick_looks_once(jobs: App, clock: FakeClock) -> None:
    looks: list[object] = []

    def nothing(connection: object) -> list[tuple[int, int]]:
        looks.append(connection)
        return []

    scheduler = ticking(jobs, nothing)
    clock.advance(timedelta(hours=3, seconds=4))

    scheduler.work()

    assert len(looks) == 1
    assert record(jobs.store, "ship").next_at == clock() + timedelta(seconds=6)
    assert record(jobs.store, "ship").last_at == clock() - timedelta(seconds=4)


def test_run_by_hand_a_tick_reads_its_rows_at_once(filed: App, clock: FakeClock, file_url: str) -> None:
    ticking(filed, lambda connection: [(1, 10)])
    stranger = app_on(file_url, clock)

    first = filed.operate.run_schedule("ship")
    again = filed.operate.run_schedule("ship")
    with pytest.raises(UsageError, match="name that App with -a"):
        stranger.operate.run_schedule("ship")
    stranger.close()

    assert len(made(filed.store, "ship")) == 1
    assert first == again


def test_two_rows_of_one_key_are_one_job_in_the_answer(filed: App) -> None:
    ticking(filed, lambda connection: [(1, 10), (2, 20), (1, 10)])

    ids = filed.operate.run_schedule("ship")

    assert ids == tuple(record.id for record in reversed(filed.inspect.jobs().jobs))
    assert len(ids) == 2


def test_a_source_that_returns_nothing_to_walk_is_told_so(filed: App) -> None:
    ticking(filed, lambda connection: None)

    with pytest.raises(UsageError, match=r"source returned None; return rows, or \[\] where none is ready"):
        filed.operate.run_schedule("ship")
