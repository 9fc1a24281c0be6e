"""Due times: strictly increasing, at the documented instant on the days the clock jumps, and refused where absurd."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import pairwise, takewhile
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from duly.core.errors import UsageError
from duly.core.job import NewJob
from duly.core.registration import Schedule, ScheduleRecord
from duly.core.schedule import (
    ALIASES,
    checked,
    delay_of,
    due_from,
    first_due,
    in_words,
    next_due,
    next_runs,
    occurrence,
    zone_of,
)
from tests.core.handlers import FEW

MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Santiago")
# Where clocks jump by an hour, by half an hour, at midnight, and not at all, from 2023 to 2025.
NOON = datetime(2030, 5, 1, 12, tzinfo=UTC)


def cron(expression: str, tz: str = "UTC") -> Schedule:
    return checked(Schedule("s", cron=expression, tz=tz))


def dues(schedule: Schedule, after: datetime, until: datetime) -> Iterator[datetime]:
    """Those in (after, until)."""

    def endless() -> Iterator[datetime]:
        due = after
        while True:
            due = next_due(schedule, due)
            yield due

    return takewhile(lambda due: due < until, endless())


def local(schedule: Schedule, first: str, last: str) -> list[str]:
    """Due times in [first, last] as the schedule's zone writes them."""
    zone = ZoneInfo(schedule.tz)
    after = datetime.fromisoformat(first).replace(tzinfo=zone).astimezone(UTC) - MINUTE
    until = datetime.fromisoformat(last).replace(tzinfo=zone).astimezone(UTC) + MINUTE
    return [due.astimezone(zone).isoformat(timespec="minutes") for due in dues(schedule, after, until)]


@cache
def jumps(tz: str, first: int = 2023, years: int = 3) -> list[datetime]:
    """The hours before which the offset of a zone changes."""
    zone = ZoneInfo(tz)
    start = datetime(first, 1, 1, tzinfo=UTC)
    hours = [start + timedelta(hours=hour) for hour in range(years * 8766)]
    return [b for a, b in pairwise(hours) if a.astimezone(zone).utcoffset() != b.astimezone(zone).utcoffset()]


@pytest.mark.parametrize(
    ("expression", "tz", "first", "last", "due"),
    [
        (
            "30 2 * * *", "Europe/Amsterdam", "2023-03-25T12:00", "2023-03-27T12:00",
            ["2023-03-26T03:00+02:00", "2023-03-27T02:30+02:00"],
        ),
        ("0 2 26 3 *", "Europe/Amsterdam", "2023-03-26T00:00", "2023-03-27T00:00", ["2023-03-26T03:00+02:00"]),
        ("15 2 * * *", "Australia/Lord_Howe", "2024-10-06T00:00", "2024-10-07T00:00", ["2024-10-06T02:30+11:00"]),
        ("30 0 * * *", "America/Santiago", "2024-09-07T12:00", "2024-09-08T23:00", ["2024-09-08T01:00-03:00"]),
        ("30 12 * * *", "Pacific/Apia", "2011-12-29T13:00", "2011-12-31T13:00",
            ["2011-12-31T00:00+14:00", "2011-12-31T12:30+14:00"]),
    ],
)  # fmt: skip
def test_a_local_time_that_does_not_exist_comes_right_after_the_gap(
    expression: str, tz: str, first: str, last: str, due: list[str]
) -> None:
    found = local(cron(expression, tz), first, last)

    assert found == due


@pytest.mark.parametrize(
    ("expression", "tz", "day", "due"),
    [
        ("30 1 * * *", "America/New_York", "2024-11-03", ["2024-11-03T01:30-04:00"]),
        ("45 1 * * *", "Australia/Lord_Howe", "2024-04-07", ["2024-04-07T01:45+11:00"]),
        ("30 23 * * *", "America/Santiago", "2024-04-06", ["2024-04-06T23:30-03:00"]),
        ("30 2 * * *", "Europe/Berlin", "2024-10-27", ["2024-10-27T02:30+02:00"]),
    ],
)
def test_a_local_time_that_exists_twice_comes_once_and_first(
    expression: str, tz: str, day: str, due: list[str]
) -> None:
    found = local(cron(expression, tz), f"{day}T00:00", f"{day}T23:59")

    assert found == due


def test_a_restart_between_the_two_half_past_ones_does_not_bring_the_second() -> None:
    schedule = cron("30 1 * * *", "America/New_York")
    between = datetime(2024, 11, 3, 6, 15, tzinfo=UTC)

    due = next_due(schedule, between)

    assert due == datetime(2024, 11, 4, 6, 30, tzinfo=UTC)


def test_what_begins_with_a_star_follows_the_clock() -> None:
    hourly = cron("0 * * * *", "America/New_York")
    early = cron("*/30 2 * * *", "America/New_York")

    assert local(hourly, "2024-11-03T00:00", "2024-11-03T02:00") == [
        "2024-11-03T00:00-04:00", "2024-11-03T01:00-04:00", "2024-11-03T01:00-05:00", "2024-11-03T02:00-05:00",
    ]  # fmt: skip
    assert local(early, "2024-03-10T00:00", "2024-03-10T23:00") == []


