"""The way of a finished step to the store: outages are waited for, and an isolated process has its parent write."""

import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from duly.core.job import JobId, Progress, Token
from duly.stores.faults import DataFault, Transient
from duly.worker.attempt import Attempt
from duly.worker.channel import Channel
from duly.worker.messages import (
    IsolatedOrders,
    IsolatedReports,
    KeepStep,
    Moved,
    Progressed,
    StepKept,
)
from duly.worker.parent import Parent
from duly.worker.steps import StepWrite, keep_step
from tests.waiting import wait_until
from tests.worker.doubles import Desk, an_app, an_attempt, cards


class Steps:
    """Answers with what is next on the list, and true after that."""

    def __init__(self, *answers: bool | Exception) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[Token, str, bytes]] = []

    @property
    def steps(self) -> "Steps":
        return self

    def keep_step(self, token: Token, name: str, value: bytes) -> bool:
        self.asked.append((token, name, value))
        answer = self.answers.pop(0) if self.answers else True
        if isinstance(answer, Exception):
            raise answer
        return answer


def running() -> Attempt:
    attempt = an_attempt(cards(an_app())["on_loop"], desk=Desk())
    attempt.begin(attempt.now())
    return attempt


def write(store: Any, attempt: Attempt) -> StepWrite:
    return StepWrite(store, attempt, "pay", b"1")


def test_a_step_is_written_with_the_token_of_its_attempt() -> None:
    store: Any = Steps()
    attempt = running()

    assert keep_step(store, attempt, "pay", b"1") == StepKept(live=True)
    assert store.asked == [(Token(attempt.desk.incarnation, attempt.job.id, attempt.job.run), "pay", b"1")]


def test_a_store_that_does_not_answer_is_asked_again() -> None:
    store: Any = Steps(Transient("refused"), Transient("reset", outcome_unknown=True), True)

    assert keep_step(store, running(), "pay", b"1") == StepKept(live=True)
    assert len(store.asked) == 3


def test_the_pauses_grow_to_a_second() -> None:
    attempt = running()
    one = write(Steps(*[Transient("refused")] * 8), attempt)

    pauses = [one.once(attempt.now()) or one.pause for _ in range(8)]

    assert pauses == [0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0, 1.0]


def test_who_is_asked_to_stop_or_is_over_time_waits_for_no_store() -> None:
    attempt, late = running(), running()
    attempt.ask("shutdown", "SIGTERM", attempt.now())

    stopped = write(Steps(Transient("refused")), attempt).once(attempt.now())
    over = write(Steps(Transient("refused")), late).once(late.deadline_at)

    assert stopped == over == StepKept(live=False, fault="refused")


def test_a_dead_token_a_bad_value_and_a_broken_driver_are_told_apart() -> None:
    attempt = running()
    answers: list[bool | Exception] = [False, DataFault("too odd"), RuntimeError("bug")]

    kept = [write(Steps(answer), attempt).once(attempt.now()) for answer in answers]

    assert kept == [
        StepKept(live=False),
        StepKept(live=False, fault="too odd", why="unfit"),
        StepKept(live=False, fault="RuntimeError: bug"),
    ]


class Ends:
    """Both ends of the channel between an isolated process and its parent."""

    def __init__(self) -> None:
        here, there = socket.socketpair()
        self.parent = Parent(Channel(here, IsolatedOrders))
        self.channel: Channel[IsolatedReports] = Channel(there, IsolatedReports)

    def hear(self) -> IsolatedReports:
        message = wait_until(lambda: self.channel.receive(0.01), what="a message")
        assert message is not None
        return message


@pytest.fixture
def ends() -> Iterator[Ends]:
    made = Ends()
    yield made
    made.parent.close()
    made.parent._channel.close()
    made.channel.close()


def asking(ends: Ends, name: str, answers: list[StepKept]) -> threading.Thread:
    thread = threading.Thread(target=lambda: answers.append(ends.parent.keep_step(name, b"1")))
    thread.start()
    return thread


def test_an_isolated_step_waits_for_its_parents_answer(ends: Ends) -> None:
    answers: list[StepKept] = []
    thread = asking(ends, "pay", answers)

    asked = ends.hear()
    ends.channel.send(StepKept(live=False, fault="refused"))
    thread.join(30)

    assert asked == KeepStep("pay", b"1")
    assert answers == [StepKept(live=False, fault="refused")]


def test_two_threads_ask_one_after_the_other(ends: Ends) -> None:
    answers: list[StepKept] = []
    threads = [asking(ends, name, answers) for name in ("a", "b")]

    first = ends.hear()
    assert ends.channel.pending() == []
    ends.channel.send(StepKept(live=True))
    second = ends.hear()
    ends.channel.send(StepKept(live=True))
    for thread in threads:
        thread.join(30)

    assert isinstance(first, KeepStep)
    assert isinstance(second, KeepStep)
    assert {first.name, second.name} == {"a", "b"}
    assert len(answers) == 2


def test_a_parent_that_is_gone_answers_like_a_lost_lease(ends: Ends) -> None:
    answers: list[StepKept] = []
    thread = asking(ends, "pay", answers)
    ends.hear()

    ends.channel.close()
    thread.join(30)

    assert answers == [StepKept(live=False)]


def test_nothing_is_said_in_the_name_of_an_attempt_that_is_over(ends: Ends) -> None:
    ends.parent.close()

    kept = ends.parent.keep_step("pay", b"1")
    ends.parent.tell(Progressed(Progress(JobId(1), 1, 1)))
    ends.parent.moved((1, 1), "photos", 1)

    assert kept == StepKept(live=False)
    assert ends.channel.pending() == []


def test_positions_are_told_at_once_and_then_in_bundles(ends: Ends) -> None:
    ends.parent.moved((1, 2), "photos", 1)
    first = ends.hear()
    for position in range(2, 2000):
        ends.parent.moved((1, 2), "photos", position)

    heard = [ends.hear()]
    while heard[-1] != Moved(JobId(1), 2, (("photos", 1999),)):
        heard.append(ends.hear())

    assert first == Moved(JobId(1), 2, (("photos", 1),))
    assert len(heard) < 200
