"""Resources with a real worker and in plain code: caps, holds and breakers that jobs and blocks share."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from duly import App, Backoff, Breaker, Skip, Snooze, State
from duly.client.authorship import author
from duly.stores.open import open_store
from duly.telemetry.events import BreakerChanged, Happening
from duly.worker.embedded import Embedded
from duly.worker.options import WorkerOptions
from duly.worker.registration import declare
from tests.waiting import wait_until
from tests.worker.bounded import Meter, all_in, records, some_turns, work


def test_a_resource_is_shared_by_jobs_that_use_it_and_by_blocks(app: App, meter: Meter) -> None:
    gpu = app.resource("gpu", max_running=2)

    @app.task(uses=[gpu])
    async def declared() -> None:
        async with gpu:
            # Its job has it already.
            meter("gpu")
            await some_turns()
            meter.leave("gpu")

    @app.task
    def block() -> None:
        with gpu:
            meter("gpu")
            meter.leave("gpu")

    tasks: list[Any] = [declared, block]
    stored = app.enqueue_many(tasks[number % 2].draft() for number in range(20))
    work(app, stored, concurrency=6, threads=6)

    assert meter.most["gpu"] <= 2
    assert all(record.running == 0 for record in app.store.control.limits(["resource:gpu"]))


def test_blocks_of_one_attempt_share_its_permit_until_the_last_is_left(sqlite_app: App) -> None:
    gpu = sqlite_app.resource("gpu", max_running=1)
    seen: list[int] = []

    def running() -> int:
        return sum(record.running for record in sqlite_app.store.control.limits(["resource:gpu"]))

    @sqlite_app.task
    async def fans_out() -> None:
        first_left = asyncio.Event()

        async def one() -> None:
            async with gpu:
                pass
            first_left.set()

        async with gpu:
            part = asyncio.create_task(one())
            await first_left.wait()
            seen.append(await asyncio.to_thread(running))
            await part
        seen.append(await asyncio.to_thread(running))

    work(sqlite_app, [fans_out.enqueue()])

    assert seen == [1, 0]


def test_plain_code_uses_a_resource_too(app: App) -> None:
    gpu = app.resource("gpu", max_running=1, ttl="1m")
    declare(app)
    inside = threading.Event()

    def second() -> None:
        with gpu:
            inside.set()

    other = threading.Thread(target=second)
    with gpu:
        other.start()
        held = app.store.control.limits(["resource:gpu"])[0].running
        waits = not inside.is_set()
    other.join(30)

    assert (held, waits) == (1, True)
    assert inside.is_set()


def test_a_hold_lets_nobody_begin(app: App) -> None:
    api = app.resource("api", max_running=5)

    @app.task(uses=[api])
    async def calls() -> None: ...

    with Embedded(app, WorkerOptions()):
        until = api.hold("1h", "429")
        job = calls.enqueue()
        wait_until(lambda: records(app, [job])[0].state is State.blocked, what="it is put aside")

    record = records(app, [job])[0]
    (limit,) = app.store.control.limits(["resource:api"])
    assert record.waits_for == "resource:api"
    assert record.counters.failed == 0
    assert limit.held_until == until
    assert (limit.held_by, limit.held_reason) == (author(app.client.settings), "429")


def test_a_hold_from_a_handler_names_its_task(app: App) -> None:
    api = app.resource("api", max_running=5)

    @app.task(uses=[api])
    async def calls() -> None:
        await api.ahold("1h", "429: retry after an hour")
        raise Skip("held")

    with Embedded(app, WorkerOptions()):
        job = calls.enqueue()
        wait_until(lambda: records(app, [job])[0].state is State.skipped, what="it has asked for the hold")

    (limit,) = app.inspect.limits(["resource:api"])
    assert (limit.held_by, limit.held_reason) == ("task:calls", "429: retry after an hour")


def test_failing_attempts_open_the_breaker_and_the_rest_waits_without_spending_any(
    app: App, heard: list[Happening]
) -> None:
    api = app.resource("api", breaker=Breaker(min_calls=4, cool_down="1h"))

    @app.task(uses=[api], backoff=Backoff("10m", jitter=False))
    async def calls() -> None:
        raise ConnectionError("away")

    with Embedded(app, WorkerOptions(concurrency=4)):
        app.enqueue_many(calls.draft() for _ in range(4))
        wait_until(lambda: [event for event in heard if isinstance(event, BreakerChanged)], what="it opens")
        job = calls.enqueue()
        wait_until(lambda: records(app, [job])[0].state is State.blocked, what="it is put aside")

    (event,) = [event for event in heard if isinstance(event, BreakerChanged)]
    assert (event.resource, event.state) == ("resource:api", "open")
    assert "too many calls failed" in event.sentence()
    assert records(app, [job])[0].counters.failed == 0


def test_permanent_errors_and_snoozes_do_not_open_it(sqlite_app: App, heard: list[Happening]) -> None:
    api = sqlite_app.resource("api", breaker=Breaker(min_calls=2))

    @sqlite_app.task(uses=[api], permanent=(KeyError,))
    async def refused() -> None:
        raise KeyError("unknown account")

    @sqlite_app.task(uses=[api])
    async def puts_off() -> None:
        raise Snooze("1h")

    stored = sqlite_app.enqueue_many(refused.draft() for _ in range(6))
    later = sqlite_app.enqueue_many(puts_off.draft() for _ in range(6))
    with Embedded(sqlite_app, WorkerOptions()):
        wait_until(lambda: all_in(sqlite_app, stored, State.dead), what="all refused")
        wait_until(lambda: all_in(sqlite_app, later, State.scheduled), what="all put off")

    assert not [event for event in heard if isinstance(event, BreakerChanged)]
    (limit,) = sqlite_app.store.control.limits(["resource:api"])
    assert limit.breaker == "closed"


def test_failures_in_blocks_of_plain_code_open_it_as_well(sqlite_app: App) -> None:
    api = sqlite_app.resource("api", breaker=Breaker(min_calls=2, cool_down="1h"))
    declare(sqlite_app)

    for _ in range(2):
        with pytest.raises(ConnectionError), api:
            raise ConnectionError("away")

    (limit,) = sqlite_app.store.control.limits(["resource:api"])
    assert limit.breaker == "open"


def test_a_store_opened_beside_sees_the_same_limits(app: App) -> None:
    app.resource("gpu", max_running=2)
    with Embedded(app, WorkerOptions()):
        pass
    beside = open_store(app.settings.url, schema=app.settings.schema)

    try:
        (limit,) = beside.control.limits(["resource:gpu"])
    finally:
        beside.close()

    assert limit.max_running == 2
