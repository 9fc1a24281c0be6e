"""How often jobs run, as numbers and as words."""

from datetime import UTC, datetime, timedelta

import pytest

from duly.core.operating import Tally
from duly.core.runs import TaskRuns, runs_of, share_text, together

NOON = datetime(2030, 5, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


def test_runs_per_completed_job_count_every_attempt_that_ended() -> None:
    task = TaskRuns("send", completed=100, failed=7, lost=1, timeout=1, redelivered=1, redriven=5)

    assert task.runs == 110
    assert task.per_completed == pytest.approx(1.1)
    assert task.second == 8
    assert TaskRuns("send", failed=3).per_completed is None


def test_tallies_add_up_by_task_and_an_attempt_out_of_time_counts_once() -> None:
    tallies = [
        Tally("mail", "send", NOON, completed=10, lost=3, failed=5, timeout=1),
        Tally("bulk", "send", NOON + HOUR, completed=5, redelivered=2, suppressed=4),
        Tally("mail", "quiet", NOON, completed=50),
    ]

    found = runs_of(tallies)

    assert found == [
        TaskRuns("send", completed=15, failed=4, lost=3, timeout=1, redelivered=2, suppressed=4),
        TaskRuns("quiet", completed=50),
    ]
    assert together(found) == TaskRuns(
        "all", completed=65, failed=4, lost=3, timeout=1, redelivered=2, suppressed=4
    )


@pytest.mark.parametrize(
    ("number", "of", "span", "text"),
    [
        (1000, 10_000_000, DAY, "0.01 % = 1,000 a day"),
        (1, 240, HOUR, "0.42 % = 24 a day"),
        (1, 3, DAY, "33 % = 1 a day"),
        (3, 2_000_000, DAY, "0.00015 % = 3 a day"),
        (7, 400, DAY, "1.8 % = 7 a day"),
        (1, 100, timedelta(days=4), "1 % = 0.2 a day"),
        (5, 0, DAY, "5 a day"),
        (0, 100, DAY, "none"),
    ],
)
def test_a_share_is_told_as_what_it_is_a_day(number: int, of: int, span: timedelta, text: str) -> None:
    assert share_text(number, of, span) == text
