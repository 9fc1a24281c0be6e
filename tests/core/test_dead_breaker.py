"""The rules of the dead-letter breaker, without store or clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from duly import App, DeadBreaker, UsageError
from duly.core.dead_breaker import (
    LONGEST,
    DeadBreakerPolicy,
    Outcomes,
    Step,
    Trial,
    counted_from,
    decide,
    longer,
)

NOON = datetime(2030, 5, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
POLICY = DeadBreakerPolicy()
TRIAL = Trial(NOON, MINUTE)


@pytest.mark.parametrize(
    ("completed", "dead", "step"),
    [
        (0, 0, Step.nothing),
        (0, 19, Step.nothing),
        (0, 20, Step.stop),
        (10, 10, Step.stop),
        (11, 10, Step.nothing),
        (1000, 10, Step.nothing),
    ],
)
def test_a_queue_stops_when_the_share_of_enough_ends_is_dead(completed: int, dead: int, step: Step) -> None:
    assert decide(POLICY, None, Outcomes(completed, dead)) is step


@pytest.mark.parametrize(
    ("completed", "dead", "step"),
    [(0, 0, Step.nothing), (1, 0, Step.go_on), (0, 1, Step.stop_longer), (5, 1, Step.stop_longer)],
)
def test_a_trial_goes_by_the_first_that_ends(completed: int, dead: int, step: Step) -> None:
    assert decide(POLICY, TRIAL, Outcomes(completed, dead)) is step


def test_ends_count_from_the_window_or_from_the_end_of_the_cool_down() -> None:
    assert counted_from(POLICY, None, NOON, paused=False) == NOON - POLICY.window
    assert counted_from(POLICY, TRIAL, NOON + MINUTE / 2, paused=True) is None
    assert counted_from(POLICY, TRIAL, NOON + MINUTE / 2, paused=False) == NOON
    assert counted_from(POLICY, TRIAL, NOON + 5 * MINUTE, paused=False) == NOON + MINUTE


def test_a_cool_down_doubles_up_to_an_hour_and_is_never_cut() -> None:
    assert longer(MINUTE) == 2 * MINUTE
    assert longer(timedelta(minutes=50)) == LONGEST
    assert longer(timedelta(hours=3)) == timedelta(hours=3)


def test_jobs_are_kept_as_long_as_the_breaker_counts_them() -> None:
    jobs = App("sqlite:///unused.db")

    queue = jobs.queue("mail", keep="10m", dead_breaker=DeadBreaker(share="20%"))

    assert queue.dead_breaker == DeadBreakerPolicy(share=0.2)
    with pytest.raises(UsageError, match="keep them longer"):
        jobs.queue("sms", keep="1m", dead_breaker=DeadBreaker())


def test_a_share_is_none_of_all_or_nothing() -> None:
    with pytest.raises(UsageError, match="no share"):
        DeadBreaker(share="0%")
