"""The backoff: grows to its cap, never beyond, never backwards, whatever it is asked."""

from dataclasses import FrozenInstanceError
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from duly.core.backoff import Backoff
from duly.core.errors import UsageError
from tests.core.handlers import FEW

WAITS = st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=30))
FACTORS = st.floats(min_value=1, max_value=1_000)
FAILURES = st.integers(min_value=1, max_value=2**31)


def test_without_jitter_four_times_one_second_gives_1_4_16() -> None:
    backoff = Backoff("1s", factor=4, jitter=False)

    assert [backoff.delay(failed, 0.3).total_seconds() for failed in (1, 2, 3)] == [1, 4, 16]


def test_full_jitter_spreads_from_zero_to_the_ceiling() -> None:
    backoff = Backoff("2s", factor=3)

    assert backoff.ceiling(2) == timedelta(seconds=6)
    assert backoff.delay(2, 0.0) == timedelta(0)
    assert backoff.delay(2, 0.5) == timedelta(seconds=3)
    assert backoff.delay(2, 1.0) == timedelta(seconds=6)


@pytest.mark.parametrize("failed", [1, 46, 47, 63, 64, 1023, 1024, 5000, 2**31])
@pytest.mark.parametrize("factor", [1, 2, 100])
@pytest.mark.parametrize("jitter", [True, False])
def test_no_number_of_failures_overflows(failed: int, factor: int, jitter: bool) -> None:
    backoff = Backoff("1s", factor=factor, cap="1h", jitter=jitter)

    assert timedelta(0) <= backoff.delay(failed, 0.9) <= timedelta(hours=1)


@FEW
@given(WAITS, WAITS, FACTORS, FAILURES, st.floats(min_value=0, max_value=1))
@example(timedelta(0), timedelta(0), 1_000.0, 2**31, 1.0)
def test_every_wait_lies_between_zero_and_the_cap_and_ceilings_never_shrink(
    one: timedelta, other: timedelta, factor: float, failed: int, random: float
) -> None:
    backoff = Backoff(min(one, other), factor=factor, cap=max(one, other))

    assert timedelta(0) <= backoff.delay(failed, random) <= backoff.ceiling(failed) <= backoff.cap
    assert backoff.base <= backoff.ceiling(failed) <= backoff.ceiling(failed + 1)


def test_a_base_of_zero_never_waits() -> None:
    assert Backoff("0s").ceiling(5000) == timedelta(0)
    assert Backoff("0s").ceiling(3) == timedelta(0)


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        ({"base": 2}, "write '2s'"),
        ({"factor": 0.5}, "between 1 and 1000"),
        ({"factor": float("nan")}, "between 1 and 1000"),
        ({"factor": "3"}, "must be a number"),
        ({"factor": True}, "must be a number"),
        ({"base": "1h"}, "cap='15m') is below its base '1h'"),
    ],
)
def test_a_wrong_backoff_says_what_is_wrong(arguments: dict[str, Any], advice: str) -> None:
    with pytest.raises(UsageError) as caught:
        Backoff(**arguments)

    assert advice in str(caught.value)


@pytest.mark.parametrize(("failed", "random"), [(0, 0.5), (1, -0.1), (1, 1.1), (1, float("nan"))])
def test_what_no_caller_may_ask_is_refused(failed: int, random: float) -> None:
    with pytest.raises(ValueError, match=r"counts from 1|between 0 and 1"):
        Backoff().delay(failed, random)


def test_a_backoff_is_a_value() -> None:
    backoff = Backoff("2s", jitter=False)

    assert backoff == Backoff(timedelta(seconds=2), factor=3, cap="15m", jitter=False)
    assert hash(backoff) == hash(Backoff("2000ms", jitter=False))
    assert repr(backoff) == "Backoff('2s', factor=3, cap='15m', jitter=False)"
    assert repr(Backoff()) == "Backoff('2s', factor=3, cap='15m')"
    with pytest.raises(FrozenInstanceError):
        setattr(backoff, "factor", 4)  # noqa: B010  mypy knows better
