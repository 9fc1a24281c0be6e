"""What a person changes of the bounds of jobs, on both stores: limits, blocks, plans, keys, and how it all ends."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from duly import App, Breaker, Filter, NotFound, State, UsageError
from duly.core.decide import completed
from duly.core.job import ClaimedJob, ClaimRequest, QueueClaim
from duly.worker.registration import declare
from tests.client.conftest import Hands


class Hour:
    """A clock that only the test moves."""

    def __init__(self) -> None:
        self.now = datetime(2030, 5, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def hour() -> Hour:
    return Hour()


@pytest.fixture(params=["sqlite", "postgres"])
def timed(request: pytest.FixtureRequest, hour: Hour) -> Iterator[App]:
    """An App on each kind of store in turn, by the test's clock."""
    app = App(request.getfixturevalue(f"{request.param}_url"))
    app.client.clock = hour
    app.store.schema.migrate()
    yield app
    app.close()


@pytest.fixture
def send(timed: App) -> Any:
    @timed.task
    def send(customer_id: int = 0) -> None: ...

    return send


@pytest.fixture
def hands(timed: App, send: Any) -> Hands:
    return Hands(timed.store, "send")


def claim(hands: Hands, most: int = 10) -> tuple[ClaimedJob, ...]:
    """All that may run now: claims go on while they are told to ask again at once."""
    request = ClaimRequest(tuple(QueueClaim(name, most) for name in hands.queues), most)
    found: tuple[ClaimedJob, ...] = ()
    for _ in range(20):
        exchange = hands.store.jobs.exchange(hands.incarnation, [], request)
        found += exchange.claimed
        if exchange.again != timedelta(0):
            break
    return found


def swept(hands: Hands) -> None:
    hands.store.upkeep.sweep(timedelta(hours=1), 3, timedelta(seconds=10))


@pytest.mark.parametrize("target", ["default", "task:send"])
def test_a_limit_that_nobody_declared_bounds_jobs_that_wait_already(
    timed: App, send: Any, hands: Hands, target: str
) -> None:
    timed.enqueue_many(send.draft() for _ in range(4))

    made = timed.operate.limit(target, max_running=1, lasting="1h", reason="INC-311")
    claimed = claim(hands)

    assert len(claimed) == 1
    assert timed.inspect.overrides() == (made,)
    assert (made.by, made.reason) == (timed.operate.actor(), "INC-311")
    hands.store.jobs.exchange(hands.incarnation, [completed(claimed[0], None, timedelta(0))], None)
    assert len(claim(hands)) == 1


@pytest.mark.parametrize("target", ["default", "task:send"])
def test_a_limit_ends_by_itself(timed: App, send: Any, hands: Hands, hour: Hour, target: str) -> None:
    timed.enqueue_many(send.draft() for _ in range(4))
    timed.operate.limit(target, max_running=1, lasting="1h")
    assert len(claim(hands)) == 1

    hour.now += timedelta(hours=1, seconds=1)
    hands.store.leases.beat([hands.incarnation])
    swept(hands)

    assert len(claim(hands)) == 3
    assert timed.inspect.overrides() == ()


@pytest.mark.parametrize("target", ["default", "task:send"])
def test_a_lifted_limit_lets_go_on_at_once(timed: App, send: Any, hands: Hands, target: str) -> None:
    timed.enqueue_many(send.draft() for _ in range(4))
    made = timed.operate.limit(target, max_running=1, lasting="1h")
    assert len(claim(hands)) == 1

    assert timed.operate.lift(made.id, reason="over")

    assert len(claim(hands)) == 3
    assert not timed.operate.lift(made.id)


@pytest.mark.parametrize(
    "filter",
    [
        Filter(queue="default", where="args.customer_id = 7"),
        Filter(queue="default", tenant="acme"),
        Filter(queue="default", tag="bulk"),
        Filter(queue="default", task="send", where="args.customer_id = 7", tenant="acme"),
    ],
)
def test_a_block_holds_back_what_fits_and_nothing_else(
    timed: App, send: Any, hands: Hands, filter: Filter
) -> None:
    fits = send.using(tenant="acme", tags=["bulk"]).enqueue(7)
    other = send.enqueue(8)

    made = timed.operate.block(filter, lasting="1h")

    assert [job.id for job in claim(hands)] == [other.id]
    held = timed.inspect.job(fits).job
    assert (held.state, held.waits_for) == (State.blocked, f"block:{made.id}")
    assert timed.operate.lift(made.id)
    assert [job.id for job in claim(hands)] == [fits.id]


