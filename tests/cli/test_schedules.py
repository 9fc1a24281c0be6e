"""`duly schedules`: the list in plain words, and the acts on one."""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from duly.core.job import JobId, NewJob
from duly.core.registration import Registration, Schedule
from duly.stores.open import open_store
from duly.testing.conformance.bench import Bench
from tests.cli.conftest import Answer, Terminal, run
from tests.scenarios.schedulers import Scheduler

HOUR = timedelta(hours=1)
DIGEST = NewJob("mail", "digest", b'{"days":7}')
WEEKDAYS = Schedule("digest", cron="0 14 * * 1-5", tz="Europe/Berlin", job=DIGEST)
ROWS = Schedule("rows", every=timedelta(seconds=10), overlap="allow")


@pytest.fixture
def declared(bench: Bench) -> Bench:
    """Two schedules of an App, the first due time of one of them right now."""
    bench.store.schema.declare(
        Registration("shop:jobs", "1", schedules=((WEEKDAYS, bench.clock()), (ROWS, bench.clock() + HOUR)))
    )
    return bench


def test_the_list_says_in_plain_words_what_is_due_when(declared: Bench, duly: Terminal) -> None:
    Scheduler(declared.store).work()
    declared.clock.advance(HOUR / 2)

    answer = duly("schedules", "list")

    assert [line.split(maxsplit=7) for line in answer.lines] == [
        ["SCHEDULE", "TASK", "NEXT", "LAST", "FIRED", "MISSED", "WHEN"],
        ["digest", "digest", "in", "24h", "30m", "ago", "1", "0  every weekday at 14:00 Europe/Berlin"],
        ["rows", "a", "tick", "in", "30m", "-", "0", "0  every 10s"],
    ]  # fmt: skip


def test_what_went_wrong_stands_under_its_schedule_until_the_next_success(
    declared: Bench, duly: Terminal
) -> None:
    due = declared.clock()
    for _ in range(2):
        declared.store.schedules.fail("digest", due, "UndefinedTable: no \x1b[31mpurchase\nLINE 1: select")
        declared.clock.advance(HOUR / 4)

    told = duly("schedules", "list")
    quiet = duly("schedules", "list", "-q")
    document: Any = duly("schedules", "list", "-o", "json").json
    warned = duly("check")
    Scheduler(declared.store).work()
    after = duly("schedules", "list")

    line = "  failed 2 times, last 15m ago: UndefinedTable: no \\x1b[31mpurchase LINE 1: select"
    assert told.lines[2] == quiet.lines[1] == line
    assert [len(answer.lines) for answer in (told, quiet, after)] == [4, 3, 3]
    assert [each["failures"] for each in document] == [2, 0]
    assert document[0]["failed_at"] == "2030-05-01T12:15:00Z"
    assert document[0]["failure"].startswith("UndefinedTable: no")
    assert "schedule 'digest' could not enqueue, 2 times since its last success: UndefinedTable" in warned.out


def test_an_empty_list_says_how_to_begin(duly: Terminal) -> None:
    answer = duly("schedules", "list")

    assert "@jobs.cron" in answer.out


def test_programs_get_moments_and_the_plain_words(declared: Bench, duly: Terminal) -> None:
    Scheduler(declared.store).work()

    listed: Any = duly("schedules", "list", "-o", "json").json
    digest, rows = listed

    assert digest["words"] == "every weekday at 14:00 Europe/Berlin"
    assert (digest["last_at"], digest["next_at"]) == ("2030-05-01T12:00:00Z", "2030-05-02T12:00:00Z")
    assert (digest["task"], digest["args"], digest["origin"]) == ("digest", {"days": 7}, "shop:jobs")
    assert (rows["every_s"], rows["task"], rows["fired"], rows["paused"]) == (10.0, None, 0, False)


def test_run_enqueues_now_and_leaves_the_rhythm(declared: Bench, duly: Terminal) -> None:
    before = declared.store.schedules.all()

    answer = duly("schedules", "run", "digest")

    (job,) = declared.store.inspection.lookup([JobId(int(answer.out.split()[-1]))])
    assert answer.out.startswith("digest enqueued job ")
    assert job is not None
    assert (job.queue, job.task, job.args) == ("mail", "digest", b'{"days":7}')
    assert declared.store.schedules.all() == before


def test_a_tick_runs_only_with_the_code_of_its_app(declared: Bench, duly: Terminal) -> None:
    answer = duly("schedules", "run", "rows")

    assert answer.code == 2
    assert "code of shop:jobs; name that App with -a" in answer.err


ORDERS = """
from duly import App

jobs = App()
rows = []


@jobs.tick("10s", source=lambda connection: rows, key="order:{order_id}")
@jobs.task
def ship_order(order_id: int, carrier: str = "rail") -> None:
    pass


@jobs.every("1h")
@jobs.task(unique="tidy")
def tidy_orders() -> None:
    pass
"""


