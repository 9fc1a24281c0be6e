"""Steps and loops of one attempt: run once, values back as they were, and every misuse of a name refused."""

import asyncio
import dataclasses
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Annotated, Any

import pytest

from duly import Job, LeaseLost, PayloadError, UsageError
from duly.client.blocking import BlockingCallWarning
from duly.client.job import LocalPort
from duly.client.steps import StepNotKept
from duly.core.decide import completed, interrupted
from duly.core.errors import StoreUnreachable
from duly.core.lifecycle import State
from duly.worker.messages import StepKept
from duly.worker.run import handle_of, raised, stopped
from tests.worker.doubles import an_attempt
from tests.worker.steps_rig import Rig


@dataclasses.dataclass
class Receipt:
    number: int
    lines: tuple[str, ...] = ()


@pytest.fixture
def rig() -> Rig:
    return Rig()


def test_a_finished_step_is_not_run_again_and_its_value_comes_back(rig: Rig) -> None:
    first = rig.job.step("charge", rig.does(7))

    second = rig.again().step("charge", rig.does(8))

    assert (first, second, rig.ran) == (7, 7, [7])


def test_a_step_that_raised_runs_again_in_this_attempt_and_the_next(rig: Rig) -> None:
    def fails() -> int:
        rig.ran.append("tried")
        raise ConnectionError("no route")

    for job in (rig.job, rig.job, rig.again()):
        with pytest.raises(ConnectionError):
            job.step("charge", fails)

    assert rig.ran == ["tried"] * 3
    assert rig.desk.steps == {}


def test_the_same_step_twice_in_one_attempt_runs_once(rig: Rig) -> None:
    token = rig.does("secret")

    assert [rig.job.step("token", token), rig.job.step("token", token)] == ["secret", "secret"]
    assert rig.ran == ["secret"]


def test_a_value_comes_back_as_the_annotation_says(rig: Rig) -> None:
    def pay() -> Receipt:
        return Receipt(7, ("a", "b"))

    assert rig.job.step("pay", pay) == Receipt(7, ("a", "b"))
    assert rig.again().step("pay", pay) == Receipt(7, ("a", "b"))


def test_an_annotation_that_cannot_be_hashed_is_an_annotation_like_others(rig: Rig) -> None:
    def size() -> Annotated[int, {"unit": "B"}]:
        return 7

    assert rig.job.step("size", size) == 7
    assert rig.again().step("size", size) == 7


def test_an_async_step_runs_on_the_loop_and_comes_back_too(rig: Rig) -> None:
    async def pay(amount: int) -> Receipt:
        await asyncio.sleep(0)
        rig.ran.append(amount)
        return Receipt(amount)

    async def handler(job: Job) -> list[object]:
        return [
            await job.astep("first", partial(pay, 3)),
            await job.astep("second", rig.does(5)),
        ]

    assert asyncio.run(handler(rig.job)) == asyncio.run(handler(rig.again())) == [Receipt(3), 5]
    assert rig.ran == [3, 5]


def test_blocking_work_in_a_thread_keeps_its_annotation(rig: Rig) -> None:
    def pay(amount: int) -> Receipt:
        rig.ran.append(amount)
        return Receipt(amount)

    async def handler(job: Job) -> object:
        return await job.astep("pay", partial(asyncio.to_thread, pay, 3))

    assert asyncio.run(handler(rig.job)) == asyncio.run(handler(rig.again())) == Receipt(3)
    assert rig.ran == [3]


def test_a_lambda_around_a_class_of_the_users_says_how_to_keep_the_class(rig: Rig) -> None:
    async def pay() -> Receipt:
        return Receipt(3)

    with pytest.raises(StepNotKept, match=r"a lambda has none, functools\.partial keeps it"):
        asyncio.run(rig.job.astep("pay", lambda: pay()))  # noqa: PLW0108


