"""Schedules: on the days the clock jumps, with several schedulers, after a downtime, beside jobs that are still there.

Several servers in one process are several handles on one database; where a scheduler is killed it is a process.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from msgspec.structs import replace

from duly import App, UsageError
from duly.core.job import JobId, UniqueKey
from duly.core.keys import unique_digest
from duly.core.lifecycle import State
from duly.core.registration import CatchUp, Schedule
from duly.core.schedule import next_due
from duly.telemetry.schedules import DueTimesMissed
from duly.testing.conformance import Bench
from duly.worker.embedded import Embedded
from duly.worker.options import WorkerOptions
from duly.worker.registration import declare
from tests.scenarios.inside import final
from tests.scenarios.schedulers import (
    DIGEST,
    MINUTE,
    Crowd,
    Scheduler,
    due_times,
    made,
    put,
    record,
    set_clock,
    simulate,
)
from tests.waiting import wait_until

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
LOCAL = {
    "UTC": "2030-05-0{}T05:15+00:00",
    "Europe/Vilnius": "2030-05-0{}T05:15+03:00",
    "America/Los_Angeles": "2030-05-0{}T05:15-07:00",
    "Pacific/Auckland": "2030-05-0{}T05:15+12:00",
    "Asia/Kolkata": "2030-05-0{}T05:15+05:30",
}


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def move_to(bench: Bench, moment: datetime) -> None:
    bench.clock.advance(moment - bench.clock())


def jobs_by(url: str, bench: Bench) -> App:
    """An App on the same database, by the bench's clock."""
    app = App(url)
    app.client.clock = bench.clock
    return app


@pytest.mark.parametrize(
    ("expression", "tz", "days", "on_the_day"),
    [
        ("30 2 * * *", "Europe/Amsterdam", ("2023-03-25T12:00", "2023-03-27T12:00"), "2023-03-26T03:00+02:00"),
        ("0 2 26 3 *", "Europe/Amsterdam", ("2023-03-25T12:00", "2023-03-27T12:00"), "2023-03-26T03:00+02:00"),
        ("15 2 * * *", "Australia/Lord_Howe", ("2024-10-05T00:00", "2024-10-06T12:00"), "2024-10-06T02:30+11:00"),
        ("0 0 * * *", "America/Santiago", ("2024-09-07T12:00", "2024-09-09T00:00"), "2024-09-08T01:00-03:00"),
    ],
)  # fmt: skip
def test_a_daily_job_in_the_gap_of_spring_runs_once_right_after_it(
    bench: Bench, expression: str, tz: str, days: tuple[str, str], on_the_day: str
) -> None:
    move_to(bench, utc(days[0]))
    put(bench.store, Schedule("digest", cron=expression, tz=tz, overlap="allow"))
    scheduler = Scheduler(bench.store)

    simulate(bench, utc(days[1]) - utc(days[0]), 15 * MINUTE, scheduler.work)

    dues = due_times(bench.store)
    day = datetime.fromisoformat(on_the_day)
    assert [due for due in dues if due.astimezone(ZoneInfo(tz)).date() == day.date()] == [day]
    assert dues == sorted(set(dues))
    assert record(bench.store).missed == 0


def test_a_daily_job_in_the_repeated_hour_of_autumn_runs_once_across_a_restart(bench: Bench) -> None:
    move_to(bench, utc("2024-11-02T12:00"))
    put(bench.store, Schedule("digest", cron="30 1 * * *", tz="America/New_York", overlap="allow"))

    # The first half past one is 05:30 in UTC, the second 06:30; each look is that of a new process.
    simulate(bench, 2 * DAY, 15 * MINUTE, lambda: Scheduler(bench.store).work())

    assert due_times(bench.store) == [utc("2024-11-03T05:30"), utc("2024-11-04T06:30")]


def test_three_schedulers_and_two_kills_leave_one_job_for_each_minute(
    url: str, bench: Bench, tmp_path: Path
) -> None:
    clock, began = tmp_path / "clock", bench.clock()
    set_clock(clock, began)
    put(bench.store, Schedule("digest", cron="* * * * *", overlap="allow"))

    with Crowd(url, clock, 3) as crowd:
        for minute in range(1, 31):
            set_clock(clock, began + minute * MINUTE)
            if minute in {5, 17}:
                # Just now all of them compete for this minute, so that the one ahead dies as well as any.
                crowd.replace(1)
            wait_until(lambda: record(bench.store).fired >= minute, what=f"minute {minute}")  # noqa: B023

    assert due_times(bench.store) == [began + minute * MINUTE for minute in range(1, 31)]
    assert (record(bench.store).fired, record(bench.store).missed) == (30, 0)


def test_an_interval_longer_than_any_uptime_keeps_its_rhythm(url: str, bench: Bench) -> None:
    began = bench.clock()

    def deploy() -> None:
        app = jobs_by(url, bench)
        app.every("7d", overlap="allow")(app.task(digest))
        declare(app)
        Scheduler(app.store).work()
        app.close()

    deploy()
    simulate(bench, 30 * DAY, DAY, deploy)

    assert due_times(bench.store) == [began + 7 * week * DAY for week in (1, 2, 3, 4)]


