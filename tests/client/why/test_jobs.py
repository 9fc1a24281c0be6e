"""Why a job is not running, on both stores: each reason there is, and what would change it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

from duly import App, Filter, Job, Snooze
from duly.core.backoff import Backoff
from duly.core.classify import Verdict
from duly.core.control import BreakerPolicy, Calls, LimitPolicy, Rate, TaskLimit
from duly.core.decide import Policy, completed, failed
from duly.core.fingerprint import describe
from duly.core.job import ClaimRequest, NewJob, QueueClaim
from duly.core.registration import QueuePolicy, Registration, TaskPolicy
from tests.client.conftest import Hands
from tests.client.why.conftest import Noon, limited, told


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


def test_a_job_of_a_queue_that_sheds_says_what_may_become_of_it(jobs: App, send: Any, hands: Hands) -> None:
    full = QueuePolicy("default", max_depth=1, when_full="shed")
    jobs.store.schema.declare(Registration("app", "1", (full,), (TaskPolicy("send", "default", 100),)))
    first, second = (send.enqueue() for _ in range(2))

    text = "its queue: full: 2 jobs wait, 1 more is above max_depth=1; the least urgent jobs are shed"
    assert told(jobs, second)[-1] == ("full", text, "duly why default")
    assert ("full", text.removeprefix("its queue: "), None) in told(jobs, "default")
    hands.claim(1)
    assert [kind for kind, _, _ in told(jobs, first)] == ["running"]


def test_a_member_of_a_batch_says_how_far_it_is(jobs: App, send: Any, hands: Hands) -> None:
    with jobs.batch("nightly", then=[send.draft()]) as batch:
        first, second, third = batch.add(*(send.draft(number) for number in range(3)))
    hands.complete(hands.claim()[0])

    expected = (
        "batch", f"it is a member of batch {batch.id} (nightly): 1 of 3 done", f"duly why batch:{batch.id}",
    )  # fmt: skip
    assert [told(jobs, one)[-1] for one in (first, second, third)] == [expected] * 3
    assert [told(jobs, one)[0][0] for one in (first, second)] == ["ended", "running"]


def test_a_tenant_at_its_cap_and_a_queue_at_its_cap_say_so(jobs: App, send: Any) -> None:
    jobs.store.schema.declare(
        Registration(
            "app", "1", (QueuePolicy("default", fair=True),), (TaskPolicy("send", "default", 100),),
            limits=(LimitPolicy("tenant:default", 1), LimitPolicy("queue:default", 1)),
        )
    )  # fmt: skip
    stored = jobs.store.jobs.enqueue([NewJob("default", "send", b"{}", tenant="acme", fair=True)] * 2)
    me = Hands(jobs.store, "send")
    jobs.store.jobs.exchange(me.incarnation, [], ClaimRequest((QueueClaim("default", 10, fair=True),), 10))

    reasons = told(jobs, stored[1].id)

    assert reasons == [
        (
            "limit",
            f"queue:default is at its cap: 1 of 1 run (job {stored[0].id})",
            "duly limit default --max-running 2 --for 1h",
        ),
        (
            "limit",
            f"tenant:default=acme is at its cap: 1 of 1 run (job {stored[0].id})",
            "duly limit default --tenant acme --max-running 2 --for 1h",
        ),
    ]
    assert [kind for kind, _, _ in told(jobs, "tenant:acme")] == [
        "state", "numbers", "numbers", "limit", "health",
    ]  # fmt: skip
    assert "limit" in [kind for kind, _, _ in told(jobs, "default")]


def test_an_open_and_a_half_open_breaker_say_what_they_let_through(
    jobs: App, send: Any, hands: Hands, noon: Noon
) -> None:
    policy = LimitPolicy(
        "resource:stripe", breaker=BreakerPolicy(min_calls=1, cool_down=timedelta(seconds=30))
    )
    limited(jobs, policy, takes=(TaskLimit("send", "resource:stripe"),))
    send.enqueue()
    job = send.enqueue()
    jobs.store.control.observe([Calls("resource:stripe", 1, 1)])
    hands.claim()

    assert told(jobs, job) == [
        (
            "breaker",
            "the breaker of resource:stripe is open until 12:00:30 UTC (in 30s)",
            "duly limit resource:stripe --breaker closed",
        )
    ]
    noon.now += timedelta(seconds=31)
    hands.claim()
    assert told(jobs, job)[0][:2] == (
        "breaker",
        "the breaker of resource:stripe is half open: one job tries it first",
    )
    assert told(jobs, "resource:stripe")[-1][0] == "health"
    jobs.operate.breaker("stripe", "open")
    assert told(jobs, job)[0][1] == "the breaker of resource:stripe is open until it is set again"


def test_what_waits_for_several_things_names_each(jobs: App, send: Any) -> None:
    policies = (LimitPolicy("task:send", 1), LimitPolicy("resource:stripe", 1))
    takes = tuple(TaskLimit("send", policy.name) for policy in policies)
    limited(jobs, *policies, takes=takes)
    hands = Hands(jobs.store, "send")
    send.using(ordering_key="k").enqueue()
    job = send.using(ordering_key="k").enqueue()
    hands.claim()
    jobs.operate.pause("default")
    jobs.operate.hold("stripe", "1m")

    assert [kind for kind, _, _ in told(jobs, job)] == ["queue paused", "key", "held", "limit", "limit"]


def test_jobs_ahead_tell_when_it_starts_at_the_present_rate(
    jobs: App, send: Any, hands: Hands, noon: Noon
) -> None:
    limited(jobs)
    for _ in range(3):
        for _ in range(5):
            send.enqueue()
        for job in hands.claim():
            hands.complete(job)
        jobs.store.upkeep.sweep(timedelta(hours=1), 3, timedelta(hours=1))
        # Samples are rarer where counting is slow, but not than one a minute.
        noon.now += timedelta(seconds=100)
    stored = [send.enqueue() for _ in range(11)]

    ((kind, text, _),) = told(jobs, stored[-1])

    assert kind == "place"
    assert text.startswith("10 jobs are ahead of it; at 0.05/s it starts in about 3m 20s")
    assert jobs.inspect.why(stored[-1]).reasons[0].at == noon.now + timedelta(seconds=200)


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
