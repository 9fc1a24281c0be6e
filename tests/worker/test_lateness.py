"""A queue that is late says so where people look, and once to whoever listens, on both stores."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from duly import App
from duly.stores.protocol import Store
from duly.telemetry.events import Happening, QueueInTime, QueueLate
from duly.telemetry.hub import Hub
from duly.testing.clock import FakeClock
from duly.worker.lateness import Lateness
from duly.worker.registration import declare


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=["sqlite", "postgres"])
def app(request: pytest.FixtureRequest, clock: FakeClock) -> Iterator[App]:
    app = App(request.getfixturevalue(f"{request.param}_url"))
    app.client.clock = clock
    app.queue("mail", wait_target="30s")
    app.store.schema.migrate()
    yield app
    app.close()


def heard(store: Store) -> list[Happening]:
    hub = Hub()
    events: list[Happening] = []
    hub.listen(events.append)
    Lateness(store.pressing, hub).run(0.0)
    return events


def test_a_late_queue_is_told_once_and_once_more_when_it_is_in_time(app: App, clock: FakeClock) -> None:
    @app.task(queue="mail")
    async def send() -> None: ...

    declare(app)
    job = send.enqueue()
    early = heard(app.store)
    clock.advance(timedelta(minutes=2))
    late, again = heard(app.store), heard(app.store)
    clock.advance(timedelta(seconds=2))
    still = heard(app.store)
    app.operate.cancel(job)
    # A young one makes no queue late.
    send.enqueue()
    clock.advance(timedelta(seconds=2))
    in_time = heard(app.store)

    assert early == again == still == []
    assert late == [QueueLate("mail", timedelta(seconds=30), timedelta(minutes=2))]
    assert late[0].sentence() == (
        "queue mail is late: its oldest ready job has waited 2m, above wait_target=30s. Look: duly why mail"
    )
    assert in_time == [QueueInTime("mail")]


def test_status_and_why_mark_a_late_queue(app: App, clock: FakeClock) -> None:
    @app.task(queue="mail")
    async def send() -> None: ...

    send.enqueue()
    in_time = app.inspect.queue("mail").late
    clock.advance(timedelta(minutes=2))

    text = "late: its oldest ready job has waited 2m, above wait_target=30s"
    assert in_time is None
    assert app.inspect.queue("mail").late == text
    assert ("late", text) in [(one.kind, one.text) for one in app.inspect.why("mail").reasons]
    assert [queue.late for queue in app.inspect.status().queues if queue.counts.queue == "default"] == [None]
