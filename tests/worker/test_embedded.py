"""An embedded worker on a real store: what handlers return, raise and ask for, and what is stored of it."""

import asyncio
import gc
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from duly.client.task import Task
from duly.core.errors import DulyError
from duly.core.job import JobId, JobRecord
from duly.core.lifecycle import Event, State
from duly.telemetry.events import GuardSaidNo, Happening
from duly.telemetry.hub import Hub
from duly.worker.embedded import Embedded
from duly.worker.options import WorkerOptions
from tests.waiting import await_until, wait_until
from tests.worker import app_for_embedded as chores

Run = Callable[..., list[JobRecord]]


@pytest.fixture
def app(sqlite_url: str) -> Iterator[None]:
    """The chores' App on a file of this test's own."""
    chores.jobs.client.override(url=sqlite_url)
    chores.seen.clear()
    chores.gate.clear()
    yield
    chores.jobs.close()


@pytest.fixture
def run(app: None) -> Run:
    """Enqueue one job per argument list, work until nothing is left, and return the records."""

    def run(task: Task[..., Any], *calls: tuple[Any, ...], **options: Any) -> list[JobRecord]:
        stored = [task.enqueue(*call) for call in calls or ((),)]
        with Embedded(chores.jobs, WorkerOptions(**options)) as worker:
            worker.until_idle(30)
        return [record(job.id) for job in stored]

    return run


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> list[Happening]:
    """What the worker said."""
    said: list[Happening] = []
    emit = Hub.emit

    def listen(hub: Hub, happening: Happening) -> None:
        said.append(happening)
        emit(hub, happening)

    monkeypatch.setattr(Hub, "emit", listen)
    return said


def record(id: JobId) -> JobRecord:
    found = chores.jobs.store.inspection.lookup([id])[0]
    assert found is not None
    return found


@pytest.mark.parametrize(
    "task",
    [chores.double, chores.double_in_thread, chores.double_isolated, chores.double_isolated_async],
    ids=lambda task: task.name,
)
def test_every_kind_of_handler_stores_its_result(run: Run, task: Task[..., Any]) -> None:
    records = run(task, (1,), (2,), (3,))

    assert {row.state for row in records} == {State.completed}
    assert [row.result for row in records] == [b"2", b"4", b"6"]


@pytest.mark.parametrize(
    ("task", "guard"),
    [
        (chores.guarded, "even"),
        (chores.guarded_in_thread, "even_too"),
        (chores.guarded_isolated, "even_too"),
    ],
    ids=["loop", "thread", "process"],
)
def test_every_kind_of_handler_has_its_guard_asked_first(
    run: Run, heard: list[Happening], task: Task[..., Any], guard: str
) -> None:
    odd, even = run(task, (1,), (2,))

    assert (odd.state, odd.reason) == (State.skipped, f"guard {guard}: 1 is odd")
    assert (even.state, even.result) == (State.completed, b"2")
    assert [event.guard for event in heard if isinstance(event, GuardSaidNo)] == [guard]


def test_an_isolated_handler_holds_its_lock_in_its_own_process(run: Run) -> None:
    first, second = run(chores.lock_isolated, (), ())

    assert (first.result, second.result) == (b"1", b"1")
    assert all(limit.running == 0 for limit in chores.jobs.store.control.limits(["lock:ledger"]))


def test_what_an_isolated_handler_sees_of_a_resource_counts_for_its_breaker(run: Run) -> None:
    run(chores.calls_isolated, (), ())

    (limit,) = chores.jobs.store.control.limits(["resource:api"])
    assert (limit.breaker, limit.running) == ("open", 0)


def test_a_transient_error_is_retried_after_the_backoff(app: None) -> None:
    job = chores.flaky.enqueue()

    with Embedded(chores.jobs):
        wait_until(lambda: record(job.id).state is State.completed, what="the third attempt")

    row = record(job.id)
    assert (row.state, row.result, row.counters.failed) == (State.completed, b"3", 2)


def test_a_permanent_error_is_dead_at_once(run: Run) -> None:
    (row,) = run(chores.never)

    assert (row.state, row.counters.failed) == (State.dead, 1)
    assert row.error is not None
    assert row.error.type == "KeyError"


def test_a_fixed_backoff_waits_exactly_its_steps(run: Run) -> None:
    (row,) = run(chores.always_failing)

    (attempt,) = chores.jobs.store.inspection.attempts(row.id)
    assert row.state is State.scheduled
    assert row.run_at is not None
    assert abs(row.run_at - attempt.ended_at - timedelta(seconds=1)) < timedelta(seconds=0.2)


