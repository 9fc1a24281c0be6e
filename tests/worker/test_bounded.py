"""Bounded jobs with a real worker on both stores: order, caps, rates, locks, resources and their breakers."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from datetime import timedelta
from typing import Annotated, Any

import pytest

from duly import App, Backoff, Breaker, Job, LeaseLost, PerKey, Snooze, State, UsageError
from duly.core.job import JobRecord
from duly.stores.open import open_store
from duly.stores.protocol import Store
from duly.telemetry.events import BreakerChanged, Happening
from duly.telemetry.hub import Hub
from duly.worker.embedded import Embedded
from duly.worker.options import WorkerOptions
from duly.worker.registration import declare
from tests.waiting import wait_until

SOON = Backoff("10ms", factor=1, jitter=False)


@pytest.fixture(params=["sqlite", "postgres"])
def app(request: pytest.FixtureRequest) -> Iterator[App]:
    url = request.getfixturevalue(f"{request.param}_url")
    app = App(url)
    if request.param == "postgres":
        app.store.schema.migrate()
    yield app
    app.close()


class Meter:
    """Who is inside, and how many were at most."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.inside: dict[object, int] = defaultdict(int)
        self.most: dict[object, int] = defaultdict(int)
        self.order: list[Any] = []

    def __call__(self, what: object, said: Any = None) -> None:
        with self._lock:
            self.order.append(said)
            self.inside[what] += 1
            self.most[what] = max(self.most[what], self.inside[what])

    def leave(self, what: object) -> None:
        with self._lock:
            self.inside[what] -= 1


async def _some_turns() -> None:
    for _ in range(50):
        await asyncio.sleep(0)


@pytest.fixture
def meter() -> Meter:
    return Meter()


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> list[Happening]:
    said: list[Happening] = []
    emit = Hub.emit

    def listen(hub: Hub, happening: Happening) -> None:
        said.append(happening)
        emit(hub, happening)

    monkeypatch.setattr(Hub, "emit", listen)
    return said


def records(app: App, stored: list[Any]) -> list[JobRecord]:
    found = app.store.inspection.lookup([job.id for job in stored])
    assert None not in found
    return [record for record in found if record is not None]


def all_in(app: App, stored: list[Any], state: State) -> bool:
    return {record.state for record in records(app, stored)} == {state}


def work(app: App, stored: list[Any], state: State = State.completed, **options: Any) -> None:
    with Embedded(app, WorkerOptions(**options)):
        wait_until(lambda: all_in(app, stored, state), what=f"all {state}", timeout=50)


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
        if number % 20 == 3 and job.attempt == 1:
            raise ConnectionError("away")

    async def on_loop(job: Job, number: int) -> None:
        step(job, number)

    def in_thread(job: Job, number: int) -> None:
        step(job, number)

    task: Any = app.task(backoff=SOON, ordering_key="k")(on_loop if kind == "loop" else in_thread)
    stored = app.enqueue_many(task.draft(number) for number in range(60))
    work(app, stored)

    twice = {3, 23, 43}
    assert meter.most == {"k": 1}
    assert meter.order == [n for number in range(60) for n in [number] * (2 if number in twice else 1)]


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
        await _some_turns()
        meter.leave(customer)
        meter.leave("task")

    stored = app.enqueue_many(send.draft(number % 5) for number in range(40))
    work(app, stored, concurrency=20)

    assert meter.most["task"] <= 3
    assert all(meter.most[customer] == 1 for customer in range(5))


def test_a_rate_spaces_what_starts(app: App) -> None:
    @app.task(rate="10/s burst 1")
    async def send(number: int) -> None: ...

    stored = app.enqueue_many(send.draft(number) for number in range(12))
    began = time.monotonic()
    work(app, stored)

    assert time.monotonic() - began >= 1.1


def test_tenants_have_their_turns_and_their_cap(app: App, meter: Meter) -> None:
    sync = app.queue("sync", fair=True, tenant_max_running=2, reserve="10%")

    @app.task(queue=sync, tenant="{tenant}")
    async def push(tenant: str) -> None:
        meter(tenant, tenant)
        await _some_turns()
        meter.leave(tenant)

    stored = app.enqueue_many(push.draft("big") for _ in range(100))
    stored += app.enqueue_many(push.draft("small") for _ in range(3))
    work(app, stored, concurrency=10)

    assert max(meter.most.values()) <= 2
    assert meter.order.index("small") < 20