def test_a_shift_by_half_an_hour_leaves_out_no_due_time_after_it() -> None:
    schedule = cron("*/10 2 * * *", "Australia/Lord_Howe")

    found = local(schedule, "2024-04-07T00:00", "2024-04-07T23:00")

    assert found == [f"2024-04-07T02:{minute:02}+10:30" for minute in range(0, 60, 10)]


@pytest.mark.parametrize("tz", ZONES)
def test_every_minute_around_each_jump_is_due_once(tz: str) -> None:
    schedule = cron("* * * * *", tz)
    days = jumps(tz) or [datetime(2024, 2, 29, tzinfo=UTC)]
    windows = [(jump - 6 * 60 * MINUTE, jump + 6 * 60 * MINUTE) for jump in days]

    found = [due for first, last in windows for due in dues(schedule, first - MINUTE, last)]

    assert found == [first + n * MINUTE for first, _ in windows for n in range(12 * 60)]


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("tz", ZONES)
def test_every_minute_of_three_years_is_due_once(tz: str) -> None:
    schedule = cron("* * * * *", tz)
    first, last = datetime(2023, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)

    found = sum(due - first == n * MINUTE for n, due in enumerate(dues(schedule, first - MINUTE, last)))

    assert found == (last - first) // MINUTE


@pytest.mark.parametrize("hour", ["30 1", "30 2", "0 0", "30 23"])
@pytest.mark.parametrize("tz", ZONES)
def test_each_day_of_three_years_has_one_due_time(tz: str, hour: str) -> None:
    schedule = cron(f"{hour} * * *", tz)
    zone = zone_of(tz)
    first, last = datetime(2023, 1, 1, tzinfo=zone), datetime(2026, 1, 1, tzinfo=zone)

    found = list(dues(schedule, first.astimezone(UTC) - MINUTE, last.astimezone(UTC)))

    days = [due.astimezone(zone).date() for due in found]
    assert days == [first.date() + n * DAY for n in range(1096)]
    minute, of = hour.split()
    usual = [
        due
        for due in found
        if (due.astimezone(zone).hour, due.astimezone(zone).minute) == (int(of), int(minute))
    ]
    assert len(found) - len(usual) <= len(jumps(tz)) // 2


@pytest.mark.parametrize(
    "expression", ["0 0 29 2 *", "0 0 * 2 MON#5", "30 2 26 3 *", "0 0 L 2 1#5", "59 23 31 12 7"]
)
@pytest.mark.parametrize("tz", ["UTC", "Europe/Amsterdam", "Australia/Lord_Howe"])
def test_the_rarest_due_times_are_found_at_once_and_in_order(expression: str, tz: str) -> None:
    schedule = cron(expression, tz)
    due, took = datetime(2001, 1, 1, tzinfo=UTC), []

    for _ in range(20):
        began = time.process_time()
        due, before = next_due(schedule, due), due
        took.append(time.process_time() - began)
        assert due > before

    assert sorted(took)[10] < 0.05


@FEW
@given(
    st.lists(
        st.sampled_from(["*", "*/7", "0", "5,35", "1-3", "L", "MON#2", "2/3", "9"]), min_size=5, max_size=5
    ),
    st.sampled_from(ZONES),
    st.datetimes(min_value=datetime(2022, 1, 1), max_value=datetime(2027, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
)
def test_due_times_always_increase_or_are_refused(fields: list[str], tz: str, after: datetime) -> None:
    try:
        schedule = cron(" ".join(fields), tz)
    except UsageError:
        return

    found = [after]
    for _ in range(5):
        found.append(next_due(schedule, found[-1]))

    assert found == sorted(set(found))


@FEW
@given(st.text(max_size=40))
def test_no_text_breaks_the_reading_of_an_expression(text: str) -> None:
    try:
        schedule = cron(text)
    except UsageError:
        return

    assert next_due(schedule, NOON) > NOON


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        (Schedule("s", cron="0 0 30 2 *"), "never comes"),
        (Schedule("s", cron="0 0 31 4,6 *"), "never comes"),
        (Schedule("s", cron="61 * * * *"), "bad minute"),
        (Schedule("s", cron="5-1 * * * *"), "bad minute"),
        (Schedule("s", cron="* * * *"), "not five fields"),
        (Schedule("s", cron=""), "not five fields"),
        (Schedule("s", cron="0 0 0 * * *"), "every='10s' for seconds"),
        (Schedule("s", cron="@every 5m"), "write every='5m'"),
        (Schedule("s", cron="@reboot"), "none of @hourly"),
        (Schedule("s", cron="0 9 * * *", tz="Europe/Berln"), "did you mean 'Europe/Berlin'"),
        (Schedule("s", cron="0 9 * * *", tz="Europe"), "no time zone"),
        (Schedule("s", cron="0 9 * * *", tz="../etc/passwd"), "no time zone"),
        (Schedule("s", cron="0 9 * * *", tz=""), "no time zone"),
        (Schedule("s"), "give either"),
        (Schedule("s", cron="0 9 * * *", every=DAY), "give either"),
        (Schedule("s", every=timedelta(milliseconds=999)), "at least '1s'"),
        (Schedule("s", every=MINUTE, jitter=MINUTE), "shorter than every"),
        (Schedule("s", every=DAY, catch_up="all"), "overlap='queue'"),
        (Schedule("s", every=DAY, catch_up="skip", overlap="queue"), "catch_up='last'"),
        (Schedule("two words", every=DAY), "separates names"),
    ],
)
def test_what_can_never_be_due_is_refused_with_what_to_write(schedule: Schedule, words: str) -> None:
    with pytest.raises(UsageError) as refusal:
        checked(schedule)

    assert words in str(refusal.value)


