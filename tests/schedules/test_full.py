"""A due time that meets a full queue: it is missed and said so, the next one comes, and no worker stumbles."""

from datetime import timedelta

import pytest

from duly import App
from duly.core.control import WhenFull
from duly.telemetry.events import Happening
from duly.telemetry.hub import Hub
from duly.telemetry.schedules import DueTimesMissed, RowsRefused, ScheduleFailed, ScheduleFired
from duly.testing.clock import FakeClock
from duly.worker.registration import declare
from duly.worker.schedules import Schedules
from tests.scenarios.schedulers import made, record

MINUTE = timedelta(minutes=1)


class Duty:
    """The duty of a worker of this App."""

    def __init__(self, app: App) -> None:
        declare(app)
        self.said: list[Happening] = []
        hub = Hub()
        hub.listen(self.said.append)
        registry, clock = app.client.registry, app.client.clock
        assert clock is not None
        self._duty = Schedules(
            app.store, registry.schedules, hub, lambda: clock().timestamp(), app.client.pressing
        )

    def work(self) -> None:
        while self._duty.run(0.0) == 0.0:
            pass

    def heard(self, kind: type[Happening]) -> list[Happening]:
        return [event for event in self.said if isinstance(event, kind)]


def digesting(app: App, when_full: WhenFull = "reject") -> Duty:
    """One due time a minute, into a queue that holds one job and has it."""
    queue = app.queue("mail", max_depth=1, when_full=when_full)

    @app.every("1m", overlap="allow")
    @app.task(queue=queue)
    def digest() -> None: ...

    app.client.store.schema.migrate()
    digest.enqueue()
    return Duty(app)


def test_a_due_time_that_meets_a_full_queue_is_missed(jobs: App, clock: FakeClock) -> None:
    duty = digesting(jobs)

    clock.advance(MINUTE)
    duty.work()

    found = record(jobs.store)
    assert (found.fired, found.missed, found.failures) == (0, 1, 0)
    assert found.next_at > clock()
    assert len(made(jobs.store, "digest")) == 1
    assert duty.heard(DueTimesMissed) == [DueTimesMissed("digest", 1, "the queue 'mail' is full")]
    assert not duty.heard(ScheduleFailed)


def test_the_next_due_time_fires_once_there_is_room(jobs: App, clock: FakeClock) -> None:
    duty = digesting(jobs)
    clock.advance(MINUTE)
    duty.work()
    (waiting,) = made(jobs.store, "digest")

    jobs.operate.cancel([waiting.id], reason="makes room")
    jobs.close()
    duty = Duty(jobs)
    clock.advance(MINUTE)
    duty.work()

    found = record(jobs.store)
    assert (found.fired, found.missed) == (1, 1)


@pytest.mark.parametrize("when_full", ["slow", "shed"])
def test_a_queue_that_slows_or_sheds_takes_it_at_once(
    jobs: App, clock: FakeClock, when_full: WhenFull
) -> None:
    duty = digesting(jobs, when_full)

    clock.advance(MINUTE)
    duty.work()

    assert record(jobs.store).fired == 1
    assert len(duty.heard(ScheduleFired)) == 1


def test_the_rows_of_a_tick_wait_where_they_are(jobs: App, clock: FakeClock) -> None:
    queue = jobs.queue("mail", max_depth=1)
    asked: list[int] = []

    def ready(connection: object) -> list[tuple[int]]:
        asked.append(1)
        return [(7,)]

    @jobs.tick("1m", source=ready, key="purchase:{purchase}")
    @jobs.task(queue=queue)
    def ship(purchase: int) -> None: ...

    duty = Duty(jobs)
    waiting = ship.enqueue(1)
    clock.advance(MINUTE)
    duty.work()
    before = (len(asked), record(jobs.store, "ship"))
    jobs.operate.cancel([waiting.id], reason="makes room")
    jobs.close()
    duty = Duty(jobs)
    clock.advance(MINUTE)
    duty.work()

    assert before[0] == 0
    assert (before[1].missed, before[1].failures) == (1, 0)
    assert len(asked) == 1
    assert [job.args for job in made(jobs.store, "ship")][-1] == b'{"purchase":7}'
    assert not duty.heard(RowsRefused)