# Locks.


@pytest.mark.parametrize("kind", ["loop", "thread"])
def test_a_lock_of_a_job_has_one_holder(app: App, meter: Meter, kind: str) -> None:
    async def on_loop(job: Job) -> None:
        async with job.lock("ledger"):
            meter("ledger")
            await _some_turns()
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


def test_a_lock_in_a_lock_of_one_name_is_refused_and_one_of_another_name_is_not(app: App) -> None:
    said: list[str] = []

    @app.task
    def nested(job: Job) -> None:
        with job.lock("a"), job.lock("b"):
            try:
                job.lock("a").__enter__()
            except UsageError as error:
                said.append(str(error))

    stored = [nested.enqueue()]
    work(app, stored)

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


def test_an_async_block_holds_the_lock_as_well(app: App) -> None:
    async def both() -> list[str]:
        lock = app.lock("ledger", ttl="5m")
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


def test_a_cancelled_wait_for_a_lock_takes_nothing(app: App) -> None:
    async def cancelled() -> None:
        lock = app.lock("ledger", ttl="5m")

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


def test_a_short_lock_is_refused_inside_a_handler(app: App) -> None:
    locks = {"short": app.lock("ledger", ttl="1s")}
    said: list[str] = []

    @app.task
    def uses_it() -> None:
        try:
            locks["short"].__enter__()
        except UsageError as error:
            said.append(str(error))

    stored = [uses_it.enqueue()]
    work(app, stored)

    assert "inside a handler write job.lock('ledger')" in said[0]


# Resources.


def test_a_resource_is_shared_by_jobs_that_use_it_and_by_blocks(app: App, meter: Meter) -> None:
    gpu = app.resource("gpu", max_running=2)

    @app.task(uses=[gpu])
    async def declared() -> None:
        async with gpu:
            # Its job has it already.
            meter("gpu")
            await _some_turns()
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


def test_blocks_of_one_attempt_share_its_permit_until_the_last_is_left(app: App) -> None:
    gpu = app.resource("gpu", max_running=1)
    seen: list[int] = []

    def running() -> int:
        return sum(record.running for record in app.store.control.limits(["resource:gpu"]))

    @app.task
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

    work(app, [fans_out.enqueue()])

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


def test_permanent_errors_and_snoozes_do_not_open_it(app: App, heard: list[Happening]) -> None:
    api = app.resource("api", breaker=Breaker(min_calls=2))

    @app.task(uses=[api], permanent=(KeyError,))
    async def refused() -> None:
        raise KeyError("unknown account")

    @app.task(uses=[api])
    async def puts_off() -> None:
        raise Snooze("1h")

    stored = app.enqueue_many(refused.draft() for _ in range(6))
    later = app.enqueue_many(puts_off.draft() for _ in range(6))
    with Embedded(app, WorkerOptions()):
        wait_until(lambda: all_in(app, stored, State.dead), what="all refused")
        wait_until(lambda: all_in(app, later, State.scheduled), what="all put off")

    assert not [event for event in heard if isinstance(event, BreakerChanged)]
    (limit,) = app.store.control.limits(["resource:api"])
    assert limit.breaker == "closed"


def test_failures_in_blocks_of_plain_code_open_it_as_well(app: App) -> None:
    api = app.resource("api", breaker=Breaker(min_calls=2, cool_down="1h"))
    declare(app)

    for _ in range(2):
        with pytest.raises(ConnectionError), api:
            raise ConnectionError("away")

    (limit,) = app.store.control.limits(["resource:api"])
    assert limit.breaker == "open"


def test_asked_to_stop_while_it_waits_for_a_lock_a_job_is_snoozed(app: App) -> None:
    @app.task
    def waits(job: Job) -> None:
        with job.lock("ledger"):
            raise AssertionError("not reached")

    with app.lock("ledger", ttl="5m"), Embedded(app, WorkerOptions(grace=timedelta(seconds=20))):
        job = waits.enqueue()
        wait_until(lambda: records(app, [job])[0].state is State.running, what="it runs")

    record = records(app, [job])[0]
    assert record.state in {State.scheduled, State.ready}
    assert (record.counters.failed, record.counters.snoozed) == (0, 1)


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
