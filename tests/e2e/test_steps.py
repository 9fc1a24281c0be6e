"""What is done stays done: workers killed, stopped and replaced in the middle of steps, loops and chains."""

import os
import signal
from contextlib import suppress
from typing import Any

import pytest

from duly.core.filters import Filter
from duly.core.job import JobId, NewJob
from duly.core.lifecycle import State
from tests.e2e import steps_app as chores
from tests.e2e.workers import Line, Place, Worker
from tests.waiting import wait_until

pytestmark = pytest.mark.process

APP = "tests.e2e.steps_app:jobs"
ITEMS = [f"item {number}" for number in range(5)]


def start(place: Place, release: str = "new", **options: Any) -> Worker:
    return place.start(APP, {"RELEASE": release}, **options)


def seen(place: Place, id: JobId) -> list[int]:
    """How often each item was seen."""
    return [len(place.ledger(item, id)) for item in ITEMS]


def kill(lines: list[Line]) -> None:
    """The processes that wrote these lines. An isolated one may be gone with its parent already."""
    for pid in {line.pid for line in lines}:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def wait_cursor(place: Place, id: JobId, position: int) -> None:
    wait_until(
        lambda: place.store.steps.steps(id).cursors == {"items": position},
        timeout=60,
        what=f"position {position} of job {id}",
    )


def test_a_killed_process_repeats_no_step_and_no_item_that_was_reported(any_place: Place) -> None:
    place = any_place
    steps = [place.enqueue_one(task) for task in chores.STEPS]
    walks = [place.enqueue_one(task) for task in chores.WALKS]
    start(place, isolated=3)
    lines = place.wait_started(*steps, *walks)
    for id in walks:
        wait_cursor(place, id, 3)

    kill(lines)
    place.release()

    assert {record.state for record in place.wait_final([*steps, *walks])} == {State.completed}
    assert {record.result for record in place.wait_final(steps)} == {b"[1,2]"}
    assert [len(place.ledger(step, id)) for id in steps for step in ("first", "second")] == [1] * 8
    # A process that dies with its parent may still see the release and go on by an item.
    for id in walks:
        assert seen(place, id)[:3] == [1, 1, 1]
        assert all(count in {1, 2} for count in seen(place, id)[3:])


def test_an_isolated_process_killed_alone_repeats_neither_steps_nor_reported_items(place: Place) -> None:
    ids = [place.enqueue_one(task) for task in (chores.steps_isolated, chores.walk_isolated)]
    start(place)
    lines = place.wait_started(*ids)
    wait_cursor(place, ids[1], 3)

    kill(lines)
    place.release()

    assert {record.state for record in place.wait_final(ids)} == {State.completed}
    assert [len(place.ledger(step, ids[0])) for step in ("first", "second")] == [1, 1]
    assert seen(place, ids[1]) == [1, 1, 1, 2, 1]


def test_long_work_is_cut_by_a_deploy_and_resumed_by_another_worker(any_place: Place) -> None:
    place = any_place
    ids = [place.enqueue_one(task, attempts=1) for task in chores.POLITE]
    first = start(place, grace=30.0)
    lines = place.wait_started(*ids)

    assert first.stop() == 0
    cut = [place.job(id) for id in ids]
    start(place)
    records = place.wait_final(ids)

    assert {(record.state, record.counters.snoozed, record.counters.failed) for record in cut} <= {
        (State.ready, 1, 0),
        (State.scheduled, 1, 0),
    }
    assert {(record.state, record.counters.failed) for record in records} == {(State.completed, 0)}
    assert [seen(place, id) for id in ids] == [[1] * 5] * len(ids)
    assert {line.pid for line in lines}.isdisjoint(line.pid for line in place.ledger("item 4"))


def test_work_that_does_not_look_is_cut_at_its_item_and_repeats_that_one_alone(place: Place) -> None:
    ids = [place.enqueue_one(task, attempts=1) for task in (chores.walk_on_loop, chores.walk_isolated)]
    first = start(place, grace=0.2)
    place.wait_started(*ids)
    for id in ids:
        wait_cursor(place, id, 3)

    assert first.stop() == 0
    positions = [place.store.steps.steps(id).cursors for id in ids]
    place.release()
    start(place)

    assert {record.state for record in place.wait_final(ids)} == {State.completed}
    assert positions == [{"items": 3}] * 2
    assert [seen(place, id) for id in ids] == [[1, 1, 1, 2, 1]] * 2


def test_old_and_new_code_run_side_by_side(place: Place) -> None:
    """A job of a new task waits for a worker that knows it; one begun by old code is finished by new code."""
    begun = place.enqueue_one(chores.changed)
    old = start(place, "old", grace=0.2)
    place.wait_started(begun)
    unknown = place.enqueue_one(chores.added)
    place.wait_state([unknown], State.blocked)

    start(place, "new")
    place.wait_state([unknown], State.completed)
    untouched = place.job(begun)
    assert old.stop() == 0

    (record,) = place.wait_final([begun])
    assert (untouched.state, untouched.run) == (State.running, 1)
    assert (record.state, record.result, record.counters.failed) == (State.completed, b"[1,2,3]", 0)
    assert [len(place.ledger(step, begun)) for step in ("one", "between", "last")] == [1, 1, 1]
    assert (place.job(unknown).counters.failed, place.job(unknown).counters.lost) == (0, 0)


def chain(lead: int, number: int = 0) -> tuple[NewJob, ...]:
    """The links of a lead from this one on."""
    if number == 5:
        return ()
    args = f'{{"lead":{lead},"number":{number}}}'.encode()
    return (NewJob("default", chores.link.name, args, then=chain(lead, number + 1)),)


def chains_ended(place: Place, leads: int) -> bool:
    page = place.store.inspection.page(Filter(task=chores.link.name), limit=5 * leads + 1)
    return len(page.jobs) == 5 * leads and {job.state for job in page.jobs} == {State.completed}


def kill_one(place: Place, killed: set[int], leads: int) -> None:
    """A registered process that has not been killed yet and has begun a link, while there are any."""

    def workers() -> list[int]:
        there = {row.pid for row in place.workers()} - killed
        found = [line.pid for line in reversed(place.ledger()) if line.pid in there]
        return found or ([0] if chains_ended(place, leads) else [])

    pid = wait_until(workers, timeout=90, what="a link in a new process")[0]
    if pid:
        killed.add(pid)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def run_chains(place: Place, leads: int, kills: int) -> None:
    """Chains of five links under kills; each link exists once and has been run, at least once."""
    place.store.jobs.enqueue([link for lead in range(leads) for link in chain(lead)])
    # Kills at random may hit one job more than three times, which is no fault of its own here.
    worker = place.start(APP, {"DULY_POISON": "1000"}, processes=2, threads=2)

    killed: set[int] = set()
    for _ in range(kills):
        kill_one(place, killed, leads)
    wait_until(lambda: chains_ended(place, leads), timeout=60 + 3 * kills, what="the end of all chains")

    assert worker.stop() == 0
    assert killed
    page = place.store.inspection.page(Filter(task=chores.link.name), limit=5 * leads + 1)
    assert len({job.args for job in page.jobs}) == len(page.jobs) == 5 * leads
    done = {line.what for line in place.ledger()}
    assert done == {f"lead {lead} link {number}" for lead in range(leads) for number in range(5)}


def test_chains_survive_kills_with_one_continuation_per_link(place: Place) -> None:
    """FL-04."""
    run_chains(place, leads=8, kills=4)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_chains_survive_many_kills(place: Place) -> None:
    run_chains(place, leads=150, kills=60)
