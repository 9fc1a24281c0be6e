"""Schedules through releases and acts: seen first last wins, and what was due before a change never fires after it."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from duly import App, NotFound
from duly.core.registration import ScheduleRecord
from duly.testing.clock import FakeClock
from duly.worker.registration import declare
from tests.scenarios.schedulers import Scheduler, due_times, record
from tests.schedules.conftest import app_on

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)


class Releases:
    """Releases of one App on one database, side by side."""

    def __init__(self, url: str, clock: FakeClock) -> None:
        self._url = url
        self._clock = clock
        self._apps: list[App] = []

    def start(self, **intervals: str) -> bool:
        """Start a worker of the release that has these schedules; whether it was the newest."""
        app = app_on(self._url, self._clock)
        self._apps.append(app)
        task = app.task(digest)
        for name, interval in intervals.items():
            app.every(interval, name=name, overlap="allow")(task)
        return declare(app)

    def close(self) -> None:
        for app in self._apps:
            app.close()


@pytest.fixture
def releases(url: str, clock: FakeClock) -> Iterator[Releases]:
    made = Releases(url, clock)
    yield made
    made.close()


def digest() -> None:
    pass


def names(app: App) -> list[str]:
    return [each.schedule.name for each in app.inspect.schedules()]


def test_the_release_that_was_seen_first_last_wins(jobs: App, releases: Releases) -> None:
    seen = [
        releases.start(digest="1h"),
        releases.start(digest="2h", report="1d"),
        # The old one restarts beside it, again and again, as in a rolling deploy.
        releases.start(digest="1h"),
        releases.start(digest="1h"),
        releases.start(digest="2h", report="1d"),
    ]

    assert seen == [True, True, False, False, True]
    assert names(jobs) == ["digest", "report"]
    assert record(jobs.store).schedule.every == 2 * HOUR


def test_a_restart_of_the_same_release_changes_nothing(
    jobs: App, releases: Releases, clock: FakeClock
) -> None:
    releases.start(digest="1h")
    before = record(jobs.store)

    clock.advance(59 * MINUTE)
    releases.start(digest="1h")

    assert record(jobs.store) == before


def test_a_schedule_that_is_no_longer_declared_goes_and_one_of_run_time_stays(
    jobs: App, releases: Releases, clock: FakeClock
) -> None:
    releases.start(digest="1h", report="1d")
    jobs.schedule("customer-7", jobs.task(digest).draft(), every="1h")

    releases.start(report="1d")
    clock.advance(2 * HOUR)
    Scheduler(jobs.store).work()

    assert names(jobs) == ["customer-7", "report"]
    assert len(due_times(jobs.store)) == 1


def test_an_edited_schedule_does_not_fire_what_was_due_before(
    jobs: App, releases: Releases, clock: FakeClock
) -> None:
    releases.start(digest="10m")
    clock.advance(5 * HOUR)

    releases.start(digest="2h")
    Scheduler(jobs.store).work()
    nothing = due_times(jobs.store)
    clock.advance(2 * HOUR)
    Scheduler(jobs.store).work()

    assert nothing == []
    assert due_times(jobs.store) == [clock()]
    assert record(jobs.store).missed == 0


def test_a_paused_schedule_fires_nothing_and_resumed_keeps_its_rhythm(
    jobs: App, releases: Releases, clock: FakeClock
) -> None:
    releases.start(digest="1h")
    began = clock()
    paused = [jobs.operate.pause_schedule("digest", reason="INC-7"), jobs.operate.pause_schedule("digest")]

    clock.advance(5 * HOUR + 30 * MINUTE)
    Scheduler(jobs.store).work()
    while_paused = due_times(jobs.store)
    resumed = [jobs.operate.resume_schedule("digest"), jobs.operate.resume_schedule("digest")]
    Scheduler(jobs.store).work()
    at_once = due_times(jobs.store)
    clock.advance(30 * MINUTE)
    Scheduler(jobs.store).work()

    assert (paused, resumed) == ([True, False], [True, False])
    assert while_paused == at_once == []
    assert due_times(jobs.store) == [began + 6 * HOUR]
    assert record(jobs.store).missed == 0


def test_a_deploy_resumes_nothing(jobs: App, releases: Releases, clock: FakeClock) -> None:
    releases.start(digest="1h")
    jobs.operate.pause_schedule("digest")

    releases.start(digest="1h")
    releases.start(digest="1h", report="1d")
    clock.advance(3 * HOUR)
    Scheduler(jobs.store).work()

    assert record(jobs.store).paused
    assert due_times(jobs.store) == []


def test_a_removed_schedule_fires_nothing_more_and_comes_back_with_its_code_from_then_on(
    jobs: App, releases: Releases, clock: FakeClock
) -> None:
    releases.start(digest="1h")
    clock.advance(30 * MINUTE)

    removed = jobs.operate.remove_schedule("digest", reason="too often")
    clock.advance(3 * HOUR)
    Scheduler(jobs.store).work()
    releases.start(digest="1h")
    Scheduler(jobs.store).work()

    assert removed
    assert due_times(jobs.store) == []
    assert record(jobs.store).next_at == clock() + HOUR


def test_run_by_hand_the_rhythm_stays(jobs: App, releases: Releases, clock: FakeClock) -> None:
    releases.start(digest="1h")
    before = record(jobs.store)

    (id,) = jobs.operate.run_schedule("digest")

    assert record(jobs.store) == before
    assert jobs.inspect.job(id).job.trigger == "schedule:digest@2030-05-01T12:00:00Z"


@pytest.mark.parametrize("verb", ["run_schedule", "pause_schedule", "resume_schedule", "remove_schedule"])
def test_an_unknown_schedule_is_told_with_the_nearest_name(filed: App, verb: str) -> None:
    with pytest.raises(NotFound, match="there are none"):
        getattr(filed.operate, verb)("digset")
    filed.every("1h")(filed.task(digest))
    declare(filed)

    with pytest.raises(NotFound, match="did you mean 'digest'"):
        getattr(filed.operate, verb)("digset")


@pytest.mark.asyncio
async def test_async_code_reads_and_acts_too(filed: App) -> None:
    await filed.aschedule("nightly", filed.task(digest).draft(), every="1h")

    run = await filed.operate.arun_schedule("nightly")
    acts = [
        await filed.operate.apause_schedule("nightly"),
        (await filed.inspect.aschedule("nightly")).paused,
        await filed.operate.aresume_schedule("nightly"),
        await filed.operate.aremove_schedule("nightly"),
    ]
    left: tuple[ScheduleRecord, ...] = await filed.inspect.aschedules()

    assert len(run) == 1
    assert acts == [True, True, True, True]
    assert left == ()


def test_who_ran_a_schedule_by_hand_and_why_is_kept(jobs: App, releases: Releases, clock: FakeClock) -> None:
    releases.start(digest="1h")

    (id,) = jobs.operate.run_schedule("digest", reason="INC-311")

    (entry, *_) = jobs.store.audits.page(verb="run")
    assert (entry.target, entry.reason, entry.actor) == ("schedule:digest", "INC-311", jobs.operate.actor())
    assert str(id) in entry.detail
