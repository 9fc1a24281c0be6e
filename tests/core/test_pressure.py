"""The arithmetic of pressure: trends, drain times, and the sentence a person reads at three in the morning."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duly.core.pressure import drain_time, health, slope
from tests.core.handlers import FEW

RATES = st.floats(min_value=0, max_value=1e6)


def test_a_line_has_its_own_slope() -> None:
    assert slope([(0, 10), (10, 30), (20, 50)]) == 2
    assert slope([(0, 50), (20, 10)]) == -2
    assert slope([(0, 5), (10, 5)]) == 0


def test_a_slope_needs_two_moments() -> None:
    assert slope([]) is None
    assert slope([(1, 5)]) is None
    assert slope([(1, 5), (1, 9)]) is None


def test_a_slope_keeps_its_digits_on_the_clock_of_1970() -> None:
    assert slope([(1.8e9, 100), (1.8e9 + 60, 160)]) == pytest.approx(1.0)


@FEW
@given(st.floats(-100, 100), st.floats(0, 1e6), st.lists(st.integers(0, 10_000), min_size=2, unique=True))
def test_the_slope_of_any_line_is_found(per_second: float, start: float, moments: list[int]) -> None:
    found = slope((moment, start + per_second * moment) for moment in moments)

    assert found == pytest.approx(per_second, abs=1e-6)


def test_a_queue_drains_at_the_difference_of_its_rates() -> None:
    assert drain_time(100, 5, 10) == timedelta(seconds=20)
    assert drain_time(0, 5, 0) == timedelta(0)
    assert drain_time(100, 10, 10) is None
    assert drain_time(100, 10, 5) is None
    assert drain_time(10**12, 0, 1e-9) is None


@FEW
@given(st.integers(min_value=-5, max_value=10**12), RATES, RATES)
def test_a_drain_time_is_never_negative(depth: int, in_per_s: float, out_per_s: float) -> None:
    left = drain_time(depth, in_per_s, out_per_s)

    assert left is None or left >= timedelta(0)


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        (health("mail", depth=0), "idle"),
        (health("mail", depth=0, running=3, workers=1), "keeping up: nothing waits, 3 running"),
        (
            health("mail", depth=12, paused=True, oldest=timedelta(minutes=3)),
            "paused: 12 jobs wait, the oldest for 3m until `duly resume mail`",
        ),
        (
            health("mail", depth=1),
            "no worker serves it: 1 job waits; start one with `duly worker --queues mail`",
        ),
        (
            health("mail", depth=0, running=1),
            "no worker serves it: 0 jobs wait; start one with `duly worker --queues mail`",
        ),
        (
            health("mail", depth=12, workers=1, in_per_s=1.0),
            "12 jobs wait; too few samples yet to say when it will be empty",
        ),
        (
            health("mail", depth=12, workers=1, in_per_s=0.5, out_per_s=2.5),
            "12 jobs wait; empty in 6s at 2.5/s out and 30/min in",
        ),
        (
            health("mail", depth=12, workers=1, in_per_s=2.0, out_per_s=0.01),
            "12 jobs wait; never empty at 36/h out and 2/s in: add slots or workers",
        ),
        (
            health("mail", depth=12, workers=1, in_per_s=0.0, out_per_s=0.0),
            "12 jobs wait; nothing was finished lately: look at the running jobs with `duly jobs --queue mail`",
        ),
    ],
)
def test_one_sentence_says_what_will_happen_and_what_to_do(sentence: str, expected: str) -> None:
    assert sentence == expected
