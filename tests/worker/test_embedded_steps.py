"""Steps and loops in an embedded worker on a real store: what a later attempt finds of what earlier ones did."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from duly.client.task import Task
from duly.core.job import RESULT_MARK, JobId, JobRecord, NewJob, Steps
from duly.core.lifecycle import State
from duly.stores.open import open_store
from duly.worker.embedded import Embedded
from duly.worker.options import WorkerOptions
from tests.e2e import steps_app as chores
from tests.waiting import wait_until

AnyTask = Task[..., Any]


class Bench:
    """One store and a ledger."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self.store = open_store(url)
        self._folder = folder

    def put(self, task: AnyTask, then: tuple[NewJob, ...] = (), **arguments: object) -> JobId:
        job = NewJob(task.queue, task.name, json.dumps(arguments).encode(), then=then)
        return self.store.jobs.enqueue([job])[0].id

    def work(self) -> None:
        with Embedded(chores.jobs, WorkerOptions(url=self.url)) as worker:
            worker.until_idle(30)

    def job(self, id: JobId) -> JobRecord:
        record = self.store.inspection.lookup([id])[0]
        assert record is not None
        return record

    def wait_completed(self, id: JobId) -> None:
        wait_until(lambda: self.job(id).state is State.completed, timeout=60, what=f"the end of job {id}")

    def count(self, what: str) -> int:
        return chores.noted(what)

    def release(self) -> None:
        (self._folder / "release").touch()


@pytest.fixture
def sqlite_bench(sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    yield from _bench(sqlite_url, tmp_path, monkeypatch)


@pytest.fixture
def postgres_bench(postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    yield from _bench(postgres_url, tmp_path, monkeypatch)


@pytest.fixture(params=["sqlite", "postgres"])
def bench(request: pytest.FixtureRequest) -> Bench:
    made = request.getfixturevalue(f"{request.param}_bench")
    assert isinstance(made, Bench)
    return made


def _bench(url: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.setenv("CHORES", str(folder))
    chores.jobs.client.override(url=url)
    made = Bench(url, folder)
    made.store.schema.migrate()
    yield made
    made.store.close()
    chores.jobs.close()


def test_steps_are_stored_from_every_kind_of_handler(bench: Bench) -> None:
    ids = [bench.put(task) for task in chores.STEPS]
    bench.release()

    bench.work()

    assert [bench.job(id).result for id in ids] == [b"[1,2]"] * len(ids)
    kept = [bench.store.steps.steps(id).finished for id in ids]
    assert kept == [{"first": b"1", "second": b"2"}] * len(ids)


def test_a_loop_that_is_not_cut_sees_each_item_once(bench: Bench) -> None:
    ids = [bench.put(task) for task in (*chores.WALKS, *chores.POLITE)]
    bench.release()

    bench.work()

    assert [bench.job(id).result for id in ids] == [b'"walked"'] * len(ids)
    assert [bench.count(f"item {number}") for number in range(5)] == [len(ids)] * 5


def test_a_job_acknowledged_at_the_start_runs_its_steps_and_keeps_none(bench: Bench) -> None:
    ids = [bench.put(task) for task in chores.ONCE]

    bench.work()

    assert (bench.count("once"), bench.count("once item")) == (3, 9)
    assert [bench.store.steps.steps(id) for id in ids] == [Steps()] * 3


def test_a_retry_and_a_redrive_go_on_at_the_step_that_failed(bench: Bench) -> None:
    """FL-05: counters 1, 1, 1, 3, 1."""
    id = bench.put(chores.five)
    bench.work()
    dead = bench.job(id)

    assert bench.store.operator.redrive([id], "anna", "the route is back") == [id]
    bench.work()

    assert (dead.state, dead.counters.failed) == (State.dead, 2)
    assert bench.job(id).state is State.completed
    assert bench.job(id).result == b"[0,1,3,6,10,15]"
    assert [bench.count(f"step {number}") for number in range(1, 6)] == [1, 1, 1, 3, 1]


def test_follow_ups_commit_with_a_completion_in_the_handlers_transaction(bench: Bench) -> None:
    follow = NewJob("default", chores.follow_up.name, b'{"of":' + RESULT_MARK + b"}")
    ids = [bench.put(task, then=(follow,), commit=True) for task in chores.COMPLETES]

    bench.work()

    assert [(bench.job(id).state, bench.job(id).result) for id in ids] == [(State.completed, b"7")] * len(ids)
    assert bench.count("followed") == len(ids)


def test_no_follow_up_outlives_a_completion_that_was_rolled_back(bench: Bench) -> None:
    follow = NewJob("default", chores.follow_up.name, b'{"of":' + RESULT_MARK + b"}")
    ids = [bench.put(task, then=(follow,), commit=False) for task in chores.COMPLETES]

    bench.work()

    assert {bench.job(id).state for id in ids} == {State.dead}
    assert all("completion was rolled back" in (bench.job(id).reason or "") for id in ids)
    assert bench.count("followed") == 0


def test_a_position_is_reported_while_the_handler_holds_a_transaction_with_enqueues(
    postgres_bench: Bench,
) -> None:
    bench = postgres_bench
    id = bench.put(chores.walks_in_a_transaction)

    with Embedded(chores.jobs, WorkerOptions(url=bench.url)) as worker:
        wait_until(lambda: bench.store.steps.steps(id).cursors == {"items": 2}, what="the position")
        other = bench.put(chores.follow_up, of=1)
        bench.wait_completed(other)
        bench.release()
        worker.until_idle()

    assert bench.job(id).state is State.completed


def test_nobody_waits_for_a_transaction_that_holds_a_completion(postgres_bench: Bench) -> None:
    bench = postgres_bench
    ids = [bench.put(task) for task in (chores.completes_slowly, chores.completes_slowly_isolated)]

    with Embedded(chores.jobs, WorkerOptions(url=bench.url)) as worker:
        wait_until(lambda: bench.count("started") == 2, what="both transactions")
        for _ in range(3):
            other = bench.put(chores.follow_up, of=1)
            bench.wait_completed(other)
        bench.release()
        worker.until_idle()

    assert {bench.job(id).state for id in ids} == {State.completed}


def test_a_step_inside_a_transaction_on_one_file_is_refused_and_not_run_again(sqlite_bench: Bench) -> None:
    bench = sqlite_bench
    ids = [bench.put(task) for task in (chores.steps_inside, chores.steps_inside_on_loop)]

    bench.work()

    assert {bench.job(id).state for id in ids} == {State.dead}
    assert all("outside of your transaction" in (bench.job(id).reason or "") for id in ids)
    assert bench.count("inside") == 2


def test_a_step_after_the_completion_is_refused_before_it_runs(bench: Bench) -> None:
    id = bench.put(chores.steps_after)

    bench.work()

    assert bench.job(id).result == b'"done"'
    assert (bench.count("refused"), bench.count("after")) == (1, 0)
