"""Loops that wait while the queue they fill is full."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from duly import App, Paced, Snooze, UsageError
from duly.client import job as handles
from duly.client.job import local_job
from tests.client.conftest import Hands
from tests.waiting import await_until, wait_until


def task_of(app: App, **bounds: Any) -> Any:
    queue = app.queue("mail", **bounds)

    @app.task(queue=queue)
    def send(number: int) -> None: ...

    return send


@pytest.mark.parametrize("when_full", ["reject", "slow"])
def test_a_loop_waits_for_room_and_nothing_in_it_is_refused(both: App, when_full: str) -> None:
    send = task_of(both, max_depth=2, when_full=when_full)
    hands = Hands(both.store, "send", queues=("mail",))
    stored: list[bool] = []

    def produce() -> None:
        stored.extend(send.enqueue(number).over_limit for number in Paced(range(6), send))

    producer = threading.Thread(target=produce, daemon=True)
    producer.start()
    wait_until(lambda: len(stored) == 2, what="a full queue")
    assert both.inspect.queue("mail").counts.ready == 2
    done = 0

    def work() -> bool:
        nonlocal done
        for job in hands.claim():
            hands.complete(job)
            done += 1
        return done == 6

    wait_until(work, what="all jobs")
    producer.join(30)

    assert stored == [False] * 6


def test_an_async_loop_takes_async_items(both: App) -> None:
    send = task_of(both, max_depth=2)
    hands = Hands(both.store, "send", queues=("mail",))
    stored: list[int] = []

    async def numbers() -> AsyncIterator[int]:
        for number in range(4):
            yield number

    async def produce() -> None:
        async for number in Paced(numbers(), send):
            await send.aenqueue(number)
            stored.append(number)

    async def run() -> None:
        producing = asyncio.create_task(produce())
        await await_until(lambda: len(stored) == 2, what="a full queue")
        for job in await asyncio.to_thread(hands.claim):
            await asyncio.to_thread(hands.complete, job)
        await producing

    asyncio.run(run())

    assert stored == [0, 1, 2, 3]


def test_an_async_loop_takes_plain_items_and_an_unbounded_queue_waits_for_nothing(jobs: App) -> None:
    send = task_of(jobs)

    async def produce() -> list[int]:
        return [number async for number in Paced(range(3), send)]

    assert asyncio.run(produce()) == [0, 1, 2]
    assert list(Paced(range(3), send)) == [0, 1, 2]


def test_the_queue_is_that_of_the_tasks_options(jobs: App) -> None:
    send = task_of(jobs, max_depth=1)
    jobs.queue("other")
    send.enqueue(0)

    assert list(Paced(range(3), send.using(queue="other"))) == [0, 1, 2]


def test_inside_a_handler_the_wait_ends_when_the_job_is_asked_to_stop(jobs: App) -> None:
    send = task_of(jobs, max_depth=1)
    send.enqueue(0)
    # Its time to run is over, so that it should stop.
    job = local_job("fan_out", "default", timedelta(0), lambda _: (None, None))
    mark = handles.current.set(job)

    try:
        with pytest.raises(Snooze):
            list(Paced([1], send))
    finally:
        handles.current.reset(mark)


def test_what_is_no_task_is_told_so(jobs: App) -> None:
    wrong: Any = jobs.queue("mail")

    with pytest.raises(UsageError, match="write the task"):
        Paced([1], wrong)


def test_an_async_iterable_needs_an_async_loop(jobs: App) -> None:
    async def numbers() -> AsyncIterator[int]:
        yield 1

    with pytest.raises(UsageError, match="async for"):
        list(Paced(numbers(), task_of(jobs)))