def test_asteps_of_plain_values_need_no_annotation(rig: Rig) -> None:
    async def fetch(number: int) -> int:
        rig.ran.append(number)
        return number

    async def handler(job: Job) -> list[int]:
        return [await job.astep(f"fetch {number}", lambda: fetch(number)) for number in (1, 2)]  # noqa: B023

    assert asyncio.run(handler(rig.job)) == asyncio.run(handler(rig.again())) == [1, 2]
    assert rig.ran == [1, 2]


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ((1, 2), "is a tuple and would arrive as a list"),
        ({"at": timedelta(1)}, "result.at"),
        (object(), "has run, but its value cannot be kept"),
        ("x" * 300_000, "at most 256 KiB"),
        (float("nan"), "nan"),
    ],
    ids=["tuple", "timedelta", "object", "large", "nan"],
)
def test_a_value_that_would_not_come_back_is_refused_with_its_place(
    rig: Rig, value: object, says: str
) -> None:
    with pytest.raises(PayloadError, match="step 'odd' has run") as caught:
        rig.job.step("odd", rig.does(value))

    assert says in str(caught.value)
    assert rig.desk.steps == {}


def test_a_step_that_ran_and_cannot_be_kept_is_not_tried_again(rig: Rig) -> None:
    try:
        rig.job.step("odd", rig.does(object()))
    except PayloadError as error:
        ended = raised(rig.attempt, error, rig.attempt.now())
    else:
        raise AssertionError("it was kept")

    assert ended.to is State.dead


def test_a_type_without_a_form_in_json_is_refused_before_the_step_runs(rig: Rig) -> None:
    class Session:
        pass

    def connect() -> Session:
        rig.ran.append("connected")
        return Session()

    connect.__annotations__["return"] = Session
    with pytest.raises(UsageError, match="returns Session, which has no form in JSON"):
        rig.job.step("connect", connect)

    assert rig.ran == []


def test_an_old_value_that_no_longer_fits_says_how_to_have_it_run_again(rig: Rig) -> None:
    rig.job.step("count", rig.does("seven"))

    def count() -> int:
        return 7

    with pytest.raises(PayloadError, match="give the step another name"):
        rig.again().step("count", count)


def test_another_function_under_the_same_name_is_refused(rig: Rig) -> None:
    rig.job.step("pay", lambda: 1)

    with pytest.raises(UsageError, match="give each its own name"):
        rig.job.step("pay", lambda: 2)


@pytest.mark.parametrize("kind", ["closure", "default", "partial", "method", "nested", "list"])
def test_a_loop_that_uses_one_name_for_different_values_is_refused(rig: Rig, kind: str) -> None:
    class Photo:
        def __init__(self, name: str) -> None:
            self.name = name

        def resize(self) -> str:
            return self.name

    def resize(name: str) -> str:
        return name

    def one(name: str) -> Callable[[], str]:
        def inner() -> str:
            return name

        parts = [name]
        made: dict[str, Callable[[], str]] = {
            "closure": lambda: resize(name),
            "default": lambda name=name: resize(name),  # type: ignore[misc]
            "partial": partial(resize, name),
            "method": Photo(name).resize,
            "nested": lambda: inner(),  # noqa: PLW0108
            "list": lambda: parts[0],
        }
        return made[kind]

    kept = [one(name) for name in ("a.jpg", "b.jpg")]
    rig.job.step("resize", kept[0])

    with pytest.raises(UsageError, match=r"came twice in this attempt.*job\.each"):
        rig.job.step("resize", kept[1])


def test_the_loop_variable_of_a_for_is_seen_to_differ_also_in_a_resumed_attempt(rig: Rig) -> None:
    rig.job.step("resize", rig.does(1))
    job = rig.again()

    def handler() -> None:
        for photo in ("a.jpg", "b.jpg"):
            job.step("resize", lambda: len(photo))  # noqa: B023

    with pytest.raises(UsageError, match="with another photo"):
        handler()


def test_the_same_function_over_the_same_values_may_be_written_again(rig: Rig) -> None:
    def ask(customer: str, parts: list[int]) -> str:
        return rig.job.step("token", lambda: f"{customer} {parts} {rig.desk}"[:5])

    assert ask("anna", [1]) == ask("anna", [1])


def test_two_running_steps_may_not_share_a_name(rig: Rig) -> None:
    async def slow() -> int:
        await asyncio.sleep(0)
        return 1

    async def handler() -> None:
        await asyncio.gather(rig.job.astep("slow", slow), rig.job.astep("slow", slow))

    with pytest.raises(UsageError, match="running already"):
        asyncio.run(handler())