@pytest.mark.parametrize(
    "moment",
    [
        datetime(2030, 5, 1, 12),  # noqa: DTZ001 - the point
        datetime(1960, 1, 1, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, tzinfo=UTC),
    ],
)
def test_a_naive_or_absurd_moment_is_refused(moment: datetime) -> None:
    for schedule in (cron("* * * * *"), Schedule("s", every=DAY)):
        with pytest.raises(UsageError):
            next_due(schedule, moment)


@pytest.mark.parametrize("alias", sorted(ALIASES))
def test_an_alias_is_stored_as_its_five_fields(alias: str) -> None:
    schedule = cron(f" {alias.upper()} ")

    assert schedule.cron == ALIASES[alias]


def test_an_interval_begins_one_interval_from_now_and_keeps_its_rhythm() -> None:
    schedule = checked(Schedule("s", every=timedelta(hours=7)))
    first = first_due(schedule, NOON + timedelta(microseconds=42))

    record = ScheduleRecord(schedule, "", first)

    assert first == NOON + timedelta(hours=7)
    assert due_from(record, first + 10 * DAY) == first + 35 * timedelta(hours=7)
    assert due_from(record, first) == first + timedelta(hours=7)
    assert due_from(record, NOON) == first


@FEW
@given(st.integers(min_value=0, max_value=10**9), st.timedeltas(min_value=timedelta(0), max_value=DAY))
def test_jitter_is_the_same_everywhere_and_below_its_bound(second: int, jitter: timedelta) -> None:
    due = datetime.fromtimestamp(second, UTC)

    delay = delay_of("s", due, jitter)

    assert timedelta(0) <= delay < jitter or delay == jitter == timedelta(0)
    assert delay == delay_of("s", due.astimezone(ZoneInfo("Asia/Kolkata")), jitter)


def test_jitter_spreads_due_times_and_schedules() -> None:
    hour = timedelta(hours=1)

    delays = [delay_of(name, NOON + n * DAY, hour) for name in "abcde" for n in range(20)]

    assert len(set(delays)) == 100
    assert min(delays) < hour / 10 < hour * 9 / 10 < max(delays)


def test_the_job_of_a_due_time_says_which_one_it_was() -> None:
    template = NewJob("mail", "digest", b"{}", delay=MINUTE)

    job = occurrence(Schedule("s", every=DAY, job=template), NOON)

    assert (job.run_at, job.delay, job.trigger) == (NOON, None, "schedule:s@2030-05-01T12:00:00Z")
    with pytest.raises(ValueError, match="no job of its own"):
        occurrence(Schedule("s", every=DAY), NOON)


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        (
            Schedule("s", cron="0 9 * * 1-5", tz="Europe/Berlin"),
            "every weekday at 09:00 Europe/Berlin",
        ),
        (Schedule("s", cron="*/5 * * * *"), "every 5 minutes, UTC"),
        (Schedule("s", cron="*/7 * * * *"), "every seventh minute of every hour, UTC"),
        (Schedule("s", cron="30 2 L * *"), "on the last day of every month at 02:30 UTC"),
        (Schedule("s", every=timedelta(minutes=90)), "every 1h 30m"),
        (Schedule("s", cron="what a later release may know"), "what a later release may know, UTC"),
        (Schedule("s"), "never"),
    ],
)
def test_a_schedule_is_told_in_plain_words(schedule: Schedule, words: str) -> None:
    told = in_words(schedule)

    assert told == words


def test_the_next_runs_are_told_in_the_zone_of_the_schedule() -> None:
    lisbon = Schedule("s", cron="30 7 * * 1-5", tz="Europe/Lisbon")
    friday = datetime(2030, 5, 3, 6, 30, tzinfo=UTC)
    record = ScheduleRecord(lisbon, "app", friday)

    runs = next_runs(record)

    assert [str(at) for at in runs] == [
        "2030-05-03 07:30:00+01:00",
        "2030-05-06 07:30:00+01:00",
        "2030-05-07 07:30:00+01:00",
    ]
    assert next_runs(replace(record, paused=True)) == ()
    assert next_runs(replace(record, schedule=Schedule("s", cron="new", tz="UTC"))) == (friday,)
    assert next_runs(replace(record, schedule=Schedule("s", every=DAY)), 2) == (friday, friday + DAY)
