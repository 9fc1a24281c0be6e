"""A supervisor's scaler on a real store: it reads the wait targets that are stored, and stays within cap and range."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from duly.client.settings import resolve
from duly.core.control import LimitPolicy
from duly.core.errors import UsageError
from duly.core.plan import read_processes
from duly.core.registration import QueuePolicy, Registration
from duly.telemetry.events import Happening, ProcessesScaled
from duly.telemetry.hub import Hub
from duly.testing.conformance.bench import Bench
from duly.worker.options import WorkerOptions
from duly.worker.scaling import Scaler
from duly.worker.supervisor import run
from tests.conformance.places import SQLitePlace

QUEUES = ("mail",)


@pytest.fixture
def bench(sqlite_path: Path) -> Iterator[Bench]:
    bench = Bench(SQLitePlace(sqlite_path, "truncate"))
    yield bench
    bench.close()


def scaler(bench: Bench, seen: list[Happening], least: int = 1, most: int = 8) -> Scaler:
    hub = Hub()
    hub.listen(seen.append)
    return Scaler(bench.store, QUEUES, least, most, hub, clock=lambda: bench.clock().timestamp())


def declare(bench: Bench, *limits: LimitPolicy) -> None:
    policy = QueuePolicy("mail", wait_target=timedelta(seconds=5))
    bench.store.schema.declare(Registration("shop:jobs", "1", queues=(policy,), limits=limits))


def test_a_queue_that_misses_its_stored_target_gets_a_process(bench: Bench) -> None:
    seen: list[Happening] = []
    declare(bench)
    bench.worker("ok", queues=QUEUES)
    scaling = scaler(bench, seen)
    bench.put_many(3, queue="mail")

    scaling.look()
    before = scaling.wanted
    bench.clock.advance(timedelta(seconds=6))
    scaling.look()

    assert (before, scaling.wanted) == (1, 2)
    assert [event for event in seen if isinstance(event, ProcessesScaled)] == seen
    assert seen[0].sentence() == (
        "starting 1 process, 2 in all: the jobs of queue mail wait longer than 5 s, or soon will"
    )


def test_a_queue_at_its_cap_gets_none(bench: Bench) -> None:
    declare(bench, LimitPolicy("queue:mail", max_running=1))
    worker = bench.worker("ok", queues=QUEUES)
    bench.put_many(3, queue="mail")
    bench.claim(worker, 3, queues=QUEUES)
    bench.put_many(3, queue="mail")
    bench.clock.advance(timedelta(minutes=1))
    scaling = scaler(bench, [])

    scaling.look()

    assert scaling.wanted == 1


def test_after_calm_it_goes_down_by_one_to_the_least(bench: Bench) -> None:
    declare(bench)
    bench.worker("ok", queues=QUEUES)
    scaling = scaler(bench, [])
    bench.put_many(3, queue="mail")
    bench.clock.advance(timedelta(seconds=6))
    scaling.look()
    worker = bench.worker("ok", queues=QUEUES)
    assert len(bench.claim(worker, 3, queues=QUEUES)) == 3

    scaling.look()
    bench.clock.advance(timedelta(seconds=119))
    scaling.look()
    still = scaling.wanted
    bench.clock.advance(timedelta(seconds=1))
    scaling.look()
    bench.clock.advance(timedelta(hours=1))
    scaling.look()
    scaling.look()

    assert (still, scaling.wanted) == (2, 1)


@pytest.mark.parametrize(
    ("said", "read"), [("4", (4, None)), (4, (4, None)), ("1..8", (1, 8)), ("3..3", (3, None))]
)
def test_a_number_of_processes_or_a_range_is_read(said: object, read: tuple[int, int | None]) -> None:
    assert read_processes(said) == read


@pytest.mark.parametrize("said", ["0", "8..1", "many", "1..", "-1", True, "1...8", "0..4"])
def test_what_is_no_range_says_what_to_write(said: object) -> None:
    with pytest.raises(UsageError, match=r"1\.\.8"):
        read_processes(said)


def test_the_environment_may_name_a_range(tmp_path: Path) -> None:
    settings = resolve({}, environ={"DULY_PROCESSES": "2..6"}, directory=tmp_path)

    assert settings.processes == (2, 6)
    assert {row.name: row.value for row in settings.rows()}["processes"] == "2..6"
    with pytest.raises(UsageError, match=r"DULY_PROCESSES='6\.\.2'"):
        resolve({}, environ={"DULY_PROCESSES": "6..2"}, directory=tmp_path)


def test_a_worker_that_ends_when_idle_is_not_scaled() -> None:
    with pytest.raises(UsageError, match="give --processes one number"):
        run("shop:jobs", WorkerOptions(processes=1, processes_most=3, until_idle=True))