@pytest.mark.parametrize(
    ("how", "state", "reason"),
    [
        ("skip", State.skipped, "not needed"),
        ("group", State.skipped, "from a group"),
        ("dead", State.dead, "unknown account"),
        ("snooze", State.scheduled, None),
        ("retry", State.scheduled, None),
    ],
)
def test_endings_are_raised(run: Run, how: str, state: State, reason: str | None) -> None:
    (row,) = run(chores.ends, (how,))

    assert row.state is state
    assert reason is None or row.reason == reason
    assert row.counters.failed == (1 if how == "retry" else 0)
    assert row.counters.snoozed == (1 if how == "snooze" else 0)


@pytest.mark.parametrize("task", [chores.parent, chores.parent_in_thread], ids=lambda task: task.name)
def test_jobs_enqueued_by_a_handler_inherit_its_correlation(run: Run, task: Task[..., Any]) -> None:
    (row,) = run(task)

    child = record(JobId(int(row.result or b"0")))
    assert (child.task, child.correlation_id) == ("double", row.correlation_id)


def test_progress_is_visible_while_the_handler_runs(app: None) -> None:
    job = chores.reports_progress.enqueue()

    with Embedded(chores.jobs, WorkerOptions()) as worker:
        wait_until(lambda: record(job.id).progress, what="the progress")
        progress = record(job.id).progress
        chores.gate.set()
        worker.until_idle()

    assert progress is not None
    assert (progress.done, progress.of, progress.note) == (3, 10, "reading")
    assert record(job.id).state is State.completed


@pytest.mark.parametrize(
    ("task", "result"),
    [
        (chores.completes, "in the transaction"),
        (chores.completes_in_thread, "in the transaction"),
        (chores.completes_alone, "on its own"),
        (chores.completes_isolated, "in the transaction"),
    ],
    ids=["async", "thread", "alone", "isolated"],
)
def test_a_completion_in_the_handler_is_the_one_that_counts(
    run: Run, heard: list[Happening], task: Task[..., Any], result: str
) -> None:
    (row,) = run(task)

    assert row.state is State.completed
    assert json.loads(row.result or b"null") == result
    assert row.counters.failed == 0
    assert [happening for happening in heard if happening.level == "warning"] == []


def test_an_error_after_the_commit_of_the_completion_is_told(run: Run, heard: list[Happening]) -> None:
    (row,) = run(chores.completes_and_fails)

    (told,) = (happening for happening in heard if happening.level == "warning")
    assert row.state is State.completed
    assert "after the commit of its completion was not recorded: ValueError: after the end" in told.sentence()


@pytest.mark.parametrize("own", [True, False], ids=["alone", "in a transaction"])
def test_an_isolated_handler_may_go_on_after_its_completion(
    app: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, own: bool
) -> None:
    job = chores.completes_and_goes_on.enqueue(str(tmp_path), own)
    options = WorkerOptions(lease=timedelta(seconds=10), heartbeat=timedelta(seconds=0.2))
    compared: list[int] = []

    with Embedded(chores.jobs, options) as worker:
        wait_until(lambda: record(job.id).state is State.completed, timeout=60, what="the completion")
        held = worker.engine.pump.held
        compare = held.compare

        def counted(stored: Iterable[tuple[int, int]]) -> Any:
            compared.append(1)
            return compare(stored)

        monkeypatch.setattr(held, "compare", counted)
        wait_until(lambda: len(compared) >= 3, timeout=60, what="looks at what the store holds")
        (tmp_path / "go on").touch()
        worker.until_idle(60)

    assert (tmp_path / "finished").exists()


def test_a_completion_that_was_rolled_back_is_a_failed_attempt(run: Run) -> None:
    (row,) = run(chores.completes_and_rolls_back)

    assert row.state is State.dead
    assert "completion was rolled back" in (row.reason or "")


def test_large_arguments_arrive_whole(run: Run) -> None:
    sizes = [9_000, 100_000, 200_000]

    records = run(chores.large, *(("x" * size,) for size in sizes))

    assert [row.result for row in records] == [str(size).encode() for size in sizes]


def test_what_one_job_sets_in_its_context_is_not_seen_by_the_next(run: Run) -> None:
    records = run(chores.leaves_a_mark, (), (), (), concurrency=1)

    assert {row.result for row in records} == {b'"clean,dirty"'}


def test_handlers_that_only_a_timer_knows_survive_the_collector(run: Run) -> None:
    """LS-11."""
    records = run(chores.awaits_a_timer, *[()] * 200, concurrency=100)

    assert {(row.state, row.counters.lost) for row in records} == {(State.completed, 0)}