def test_run_says_whether_rows_were_new_seen_before_refused_or_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DULY_URL", f"sqlite:///{tmp_path}/jobs.db")
    (tmp_path / "orders_by_tick.py").write_text(ORDERS)
    monkeypatch.chdir(tmp_path)
    run("migrate", "orders_by_tick")
    rows = sys.modules["orders_by_tick"].rows

    def tick(*found: tuple[object, ...], form: str = "table") -> Answer:
        rows[:] = found
        return run("schedules", "run", "ship_order", "-a", "orders_by_tick", "-o", form)

    nothing, first, again, more = tick(), tick((1,)), tick((1,)), tick((1,), (2,))
    other = tick((2, "road"))
    document: Any = tick((1,), (3,), (2, "road"), form="json").json

    (one, three), two = document["jobs"], more.lines[0].split()[-1]
    assert nothing.out == "ship_order found no row that is ready\n"
    assert first.out == f"ship_order enqueued job {one}\n"
    assert again.out == f"ship_order enqueued nothing: it found what has its job already: job {one}\n"
    assert more.lines == [
        f"ship_order enqueued job {two}",
        f"ship_order also found what has its job already: job {one}",
    ]
    assert other.out.startswith("ship_order found 1 row that made no job: ")
    assert f"belongs to job {two}" in other.out
    assert (document["jobs"], document["created"], len(document["refused"])) == ([one, three], [three], 1)


def test_run_says_that_a_job_with_the_same_key_waits_already(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DULY_URL", f"sqlite:///{tmp_path}/jobs.db")
    (tmp_path / "orders_by_key.py").write_text(ORDERS)
    monkeypatch.chdir(tmp_path)
    run("migrate", "orders_by_key")

    first, again = (run("schedules", "run", "tidy_orders").out for _ in range(2))

    job = first.removeprefix("tidy_orders enqueued ")
    assert again == f"tidy_orders enqueued nothing: it found what has its job already: {job}"


def test_pause_and_resume_say_what_comes_next_and_conflict_when_nothing_changes(
    declared: Bench, duly: Terminal
) -> None:
    paused = duly("schedules", "pause", "rows", "--reason", "INC-311")
    listed = duly("schedules", "list")
    again = duly("schedules", "pause", "rows")
    resumed = duly("schedules", "resume", "rows")
    twice = duly("schedules", "resume", "rows")

    assert paused.out == "rows paused. Undo: duly schedules resume rows\n"
    assert "paused" in listed.lines[-1]
    assert (again.code, twice.code) == (4, 4)
    assert resumed.out == "rows resumed; next at 2030-05-01 13:00:00 UTC\n"


def test_remove_asks_and_says_who_brings_it_back(declared: Bench, duly: Terminal) -> None:
    silent = duly("schedules", "remove", "rows")
    dry = duly("schedules", "remove", "rows", "--dry-run")
    done = duly("schedules", "remove", "rows", "--yes")

    assert silent.code == 2
    assert dry.out == "rows would be removed; nothing was done\n"
    assert done.out == "rows removed; a worker of shop:jobs declares it again when it starts\n"
    assert [record.schedule.name for record in declared.store.schedules.all()] == ["digest"]


def test_an_unknown_schedule_is_not_found(declared: Bench, duly: Terminal) -> None:
    for verb in ("run", "pause", "resume", "remove"):
        answer = duly("schedules", verb, "digset")

        assert answer.code == 3
        assert "did you mean 'digest'" in answer.err


def test_migrate_warns_of_a_schedule_of_run_time_that_it_takes_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DULY_URL", f"sqlite:///{tmp_path}/jobs.db")
    (tmp_path / "orders_taken_over.py").write_text(ORDERS)
    monkeypatch.chdir(tmp_path)
    run("migrate")
    store = open_store(f"sqlite:///{tmp_path}/jobs.db")
    store.schedules.put(Schedule("tidy_orders", every=HOUR, job=DIGEST), store.inspection.now() + HOUR)
    store.close()

    first, again = (run("migrate", "orders_taken_over").lines[1:] for _ in range(2))

    assert first[0].startswith(
        "warning: schedule tidy_orders was stored at run time and is from now on what orders_"
    )
    assert first[1:] == again == ["declared 0 queues, 2 tasks and 2 schedules"]


def test_migrate_stores_the_schedules_of_an_app_and_leaves_a_later_release_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DULY_URL", f"sqlite:///{tmp_path}/jobs.db")
    text = "from duly import App\njobs = App()\n\n\n@jobs.every({!r})\n@jobs.task\ndef digest() -> None:\n    pass\n"
    said = []

    for interval, module in (("1h", "shop_first"), ("2h", "shop_second")):
        (tmp_path / f"{module}.py").write_text(text.format(interval))
        said.append(run("migrate", module).lines[-1])

    listed: Any = run("schedules", "list", "-o", "json").json
    assert said == ["declared 0 queues, 1 task and 1 schedule"] * 2
    assert [each["every_s"] for each in listed] == [7200.0]
