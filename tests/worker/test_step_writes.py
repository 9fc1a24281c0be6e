"""The way of a finished step to the store: in company with others, through outages, and from an isolated process."""

import asyncio
import socket
import threading
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import pytest

from duly.core.errors import UsageError
from duly.core.job import FinishedStep, Incarnation, JobId, Progress
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
from duly.worker.steps import PostedWrite, StepWrite, StepWriter, _tell_all
from tests.waiting import wait_until
from tests.worker.doubles import Desk, an_app, an_attempt, cards


class Steps:
    """Answers with what is next on the list, and true for all after that; notes each call. Holds one back on demand."""

    def __init__(self, *answers: bool | BaseException | None) -> None:
        self.answers = list(answers)
        self.asked: list[list[str]] = []
        self.written: list[FinishedStep] = []
        self.unfit: set[str] = set()
        self.inside: threading.Thread | None = None
        """Whose thread holds a transaction on the file."""
        self.known = True
        """Whether that is known without a search."""
        self.entered = threading.Event()
        self.go_on = threading.Event()
        self.go_on.set()

    @property
    def steps(self) -> "Steps":
        return self

    def refuse_inside(self, *, thread: bool, searching: bool = False) -> None:
        if thread and (self.known or searching):
            self._refuse()

    def keep_steps(self, incarnation: Incarnation, steps: Sequence[FinishedStep]) -> list[bool | None]:
        self.asked.append([step.name for step in steps])
        self.entered.set()
        assert self.go_on.wait(30)
        self._refuse()
        if self.unfit & {step.name for step in steps}:
            raise DataFault("too odd")
        answer = self.answers.pop(0) if self.answers else True
        if isinstance(answer, BaseException):
            raise answer
        self.written += steps
        return [answer] * len(steps)

    def hold_back(self) -> None:
        self.entered.clear()
        self.go_on.clear()

    def _refuse(self) -> None:
        if self.inside is threading.current_thread():
            raise UsageError("a transaction is open here")


def running(id: int = 1) -> Attempt:
    attempt = an_attempt(cards(an_app())["on_loop"], id, desk=Desk())
    attempt.begin(attempt.now())
    return attempt


def writer(store: Any) -> StepWriter:
    return StepWriter(store, Incarnation(7))


def write(attempt: Attempt) -> StepWrite:
    return StepWrite(attempt, "pay", b"1")


class Handlers:
    """Threads that each write one step."""

    def __init__(self, writer: StepWriter) -> None:
        self.writer = writer
        self.kept: dict[str, StepKept] = {}
        self.threads: list[threading.Thread] = []

    def begin(self, name: str) -> threading.Thread:
        thread = threading.Thread(target=self._keep, args=(name, running(len(self.threads) + 1)))
        self.threads.append(thread)
        thread.start()
        return thread

    def wait_for(self, count: int) -> None:
        """Until so many steps wait for the next write."""
        wait_until(lambda: len(self.writer._waiting) == count, what=f"{count} waiting steps")

    def join(self) -> dict[str, StepKept]:
        for thread in self.threads:
            thread.join(60)
        return self.kept

    def _keep(self, name: str, attempt: Attempt) -> None:
        self.kept[name] = self.writer.keep(attempt, name, b"1")


KEPT = StepKept(live=True)


def test_a_step_is_written_with_the_token_of_its_attempt() -> None:
    store = Steps()

    assert writer(store).keep(running(5), "pay", b"1") == KEPT
    assert store.written == [FinishedStep(JobId(5), 1, "pay", b"1")]


def test_a_lone_handler_writes_in_its_own_thread() -> None:
    store = Steps()
    steps = writer(store)

    steps.keep(running(), "pay", b"1")

    assert steps._thread is None


def test_steps_that_wait_meanwhile_go_to_the_store_together() -> None:
    store = Steps()
    store.hold_back()
    handlers = Handlers(writer(store))
    handlers.begin("first")
    assert store.entered.wait(30)
    for name in ("a", "b", "c"):
        handlers.begin(name)
    handlers.wait_for(3)

    store.go_on.set()

    assert handlers.join() == dict.fromkeys(("first", "a", "b", "c"), KEPT)
    assert [sorted(names) for names in store.asked] == [["first"], ["a", "b", "c"]]


def test_a_loop_is_woken_once_for_all_its_steps_of_a_write() -> None:
    store = Steps()
    store.hold_back()
    steps = writer(store)
    woken: list[object] = []

    async def handlers() -> list[StepKept]:
        loop = asyncio.get_running_loop()
        wake = loop.call_soon_threadsafe

        def noting(callback: Any, *arguments: Any) -> asyncio.Handle:
            woken.append(callback)
            return wake(callback, *arguments)

        loop.call_soon_threadsafe = noting  # type: ignore[method-assign, assignment]
        first = steps.akeep(running(), "first", b"1")
        assert store.entered.wait(30)
        others = [steps.akeep(running(id), f"{id}", b"1") for id in range(2, 50)]
        store.go_on.set()
        return await asyncio.gather(first, *others)

    assert asyncio.run(handlers()) == [KEPT] * 49
    assert [len(names) for names in store.asked] == [1, 48]
    assert woken.count(_tell_all) == 2


