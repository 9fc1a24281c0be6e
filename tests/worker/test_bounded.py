"""Bounded jobs with a real worker on both stores: order, caps, rates, turns."""

from __future__ import annotations

import asyncio
import time
from typing import Annotated, Any

import pytest

from duly import App, Job, PerKey, Snooze
from tests.worker.bounded import SOON, Meter, some_turns, work

# Ordering keys.


def test_many_short_jobs_of_one_key_run_in_order_and_never_at_once(app: App, meter: Meter) -> None:
    @app.task(ordering_key="{account}")
    async def push(account: int, number: int) -> None:
        meter(account, (account, number))
        if number % 10 == 0:
            await asyncio.sleep(0)
        meter.leave(account)

    stored = app.enqueue_many(push.draft(account, number) for number in range(150) for account in (1, 2))
    work(app, stored)

    assert meter.most == {1: 1, 2: 1}
    for account in (1, 2):
        assert [said for said in meter.order if said[0] == account] == [(account, n) for n in range(150)]


@pytest.mark.parametrize("kind", ["loop", "thread"])
def test_one_that_fails_is_waited_for_by_those_behind_it(app: App, meter: Meter, kind: str) -> None:
    def step(job: Job, number: int) -> None:
        meter("k", number)
        meter.leave("k")
        if number == 23 and job.attempt == 1:
            raise ConnectionError("away")

    async def on_loop(job: Job, number: int) -> None:
        step(job, number)

    def in_thread(job: Job, number: int) -> None:
        step(job, number)

    task: Any = app.task(backoff=SOON, ordering_key="k")(on_loop if kind == "loop" else in_thread)
    stored = app.enqueue_many(task.draft(number) for number in range(60))
    work(app, stored)

    assert meter.most == {"k": 1}
    assert meter.order == [*range(24), *range(23, 60)]


def test_a_chain_goes_from_the_loop_to_a_thread_and_back(app: App, meter: Meter) -> None:
    @app.task
    async def on_loop(number: int) -> None:
        meter("k", number)
        meter.leave("k")

    @app.task
    def in_thread(number: int) -> None:
        meter("k", number)
        meter.leave("k")

    kinds: list[Any] = [on_loop, in_thread]
    stored = app.enqueue_many(
        kinds[number % 3 == 0].using(ordering_key="k").draft(number) for number in range(90)
    )
    work(app, stored)

    assert meter.most == {"k": 1}
    assert meter.order == list(range(90))


def test_drain_runs_a_key_in_order(app: App) -> None:
    from duly.testing.kit import standing

    ran: list[int] = []

    @app.task(ordering_key="k", backoff=SOON)
    def push(number: int) -> None:
        ran.append(number)
        if number == 2 and ran.count(2) == 1:
            raise Snooze("1h")

    with standing(app, app.settings.url) as kit:
        app.enqueue_many(push.draft(number) for number in range(120))
        kit.drain()
        before = list(ran)
        kit.drain(scheduled=True)

    assert before == [0, 1, 2]
    assert ran == [0, 1, 2, *range(2, 120)]


# Caps and rates.


def test_a_tasks_cap_and_an_arguments_cap_hold_while_all_gets_done(app: App, meter: Meter) -> None:
    @app.task(max_running=3)
    async def send(customer: Annotated[int, PerKey(max_running=1)]) -> None:
        meter("task")
        meter(customer)
        await some_turns()
        meter.leave(customer)
        meter.leave("task")

    stored = app.enqueue_many(send.draft(number % 5) for number in range(40))
    work(app, stored, concurrency=20)

    assert meter.most["task"] <= 3
    assert all(meter.most[customer] == 1 for customer in range(5))


def test_a_rate_spaces_what_starts(app: App) -> None:
    @app.task(rate="20/s burst 1")
    async def send(number: int) -> None: ...

    stored = app.enqueue_many(send.draft(number) for number in range(12))
    began = time.monotonic()
    work(app, stored)

    assert time.monotonic() - began >= 0.55


def test_tenants_have_their_turns_and_their_cap(app: App, meter: Meter) -> None:
    sync = app.queue("sync", fair=True, tenant_max_running=2, reserve="10%")

    @app.task(queue=sync, tenant="{tenant}")
    async def push(tenant: str) -> None:
        meter(tenant, tenant)
        await some_turns()
        meter.leave(tenant)

    stored = app.enqueue_many(push.draft("big") for _ in range(100))
    stored += app.enqueue_many(push.draft("small") for _ in range(3))
    work(app, stored, concurrency=10)

    assert max(meter.most.values()) <= 2
    assert meter.order.index("small") < 20
