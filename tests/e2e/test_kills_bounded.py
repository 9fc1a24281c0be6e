"""What SIGKILL does to a worker that holds a chain of an ordering key, limits and locks, or a batch's last job."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from duly.core.batch import BatchState, CloseBatch, OpenBatch
from duly.core.filters import Filter
from duly.core.job import JobId, NewJob
from duly.core.lifecycle import Event, State
from tests.e2e.controlled_app import done, last, part, push, render
from tests.e2e.workers import Place, Worker
from tests.waiting import wait_until

pytestmark = pytest.mark.process

APP = "tests.e2e.controlled_app:jobs"
LINE = 100


def put(place: Place, *jobs: NewJob) -> list[JobId]:
    return [stored.id for stored in place.store.jobs.enqueue(jobs)]


def a_line(place: Place) -> list[JobId]:
    return put(place, *[NewJob("default", push.name, b"{}", ordering_key="k")] * LINE)


def nothing_is_held(place: Place) -> bool:
    names = ["resource:gpu", "lock:ledger"]
    return not any(record.running for record in place.store.control.limits(names))


def test_a_key_goes_on_in_order_when_a_process_dies_with_a_chain_of_it(any_place: Place) -> None:
    place = any_place
    worker = place.start(APP, lease=30.0, heartbeat=5.0)
    ids: list[JobId] = []

    # A worker takes chains once it has seen that these jobs take next to no time.
    while not (place.folder / "killed").exists():
        ids += a_line(place)
        place.wait_final(ids, timeout=120)
        assert len(ids) < 20 * LINE, "no process has taken a chain"
    records = place.wait_final(ids)

    deadly = int((place.folder / "killed").read_text())
    assert [line.id for line in place.ledger("ran")] == sorted([*ids, deadly])
    assert [record.counters.lost for record in records] == [int(id == deadly) for id in ids]
    assert {record.state for record in records} == {State.completed}
    (follower,) = place.store.inspection.lookup([JobId(deadly + 1)])
    assert follower is not None
    assert [one.event for one in place.store.inspection.attempts(follower.id)][:1] == [Event.interrupt]
    wait_until(lambda: not place.store.control.keys(), what="nobody waits for the key")
    assert worker.stop() == 0


def test_nothing_stays_held_when_a_whole_worker_dies(any_place: Place) -> None:
    place = any_place
    ids = put(place, *[NewJob("default", render.name, b"{}")] * 3)
    worker = place.start(APP)
    place.wait_lines("started", 1)
    assert not nothing_is_held(place)

    worker.signal(signal.SIGKILL)
    worker.wait()
    place.start(APP)
    # Of the one that was lost, or of another one that had to wait for it.
    place.wait_lines("started", 2)
    place.release()

    records = place.wait_final(ids)
    assert {record.state for record in records} == {State.completed}
    assert sum(record.counters.lost for record in records) == 1
    wait_until(lambda: nothing_is_held(place), what="nothing is held")
    inside = [line.what for line in sorted(place.ledger(), key=lambda line: line.at)]
    # One of them never left.
    assert inside == ["started"] + ["started", "ended"] * 3


@contextmanager
def a_batch(place: Place) -> Iterator[int]:
    batch = place.store.batches.apply(OpenBatch("parts", then=(NewJob("default", done.name, b"{}"),)))
    yield batch
    place.store.batches.apply(CloseBatch(batch))


def batch_is(place: Place, batch: int, state: BatchState) -> bool:
    record = place.store.batches.lookup([batch])[0]
    return record is not None and record.state is state


def test_a_batch_ends_once_though_its_last_job_is_lost_on_the_way(any_place: Place) -> None:
    place = any_place
    with a_batch(place) as batch:
        ids = put(place, *[NewJob("default", part.name, b"{}", batch=batch)] * 3)
    worker = place.start(APP)
    lines = place.wait_started(*ids)

    worker.signal(signal.SIGKILL)
    worker.wait()
    place.start(APP)
    # Those that were lost run alone, one after the other.
    place.wait_lines("started", 4)
    assert batch_is(place, batch, BatchState.running)
    place.release()

    assert {record.state for record in place.wait_final(ids)} == {State.completed}
    _then_comes_once(place, batch)
    assert len({line.pid for line in lines}) == 1


def test_then_comes_once_when_the_process_of_the_last_end_dies_at_that_moment(any_place: Place) -> None:
    place = any_place
    with a_batch(place) as batch:
        (id,) = put(place, NewJob("default", last.name, b"{}", batch=batch))
    worker: Worker = place.start(APP)
    (line,) = place.wait_started(id)

    assert place.wait_final([id])[0].state is State.completed
    wait_until(lambda: "SIGKILL" in worker.log, what="the death of its process")

    _then_comes_once(place, batch)
    assert line.pid != os.getpid()
    assert place.job(id).counters.lost == 0


def _then_comes_once(place: Place, batch: int) -> None:
    place.wait_lines("done", 1)
    wait_until(lambda: batch_is(place, batch, BatchState.completed), what="the end of the batch")
    place.store.batches.finish()
    page = place.store.inspection.page(Filter(task=done.name), after=0, limit=10)
    assert [row.trigger for row in page.jobs] == [f"batch:{batch}"]