def test_one_unfit_value_fails_its_own_attempt_only() -> None:
    store = Steps()
    store.unfit = {"c"}
    store.hold_back()
    handlers = Handlers(writer(store))
    handlers.begin("first")
    assert store.entered.wait(30)
    for name in "abcde":
        handlers.begin(name)
    handlers.wait_for(5)

    store.go_on.set()

    assert handlers.join() == {
        **dict.fromkeys(("first", "a", "b", "d", "e"), KEPT),
        "c": StepKept(live=False, fault="too odd", why="unfit"),
    }
    assert sorted(step.name for step in store.written) == ["a", "b", "d", "e", "first"]


def test_a_store_that_does_not_answer_is_asked_again() -> None:
    store = Steps(Transient("refused"), Transient("reset", outcome_unknown=True), None, True)

    assert writer(store).keep(running(), "pay", b"1") == KEPT
    assert len(store.asked) == 4


def test_a_posted_step_is_tried_again_too() -> None:
    store = Steps(Transient("refused"), None, True)
    steps = writer(store)
    told: list[StepKept] = []

    steps.post(PostedWrite(running(), "pay", b"1", told.append))

    wait_until(lambda: told, what="an answer")
    assert told == [KEPT]
    assert len(store.asked) == 3


def test_what_ends_the_writing_thread_is_told_to_all_that_wait() -> None:
    store = Steps(SystemExit("gone"), True)
    steps = writer(store)
    told: list[StepKept] = []

    async def handler() -> None:
        await steps.akeep(running(1), "on the loop", b"1")

    with pytest.raises(SystemExit, match="gone"):
        asyncio.run(handler())
    store.answers = [SystemExit("gone")]
    steps.post(PostedWrite(running(2), "elsewhere", b"1", told.append))

    wait_until(lambda: told, what="an answer")
    assert told == [StepKept(live=False, fault="SystemExit: gone")]
    assert steps.keep(running(3), "after it", b"1") == KEPT


def test_of_those_that_wait_for_the_store_each_ends_by_its_own_rules() -> None:
    store = Steps(Transient("refused"), Transient("refused"))
    steps = writer(store)
    store.hold_back()
    told: dict[str, StepKept] = {}
    attempts = {"first": running(1), "stopped": running(2), "patient": running(3)}
    attempts["stopped"].ask("shutdown", "SIGTERM", attempts["stopped"].now())
    for name, attempt in attempts.items():
        steps.post(PostedWrite(attempt, name, b"1", partial(told.__setitem__, name)))

    store.go_on.set()

    wait_until(lambda: len(told) == 3, what="three answers")
    assert told == {"first": KEPT, "stopped": StepKept(live=False, fault="refused"), "patient": KEPT}


def test_a_handler_inside_its_own_transaction_is_told_before_anything_waits() -> None:
    store = Steps()
    store.inside = threading.current_thread()

    kept = writer(store).keep(running(), "pay", b"1")

    assert kept == StepKept(live=False, fault="a transaction is open here", why="inside")
    assert store.asked == []


def test_a_transaction_that_nobody_knew_of_fails_only_the_handler_that_holds_it() -> None:
    store = Steps()
    store.known, store.inside = False, threading.current_thread()
    steps = writer(store)
    told: list[StepKept] = []
    steps._led = True
    steps.post(PostedWrite(running(1), "other", b"1", told.append))
    steps._led = False

    kept = steps.keep(running(2), "inside", b"1")

    wait_until(lambda: told, what="an answer")
    assert (kept.why, told) == ("inside", [KEPT])
    assert store.asked == [["other", "inside"], ["other"]]


def test_what_another_thread_waited_for_in_vain_is_looked_for_in_the_handlers_own() -> None:
    store = Steps(Transient("the file is locked"))
    store.known = False
    store.hold_back()
    handlers = Handlers(writer(store))
    told: list[StepKept] = []
    handlers.writer.post(PostedWrite(running(9), "posted", b"1", told.append))
    assert store.entered.wait(30)
    store.inside = handlers.begin("inside")
    handlers.wait_for(1)
    store.answers = [True, Transient("the file is locked")]

    store.go_on.set()

    assert handlers.join()["inside"] == StepKept(live=False, fault="a transaction is open here", why="inside")


def test_the_pauses_grow_to_a_second() -> None:
    attempt = running()
    one = write(attempt)

    pauses = [one.judged(Transient("refused"), attempt.now()) or one.pause for _ in range(8)]

    assert pauses == [0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0, 1.0]


def test_who_is_asked_to_stop_or_is_over_time_waits_for_no_store() -> None:
    attempt, late = running(), running()
    attempt.ask("shutdown", "SIGTERM", attempt.now())

    stopped = write(attempt).judged(Transient("refused"), attempt.now())
    over = write(late).judged(Transient("refused"), late.deadline_at)

    assert stopped == over == StepKept(live=False, fault="refused")


def test_a_dead_token_a_bad_value_and_a_broken_driver_are_told_apart() -> None:
    attempt = running()
    answers: list[bool | Exception] = [False, DataFault("too odd"), RuntimeError("bug")]

    kept = [write(attempt).judged(answer, attempt.now()) for answer in answers]

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