@pytest.mark.parametrize(("catch_up", "fired", "missed"), [("last", 1, 35), ("all", 36, 0), ("skip", 0, 36)])
def test_after_three_hours_of_downtime_each_policy_catches_up_as_it_says(
    bench: Bench, catch_up: CatchUp, fired: int, missed: int
) -> None:
    put(bench.store, Schedule("digest", cron="*/5 * * * *", catch_up=catch_up, overlap="allow"))
    bench.clock.advance(3 * HOUR + 2 * MINUTE)
    scheduler = Scheduler(bench.store)

    scheduler.work()

    last = bench.clock() - 2 * MINUTE
    told = [event.missed for event in scheduler.said if isinstance(event, DueTimesMissed)]
    assert due_times(bench.store) == [last - n * 5 * MINUTE for n in range(fired)][::-1]
    assert record(bench.store).missed == sum(told) == missed


@pytest.mark.parametrize("catch_up", ["last", "all", "skip"])
def test_a_due_time_noticed_a_moment_late_is_no_miss(bench: Bench, catch_up: CatchUp) -> None:
    put(bench.store, Schedule("digest", cron="*/5 * * * *", catch_up=catch_up, overlap="allow"))
    began = bench.clock()
    bench.clock.advance(5 * MINUTE + timedelta(seconds=1.5))

    Scheduler(bench.store).work()

    assert due_times(bench.store) == [began + 5 * MINUTE]
    assert record(bench.store).missed == 0


def test_each_zone_counts_by_its_own_clock_whatever_the_servers_is(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    with server_time("Asia/Tokyo", monkeypatch):
        for tz in LOCAL:
            job = replace(DIGEST, task=tz)
            put(
                bench.store,
                Schedule(tz.replace("/", "-"), cron="15 5 * * *", tz=tz, job=job, overlap="allow"),
            )

        for _ in range(8):
            # A restart every seven hours.
            simulate(bench, 7 * HOUR, 30 * MINUTE, Scheduler(bench.store).work)
            if bench.clock() >= utc("2030-05-03T12:00"):
                break

    for tz, local in LOCAL.items():
        dues = [due for due in due_times(bench.store, tz) if due <= utc("2030-05-03T12:00")]
        assert [due.astimezone(ZoneInfo(tz)).isoformat(timespec="minutes") for due in dues] == [
            local.format(due.astimezone(ZoneInfo(tz)).day) for due in dues
        ]
        assert len(dues) == 2


@pytest.mark.parametrize("zone", ["America/New_York", "UTC"])
def test_a_naive_due_time_is_refused_and_an_aware_one_is_its_instant(
    url: str, bench: Bench, zone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = jobs_by(url, bench)
    task = app.task(digest)

    with server_time(zone, monkeypatch):
        with pytest.raises(UsageError, match="time zone"):
            task.using(run_at=datetime(2030, 7, 1, 12))  # noqa: DTZ001 - the point
        for absurd in (datetime(9999, 12, 31, tzinfo=UTC), datetime(1960, 1, 1, tzinfo=UTC)):
            with pytest.raises(UsageError, match="1970"):
                task.using(run_at=absurd)
            with pytest.raises(UsageError, match="1970"):
                next_due(Schedule("digest", cron="* * * * *"), absurd)
        aware = datetime(2030, 7, 1, 12, tzinfo=ZoneInfo("America/New_York"))
        later = task.using(run_at=aware).enqueue()
        past = task.using(run_at=aware - 200 * DAY).enqueue()

    assert bench.row(JobId(later.id)).run_at == utc("2030-07-01T16:00")
    assert bench.state(JobId(past.id)) is State.ready
    app.close()


def test_a_due_time_that_meets_its_queued_predecessors_key_is_counted_and_hurts_nobody(bench: Bench) -> None:
    unique = replace(DIGEST, unique=UniqueKey(unique_digest("digest", "", "job-x")))
    put(bench.store, Schedule("digest", cron="* * * * *", job=unique, overlap="allow"))
    put(bench.store, Schedule("other", cron="* * * * *", job=replace(DIGEST, task="other"), overlap="allow"))
    scheduler = Scheduler(bench.store)

    simulate(bench, 5 * MINUTE, MINUTE, scheduler.work)

    assert len(made(bench.store)) == 1
    assert (record(bench.store).fired, record(bench.store).missed) == (1, 4)
    assert len(made(bench.store, "other")) == 5
    assert sum(isinstance(event, DueTimesMissed) for event in scheduler.said) == 4


def test_a_worker_whose_only_slot_is_busy_enqueues_every_due_time(url: str, bench: Bench) -> None:
    began = bench.clock()
    app = jobs_by(url, bench)
    release = threading.Event()

    @app.task(name="long")
    def long_task() -> None:
        release.wait(60)

    app.cron("* * * * *", tz="UTC", overlap="allow")(app.task(digest))
    blocking = long_task.enqueue()

    with Embedded(app, WorkerOptions(threads=1)) as worker:
        wait_until(lambda: bench.state(JobId(blocking.id)) is State.running)
        for minute in range(1, 6):
            bench.clock.advance(MINUTE)
            worker.engine.schedules.soon("schedules")
            wait_until(lambda: len(made(bench.store)) == minute, what=f"the job of minute {minute}")  # noqa: B023
        still = bench.state(JobId(blocking.id))
        release.set()
        wait_until(lambda: final(app, [job.id for job in made(bench.store)]))
    app.close()

    jobs = made(bench.store)
    assert still is State.running
    assert (
        due_times(bench.store)
        == [job.enqueued_at for job in jobs]
        == [began + n * MINUTE for n in range(1, 6)]
    )


def digest() -> None:
    """What the schedules of the tests enqueue."""


@contextmanager
def server_time(zone: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The process's local time, as TZ sets it."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", zone)
        time.tzset()
        yield
    time.tzset()