def test_an_async_function_in_a_plain_step_says_what_to_write(rig: Rig) -> None:
    async def pay() -> int:
        return 1

    hidden: Any = lambda: pay()  # noqa: PLW0108, E731
    for fn in (pay, hidden):
        with pytest.raises(UsageError, match=r"await job\.astep\('pay', …\)"):
            rig.job.step("pay", fn)


def test_a_value_in_place_of_the_function_says_what_to_write(rig: Rig) -> None:
    with pytest.raises(UsageError, match="pass the function itself"):
        rig.job.step("pay", 7)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["", " a", "a\x00b", "x" * 201])
def test_a_name_that_cannot_be_stored_is_refused(rig: Rig, name: str) -> None:
    with pytest.raises(UsageError, match="step"):
        rig.job.step(name, rig.does(1))
    with pytest.raises(UsageError, match="step"):
        rig.job.each(name, [])

    assert rig.ran == []


def test_a_blocking_step_on_a_running_loop_warns(rig: Rig) -> None:
    async def handler() -> int:
        return int(rig.job.step("pay", rig.does(1)))

    with pytest.warns(BlockingCallWarning, match=r"await job\.astep\(\)"):
        assert asyncio.run(handler()) == 1


def test_who_lost_the_job_begins_no_step(rig: Rig) -> None:
    rig.attempt.ask("lease", "its lease was taken", rig.attempt.now())

    with pytest.raises(LeaseLost):
        rig.job.step("pay", rig.does(1))

    assert rig.ran == []


def test_a_step_whose_token_is_dead_when_it_is_written_raises_lease_lost(rig: Rig) -> None:
    rig.desk.kept = StepKept(live=False)

    with pytest.raises(LeaseLost):
        rig.job.step("pay", rig.does(1))
    with pytest.raises(LeaseLost):
        asyncio.run(rig.job.astep("pay", rig.does(1)))

    assert rig.desk.steps == {}


def test_a_store_that_does_not_answer_or_take_it_is_told_apart(rig: Rig) -> None:
    rig.desk.kept = StepKept(live=False, fault="connection refused")
    with pytest.raises(StoreUnreachable, match="next attempt runs it again: connection refused"):
        rig.job.step("pay", rig.does(1))

    rig.desk.kept = StepKept(live=False, fault="too odd", why="unfit")
    with pytest.raises(StepNotKept, match="too odd"):
        rig.job.step("pay", rig.does(1))


def test_a_cancellation_waits_until_the_step_that_ran_is_written(rig: Rig) -> None:
    async def handler() -> None:
        me = asyncio.current_task()
        assert me is not None

        def act() -> int:
            asyncio.get_running_loop().call_soon(me.cancel)
            return 1

        await rig.job.astep("pay", act)

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(handler())

    assert rig.desk.steps == {"pay": b"1"}


# Loops.


def test_a_loop_goes_on_where_the_last_attempt_stopped(rig: Rig) -> None:
    seen = []
    for item in rig.job.each("photos", "abcde"):
        seen.append(item)
        if item == "c":
            break

    rest = list(rig.again().each("photos", "abcde"))

    # "c" was not done: its loop never asked for the next.
    assert (seen, rest) == (["a", "b", "c"], ["c", "d", "e"])
    assert list(rig.again().each("photos", "abcde")) == []


@pytest.mark.parametrize("kind", [list, tuple, iter, dict.fromkeys])
def test_any_iterable_is_resumed_by_its_order(rig: Rig, kind: Callable[[Any], Any]) -> None:
    rig.desk.cursors = [("n", 2)]

    assert list(rig.again().each("n", kind(range(5)))) == [2, 3, 4]


def test_a_range_is_entered_in_the_middle_without_walking_there(rig: Rig) -> None:
    rig.desk.cursors = [("n", 10**15)]

    assert next(iter(rig.again().each("n", range(10**15 + 5)))) == 10**15


