"""Large arguments and what earlier runs left are read when their job is about to start, and never more than fit."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from duly.core.job import JobId, Steps
from duly.stores.faults import Transient
from duly.worker.attempt import Attempt
from duly.worker.payloads import Payloads
from tests.waiting import wait_until
from tests.worker.doubles import an_app, an_attempt, cards


class Jobs:
    """A store of arguments of 100 bytes."""

    def __init__(self) -> None:
        self.asked: list[list[int]] = []
        self.faults = 0
        self.missing: set[int] = set()

    def arguments(self, ids: Sequence[JobId]) -> dict[JobId, bytes]:
        if self.faults:
            self.faults -= 1
            raise Transient("connection refused")
        self.asked.append(list(ids))
        return {id: b"x" * 100 for id in ids if id not in self.missing}


class Kept:
    """Every job has one step of 100 bytes and one cursor."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def steps(self, id: JobId) -> Steps:
        self.asked.append(id)
        return Steps({"a": b"y" * 100}, {"loop": id})


class Store:
    def __init__(self) -> None:
        self.jobs = Jobs()
        self.steps = Kept()


class Scene:
    def __init__(self, room: int) -> None:
        store: Any = Store()
        self.jobs: Jobs = store.jobs
        self.kept: Kept = store.steps
        self.payloads = Payloads(store, largest=100, room=room)
        self.ready: list[Attempt] = []
        self.lost: list[Attempt] = []
        self.payloads.deliver = self.ready.extend
        self.payloads.on_missing = self.lost.append
        self.card = cards(an_app())["on_loop"]

    def push(self, *ids: int) -> None:
        self.payloads.push([an_attempt(self.card, id, args=None) for id in ids])

    def wait_ready(self, count: int) -> list[int]:
        wait_until(lambda: len(self.ready) == count, what=f"{count} ready")
        return [attempt.job.id for attempt in self.ready]


@pytest.fixture
def scene() -> Iterator[Scene]:
    made = Scene(room=300)
    yield made
    made.payloads.close()


def test_arguments_are_there_when_the_attempt_is_delivered(scene: Scene) -> None:
    scene.push(1, 2)

    assert scene.wait_ready(2) == [1, 2]
    assert {attempt.job.args for attempt in scene.ready} == {b"x" * 100}


def test_no_more_is_read_than_fits_at_once(scene: Scene) -> None:
    scene.push(1, 2, 3, 4, 5)
    scene.wait_ready(3)

    waiting = [attempt.job.id for attempt in scene.payloads.unstarted()]
    scene.payloads.release(scene.ready[0])
    scene.wait_ready(4)

    assert waiting == [4, 5]
    assert scene.jobs.asked == [[1, 2, 3], [4]]


def test_what_waits_can_be_taken_back(scene: Scene) -> None:
    scene.push(1, 2, 3, 4)
    scene.wait_ready(3)
    (waiting,) = scene.payloads.unstarted()

    assert scene.payloads.take_back(waiting)
    assert not scene.payloads.take_back(waiting)
    assert scene.payloads.unstarted() == []


def test_a_store_that_does_not_answer_is_asked_again(scene: Scene) -> None:
    scene.jobs.faults = 2

    scene.push(1)

    assert scene.wait_ready(1) == [1]


def test_a_job_whose_arguments_are_gone_goes_back_and_takes_no_room(scene: Scene) -> None:
    scene.jobs.missing = {1, 2, 3}
    scene.push(1, 2, 3, 4, 5, 6)

    scene.wait_ready(3)

    assert [attempt.job.id for attempt in scene.lost] == [1, 2, 3]


def test_what_earlier_runs_left_is_there_when_the_attempt_is_delivered(scene: Scene) -> None:
    attempts = [
        an_attempt(scene.card, 1, args=b"{}", has_steps=True),
        an_attempt(scene.card, 2, args=None, has_steps=True),
        an_attempt(scene.card, 3, args=None),
    ]

    scene.payloads.push(attempts[:1])
    scene.wait_ready(1)
    scene.payloads.release(attempts[0])
    scene.payloads.push(attempts[1:])
    scene.wait_ready(3)

    assert [attempt.left.cursors for attempt in attempts] == [{"loop": 1}, {"loop": 2}, {}]
    assert [attempt.job.args for attempt in attempts] == [b"{}", b"x" * 100, b"x" * 100]
    assert (scene.jobs.asked, scene.kept.asked) == ([[2, 3]], [1, 2])


def test_steps_take_room_like_arguments(scene: Scene) -> None:
    attempt = an_attempt(scene.card, 1, args=None, has_steps=True)

    scene.payloads.push([attempt])
    scene.wait_ready(1)

    assert attempt.bytes == 200
    scene.payloads.release(attempt)
    assert attempt.bytes == 0
