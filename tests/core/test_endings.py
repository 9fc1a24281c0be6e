"""The endings: raised by handlers, past `except Exception`, and found again inside a group."""

import asyncio
import pickle
from datetime import timedelta
from typing import Any

import pytest

from duly.core.endings import Dead, Ending, Retry, Skip, Snooze, unwrap_ending
from duly.core.errors import UsageError


def test_an_ending_is_not_swallowed_by_except_exception() -> None:
    assert issubclass(Ending, BaseException)
    assert not issubclass(Ending, Exception)


def test_waits_are_durations() -> None:
    assert Snooze("10m").wait == timedelta(minutes=10)
    assert Retry(timedelta(seconds=1)).wait == timedelta(seconds=1)
    assert Retry().wait is None
    assert Snooze("10m").reason == Retry().reason == ""


@pytest.mark.parametrize("make", [Snooze, Retry])
def test_a_bare_number_is_no_wait(make: type[Snooze | Retry]) -> None:
    number: Any = 30

    with pytest.raises(UsageError, match="write '30s'"):
        make(number)


@pytest.mark.parametrize("make", [Skip, Dead])
def test_the_reason_of_an_end_must_say_something(make: type[Skip | Dead]) -> None:
    with pytest.raises(UsageError, match="needs a reason"):
        make(" ")


@pytest.mark.parametrize("make", [Skip, Dead])
def test_a_reason_is_text(make: type[Skip | Dead]) -> None:
    error: Any = ValueError("x")

    with pytest.raises(UsageError, match=r"not ValueError; write .*reason=str\(error\)"):
        make(error)


def test_a_reason_is_made_storable() -> None:
    assert Skip("a\x00b").reason == r"a\u0000b"
    assert len(Dead("x" * 10_000).reason.encode()) == 2_048


@pytest.mark.parametrize(
    ("ending", "text"),
    [
        (Snooze("90s"), "snoozed for 1m30s"),
        (Snooze("90s", "rate limit"), "snoozed for 1m30s: rate limit"),
        (Skip("refunded"), "skipped: refunded"),
        (Retry(), "retry"),
        (Retry("5s", "locked"), "retry after 5s: locked"),
        (Dead("unknown account"), "dead: unknown account"),
    ],
)
def test_an_ending_reads_well_and_survives_the_way_out_of_a_process(ending: Ending, text: str) -> None:
    arrived = pickle.loads(pickle.dumps(ending))

    assert str(ending) == str(arrived) == text
    assert vars(arrived) == vars(ending)


def test_the_ending_of_a_task_group_is_found() -> None:
    async def child() -> None:
        raise Snooze("1s")

    async def handler() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(child())

    with pytest.raises(BaseExceptionGroup) as caught:
        asyncio.run(handler())

    assert isinstance(unwrap_ending(caught.value), Snooze)


def test_a_nested_group_of_one_ending_is_that_ending() -> None:
    ending = Dead("x")
    group = BaseExceptionGroup("outer", [BaseExceptionGroup("inner", [ending])])

    assert unwrap_ending(group) is ending
    assert unwrap_ending(ending) is ending


@pytest.mark.parametrize(
    "error",
    [
        ValueError("x"),
        ExceptionGroup("one error", [ValueError("x")]),
        BaseExceptionGroup("two endings", [Skip("a"), Skip("b")]),
        BaseExceptionGroup("an error beside it", [Snooze("1s"), ValueError("x")]),
    ],
)
def test_anything_else_stays_what_it_is(error: BaseException) -> None:
    assert unwrap_ending(error) is error