def test_an_iterable_that_became_shorter_has_nothing_left(rig: Rig) -> None:
    rig.desk.cursors = [("n", 10)]

    assert list(rig.again().each("n", range(3))) == []
    assert rig.desk.cursors == [("n", 10)]


def test_positions_ride_on_the_end_of_an_attempt_that_may_run_again(rig: Rig) -> None:
    assert list(rig.job.each("a", "xy")) == ["x", "y"]
    next(iter(rig.job.each("b", "xy")))
    policy = rig.card.policy

    back = rig.attempt.carrying(interrupted(rig.attempt.job, policy, "SIGTERM", timedelta(1)))
    done = rig.attempt.carrying(completed(rig.attempt.job, None, timedelta(1)))

    assert (back.cursors, done.cursors) == ((("a", 2),), ())
    rig.attempt.ask("shutdown", "SIGTERM", rig.attempt.now())
    assert stopped(rig.attempt, rig.attempt.now()).cursors == (("a", 2),)


def test_one_name_for_two_loops_or_for_a_loop_and_a_step_is_refused(rig: Rig) -> None:
    assert list(rig.job.each("photos", [])) == []
    rig.job.step("pay", rig.does(1))

    with pytest.raises(UsageError, match="give each its own name"):
        rig.job.each("photos", [1])
    with pytest.raises(UsageError, match="give each its own name"):
        rig.job.each("pay", [1])
    with pytest.raises(UsageError, match=r"name of a job\.each"):
        rig.job.step("photos", rig.does(1))


@pytest.mark.parametrize(
    ("items", "says"),
    [({1, 2}, "sorted"), (frozenset("ab"), "sorted"), (7, "a list, a range"), (None, "None")],
)
def test_items_without_an_order_are_refused(rig: Rig, items: Any, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        rig.job.each("n", items)


def test_an_async_iterable_is_refused_with_what_to_pass(rig: Rig) -> None:
    class Rows:
        def __aiter__(self) -> object:
            return self

    rows: Any = Rows()
    with pytest.raises(UsageError, match="an async iterable"):
        rig.job.each("n", rows)


def test_a_loop_ends_with_lease_lost_when_the_job_is_lost(rig: Rig) -> None:
    seen = []
    with pytest.raises(LeaseLost):
        for item in rig.job.each("n", range(10)):
            seen.append(item)
            if item == 3:
                rig.attempt.ask("lease", "its lease was taken", rig.attempt.now())

    assert seen == [0, 1, 2, 3]
    assert rig.desk.cursors == [("n", 1), ("n", 2), ("n", 3)]


def test_a_job_acknowledged_at_the_start_just_runs_its_steps(rig: Rig) -> None:
    rig.attempt.acked_first = True

    assert rig.job.step("pay", rig.does(1)) == 1
    assert list(rig.job.each("n", range(2))) == [0, 1]
    assert (rig.desk.steps, rig.desk.cursors) == ({}, [])


# A direct call.


def local() -> Job:
    port = LocalPort("local-1", timedelta(minutes=1))
    return Job(id="local-1", task="t", queue="q", port=port, encode=lambda value: (None, None))


def test_a_direct_call_runs_every_step_and_the_whole_loop(rig: Rig) -> None:
    for _ in range(2):
        job = local()
        assert job.step("pay", rig.does(1)) == 1
        assert asyncio.run(job.astep("more", rig.does(2))) == 2
        assert list(job.each("n", range(3))) == [0, 1, 2]

    assert rig.ran == [1, 2, 1, 2]
    assert local().trigger is None


def test_a_direct_call_refuses_what_a_worker_would(rig: Rig) -> None:
    with pytest.raises(PayloadError, match="has run, but its value cannot be kept"):
        local().step("odd", rig.does(object()))
    job = local()
    job.step("pay", lambda: 1)
    with pytest.raises(UsageError, match="give each its own name"):
        job.step("pay", lambda: 2)


def test_the_handle_says_what_triggered_the_job(rig: Rig) -> None:
    attempt = an_attempt(rig.card, trigger="schedule:nightly@2030-05-01T09:00:00Z")

    assert handle_of(attempt).trigger == "schedule:nightly@2030-05-01T09:00:00Z"
