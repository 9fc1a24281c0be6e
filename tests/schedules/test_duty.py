"""The duty of every worker: who fires, when it looks again, and that one schedule never holds up another."""

import threading
from datetime import datetime, timedelta

import pytest
from msgspec.structs import replace

from duly import App, Job
from duly.core.defaults import MAX_REASON
from duly.core.job import NewJob
from duly.core.lifecycle import State
from duly.core.registration import Schedule, ScheduleRecord
from duly.core.schedule import delay_of
from duly.stores.faults import Transient
from duly.stores.open import open_store
from duly.stores.protocol import Store
from duly.telemetry.events import Happening
from duly.telemetry.hub import Hub
from duly.telemetry.schedules import DueTimesMissed, ScheduleFailed, ScheduleFired
from duly.testing.clock import FakeClock
from duly.worker.embedded import Embedded
from duly.worker.registration import declare
from duly.worker.schedules import Schedules
from tests.scenarios.schedulers import Scheduler, due_times, made, put, record
from tests.worker.doubles import Clock

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
HOURLY = Schedule("digest", every=60 * MINUTE)


@pytest.fixture
def store(jobs: App) -> Store:
    return jobs.store


@pytest.fixture
def filed_store(filed: App) -> Store:
    return filed.store


def test_it_looks_again_when_the_next_one_is_due_and_else_after_a_second_or_three(
    filed_store: Store, clock: FakeClock
) -> None:
    duty = Schedules(filed_store, {}, Hub())

    nothing = duty.run(0.0)
    put(filed_store, HOURLY)
    far = duty.run(0.0)
    clock.advance(60 * MINUTE - SECOND / 4)
    near = duty.run(0.0)
    clock.advance(SECOND / 4)
    fired = duty.run(0.0)

    assert (nothing, far, near, fired) == (3.0, 1.0, 0.25, 0.0)


def test_of_several_workers_one_fires(jobs: App, url: str, clock: FakeClock) -> None:
    put(jobs.store, Schedule("digest", every=MINUTE, overlap="allow"))
    stores = [open_store(url, clock=clock) for _ in range(3)]
    schedulers = [Scheduler(store) for store in stores]
    barrier = threading.Barrier(4, timeout=60)

    def work(scheduler: Scheduler) -> None:
        for _ in range(8):
            barrier.wait()
            scheduler.work()
            barrier.wait()

    threads = [threading.Thread(target=work, args=[each]) for each in schedulers]
    for thread in threads:
        thread.start()
    for _ in range(8):
        clock.advance(MINUTE)
        barrier.wait()
        barrier.wait()
    for thread in threads:
        thread.join(60)
    for store in stores:
        store.close()

    dues = due_times(jobs.store)
    assert dues == [clock() - n * MINUTE for n in range(7, -1, -1)]
    assert sum(isinstance(event, ScheduleFired) for each in schedulers for event in each.said) == 8


def test_a_clock_that_steps_back_fires_nothing_twice(store: Store, clock: FakeClock) -> None:
    put(store, Schedule("digest", every=MINUTE, overlap="allow"))
    began = clock()

    for step in (3, -2, 1, -3, 5, 1):
        clock.advance(step * MINUTE)
        Scheduler(store).work()

    dues = due_times(store)
    # Three late, then back and forth without a word, then on from where it had been.
    assert dues == [began + n * MINUTE for n in (3, 4, 5)]
    assert record(store).missed == 2


def test_beside_a_job_that_waits_or_runs_a_due_time_is_skipped_and_told(
    store: Store, clock: FakeClock
) -> None:
    put(store, Schedule("digest", every=MINUTE))
    scheduler = Scheduler(store)

    for _ in range(3):
        clock.advance(MINUTE)
        scheduler.work()

    (told, _) = [event for event in scheduler.said if isinstance(event, DueTimesMissed)]
    assert len(made(store)) == 1
    assert (record(store).fired, record(store).missed) == (1, 2)
    assert "still waits or runs" in told.sentence()


def test_a_schedule_that_misses_every_second_is_told_once_a_minute(
    filed_store: Store, clock: FakeClock
) -> None:
    put(filed_store, Schedule("digest", every=SECOND))
    scheduler = Scheduler(filed_store)

    for _ in range(62):
        clock.advance(SECOND)
        scheduler.work()

    told = [event.missed for event in scheduler.said if isinstance(event, DueTimesMissed)]
    assert told == [1, 60]
    assert record(filed_store).missed == 61


def test_a_queued_due_time_fires_once_the_job_before_has_ended(store: Store, clock: FakeClock) -> None:
    put(store, Schedule("digest", every=MINUTE, overlap="queue"))
    scheduler = Scheduler(store)
    clock.advance(MINUTE)
    scheduler.work()
    (first,) = made(store)

    clock.advance(3 * MINUTE)
    scheduler.work()
    waiting = len(made(store))
    store.operator.cancel([first.id], "ada", "")
    scheduler.work()

    assert waiting == 1
    assert due_times(store)[1:] == [clock()]
    assert record(store).missed == 2


def test_jitter_delays_the_job_and_not_the_rhythm(store: Store, clock: FakeClock) -> None:
    put(store, Schedule("digest", every=60 * MINUTE, jitter=10 * MINUTE))
    clock.advance(60 * MINUTE)

    Scheduler(store).work()

    (job,) = made(store)
    assert job.state is State.scheduled
    assert job.run_at == clock() + delay_of("digest", clock(), 10 * MINUTE)
    assert record(store).next_at == clock() + 60 * MINUTE


