"""What the watch sees: deadlines, handlers that do not stop, jobs nobody starts, a lapsing lease, dead threads."""

import asyncio
from collections.abc import Iterator

import pytest

from duly.stores.open import open_store
from duly.telemetry.hub import Hub
from duly.worker.attempt import Attempt, Phase
from duly.worker.board import Board
from duly.worker.floor import Floor, Slot
from duly.worker.heartbeat import Fence
from duly.worker.loops import LoopGroup
from duly.worker.payloads import Payloads
from duly.worker.threads import ThreadGroup
from duly.worker.watch import Watch
from tests.worker.doubles import Acts, Clock, a_mixed_app, a_plan, an_attempt, cards


class Scene:
    """A watch over empty slots, with a clock that stands still."""

    def __init__(self, url: str, **said: float) -> None:
        self.clock = Clock()
        self.board = Board.create(20)
        self.board.renew(self.clock.now)
        self.fence = Fence(30.0, 5.0, self.board, self.clock.now)
        self.floor = Floor(self.board, self.fence, (), self.clock)
        self.loop = asyncio.new_event_loop()
        self.loops = LoopGroup(self.floor, self.loop, 4)
        self.threads = ThreadGroup(self.floor, 4)
        self.acts = Acts()
        self.store = open_store(url)
        payloads = Payloads(self.store)
        groups = (self.loops, self.threads)
        self.watch = Watch(a_plan(**said), self.floor, groups, payloads, self.acts, Hub(), self.clock)
        self.cards = cards(a_mixed_app())
        self.turn()

    def turn(self) -> None:
        """The loop turned just now."""
        self.board.tick(1, self.clock.now)

    def pass_time(self, seconds: float, *, turning: bool = True) -> None:
        self.clock.advance(seconds)
        self.board.renew(self.clock.now)
        if turning:
            self.turn()

    def run(self, task: str) -> Attempt:
        """An attempt in a slot, as if its handler had just begun."""
        attempt = an_attempt(self.cards[task], now=self.clock.now)
        slot = Slot(0)
        group = self.loops if task == "on_loop" else self.threads
        group.slots.append(slot)
        assert self.floor.begin(attempt, slot)
        return attempt

    def close(self) -> None:
        self.loop.close()
        self.board.close()
        self.store.close()


@pytest.fixture
def scene(sqlite_url: str) -> Iterator[Scene]:
    made = Scene(sqlite_url)
    yield made
    made.close()


def test_a_handler_within_its_time_to_run_is_left_alone(scene: Scene) -> None:
    scene.run("on_loop")
    scene.pass_time(9.9)

    scene.watch.round()

    assert scene.acts.stopped == []


@pytest.mark.parametrize("task", ["on_loop", "in_thread"])
def test_a_handler_past_its_time_to_run_is_asked_to_stop_once(scene: Scene, task: str) -> None:
    scene.run(task)
    scene.pass_time(10.0)

    scene.watch.round()
    scene.watch.round()

    assert scene.acts.stopped == [(1, "timeout", "timeout: ran longer than 10s")]


def test_an_extension_moves_the_deadline(scene: Scene) -> None:
    attempt = scene.run("on_loop")
    attempt.deadline_at += 60
    scene.pass_time(65.0)

    scene.watch.round()

    assert scene.acts.stopped == []


@pytest.mark.parametrize("task", ["on_loop", "in_thread"])
def test_a_handler_that_was_asked_is_given_up_after_the_patience(scene: Scene, task: str) -> None:
    scene.run(task)
    scene.pass_time(10.0)
    scene.watch.round()

    scene.pass_time(4.9)
    scene.watch.round()
    patient = list(scene.acts.given_up)
    scene.pass_time(0.2)
    scene.watch.round()

    assert patient == []
    assert scene.acts.given_up == [1]


def test_a_thread_that_is_cancelled_has_until_its_deadline(scene: Scene) -> None:
    attempt = scene.run("in_thread")
    attempt.ask("cancel", "cancelled on request", scene.clock.now)

    scene.pass_time(9.0)
    scene.watch.round()
    before = list(scene.acts.given_up)
    scene.pass_time(6.1)
    scene.watch.round()

    assert before == []
    assert scene.acts.given_up == [1]


def test_neighbours_of_a_handler_that_blocks_the_loop_are_not_blamed(scene: Scene) -> None:
    scene.run("on_loop")
    scene.pass_time(10.0)
    scene.watch.round()

    scene.pass_time(10.0, turning=False)
    scene.watch.round()

    assert scene.acts.given_up == []


def test_jobs_that_no_slot_takes_within_a_second_go_back(scene: Scene) -> None:
    attempt = an_attempt(scene.cards["on_loop"], 5, now=scene.clock.now)
    acked = an_attempt(scene.cards["on_loop"], 6, now=scene.clock.now)
    acked.acked_first = True
    scene.loops.push([attempt, acked])
    scene.pass_time(0.9)

    scene.watch.round()
    early = list(scene.acts.handed_back)
    scene.pass_time(0.2)
    scene.watch.round()

    assert early == []
    assert scene.acts.handed_back == [5]
    assert [left.job.id for left in scene.loops.unstarted()] == [6]


def test_a_lease_that_is_not_renewed_ends_everything_one_heartbeat_before_it_lapses(scene: Scene) -> None:
    scene.run("on_loop")
    scene.clock.advance(24.9)
    scene.turn()
    scene.watch.round()
    before = list(scene.acts.fenced)

    scene.clock.advance(0.2)
    scene.watch.round()
    scene.watch.round()

    assert before == []
    assert scene.acts.fenced == ["the lease could not be renewed in time"]


def test_a_worker_row_that_is_gone_ends_everything_at_once(scene: Scene) -> None:
    scene.board.mark_gone()

    scene.watch.round()

    assert scene.acts.fenced == ["its worker row is gone"]


def test_a_part_that_died_is_reported(scene: Scene) -> None:
    class Part:
        failure: BaseException | None = RuntimeError("gone")

    scene.watch.parts = {"pump": Part()}

    scene.watch.round()

    assert scene.acts.broke == ["pump"]


def test_the_watch_comes_back_in_time_for_the_nearest_deadline(scene: Scene) -> None:
    scene.run("on_loop")
    scene.pass_time(9.97)

    pause = scene.watch.round()

    assert pause == pytest.approx(0.03, abs=0.001)


def test_a_given_up_attempt_is_not_given_up_twice(scene: Scene) -> None:
    attempt = scene.run("in_thread")
    scene.pass_time(10.0)
    scene.watch.round()
    scene.pass_time(6.0)
    scene.watch.round()
    attempt.phase = Phase.given_up

    scene.pass_time(6.0)
    scene.watch.round()

    assert scene.acts.given_up == [1]