def test_a_job_acknowledged_at_the_start_runs_once_whatever_happens(run: Run) -> None:
    (row,) = run(chores.at_most_once)

    assert (row.state, row.counters.failed) == (State.completed, 0)
    assert chores.seen.count("ran") == 1


def test_around_and_lifespan_surround_every_attempt_and_the_worker(run: Run) -> None:
    run(chores.double, (1,))
    run(chores.double_in_thread, (1,))

    assert chores.seen == [
        "entered", ("before", "double"), ("after", "double"), "left",
        "entered", ("before", "double_in_thread"), ("after", "double_in_thread"), "left",
    ]  # fmt: skip


def test_an_extension_gives_more_time(run: Run) -> None:
    (row,) = run(chores.extends)

    assert float(row.result or b"0") > 3600


def test_a_handler_knows_which_job_it_runs(run: Run) -> None:
    (row,) = run(chores.knows_itself)

    assert json.loads(row.result or b"") == {
        "task": "knows_itself",
        "attempt": 1,
        "queue": "default",
        "key": f"duly-{row.id}-x",
    }


def test_leaving_the_block_hands_running_jobs_back_unspent(app: None) -> None:
    job = chores.waits_for_the_gate.enqueue()
    options = WorkerOptions(grace=timedelta(0), patience=timedelta(seconds=1))

    with Embedded(chores.jobs, options):
        wait_until(lambda: record(job.id).state is State.running, what="the start")
    chores.gate.set()

    row = record(job.id)
    assert (row.state, row.counters.failed, row.counters.interrupted) == (State.ready, 0, 1)
    assert chores.jobs.store.inspection.attempts(job.id)[0].event is Event.interrupt
    assert chores.jobs.store.inspection.workers() == []


def test_it_works_on_the_loop_that_runs_already(app: None) -> None:
    async def program() -> int:
        async with Embedded(chores.jobs, WorkerOptions()):
            stored = [await chores.double.aenqueue(number) for number in range(20)]

            async def done() -> bool:
                rows = await asyncio.to_thread(
                    chores.jobs.store.inspection.lookup, [job.id for job in stored]
                )
                return all(row is not None and row.state is State.completed for row in rows)

            await await_until(done, what="20 jobs")
            return len(stored)

    assert asyncio.run(program()) == 20


def test_jobs_of_both_queues_run_and_others_are_left_alone(app: None) -> None:
    job = chores.double.enqueue(1)

    with Embedded(chores.jobs, WorkerOptions(queues={"default": 1})) as worker:
        ran = worker.until_idle()

    assert ran == 1
    assert record(job.id).state is State.completed


def test_an_embedded_worker_that_lost_its_lease_starts_anew_and_runs_the_job_again(app: None) -> None:
    job = chores.waits_for_the_gate.enqueue()
    options = WorkerOptions(lease=timedelta(seconds=3), heartbeat=timedelta(seconds=0.2))

    with Embedded(chores.jobs, options) as worker:
        wait_until(lambda: record(job.id).state is State.running, what="the start")
        first = worker.engine.incarnation
        chores.jobs.store.leases.retire(first)
        wait_until(lambda: record(job.id).run == 2, timeout=60, what="the second run")
        chores.gate.set()
        wait_until(lambda: record(job.id).state is State.completed, what="its end")
        second = worker.engine.incarnation

    assert first != second
    assert record(job.id).counters.failed == 0


def test_a_part_that_dies_ends_an_embedded_worker_with_its_name(
    app: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> float:
        raise RuntimeError("sabotage")

    with Embedded(chores.jobs) as worker:
        monkeypatch.setattr(worker.engine.pump, "round", broken)

        with pytest.raises(DulyError, match="its pump died"):
            wait_until(lambda: worker.until_idle() and False, what="the error")


@pytest.mark.parametrize("task", [chores.hand_back, chores.hand_back_isolated], ids=lambda task: task.name)
def test_work_that_is_handed_back_unrun_is_a_failure_and_not_a_result(run: Run, task: Task[..., Any]) -> None:
    records = run(task, ("coroutine",), ("generator",))

    assert [row.state for row in records] == [State.dead, State.dead]
    assert all("async def" in (row.reason or "") for row in records)


def boards_open() -> list[str]:
    gc.collect()
    found = []
    for link in Path("/proc/self/fd").iterdir():
        # The folder's own descriptor is gone by now.
        with suppress(OSError):
            found.append(str(link.readlink()))
    return [name for name in found if "duly-board" in name]


def test_an_embedded_worker_leaves_no_board_open(run: Run) -> None:
    before = len(boards_open())

    run(chores.double, (1,))

    assert len(boards_open()) <= before
