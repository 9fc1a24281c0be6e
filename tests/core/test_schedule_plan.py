"""What becomes of due times that have passed: in time, late, missed, beside a job that is still there."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from duly.core.registration import CatchUp, Overlap, Schedule, ScheduleRecord
from duly.core.schedule import ROUND, Plan, plan
from tests.core.handlers import FEW

NOON = datetime(2030, 5, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
FIVE = Schedule("s", every=5 * MINUTE)
POLICIES: list[tuple[CatchUp, Overlap]] = [
    ("last", "skip"), ("last", "queue"), ("last", "allow"), ("skip", "skip"), ("skip", "allow"), ("all", "queue"),
    ("all", "allow"),
]  # fmt: skip


def due_at_noon(schedule: Schedule = FIVE, **said: Any) -> ScheduleRecord:
    return replace(ScheduleRecord(schedule, "", NOON), **said)


def noons(*minutes: float) -> tuple[datetime, ...]:
    return tuple(NOON + minute * MINUTE for minute in minutes)


@pytest.mark.parametrize(("catch_up", "overlap"), POLICIES)
def test_nothing_fires_before_it_is_due_and_everything_when_it_is(
    catch_up: CatchUp, overlap: Overlap
) -> None:
    record = due_at_noon(replace(FIVE, catch_up=catch_up, overlap=overlap))

    assert plan(record, NOON - SECOND) == Plan((), NOON)
    assert plan(record, NOON) == Plan((NOON,), NOON + 5 * MINUTE)


@pytest.mark.parametrize(("catch_up", "overlap"), POLICIES)
@pytest.mark.parametrize("late", [1.5, 59.9])
def test_a_late_notice_is_never_a_miss(catch_up: CatchUp, overlap: Overlap, late: float) -> None:
    record = due_at_noon(replace(FIVE, catch_up=catch_up, overlap=overlap))

    made = plan(record, NOON + late * SECOND)

    assert made == Plan((NOON,), NOON + 5 * MINUTE)


@pytest.mark.parametrize(
    ("catch_up", "overlap", "fired", "missed"),
    [
        ("last", "skip", noons(180), 36),
        ("last", "allow", noons(180), 36),
        ("last", "queue", noons(180), 36),
        ("skip", "skip", (), 37),
        ("skip", "allow", (), 37),
        ("all", "allow", noons(*range(0, 181, 5)), 0),
    ],
)
def test_after_three_hours_of_downtime_each_policy_does_what_it_says(
    catch_up: CatchUp, overlap: Overlap, fired: tuple[datetime, ...], missed: int
) -> None:
    record = due_at_noon(replace(FIVE, catch_up=catch_up, overlap=overlap))

    made = plan(record, NOON + 182 * MINUTE)

    assert made == Plan(fired, NOON + 185 * MINUTE, missed)


def test_what_is_only_late_after_a_downtime_stands_for_all_that_was_missed() -> None:
    back = NOON + 180 * MINUTE + 30 * SECOND

    last = plan(due_at_noon(FIVE), back)
    skip = plan(due_at_noon(replace(FIVE, catch_up="skip")), back)

    assert last == skip == Plan(noons(180), NOON + 185 * MINUTE, 36)


def test_due_times_that_are_late_together_all_fire_where_they_may_overlap() -> None:
    often = Schedule("s", every=10 * SECOND, overlap="allow")

    allowed = plan(due_at_noon(often), NOON + 25 * SECOND)
    one = plan(due_at_noon(replace(often, overlap="skip")), NOON + 25 * SECOND)

    assert allowed == Plan((NOON, NOON + 10 * SECOND, NOON + 20 * SECOND), NOON + 30 * SECOND)
    assert one == Plan((NOON + 20 * SECOND,), NOON + 30 * SECOND, 2)


@pytest.mark.parametrize("busy", [{"last_waiting": True}, {"last_running": True}])
def test_beside_the_job_before_skip_drops_queue_waits_and_allow_fires(busy: dict[str, bool]) -> None:
    def made(overlap: Overlap) -> Plan:
        return plan(due_at_noon(replace(FIVE, overlap=overlap), **busy), NOON + SECOND)

    assert made("skip") == Plan((), NOON + 5 * MINUTE, 1)
    assert made("queue") == Plan((), NOON)
    assert made("allow") == Plan((NOON,), NOON + 5 * MINUTE)


def test_of_the_due_times_that_waited_only_the_last_one_fires() -> None:
    record = due_at_noon(replace(FIVE, overlap="queue"))
    hour_later = NOON + 61 * MINUTE

    while_it_runs = plan(replace(record, last_running=True), hour_later)
    after_it = plan(record, hour_later)

    assert while_it_runs == Plan((), NOON)
    assert after_it == Plan(noons(60), NOON + 65 * MINUTE, 12)


def test_all_and_queue_together_run_each_due_time_after_the_one_before() -> None:
    record = due_at_noon(replace(FIVE, catch_up="all", overlap="queue"))
    back = NOON + 12 * MINUTE
    fired: list[datetime] = []

    while True:
        made = plan(record, back)
        assert plan(replace(record, last_waiting=True), back) == Plan((), record.next_at)
        if not made.fire:
            break
        fired += made.fire
        record = replace(record, next_at=made.next_at)

    assert fired == list(noons(0, 5, 10))
    assert record.next_at == NOON + 15 * MINUTE


@pytest.mark.parametrize("schedule", [Schedule("s", every=MINUTE), Schedule("s", cron="* * * * *")])
def test_a_round_handles_a_thousand_due_times_and_the_next_one_the_rest(schedule: Schedule) -> None:
    record = due_at_noon(replace(schedule, catch_up="all", overlap="allow"))
    back = NOON + 2_500 * MINUTE
    rounds = []

    while record.next_at <= back:
        made = plan(record, back)
        rounds.append(made.fire)
        record = replace(record, next_at=made.next_at)

    assert [len(fire) for fire in rounds] == [ROUND, ROUND, 501]
    assert [due for fire in rounds for due in fire] == [NOON + n * MINUTE for n in range(2_501)]


@pytest.mark.parametrize("catch_up", ["last", "skip"])
@pytest.mark.parametrize("overlap", ["skip", "allow"])
@pytest.mark.parametrize("schedule", [Schedule("s", every=MINUTE), Schedule("s", cron="* * * * *")])
def test_however_many_were_missed_one_is_caught_up_and_the_rest_counted(
    schedule: Schedule, catch_up: CatchUp, overlap: Overlap
) -> None:
    record = due_at_noon(replace(schedule, catch_up=catch_up, overlap=overlap))
    back = NOON + 3_000 * MINUTE + 30 * SECOND
    fired: list[datetime] = []
    missed = 0

    while record.next_at <= back:
        made = plan(record, back)
        fired += made.fire
        missed += made.missed
        record = replace(record, next_at=made.next_at)

    assert (fired, missed) == ([NOON + 3_000 * MINUTE], 3_000)


def test_a_century_of_missed_seconds_is_counted_in_one_round() -> None:
    record = due_at_noon(Schedule("s", every=SECOND))

    made = plan(record, NOON + 10**9 * SECOND)

    assert made == Plan((NOON + 10**9 * SECOND,), NOON + (10**9 + 1) * SECOND, 10**9)


@FEW
@given(
    st.sampled_from(POLICIES),
    st.lists(st.tuples(st.integers(0, 4_000), st.booleans()), min_size=1, max_size=30),
    st.sampled_from([Schedule("s", every=7 * SECOND), Schedule("s", cron="*/3 * * * *")]),
)
def test_whatever_the_clock_does_no_due_time_fires_twice_and_each_is_fired_or_counted(
    policies: tuple[CatchUp, Overlap], looks: list[tuple[int, bool]], schedule: Schedule
) -> None:
    record = due_at_noon(replace(schedule, catch_up=policies[0], overlap=policies[1]))
    step = 7 * SECOND if schedule.every else 3 * MINUTE
    fired: list[datetime] = []
    missed = 0

    # The looks come in any order: that is a clock which is set back and forth.
    for second, busy in looks:
        made = plan(replace(record, last_running=busy), NOON + second * SECOND)
        fired += made.fire
        missed += made.missed
        assert made.next_at >= record.next_at
        record = replace(record, next_at=made.next_at)

    assert fired == sorted(set(fired))
    assert len(fired) + missed == (record.next_at - NOON) // step
