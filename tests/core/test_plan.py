"""The arithmetic of capacity: drain times, workers for a target, and a scaler that neither hunts nor sleeps."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from duly.core.bounds import Bound
from duly.core.defaults import SCALE_CALM, SCALE_SETTLE, SCALE_WAIT
from duly.core.plan import (
    Load,
    Scaling,
    connection_room,
    full_in,
    outlook,
    plan,
    scale,
    seconds_and,
    spelled,
    workers_needed,
)
from tests.core.handlers import FEW

RATES = st.floats(min_value=0.01, max_value=1e5)
CALM = SCALE_CALM.total_seconds()
SETTLE = SCALE_SETTLE.total_seconds()


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        (plan(1e6, 500).sentence(), "2,000 s (33 min)"),
        (plan(1e6, 500, 250).sentence(), "4,000 s (67 min)"),
        (plan(1e6, 500, 500).sentence(), "never: it grows by 0/s, needs 2 workers"),
        (plan(1e6, 500, 600).sentence(), "never: it grows by 100/s, needs 2 workers"),
        (plan(1e6, 500, 600, workers=5).sentence(), "never: it grows by 100/s, needs 7 workers"),
        (plan(1e6, 500, 1_750).sentence(), "never: it grows by 1,250/s, needs 4 workers"),
        (plan(0, 500).sentence(), "0 s"),
        (plan(50, 1).sentence(), "50 s"),
        (plan(1e15, 0.001, 0.0).sentence(), "more than 100 years"),
    ],
)
def test_a_plan_says_when_a_backlog_is_done_or_why_never(sentence: str, expected: str) -> None:
    assert sentence == expected


@FEW
@given(st.integers(1, 10**9), RATES, st.floats(0, 1e5), st.integers(1, 1000))
def test_so_many_workers_do_it_in_time_and_one_fewer_does_not(
    backlog: int, per_worker: float, arrivals: float, seconds: int
) -> None:
    needed = workers_needed(backlog, arrivals, per_worker, timedelta(seconds=seconds))

    def done(workers: int) -> float:
        return (workers * per_worker - arrivals) * seconds

    if needed < 1_000_000:
        assert done(needed) >= backlog * (1 - 1e-6) - 1e-6
        assert needed == 1 or done(needed - 1) <= backlog * (1 + 1e-6)


@FEW
@given(st.integers(1, 10**9), RATES, st.floats(0, 1e5))
def test_without_a_time_so_many_workers_are_the_fewest_that_drain_it(
    backlog: int, per_worker: float, arrivals: float
) -> None:
    needed = workers_needed(backlog, arrivals, per_worker, None)

    if needed < 1_000_000:
        assert needed * per_worker > arrivals * (1 - 1e-9)
        assert (needed - 1) * per_worker <= arrivals * (1 + 1e-6) + 1e-6


def test_a_growing_queue_fills_at_its_slope() -> None:
    bound = Bound(max_depth=1000)

    assert full_in(400, 2.0, bound) == timedelta(minutes=5)
    assert full_in(1000, -1.0, bound) == timedelta(0)
    assert full_in(400, 0.0, bound) is None
    assert full_in(400, None, bound) is None
    assert full_in(400, 2.0, None) is None


def test_the_outlook_says_when_it_is_full_and_what_would_help() -> None:
    load = Load("mail", 24_300, 2, timedelta(minutes=5), 12.0, 5.36, 6.64, timedelta(seconds=30))

    said = outlook(load, Bound(max_depth=100_000))

    assert said == (
        "at this slope full in 3 h 10 min, then new work is rejected; 18 more processes would hold 30 s again in 10 min"
    )


def test_the_outlook_of_a_queue_in_time_names_what_holds_its_target() -> None:
    load = Load("mail", 100, 2, timedelta(seconds=4), 14.0, 6.0, 8.0, timedelta(seconds=30))

    said = outlook(load, Bound(max_depth=91_300))

    assert (
        said
        == "at this slope full in 3 h 10 min, then new work is rejected; 4 more processes would hold 30 s"
    )


def test_the_outlook_of_a_capped_queue_names_its_cap() -> None:
    load = Load("mail", 500, 2, timedelta(minutes=5), 12.0, 5.0, 7.0, timedelta(seconds=30), capped=True)

    assert outlook(load, None, capped=20) == (
        "it runs as many as max_running=20 lets it: more processes would not help"
    )


def test_the_outlook_of_a_queue_that_keeps_up_is_silent() -> None:
    assert (
        outlook(Load("mail", 3, 2, timedelta(seconds=1), 5.0, 5.0, 0.0, timedelta(seconds=30)), None) is None
    )


@pytest.mark.parametrize(
    ("span", "long", "short"),
    [
        (timedelta(seconds=2000), "2,000 s (33 min)", "33 min 20 s"),
        (timedelta(hours=3, minutes=10, seconds=4), "11,404 s (3.2 h)", "3 h 10 min"),
        (timedelta(seconds=0.25), "0.25 s", "0 s"),
        (timedelta(days=3), "259,200 s (3.0 days)", "3 d"),
    ],
)
def test_spans_are_shown_as_people_think_of_them(span: timedelta, long: str, short: str) -> None:
    assert (seconds_and(span), spelled(span)) == (long, short)


def late(processes: int, ready: int = 6_000) -> Load:
    """A queue to which 100/s come, each process does 10/s, and the oldest has waited a minute."""
    return Load(
        "mail", ready, processes, timedelta(minutes=1), 100.0, 10.0 * processes, 1.0, timedelta(seconds=30)
    )


def calm(processes: int) -> Load:
    return Load("mail", 0, processes, None, 5.0, 5.0, 0.0, timedelta(seconds=30))


def test_a_late_queue_gets_all_it_needs_at_once_within_the_most() -> None:
    assert scale(Scaling(1), [late(1)], 0.0, least=1, most=100).wanted == 30
    assert scale(Scaling(1), [late(1)], 0.0, least=1, most=8).wanted == 8


def test_the_connections_of_the_database_bound_it() -> None:
    assert connection_room(70, 100) == 2
    assert connection_room(90, 100) == 0
    assert scale(Scaling(1), [late(1)], 0.0, least=1, most=8, room=2).wanted == 3
    assert scale(Scaling(3), [late(3)], 0.0, least=1, most=8, room=0).wanted == 3


def test_a_change_is_given_time_to_show() -> None:
    up = scale(Scaling(1), [late(1)], 100.0, least=1, most=8)
    soon = scale(up, [late(8)], 100.0 + SETTLE - 1, least=1, most=100)
    later = scale(up, [late(8)], 100.0 + SETTLE, least=1, most=100)

    assert soon.wanted == 8
    assert later.wanted > 8


@pytest.mark.parametrize("why", ["capped", "paused"])
def test_a_queue_at_its_cap_or_paused_starts_no_process(why: str) -> None:
    load = replace(late(1), capped=why == "capped", paused=why == "paused")

    assert scale(Scaling(1), [load], 0.0, least=1, most=8).wanted == 1


def test_a_late_queue_at_its_cap_keeps_the_processes_that_reach_it() -> None:
    waiting, paused = replace(late(4), capped=True), replace(late(4), paused=True)

    kept = scale(Scaling(4, calm_since=0.0), [waiting], CALM, least=1, most=8)

    assert (kept.wanted, kept.calm_since) == (4, None)
    assert scale(Scaling(4, calm_since=0.0), [paused], CALM, least=1, most=8).wanted == 3


def test_a_steep_slope_is_answered_before_anything_is_late() -> None:
    load = Load("mail", 100, 1, timedelta(seconds=5), 30.0, 10.0, 20.0, timedelta(seconds=30))

    assert load.pressed()
    assert scale(Scaling(1), [load], 0.0, least=1, most=8).wanted == 4


def test_processes_are_stopped_one_at_a_time_after_calm() -> None:
    memory = Scaling(4)
    memory = scale(memory, [calm(4)], 0.0, least=1, most=8)
    before = scale(memory, [calm(4)], CALM - 1, least=1, most=8)
    after = scale(memory, [calm(4)], CALM, least=1, most=8)
    at_once = scale(after, [calm(3)], CALM + 5, least=1, most=8)

    assert (before.wanted, after.wanted, at_once.wanted) == (4, 3, 3)


def test_what_is_nearly_late_is_no_calm() -> None:
    nearly = Load("mail", 50, 4, timedelta(seconds=16), 10.0, 10.0, 0.0, timedelta(seconds=30))
    memory = scale(Scaling(4), [calm(4)], 0.0, least=1, most=8)

    memory = scale(memory, [nearly], CALM - 1, least=1, most=8)

    assert scale(memory, [calm(4)], CALM + 1, least=1, most=8).wanted == 4


def test_a_process_that_was_stopped_too_early_is_stopped_later_next_time() -> None:
    memory = scale(Scaling(2, calm_since=0.0), [calm(2)], CALM, least=1, most=2)
    assert memory.wanted == 1

    memory = scale(memory, [late(1)], CALM + SETTLE, least=1, most=2)
    start = CALM + SETTLE + 1
    memory = scale(memory, [calm(2)], start, least=1, most=2)

    assert scale(memory, [calm(2)], start + CALM, least=1, most=2).wanted == 2
    assert scale(memory, [calm(2)], start + 2 * CALM, least=1, most=2).wanted == 1


def test_a_queue_of_unknown_speed_is_tried_with_one_more() -> None:
    load = Load("mail", 10, 1, SCALE_WAIT, None, None, None, None)

    assert scale(Scaling(1), [load], 0.0, least=1, most=8).wanted == 2


@FEW
@given(
    st.lists(
        st.tuples(
            st.integers(0, 10_000), st.floats(0, 120), st.floats(0, 100), st.floats(0, 100), st.booleans()
        ),
        max_size=30,
    ),
    st.integers(1, 3),
    st.integers(3, 9),
)
def test_whatever_comes_the_scaler_stays_between_its_bounds_and_steps_down_by_one(
    looks: list[tuple[int, float, float, float, bool]], least: int, most: int
) -> None:
    memory, now = Scaling(least), 0.0
    for ready, oldest, into, out, stuck in looks:
        now += 45.0
        load = Load(
            "mail", ready, memory.wanted, timedelta(seconds=oldest) if ready else None, into, out, into - out,
            None, capped=stuck,
        )  # fmt: skip
        after = scale(memory, [load], now, least=least, most=most)
        assert least <= after.wanted <= most
        assert after.wanted >= memory.wanted - 1
        memory = after
