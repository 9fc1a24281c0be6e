"""Locks with a real worker and in plain code: one holder, given back however it ends."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta
from typing import Any

import pytest

from duly import App, Job, LeaseLost, State, UsageError
from duly.stores.protocol import Store
from duly.worker.embedded import Embedded
from duly.worker.options import WorkerOptions
from tests.waiting import wait_until
from tests.worker.bounded import SOON, Meter, records, some_turns, work


@pytest.mark.parametrize("kind", ["loop", "thread"])
def test_a_lock_of_a_job_has_one_holder(app: App, meter: Meter, kind: str) -> None:
    async def on_loop(job: Job) -> None:
        async with job.lock("ledger"):
            meter("ledger")
            await some_turns()
            meter.leave("ledger")

    def in_thread(job: Job) -> None:
        with job.lock("ledger"):
            meter("ledger")
            meter.leave("ledger")

    task: Any = app.task(on_loop if kind == "loop" else in_thread)
    stored = app.enqueue_many(task.draft() for _ in range(12))
    work(app, stored, concurrency=6, threads=6)

    assert meter.most == {"ledger": 1}


def test_the_end_of_an_attempt_gives_its_locks_back(app: App) -> None:
    @app.task(backoff=SOON)
    def leaves_it(job: Job) -> int:
        job.lock("ledger").__enter__()
        if job.attempt == 1:
            raise ConnectionError("away")
        return job.attempt

    stored = [leaves_it.enqueue()]
    work(app, stored)

    assert records(app, stored)[0].result == b"2"


def test_a_lock_in_a_lock_of_one_name_is_refused_and_one_of_another_name_is_not(sqlite_app: App) -> None:
    said: list[str] = []

    @sqlite_app.task
    def nested(job: Job) -> None:
        with job.lock("a"), job.lock("b"):
            try:
                job.lock("a").__enter__()
            except UsageError as error:
                said.append(str(error))

    stored = [nested.enqueue()]
    work(sqlite_app, stored)

    assert "the lock 'a' is held by this code already" in said[0]


def test_a_lock_outside_of_handlers_keeps_others_out_until_it_is_given_back(app: App) -> None:
    inside = threading.Event()
    lock = app.lock("ledger", ttl="5m")

    def second() -> None:
        with lock:
            inside.set()

    other = threading.Thread(target=second)
    with lock:
        other.start()
        running = app.store.control.limits(["lock:ledger"])[0].running
        assert not inside.is_set()
    other.join(30)

    assert running == 1
    assert inside.is_set()
    assert all(record.running == 0 for record in app.store.control.limits(["lock:ledger"]))


def test_an_async_block_holds_the_lock_as_well(sqlite_app: App) -> None:
    async def both() -> list[str]:
        lock = sqlite_app.lock("ledger", ttl="5m")
        said: list[str] = []

        async def enter(name: str) -> None:
            async with lock:
                said.extend((f"{name} in", f"{name} out"))

        async with lock:
            waiting = asyncio.create_task(enter("b"))
            await asyncio.sleep(0)
            said.append("a out")
        await waiting
        return said

    assert asyncio.run(both()) == ["a out", "b in", "b out"]


def test_a_cancelled_wait_for_a_lock_takes_nothing(sqlite_app: App) -> None:
    async def cancelled() -> None:
        lock = sqlite_app.lock("ledger", ttl="5m")

        async def enter() -> None:
            async with lock:
                raise AssertionError("not reached")

        async with lock:
            waiting = asyncio.create_task(enter())
            await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
        async with lock:
            pass

    asyncio.run(cancelled())


def test_a_block_that_outlived_its_lock_says_so(app: App) -> None:
    lock = app.lock("ledger", ttl="1ms")

    with pytest.raises(LeaseLost, match="ran out after its ttl of 1ms"), lock:
        # Somebody else gets in once the time is over.
        wait_until(lambda: _taken_by_another(app.store), what="the end of the ttl")


def _taken_by_another(store: Store) -> bool:
    from duly.core.control import Permit

    return isinstance(store.control.acquire(["lock:ledger"], None, timedelta(minutes=1)), Permit)


def test_a_short_lock_is_refused_inside_a_handler(sqlite_app: App) -> None:
    locks = {"short": sqlite_app.lock("ledger", ttl="1s")}
    said: list[str] = []

    @sqlite_app.task
    def uses_it() -> None:
        try:
            locks["short"].__enter__()
        except UsageError as error:
            said.append(str(error))

    stored = [uses_it.enqueue()]
    work(sqlite_app, stored)

    assert "inside a handler write job.lock('ledger')" in said[0]


def test_asked_to_stop_while_it_waits_for_a_lock_a_job_is_snoozed(sqlite_app: App) -> None:
    begun = threading.Event()

    @sqlite_app.task
    def waits(job: Job) -> None:
        begun.set()
        with job.lock("ledger"):
            raise AssertionError("not reached")

    with (
        sqlite_app.lock("ledger", ttl="5m"),
        Embedded(sqlite_app, WorkerOptions(grace=timedelta(seconds=20))),
    ):
        job = waits.enqueue()
        assert begun.wait(30)

    record = records(sqlite_app, [job])[0]
    assert record.state in {State.scheduled, State.ready}
    assert (record.counters.failed, record.counters.snoozed) == (0, 1)
