"""Guards: asked before the handler, in order; the first no ends the job as skipped, with the guard's name."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from duly import App, Dead, Job, Skip, Snooze, State, UsageError
from duly.core.lifecycle import Event
from duly.telemetry.events import GuardSaidNo, Happening
from duly.telemetry.hub import Hub
from duly.testing.kit import DulyTest, standing
from duly.worker.news import News
from duly.worker.run import handle_of, raised
from tests.worker.doubles import an_attempt, cards


@pytest.fixture
def app() -> App:
    return App()


@pytest.fixture
def kit(app: App, sqlite_url: str) -> Iterator[DulyTest]:
    with standing(app, sqlite_url) as kit:
        yield kit


def reason_of(app: App, id: int) -> tuple[State, str | None]:
    record = app.inspect.job(id).job
    return record.state, record.reason


def test_none_and_true_go_on_to_the_handler(app: App, kit: DulyTest) -> None:
    ran: list[str] = []

    @app.task
    def send(order_id: int) -> None:
        ran.append(f"send {order_id}")

    @send.guard
    def first(order_id: int) -> None:
        ran.append(f"first {order_id}")

    @send.guard
    def second(order_id: int) -> bool:
        ran.append(f"second {order_id}")
        return True

    send.enqueue(7)
    kit.drain()

    assert ran == ["first 7", "second 7", "send 7"]


@pytest.mark.parametrize(("answer", "why"), [("refunded", "refunded"), (False, "no"), ("", "no")])
def test_text_and_false_skip_the_job_and_ask_no_further(
    app: App, kit: DulyTest, answer: str | bool, why: str
) -> None:
    ran: list[str] = []

    @app.task
    def send(order_id: int) -> None:
        ran.append("send")

    @send.guard
    def wanted(order_id: int) -> str | bool:
        return answer

    @send.guard
    def never_asked(order_id: int) -> None:
        ran.append("never_asked")

    id = send.enqueue(7).id
    drained = kit.drain()

    assert ran == []
    assert drained.skipped == 1
    assert reason_of(app, id) == (State.skipped, f"guard wanted: {why}")


def test_async_guards_and_plain_ones_stand_before_an_async_handler(app: App, kit: DulyTest) -> None:
    ran: list[str] = []

    @app.task
    async def send(order_id: int) -> None:
        ran.append("send")

    @send.guard
    def plain(order_id: int) -> None:
        ran.append("plain")

    @send.guard
    async def waiting(order_id: int) -> str | None:
        await asyncio.sleep(0)
        return "odd" if order_id % 2 else None

    ids = [send.enqueue(order_id).id for order_id in (1, 2)]
    kit.drain()

    assert ran == ["plain", "plain", "send"]
    assert reason_of(app, ids[0]) == (State.skipped, "guard waiting: odd")
    assert reason_of(app, ids[1])[0] is State.completed


def test_inline_asks_the_guards_too(app: App, kit: DulyTest) -> None:
    @app.task
    def send(order_id: int) -> None:
        raise AssertionError("not reached")

    @send.guard
    def never(order_id: int) -> str:
        return "never"

    with kit.inline():
        id = send.enqueue(7).id

    assert reason_of(app, id) == (State.skipped, "guard never: never")


def test_a_raised_skip_counts_as_the_guards_no(app: App, kit: DulyTest) -> None:
    @app.task
    def send(order_id: int) -> None: ...

    @send.guard
    def customer(order_id: int) -> None:
        raise Skip("customer left")

    id = send.enqueue(7).id
    kit.drain()

    assert reason_of(app, id) == (State.skipped, "guard customer: customer left")


@pytest.mark.parametrize(
    ("said", "reason"), [("at night", "guard office: at night"), ("", "guard office")], ids=["said", "silent"]
)
def test_a_guard_snoozes_at_no_cost_of_an_attempt(app: App, kit: DulyTest, said: str, reason: str) -> None:
    open_now: list[bool] = []

    @app.task
    def send(job: Job, order_id: int) -> int:
        return job.attempt

    @send.guard
    def office(order_id: int) -> None:
        if not open_now:
            raise Snooze("8h", said)

    id = send.enqueue(7).id
    kit.drain()
    asleep = reason_of(app, id)
    open_now.append(True)
    kit.clock.advance("8h")
    kit.drain()

    assert asleep[0] is State.scheduled
    assert app.inspect.job(id).attempts[0].reason == reason
    assert kit.ran(send)[-1].result == 1


def test_an_error_in_a_guard_is_a_failed_attempt(app: App, kit: DulyTest) -> None:
    @app.task(attempts=1)
    def send(order_id: int) -> None:
        raise AssertionError("not reached")

    @send.guard
    def broken(order_id: int) -> None:
        raise RuntimeError("no database")

    id = send.enqueue(7).id
    drained = kit.drain(raising=False)

    assert drained.dead == 1
    assert reason_of(app, id) == (State.dead, "gave up after 1: no database")


def test_a_guard_may_bury_the_job(app: App, kit: DulyTest) -> None:
    @app.task
    def send(order_id: int) -> None: ...

    @send.guard
    def sane(order_id: int) -> None:
        raise Dead("no such order")

    id = send.enqueue(7).id
    kit.drain()

    assert reason_of(app, id) == (State.dead, "no such order")


def test_an_answer_that_is_none_fails_the_attempt_and_says_what_to_return(app: App, kit: DulyTest) -> None:
    @app.task(attempts=1)
    def send(order_id: int) -> None: ...

    def count(order_id: int) -> Any:
        return 3

    send.guard(count)
    send.enqueue(7)

    with pytest.raises(UsageError, match="the guard count answered 3; return None or True to go on"):
        kit.drain()


def test_guards_run_inside_around_which_sees_the_no(app: App, kit: DulyTest) -> None:
    seen: list[str] = []

    @app.around
    def scope(job: Job) -> Iterator[None]:
        seen.append("in")
        try:
            yield
        except Skip as ending:
            seen.append(ending.reason)
            raise

    @app.task
    def send(order_id: int) -> None: ...

    @send.guard
    def wanted(order_id: int) -> str:
        seen.append("asked")
        return "no"

    send.enqueue(7)
    kit.drain()

    assert seen == ["in", "asked", "guard wanted: no"]


def test_a_guard_sees_the_handlers_default_and_the_job(app: App, kit: DulyTest) -> None:
    seen: list[object] = []

    @app.task
    def send(job: Job, order_id: int, copies: int = 2) -> None: ...

    @send.guard
    def wanted(job: Job, order_id: int, copies: int = 99) -> None:
        seen.extend((job.id, order_id, copies))

    id = send.enqueue(7).id
    kit.drain()

    assert seen == [id, 7, 2]


def test_a_guard_stays_a_function_and_is_listed(app: App) -> None:
    @app.task
    def send(order_id: int) -> None: ...

    @send.guard
    def even(order_id: int) -> str | None:
        return "odd" if order_id % 2 else None

    assert even(3) == "odd"
    assert [guard.name for guard in send.guards] == ["even"]
    assert send.using(priority=1).guards == send.guards
    assert repr(send.guards[0]) == "<Guard even of send>"


def test_the_direct_call_of_a_task_asks_no_guard(app: App) -> None:
    @app.task
    def send(order_id: int) -> int:
        return order_id

    @send.guard
    def never(order_id: int) -> str:
        return "never"

    assert send(7) == 7


def test_an_async_guard_of_a_plain_handler_is_refused(app: App) -> None:
    @app.task
    def send(order_id: int) -> None: ...

    async def waits(order_id: int) -> None: ...

    with pytest.raises(UsageError, match="the guard waits is async, and the task 'send' is a `def`"):
        send.guard(waits)


def test_a_guard_of_what_is_acknowledged_first_is_refused(app: App) -> None:
    @app.task(ack="start")
    def send(order_id: int) -> None: ...

    def wanted(order_id: int) -> None: ...

    with pytest.raises(UsageError, match="leave ack='start' out"):
        send.guard(wanted)


def test_two_guards_of_one_name_are_refused(app: App) -> None:
    @app.task
    def send(order_id: int) -> None: ...

    def made(answer: str) -> Any:
        def wanted(order_id: int) -> str:
            return answer

        return wanted

    def other() -> Any:
        def wanted(order_id: int) -> None: ...

        return wanted

    send.guard(made("a"))
    send.guard(made("b"))

    with pytest.raises(UsageError, match="two guards named 'wanted'"):
        send.guard(other())
    assert len(send.guards) == 1


def test_a_guard_with_other_parameters_stops_the_worker_and_is_found_by_check(
    app: App, kit: DulyTest
) -> None:
    @app.task
    def send(order_id: int) -> None: ...

    def wanted(customer_id: int) -> None: ...

    send.guard(wanted)  # type: ignore[arg-type]

    with pytest.raises(UsageError, match="a guard has the parameters of its task"):
        cards(app)
    assert any("the guard wanted takes (customer_id)" in finding.text for finding in app.check().findings)


def test_what_is_no_function_is_no_guard(app: App) -> None:
    @app.task
    def send(order_id: int) -> None: ...

    with pytest.raises(UsageError, match="guard of task 'send'"):
        send.guard(7)  # type: ignore[call-overload]


def test_a_guards_no_is_told_even_where_nobody_asked_for_details(app: App) -> None:
    @app.task
    def send(order_id: int) -> None: ...

    @send.guard
    def wanted(order_id: int) -> str:
        return "refunded"

    told: list[Happening] = []
    hub = Hub()
    hub.listen(told.append)
    attempt = an_attempt(cards(app)["send"], 3)
    attempt.begin(1000.0)
    with pytest.raises(Skip) as caught:
        send.guards[0].ask(handle_of(attempt), {"order_id": 7})

    ended = raised(attempt, caught.value, 1000.0)
    News(hub, lambda queue: "wait").stored(attempt, ended)

    assert (ended.event, ended.guard) == (Event.skip, "wanted")
    assert told == [GuardSaidNo(3, "default", "send", "wanted", "guard wanted: refunded")]
    assert told[0].sentence() == "job 3 (send) was skipped: guard wanted: refunded"
