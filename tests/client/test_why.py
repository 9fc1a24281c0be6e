"""Why a job is not running, on both stores: each reason there is, and what would change it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from duly import App, Filter, Job, NotFound, Snooze, UsageError
from duly.core.backoff import Backoff
from duly.core.classify import Verdict
from duly.core.control import LimitPolicy, Rate, TaskLimit
from duly.core.decide import Policy, completed, failed
from duly.core.fingerprint import describe
from duly.core.registration import QueuePolicy, Registration, TaskPolicy
from tests.client.conftest import Hands


class Noon:
    """A clock that stands still until the test moves it."""

    def __init__(self) -> None:
        self.now = datetime(2030, 5, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def noon() -> Noon:
    return Noon()


@pytest.fixture(params=["sqlite", "postgres"])
def jobs(request: pytest.FixtureRequest, noon: Noon, monkeypatch: pytest.MonkeyPatch) -> Iterator[App]:
    monkeypatch.setenv("DULY_ACTOR", "ada@ops")
    app = App(request.getfixturevalue(f"{request.param}_url"))
    app.client.clock = noon
    app.store.schema.migrate()
    yield app
    app.close()


@pytest.fixture
def send(jobs: App) -> Any:
    @jobs.task
    def send(customer_id: int = 0) -> None: ...

    return send


@pytest.fixture
def hands(jobs: App, send: Any) -> Hands:
    return Hands(jobs.store, "send")


def told(jobs: App, target: Any, **how: Any) -> list[tuple[str, str, str | None]]:
    return [(one.kind, one.text, one.change) for one in jobs.inspect.why(target, **how).reasons]


def limited(jobs: App, *limits: LimitPolicy, takes: tuple[TaskLimit, ...] = ()) -> None:
    jobs.store.schema.declare(
        Registration(
            "app", "1", (QueuePolicy("default"),), (TaskPolicy("send", "default", 100),),
            limits=limits, task_limits=takes,
        )
    )  # fmt: skip


def test_a_job_that_only_waits_its_turn_says_how_many_are_ahead(jobs: App, send: Any, hands: Hands) -> None:
    first, _, third = (send.enqueue() for _ in range(3))

    assert told(jobs, first) == [("place", "nothing is ahead of it: the next free slot takes it", None)]
    ((kind, text, _),) = told(jobs, third)
    assert kind == "place"
    assert text.startswith("2 jobs are ahead of it; nothing was finished lately")


def test_a_delayed_job_says_when_it_is_due(jobs: App, send: Any, hands: Hands) -> None:
    job = send.using(delay="5m").enqueue()

    assert told(jobs, job) == [
        ("due", "it is not due before 12:05:00 UTC (in 5m)", f"jobs.operate.run_now({job.id})")
    ]


def test_a_pause_is_told_with_its_author_its_reason_and_its_end(jobs: App, send: Any, hands: Hands) -> None:
    job = send.enqueue()
    jobs.operate.pause("default", lasting="30m", reason="INC-311")
    jobs.operate.pause("task:send")

    assert told(jobs, job) == [
        (
            "queue paused",
            "the queue default is paused by ada@ops until 12:30:00 UTC (in 30m) (INC-311)",
            "duly resume default",
        ),
        ("task paused", "the task send is paused by ada@ops until it is resumed", "duly resume task:send"),
    ]


def test_a_job_that_no_worker_can_take_says_so(jobs: App, send: Any) -> None:
    job = send.enqueue()

    assert told(jobs, job) == [
        ("no worker", "no worker serves the queue default", "duly worker --queues default")
    ]
    Hands(jobs.store, "other")
    ((kind, text, _),) = told(jobs, job)
    assert kind == "task unknown"
    assert text == "the worker of default does not know the task send: deploy code that has it"


def test_a_job_behind_its_ordering_key_names_the_one_before_it(jobs: App, send: Any, hands: Hands) -> None:
    first, second, third = (send.using(ordering_key="order-7").enqueue() for _ in range(3))
    (running,) = hands.claim()

    assert told(jobs, second) == [
        ("key", f"it is behind job {first.id} (running) of its ordering key order-7", f"duly why {first.id}")
    ]
    assert "as number 3" in told(jobs, third)[0][1]

    error = describe(ConnectionError("no route"))
    once = Policy(1, Backoff(), 10)
    hands.end(failed(running, Verdict("transient"), once, 0.5, error, timedelta(seconds=1)))
    hands.claim()
    ((_, text, change),) = told(jobs, second)
    assert text == f"it is behind job {first.id} (dead) of its ordering key order-7"
    assert change == f"duly dead redrive {first.id}, or on without it: duly resume key:default/order-7"
    assert jobs.operate.resume_key("default", "order-7")
    assert told(jobs, second)[0][0] in {"free", "place"}


def test_a_job_at_a_cap_names_who_holds_it(jobs: App, send: Any, hands: Hands) -> None:
    limited(jobs, LimitPolicy("task:send", 1), takes=(TaskLimit("send", "task:send"),))
    first, second = send.enqueue(), send.enqueue()
    (running,) = hands.claim()

    assert told(jobs, second) == [
        (
            "limit",
            f"task:send is at its cap: 1 of 1 run (job {first.id})",
            "duly limit task:send --max-running 2 --for 1h",
        )
    ]
    made = jobs.operate.limit("task:send", max_running=1, lasting="1h")
    assert told(jobs, second)[0][1].endswith(f", by override {made.id}")
    assert told(jobs, second)[0][2] == f"duly overrides lift {made.id}"
    hands.end(completed(running, None, timedelta(0)))
    assert told(jobs, second)[0][0] in {"free", "place"}


def test_a_job_at_its_arguments_cap_names_the_value(jobs: App, send: Any, hands: Hands) -> None:
    policy = LimitPolicy("task:send#customer_id", 1)
    limited(jobs, policy, takes=(TaskLimit("send", policy.name, "customer_id"),))
    send.enqueue(7)
    second = send.enqueue(7)
    hands.claim()

    ((kind, text, change),) = told(jobs, second)

    assert (kind, text[:46]) == ("limit", "task:send#customer_id=7 is at its cap: 1 of 1 ")
    assert change == "duly limit 'task:send#customer_id=7' --max-running 2 --for 1h"


def test_a_rate_says_when_its_next_slot_opens(jobs: App, send: Any, hands: Hands) -> None:
    limited(jobs, LimitPolicy("task:send", rate=Rate(60.0)), takes=(TaskLimit("send", "task:send"),))
    send.enqueue()
    second = send.enqueue()
    hands.claim()

    assert told(jobs, second) == [
        (
            "rate",
            "the rate of task:send lets the next one start 12:01:00 UTC (in 1m)",
            "duly limit task:send --rate none --for 1h",
        )
    ]


def test_a_held_resource_says_until_when(jobs: App, send: Any, hands: Hands) -> None:
    limited(jobs, LimitPolicy("resource:stripe", 5), takes=(TaskLimit("send", "resource:stripe"),))
    job = send.enqueue()
    until = jobs.operate.hold("stripe", "30s", reason="429")
    hands.claim()

    assert until == datetime(2030, 5, 1, 12, 0, 30, tzinfo=UTC)
    assert told(jobs, job) == [
        ("held", "resource:stripe is held by ada@ops until 12:00:30 UTC (in 30s) (429)", None)
    ]
    kinds = [one.kind for one in jobs.inspect.why("resource:stripe").reasons]
    assert kinds == ["numbers", "held", "health"]


def test_a_block_is_told_with_its_author_and_filter(jobs: App, send: Any, hands: Hands) -> None:
    job, other = send.enqueue(7), send.enqueue(8)
    made = jobs.operate.block(
        Filter(queue="default", where="args.customer_id = 7"), lasting="1h", reason="INC-311"
    )

    expected = (
        "block",
        f"override {made.id} of ada@ops blocks where=args.customer_id = 7 until 13:00:00 UTC (in 1h) (INC-311)",
        f"duly overrides lift {made.id}",
    )
    assert told(jobs, job) == [expected]
    assert told(jobs, other)[0][0] == "place"
    hands.claim()
    assert told(jobs, job) == [expected]


def test_a_suspect_waits_for_an_empty_process(jobs: App, send: Any, hands: Hands) -> None:
    job = send.enqueue()
    (running,) = hands.claim()
    jobs.store.leases.disown(hands.incarnation, [(running.id, running.run)], "killed", 3)
    Hands(jobs.store, "send")

    kinds = [kind for kind, _, _ in told(jobs, job)]

    assert kinds == ["suspect", "place"]


def test_guards_are_asked_only_where_that_was_wished(jobs: App, hands: Hands) -> None:
    seen: list[tuple[object, int]] = []

    @jobs.task
    async def refund(order_id: int) -> None: ...

    @refund.guard
    def known(job: Job, order_id: int) -> str | None:
        seen.append((job.id, order_id))
        return None if order_id == 1 else "no such order"

    @refund.guard
    async def quiet(order_id: int) -> None:
        raise Snooze("10m", "not before noon")

    Hands(jobs.store, "refund")
    first, second = refund.enqueue(1), refund.enqueue(2)

    assert [kind for kind, _, _ in told(jobs, first)] == ["place"]
    assert seen == []
    assert (
        told(jobs, first, guards=True)[-1][1]
        == "guard quiet would stop it: not now: guard quiet: not before noon"
    )
    assert told(jobs, second, guards=True)[-1][1] == "guard known would stop it: no such order"
    assert seen == [(first.id, 1), (second.id, 2)]


def test_a_guard_that_fails_says_how(jobs: App, hands: Hands) -> None:
    @jobs.task
    def refund(order_id: int) -> None: ...

    @refund.guard
    def known(order_id: int) -> None:
        raise ValueError("no database here")

    job = refund.enqueue(1)

    assert (
        told(jobs, job, guards=True)[-1][1]
        == "guard known would stop it: it fails: ValueError: no database here"
    )


def test_ended_and_running_jobs_say_what_became_of_them(
    jobs: App, send: Any, hands: Hands, noon: Noon
) -> None:
    good, bad = send.enqueue(), send.enqueue()
    running, dying = hands.claim()
    noon.now += timedelta(seconds=30)

    assert told(jobs, good) == [
        ("running", f"it runs for 30s on worker {hands.incarnation}", f"duly cancel {good.id}")
    ]
    hands.complete(running)
    error = describe(ConnectionError("no route"))
    once = Policy(1, Backoff(), 10)
    hands.end(failed(dying, Verdict("transient"), once, 0.5, error, timedelta(seconds=1)))
    noon.now += timedelta(minutes=2)
    assert told(jobs, good) == [("ended", "it completed 2m ago", f"duly job {good.id}")]
    ((kind, text, change),) = told(jobs, bad)
    assert (kind, text[:14]) == ("ended", "it died 2m ago")
    assert str(change).startswith(f"duly dead redrive {bad.id}; all of this error: duly dead show ")


def test_a_queue_tells_its_numbers_its_bounds_and_its_health(jobs: App, send: Any, hands: Hands) -> None:
    send.enqueue()
    jobs.operate.pause("default")
    jobs.operate.limit("default", max_running=5, lasting="1h")

    reasons = told(jobs, "default")

    assert [kind for kind, _, _ in reasons] == ["numbers", "queue paused", "numbers", "health"]
    assert reasons[0][1] == "1 ready, 0 running, 0 scheduled, 0 blocked, 0 dead; 1 worker"
    assert reasons[2][1:] == ("queue:default: 0 of 5 run, by override 1", "duly overrides lift 1")
    assert reasons[3][1] == "paused: 1 job waits, the oldest for 0s until `duly resume default`"


def test_a_tenant_tells_its_plan(jobs: App) -> None:
    jobs.operate.tenant("acme", weight=5, max_running=20)

    assert told(jobs, "tenant:acme")[0][1] == "its plan: weight 5, 20 may run in each queue"
    assert told(jobs, "tenant:other")[0][1] == "it has no plan: each queue's own values hold"


@pytest.mark.parametrize("target", [4711, "4711", "nowhere", "resource:stripe"])
def test_what_is_not_there_is_not_found(jobs: App, target: Any) -> None:
    with pytest.raises(NotFound):
        jobs.inspect.why(target)


def test_a_target_of_no_kind_is_refused(jobs: App) -> None:
    with pytest.raises(UsageError, match="tenant:NAME or resource:NAME"):
        jobs.inspect.why("lock:x")


def test_the_twin_asks_async_guards_outside_the_loop(jobs: App, hands: Hands) -> None:
    @jobs.task
    async def refund(order_id: int) -> None: ...

    @refund.guard
    async def known(order_id: int) -> str:
        await asyncio.sleep(0)
        return "no such order"

    async def ask() -> str:
        job = await refund.aenqueue(1)
        return (await jobs.inspect.awhy(job, guards=True)).reasons[-1].text

    assert asyncio.run(ask()) == "guard known would stop it: no such order"
