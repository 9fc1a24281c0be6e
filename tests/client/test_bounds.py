"""What an App declares about order, turns, caps and rates: checked where it is written, and handed to stores."""

from __future__ import annotations

import enum
from datetime import timedelta
from typing import Annotated, Any
from uuid import UUID

import pytest

from duly import RESULT, App, Breaker, PerKey, UsageError
from duly.client.encoding import new_job
from duly.core.control import BreakerPolicy, LimitPolicy, Rate, TaskLimit
from duly.core.job import NewJob
from duly.worker.card import cards_of
from duly.worker.registration import registration_of
from tests.worker.doubles import NOON


@pytest.fixture
def app(sqlite_url: str) -> App:
    return App(sqlite_url)


class Region(enum.Enum):
    eu = "eu"


def limits(app: App) -> tuple[dict[str, LimitPolicy], tuple[TaskLimit, ...]]:
    registration = registration_of(app, NOON)
    return {policy.name: policy for policy in registration.limits}, registration.task_limits


def first(job: NewJob) -> tuple[str, str | None, bool, bool]:
    return job.tenant, job.ordering_key, job.fair, job.serialise


# Templates.


def test_a_task_makes_tenant_and_ordering_key_of_its_arguments(app: App) -> None:
    sync = app.queue("sync", fair=True, serialise=True)

    @app.task(queue=sync, tenant="{tenant}", ordering_key="account:{account_id}")
    def push(tenant: str, account_id: int = 7) -> None: ...

    assert first(new_job(push.draft("acme"), None)) == ("acme", "account:7", True, True)


def test_what_using_says_is_literal_and_goes_before_the_template(app: App) -> None:
    @app.task(tenant="{tenant}", ordering_key="account:{account_id}")
    def push(tenant: str, account_id: int) -> None: ...

    job = new_job(push.using(tenant="{x}", ordering_key="{y}").draft("acme", 7), None)

    assert first(job) == ("{x}", "{y}", False, False)


def test_a_plain_queue_serialises_nothing_and_knows_no_turns(app: App) -> None:
    @app.task
    def push() -> None: ...

    assert first(new_job(push.using(ordering_key="k").draft(), None)) == ("", "k", False, False)


@pytest.mark.parametrize("nobody", [None, ""])
def test_no_tenant_and_no_key_come_of_an_empty_argument(app: App, nobody: str | None) -> None:
    @app.task(tenant="{tenant}", ordering_key="{key}")
    def push(tenant: str | None, key: str | None) -> None: ...

    assert first(new_job(push.draft(nobody, nobody), None)) == ("", None, False, False)


def test_using_another_queue_goes_by_that_queues_turns(app: App) -> None:
    app.queue("turns", fair=True)

    @app.task(tenant="{tenant}")
    def push(tenant: str) -> None: ...

    assert new_job(push.using(queue="turns").draft("acme"), None).fair


def test_unique_keys_are_the_tenants_own(app: App) -> None:
    @app.task(tenant="{tenant}", unique="one")
    def push(tenant: str) -> None: ...

    keys = {new_job(push.draft(tenant), None).unique for tenant in ("a", "b")}

    assert len(keys) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ordering_key": "a:{acount}"}, "its ordering key 'a:{acount}' names the parameter 'acount'"),
        ({"tenant": "{who}"}, "its tenant '{who}' names the parameter 'who'"),
        ({"ordering_key": "{account"}, "cannot be read"),
        ({"ordering_key": 7}, "ordering_key=7 is no text"),
        ({"tenant": " "}, "tenant is empty"),
    ],
)
def test_a_template_that_does_not_fit_is_refused_at_once(
    app: App, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):

        @app.task(**options)
        def push(account: int) -> None: ...


def test_a_template_over_the_result_of_another_job_asks_for_a_literal(app: App) -> None:
    @app.task(ordering_key="account:{account}")
    def push(account: int) -> None: ...

    @app.task
    def parent() -> int:
        return 1

    with pytest.raises(UsageError, match=r"give the draft a key of its own: using\(ordering_key='…'\)"):
        new_job(parent.using(then=[push.draft(RESULT)]).draft(), None)
    job = new_job(parent.using(then=[push.using(ordering_key="k").draft(RESULT)]).draft(), None)
    assert job.then[0].ordering_key == "k"


def test_a_tenant_that_is_no_name_is_refused_with_the_draft(app: App) -> None:
    @app.task(tenant="{tenant}")
    def push(tenant: str) -> None: ...

    with pytest.raises(UsageError, match=r"tenant .* holds the control character"):
        new_job(push.draft("a\nb"), None)


# Queues.


def test_a_queues_bounds_are_policies_of_its_own_and_of_its_tenants(app: App) -> None:
    app.queue(
        "sync",
        wait_target="2m",
        max_running=20,
        rate="600/min",
        fair=True,
        tenant_max_running=5,
        tenant_rate="10/s burst 3",
        ordering="skip_dead",
        serialise=True,
        reserve="10%",
    )

    (policy,) = registration_of(app, NOON).queues

    assert limits(app) == (
        {
            "queue:sync": LimitPolicy("queue:sync", 20, Rate(0.1, 10)),
            "tenant:sync": LimitPolicy("tenant:sync", 5, Rate(0.1, 3)),
        },
        (),
    )
    assert (policy.fair, policy.ordering, policy.serialise) == (True, "skip_dead", True)
    assert (policy.wait_target, policy.reserve) == (timedelta(minutes=2), 0.1)