def test_what_waits_for_a_job_before_it_never_hides_what_is_due_behind_it(
    filed_store: Store, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("duly.worker.schedules._AT_ONCE", 4)
    crowd = [Schedule(f"s{n:03}", every=MINUTE, overlap="queue") for n in range(9)]
    for schedule in crowd:
        put(filed_store, schedule)
    scheduler = Scheduler(filed_store)
    clock.advance(MINUTE)
    scheduler.work()
    put(filed_store, Schedule("late", every=90 * SECOND, job=NewJob("default", "late", b"{}")))

    clock.advance(2 * MINUTE)
    scheduler.work()

    assert len(made(filed_store)) == 9
    assert len(made(filed_store, "late")) == 1


def test_a_round_of_a_thousand_due_times_is_followed_by_the_rest(store: Store, clock: FakeClock) -> None:
    put(store, Schedule("digest", every=SECOND, catch_up="all", overlap="allow"))
    began = clock()
    clock.advance(2_100 * SECOND)

    Scheduler(store).work()

    assert due_times(store) == [began + n * SECOND for n in range(1, 2_101)]
    assert record(store).fired == 2_100


class Refusing:
    """The schedules of a store that fails for one of them as often as it is told to."""

    def __init__(self, store: Store, error: Exception) -> None:
        self.left = 3
        self._schedules = store.schedules
        self._error = error

    def due(self, most: int = 100) -> tuple[datetime, list[ScheduleRecord], datetime | None]:
        return self._schedules.due(most)

    def fire(self, name: str, *rest: object) -> object:
        if name == "digest" and self.left:
            self.left -= 1
            raise self._error
        return self._schedules.fire(name, *rest)  # type: ignore[arg-type]

    def all(self) -> list[ScheduleRecord]:
        return self._schedules.all()

    def fail(self, name: str, expected: datetime, failure: str) -> bool:
        return self._schedules.fail(name, expected, failure)


@pytest.fixture
def two_due(filed: App, clock: FakeClock) -> Store:
    """Two schedules are due, of which "digest" comes first."""
    put(filed.store, HOURLY)
    put(filed.store, replace(HOURLY, name="other", job=NewJob("default", "other", b"{}")))
    clock.advance(60 * MINUTE)
    return filed.store


def test_one_that_fails_rests_while_the_others_fire(two_due: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[Happening] = []
    hub, boottime = Hub(), Clock()
    hub.listen(said.append)
    monkeypatch.setattr(two_due, "schedules", Refusing(two_due, ValueError("no")))
    duty = Schedules(two_due, {}, hub, boottime)

    duty.run(0.0)
    others = len(made(two_due, "other"))
    duty.run(0.0)
    resting = len(made(two_due))
    shown = record(two_due)
    for rest in (1.1, 2.1, 4.1):
        boottime.advance(rest)
        duty.run(0.0)

    assert (others, resting, len(made(two_due))) == (1, 0, 1)
    assert (shown.failure, shown.failures) == ("ValueError: no", 1)
    assert (record(two_due).failure, record(two_due).failures) == (None, 0)
    (failed,) = [event for event in said if isinstance(event, ScheduleFailed)]
    assert failed.sentence() == "schedule digest could not enqueue: ValueError: no; it is tried again"


def test_a_failure_that_no_text_of_a_database_can_hold_is_kept_as_far_as_it_can(
    two_due: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(two_due, "schedules", Refusing(two_due, ValueError("\0\ud800" + 9_000 * "x")))

    Schedules(two_due, {}, Hub()).run(0.0)

    failure = record(two_due).failure or ""
    assert failure.startswith("ValueError: \\u0000\\ud800xxx")
    assert len(failure.encode()) == MAX_REASON


def test_a_store_that_does_not_answer_is_the_duties_affair(
    two_due: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(two_due, "schedules", Refusing(two_due, Transient("away")))
    duty = Schedules(two_due, {}, Hub())

    for _ in range(3):
        with pytest.raises(Transient):
            duty.run(0.0)
    duty.run(0.0)

    assert (len(made(two_due)), len(made(two_due, "other"))) == (1, 1)


def test_a_tick_that_this_app_does_not_declare_is_left_to_its_own_workers(
    filed_store: Store, clock: FakeClock
) -> None:
    filed_store.schedules.put(Schedule("rows", every=MINUTE, overlap="allow"), clock() + MINUTE)
    put(filed_store, Schedule("digest", every=MINUTE, overlap="allow"))

    for _ in range(3):
        clock.advance(MINUTE)
        Scheduler(filed_store).work()

    assert (record(filed_store, "rows").fired, record(filed_store).fired) == (0, 3)


def test_a_job_says_in_its_handler_which_due_time_made_it(filed: App, clock: FakeClock) -> None:
    seen: list[str | None] = []

    @filed.every("1h")
    @filed.task
    def digest(job: Job) -> None:
        seen.append(job.trigger)

    declare(filed)
    clock.advance(60 * MINUTE)
    Scheduler(filed.store).work()
    with Embedded(filed) as worker:
        worker.until_idle()

    assert seen == ["schedule:digest@2030-05-01T13:00:00Z"]


def test_a_job_that_is_caught_up_is_not_expired_from_the_start(store: Store, clock: FakeClock) -> None:
    put(store, replace(HOURLY, job=NewJob("default", "digest", b"{}", expires=10 * MINUTE)))
    clock.advance(2 * 60 * MINUTE + 20 * MINUTE)

    Scheduler(store).work()

    (job,) = made(store)
    assert (job.state, job.expires_at) == (State.ready, clock() + 10 * MINUTE)
