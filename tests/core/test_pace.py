"""Rates with a burst: what is read, what is refused, and when a start is allowed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duly.core.errors import UsageError
from duly.core.pace import Pace, parse_pace


@pytest.mark.parametrize(
    ("text", "pace"),
    [
        ("5/s", Pace(0.2, 1)),
        ("600/min", Pace(0.1, 1)),
        ("100/s burst 20", Pace(0.01, 20)),
        ("1/h  burst  3", Pace(3600.0, 3)),
    ],
)
def test_a_rate_is_read_with_its_burst(text: str, pace: Pace) -> None:
    assert parse_pace(text) == pace


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (5, "has no unit"),
        ("5", "is no rate"),
        ("0/s", "would never move"),
        ("max", "leave rate out"),
        ("5/s burst", "is no rate"),
        ("5/s burst 0", "write '5/s burst 20'"),
        ("5/s burst 2 burst 3", "write '5/s burst 20'"),
    ],
)
def test_what_is_no_rate_is_refused_with_the_text_to_write(value: object, hint: str) -> None:
    with pytest.raises(UsageError, match=hint):
        parse_pace(value)


def test_starts_are_evenly_spaced_without_a_burst() -> None:
    pace, due, starts = Pace(0.5), 0.0, []

    for _ in range(4):
        start, due = pace.start(due, 10.0)
        starts.append(start)

    assert starts == [10.0, 10.5, 11.0, 11.5]


def test_a_burst_passes_at_once_after_a_pause_and_no_more_than_once() -> None:
    pace, due, starts = Pace(0.5, 3), 0.0, []

    for _ in range(5):
        start, due = pace.start(due, 10.0)
        starts.append(start)

    assert starts == [10.0, 10.0, 10.0, 10.5, 11.0]


@given(
    st.integers(1, 10), st.integers(1, 5), st.lists(st.floats(0, 3, allow_nan=False), min_size=1, max_size=40)
)
def test_no_stretch_of_time_holds_more_starts_than_the_rate_and_one_burst(
    per_second: int, burst: int, gaps: list[float]
) -> None:
    pace, now, due, starts = Pace(1 / per_second, burst), 0.0, 0.0, []

    for gap in gaps:
        now += gap
        start, due = pace.start(due, now)
        starts.append(start)

    for first, begun in enumerate(starts):
        for last in range(first, len(starts)):
            allowed = burst + (starts[last] - begun) * per_second
            assert last - first + 1 <= allowed + 1e-6
