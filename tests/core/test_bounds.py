"""When a queue is full, how long its producers wait, and at what pace they go on."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duly.core.bounds import (
    LONGEST_PACE,
    LONGEST_WAIT,
    SHORTEST_WAIT,
    Bound,
    Fill,
    Pressure,
    full_text,
    overfull,
    pace,
    pressure_text,
    wait,
)
from duly.core.control import WhenFull

SECOND = timedelta(seconds=1)
DEEP = Bound(max_depth=100)
NOW = datetime(2030, 5, 1, 12, tzinfo=UTC)

bounds = st.builds(Bound, st.none() | st.integers(1, 10**6), st.none() | st.timedeltas(SECOND, 1000 * SECOND))
fills = st.builds(
    Fill,
    st.integers(0, 10**9),
    st.none() | st.timedeltas(0 * SECOND, 10**6 * SECOND),
    st.none() | st.floats(0, 1e9),
)


@pytest.mark.parametrize(
    ("depth", "more", "full"), [(99, 1, False), (100, 1, True), (90, 10, False), (90, 11, True)]
)
def test_a_queue_is_full_when_the_whole_batch_does_not_fit(depth: int, more: int, full: bool) -> None:
    why = overfull(DEEP, Fill(depth), more)

    assert (why is not None) is full


def test_a_queue_is_full_when_its_oldest_job_waits_too_long() -> None:
    bound = Bound(max_age=10 * SECOND)

    found = [overfull(bound, Fill(1, age), 1) for age in (None, 10 * SECOND, 11 * SECOND)]

    assert found == [None, None, "its oldest job has waited 11s, above max_age=10s"]


def test_a_queue_without_a_bound_is_never_full() -> None:
    assert overfull(Bound(), Fill(10**9, 10**6 * SECOND), 1000) is None


def test_the_wait_is_what_the_excess_takes_to_drain() -> None:
    assert wait(DEEP, Fill(119, out_per_s=2.0), 1) == 10 * SECOND


@given(bounds, fills, st.integers(1, 10**6))
def test_waits_are_bounded(bound: Bound, fill: Fill, more: int) -> None:
    assert SHORTEST_WAIT <= wait(bound, fill, more) <= LONGEST_WAIT
    assert timedelta(0) <= pace(bound, fill, more) <= LONGEST_PACE


def test_nobody_is_slowed_below_the_bound() -> None:
    assert pace(DEEP, Fill(50, out_per_s=0.1), 1) == timedelta(0)


def test_a_slowed_producer_brings_no_more_than_is_done() -> None:
    assert pace(DEEP, Fill(99, out_per_s=10.0), 2) >= 2 / 10.0 * SECOND


def test_a_fuller_queue_slows_more() -> None:
    paces = [pace(DEEP, Fill(depth, out_per_s=100.0), 1) for depth in (100, 200, 400)]

    assert paces == sorted(set(paces))


def test_the_refusal_names_queue_depth_bound_and_what_to_do() -> None:
    why = overfull(DEEP, Fill(100), 1)
    assert why is not None

    text = full_text("mail", why, timedelta(seconds=2.5))

    assert text == (
        "the queue 'mail' is full: 100 jobs wait, 1 more is above max_depth=100; nothing was stored. Try again in 3s, "
        "add workers or raise its bound; see duly status mail"
    )


@pytest.mark.parametrize(
    ("when_full", "met"),
    [
        ("reject", "producers are refused"),
        ("slow", "producers are slowed"),
        ("shed", "the least urgent jobs are shed"),
    ],
)
def test_a_full_queue_says_what_is_met_at_it(when_full: WhenFull, met: str) -> None:
    text = pressure_text(Pressure(Bound(100, None, when_full)), 100, None, NOW)

    assert text == f"full: 100 jobs wait, 1 more is above max_depth=100; {met}"


@pytest.mark.parametrize(
    ("depth", "text"), [(79, None), (80, "80% of max_depth=100"), (99, "99% of max_depth=100")]
)
def test_a_queue_that_is_nearly_full_is_worth_a_word(depth: int, text: str | None) -> None:
    assert pressure_text(Pressure(DEEP), depth, None, NOW) == text


def test_what_was_turned_away_is_told_of_any_queue() -> None:
    pressure = Pressure(refused=1, refused_at=NOW - 5 * SECOND, shed=12_000, shed_at=NOW)

    text = pressure_text(pressure, 0, None, NOW)

    assert text == "1 job was refused lately, the last 5s ago; 12,000 jobs were shed lately, the last 0s ago"


def test_what_arrives_and_what_ends_both_change_a_sample() -> None:
    fill = Fill(10, out_per_s=4.0)

    found = [
        fill.since(arrived, seconds).depth for arrived, seconds in ((0, 0.5), (5, 0.0), (5, 0.5), (5, 9.0))
    ]

    assert found == [10, 15, 13, 10]