def test_a_block_of_another_task_holds_nothing_back(timed: App, send: Any, hands: Hands) -> None:
    job = send.enqueue(7)

    timed.operate.block(Filter(queue="default", task="other"), lasting="1h")

    assert [one.id for one in claim(hands)] == [job.id]


def test_a_block_ends_by_itself(timed: App, send: Any, hands: Hands, hour: Hour) -> None:
    job = send.enqueue(7)
    timed.operate.block(Filter(queue="default", where="args.customer_id = 7"), lasting="1h")
    assert claim(hands) == ()

    hour.now += timedelta(hours=1, seconds=1)
    hands.store.leases.beat([hands.incarnation])
    swept(hands)

    assert [one.id for one in claim(hands)] == [job.id]


@pytest.mark.parametrize(
    ("filter", "said"),
    [
        (Filter(where="args.customer_id = 7"), "a block is of one queue"),
        (Filter(queue="default"), "duly pause default"),
        (Filter(queue="default", state=State.ready), "not at state"),
    ],
)
def test_a_block_that_means_something_else_is_refused(both: App, filter: Filter, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        both.operate.block(filter, lasting="1h")


def test_limits_of_what_nobody_knows_are_refused(both: App) -> None:
    for target in ("nowhere", "task:nothing", "resource:nobody", "task:send#customer_id"):
        with pytest.raises(NotFound):
            both.operate.limit(target, max_running=1, lasting="1h")
    with pytest.raises(UsageError, match="give max_running, rate or weight"):
        both.operate.limit("default", lasting="1h")
    with pytest.raises(UsageError, match="a weight is a tenant's"):
        both.operate.limit("default", weight=3, lasting="1h")


def test_a_plan_is_stored_and_shown_with_the_tenant(both: App) -> None:
    plan = both.operate.tenant("acme", weight=5, max_running=20, rate="10/s")

    assert [(one.name, one.plan) for one in both.inspect.tenants()] == [("acme", plan)]
    assert both.inspect.tenant("acme").plan == plan
    assert both.inspect.tenant("other").plan is None


def test_an_override_of_a_tenant_lies_over_its_plan(both: App) -> None:
    both.operate.tenant("acme", max_running=20)

    made = both.operate.limit("default", tenant="acme", max_running=2, lasting="1h")

    assert made.target == "tenant:default=acme"
    (limit,) = both.inspect.limits([made.target])
    assert (limit.max_running, limit.override) == (2, made.id)


def test_a_tenants_bound_is_refused_where_tenants_have_no_turns(both: App) -> None:
    both.queue("plain")
    both.queue("shared", fair=True)

    with pytest.raises(UsageError, match="duly block --queue plain --tenant acme --for 30m"):
        both.operate.limit("plain", tenant="acme", max_running=2, lasting="1h")

    assert both.operate.limit("shared", tenant="acme", max_running=2, lasting="1h").id


def test_a_key_that_does_not_wait_is_not_resumed(both: App) -> None:
    assert not both.operate.resume_key("default", "order-7")


def test_a_breaker_of_no_resource_is_not_set(both: App) -> None:
    with pytest.raises(NotFound, match="has a breaker"):
        both.operate.breaker("stripe", "open")


@pytest.mark.parametrize("name", ["stripe", "resource:stripe"])
def test_a_breaker_is_set_by_its_name_with_or_without_what_it_is(both: App, name: str) -> None:
    both.resource("stripe", breaker=Breaker())
    declare(both)

    both.operate.breaker(name, "open", reason="INC-311")
    (opened,) = both.inspect.limits(["resource:stripe"])
    both.operate.breaker(name, None)
    (left,) = both.inspect.limits(["resource:stripe"])

    assert (opened.breaker, left.breaker) == ("open", "closed")


def test_the_twins_do_the_same(both: App) -> None:
    async def act() -> None:
        made = await both.operate.alimit("default", max_running=1, lasting="1h")
        assert await both.inspect.aoverrides() == (made,)
        assert await both.operate.alift(made.id)
        assert await both.inspect.aoverrides() == ()

    asyncio.run(act())