def test_an_app_that_bounds_nothing_declares_no_limit(app: App) -> None:
    app.queue("mail")

    @app.task
    def push() -> None: ...

    assert limits(app) == ({}, ())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_running": 0}, "max_running=0 must be a whole number from 1; to let nothing run, pause"),
        ({"max_running": True}, "max_running=True must be a whole number"),
        ({"rate": "5"}, "is no rate"),
        ({"rate": 5}, "rate=5 has no unit"),
        ({"rate": "max"}, "is no bound"),
        ({"tenant_rate": "x", "fair": True}, "tenant_rate='x' is no rate"),
        ({"tenant_max_running": 2}, "tenant_max_running needs turns of tenants; write fair=True, too"),
        ({"tenant_rate": "2/s"}, "tenant_rate needs turns of tenants"),
        ({"reserve": "10%"}, "reserve needs turns of tenants"),
        ({"reserve": "0%", "fair": True}, "reserve='0%' is no share"),
        ({"reserve": 0.1, "fair": True}, "reserve=0.1 is no share"),
        ({"ordering": "skip"}, "ordering='skip': write"),
        ({"wait_target": 30}, "wait_target"),
    ],
)
def test_a_queues_bound_that_cannot_be_meant_says_what_to_write(
    app: App, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        app.queue("sync", **options)


@pytest.mark.parametrize(
    ("rate", "read"),
    [
        ("5/s", Rate(0.2, 5)),
        ("600/min", Rate(0.1, 10)),
        ("1/h", Rate(3600.0, 1)),
        ("100/s burst 20", Rate(0.01, 20)),
        ("10/s burst 1", Rate(0.1, 1)),
    ],
)
def test_a_rate_without_a_burst_lets_as_many_go_at_once_as_one_second_allows(
    app: App, rate: str, read: Rate
) -> None:
    queue = app.queue("mail", rate=rate)

    assert queue.rate is not None
    assert (round(queue.rate.interval, 9), queue.rate.burst) == (round(read.interval, 9), read.burst)


# Tasks, resources, arguments.


def test_a_task_takes_its_own_limit_its_resources_and_those_of_its_arguments(app: App) -> None:
    stripe = app.resource("stripe", max_running=4, rate="100/s burst 20", breaker=Breaker(min_calls=5))

    @app.task(aliases=["old"], max_running=3, rate="2/s", uses=[stripe])
    def charge(customer: Annotated[int, PerKey(max_running=1)], note: str = "") -> None: ...

    policies, takes = limits(app)

    assert policies == {
        "resource:stripe": LimitPolicy(
            "resource:stripe",
            4,
            Rate(0.01, 20),
            BreakerPolicy(0.5, 5, timedelta(minutes=1), timedelta(seconds=30)),
        ),
        "task:charge": LimitPolicy("task:charge", 3, Rate(0.5, 2)),
        "task:charge#customer": LimitPolicy("task:charge#customer", 1),
    }
    assert takes == tuple(
        TaskLimit(name, policy, argument)
        for name in ("charge", "old")
        for policy, argument in (
            ("resource:stripe", None),
            ("task:charge", None),
            ("task:charge#customer", "customer"),
        )
    )


@pytest.mark.parametrize("kind", [int, str, UUID, Region, int | None, bool])
def test_arguments_with_one_text_may_be_bounded(app: App, kind: Any) -> None:
    def send(key: Any) -> None: ...

    send.__annotations__["key"] = Annotated[kind, PerKey(rate="1/s")]
    app.task(send)

    assert "task:send#key" in limits(app)[0]


@pytest.mark.parametrize("kind", [float, list[int], dict[str, int], Any])
def test_an_argument_without_one_text_is_refused_at_the_start(app: App, kind: Any) -> None:
    def send(key: Any) -> None: ...

    send.__annotations__["key"] = Annotated[kind, PerKey(max_running=1)]
    app.task(send)

    with pytest.raises(UsageError, match="'key' has a PerKey, and its type is no plain key"):
        cards_of(app.tasks)
    assert any("no plain key" in finding.text for finding in app.check().findings)


def test_a_perkey_that_stands_inside_is_refused(app: App) -> None:
    @app.task
    def send(keys: list[Annotated[int, PerKey(max_running=1)]]) -> None: ...

    with pytest.raises(UsageError, match="has a PerKey inside"):
        cards_of(app.tasks)


def test_a_bounded_argument_may_be_left_out_only_for_no_limit(app: App) -> None:
    @app.task
    def fine(key: Annotated[int | None, PerKey(max_running=1)] = None) -> None: ...

    @app.task
    def send(key: Annotated[int, PerKey(max_running=1)] = 7) -> None: ...

    with pytest.raises(UsageError, match="the default 7: an argument left out is not stored"):
        cards_of(app.tasks)


def test_two_bounds_of_one_argument_are_one(app: App) -> None:
    @app.task
    def send(key: Annotated[int, PerKey(max_running=1), PerKey(rate="1/s")]) -> None: ...

    with pytest.raises(UsageError, match="has 2 PerKey; write one"):
        cards_of(app.tasks)


@pytest.mark.parametrize(
    ("options", "message"),
    [({}, "bounds something"), ({"max_running": 0}, "from 1"), ({"rate": "1"}, "is no rate")],
)
def test_a_perkey_says_what_it_bounds(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        PerKey(**options)


@pytest.mark.parametrize(
    ("uses", "message"),
    [
        ("stripe", r"uses='stripe' is no list of resources; write uses=\[stripe\]"),
        (["stripe"], "uses names 'stripe', which is no resource"),
        (7, "is no list of resources"),
    ],
)
def test_uses_takes_resources_and_no_names(app: App, uses: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):

        @app.task(uses=uses)
        def charge() -> None: ...


def test_one_resource_is_to_be_written_as_a_list(app: App) -> None:
    stripe: Any = app.resource("stripe", max_running=1)

    with pytest.raises(UsageError, match=r"write uses=\[stripe\]"):

        @app.task(uses=stripe)
        def charge() -> None: ...


def test_a_resource_of_another_app_is_refused(app: App) -> None:
    other = App().resource("stripe", max_running=1)

    with pytest.raises(UsageError, match="uses the resource 'stripe' of another App"):

        @app.task(uses=[other])
        def charge() -> None: ...


def test_a_resource_declared_again_alike_is_the_same_one(app: App) -> None:
    stripe = app.resource("stripe", max_running=2, breaker=Breaker())

    assert app.resource("stripe", max_running=2, breaker=Breaker()) is stripe
    with pytest.raises(UsageError, match="declared twice with different bounds"):
        app.resource("stripe", max_running=3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"failures": 0}, "is no share"),
        ({"failures": 1.5}, "is no share"),
        ({"failures": "50%"}, "is no share"),
        ({"min_calls": 0}, "min_calls=0"),
        ({"window": 60}, "window"),
        ({"cool_down": "0s"}, "cool_down"),
    ],
)
def test_a_breaker_that_cannot_be_meant_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Breaker(**options)


