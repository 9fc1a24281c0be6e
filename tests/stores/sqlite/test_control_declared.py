"""Bounds as an App declares them: stored once, removed with their declaration, read by a file of an older release."""

from dataclasses import dataclass

import pytest

from duly.core.control import BreakerPolicy, LimitPolicy, Rate, TaskLimit
from duly.core.registration import QueuePolicy, Registration, TaskPolicy
from duly.stores.sqlite.store import SQLiteStore
from tests.stores.sqlite.conftest import Connect

APP = Registration(
    "shop:jobs",
    "1",
    queues=(QueuePolicy("mail", fair=True, ordering="skip_dead", max_depth=1000),),
    tasks=(TaskPolicy("send", "mail", 100),),
    limits=(
        LimitPolicy("queue:mail", max_running=20, rate=Rate(0.1, 5)),
        LimitPolicy("resource:stripe", breaker=BreakerPolicy(min_calls=3)),
    ),
    task_limits=(
        TaskLimit("send", "resource:stripe"),
        TaskLimit("send", "task:send#customer_id", "customer_id"),
    ),
)


@dataclass
class Stored:
    """What the tables hold."""

    connect: Connect

    def rows(self, statement: str) -> list[tuple[object, ...]]:
        return self.connect().execute(statement).fetchall()

    def version(self) -> object:
        ((version,),) = self.rows("select version from duly_control")
        return version


@pytest.fixture
def stored(connect: Connect) -> Stored:
    return Stored(connect)


def test_limits_and_queue_policies_are_stored(store: SQLiteStore, stored: Stored) -> None:
    assert store.schema.declare(APP)

    assert stored.rows("select name, max_running, interval, burst from duly_limit_policy order by name") == [
        ("queue:mail", 20, 0.1, 5),
        ("resource:stripe", None, None, None),
    ]
    assert stored.rows("select name, argument from duly_task_limit order by name") == [
        ("resource:stripe", None),
        ("task:send#customer_id", "customer_id"),
    ]
    assert stored.rows("select fair, ordering, max_depth from duly_queue") == [(1, "skip_dead", 1000)]


def test_declaring_the_same_again_changes_no_version(store: SQLiteStore, stored: Stored) -> None:
    store.schema.declare(APP)
    before = stored.version()

    store.schema.declare(APP)

    assert before != 0
    assert stored.version() == before


def test_a_limit_that_is_no_longer_declared_is_removed(store: SQLiteStore, stored: Stored) -> None:
    other = Registration("other:jobs", "1", limits=(LimitPolicy("resource:gpu", max_running=1),))
    store.schema.declare(other)
    store.schema.declare(APP)

    store.schema.declare(Registration("shop:jobs", "2", tasks=APP.tasks))

    assert stored.rows("select name from duly_limit_policy") == [("resource:gpu",)]
    assert stored.rows("select name from duly_task_limit") == []


def test_an_older_release_changes_no_limit(store: SQLiteStore, stored: Stored) -> None:
    store.schema.declare(APP)
    store.schema.declare(Registration("shop:jobs", "2"))

    assert not store.schema.declare(APP)

    assert stored.rows("select name from duly_limit_policy") == []