def test_a_resource_takes_a_breaker_and_nothing_else(app: App) -> None:
    breaker: Any = True

    with pytest.raises(UsageError, match=r"write breaker=Breaker\(\)"):
        app.resource("stripe", breaker=breaker)


@pytest.mark.parametrize("option", ["max_running", "uses", "ordering_key"])
def test_what_ends_before_it_runs_cannot_be_bounded(app: App, option: str) -> None:
    values: dict[str, Any] = {
        "max_running": 1,
        "uses": [app.resource("stripe", max_running=1)],
        "ordering_key": "{key}",
    }

    with pytest.raises(UsageError, match=f"with ack='start' .* and {option} bounds nothing"):

        @app.task(ack="start", **{option: values[option]})
        def send(key: int) -> None: ...


def test_a_literal_key_of_what_ends_before_it_runs_is_refused_too(app: App) -> None:
    @app.task(ack="start")
    def send(key: Annotated[int, PerKey(max_running=1)]) -> None: ...

    with pytest.raises(UsageError, match="leave ack='start' or the key out"):
        new_job(send.using(ordering_key="k").draft(1), None)
    with pytest.raises(UsageError, match="the PerKey of 'key' out"):
        cards_of(app.tasks)


def test_a_shard_declares_nothing(app: App, sqlite_url: str) -> None:
    with pytest.raises(UsageError, match="declare them there"):
        app.at("sqlite:///other.db").resource("stripe", max_running=1)


def test_a_cap_that_does_not_bind_a_task_is_found_by_check(app: App) -> None:
    @app.task(queue=app.queue("mail", max_running=2), ack="start")
    def at_most_once() -> None: ...

    assert any(
        "max_running=2 of the queue 'mail' does not bound them" in one.text for one in app.check().findings
    )


# Locks.


def test_a_lock_that_runs_out_before_its_handler_stops_the_start(app: App) -> None:
    short, long = app.lock("import", ttl="30s"), app.lock("export", ttl="1h")

    @app.task(timeout="5m")
    def fine() -> None:
        with long:
            pass

    @app.task(timeout="5m")
    def unfit() -> None:
        with short:
            pass

    text = r"task 'unfit' uses short = jobs.lock\('import', …\), which runs out after 30s, before its time to run of 5m"
    with pytest.raises(UsageError, match=text):
        cards_of(app.tasks)
    assert any("job.lock('import')" in finding.text for finding in app.check().findings)


def test_a_lock_needs_a_time_with_a_unit(app: App) -> None:
    ttl: Any = 30

    with pytest.raises(UsageError, match="ttl=30 has no unit"):
        app.lock("import", ttl=ttl)
