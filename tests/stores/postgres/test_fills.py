"""How full queues are is counted for all producers together: ten times a second, less often where that takes long."""

from collections.abc import Callable
from datetime import timedelta

import psycopg

from duly.core.job import NewJob
from duly.stores.postgres.store import PostgresStore
from duly.testing.clock import FakeClock

SECOND = timedelta(seconds=1)


def depth(store: PostgresStore) -> int:
    return store.pressing.fills({"default": 100})["default"].depth


def test_a_count_that_took_long_is_used_for_twenty_times_as_long(
    url: str, open_store: Callable[..., PostgresStore]
) -> None:
    clock = FakeClock()
    store = open_store(clock=clock)
    depth(store)
    store.jobs.enqueue([NewJob("default", "send", b"{}")])
    with psycopg.connect(url) as connection:
        connection.execute("update duly.queue_fill set took = 0.5, depth = 1000000")

    clock.advance(9 * SECOND)
    old = depth(store)
    clock.advance(2 * SECOND)
    new = depth(store)

    assert (old, new) == (1_000_000, 1)


def test_no_count_is_used_for_more_than_a_minute(url: str, open_store: Callable[..., PostgresStore]) -> None:
    clock = FakeClock()
    store = open_store(clock=clock)
    depth(store)
    store.jobs.enqueue([NewJob("default", "send", b"{}")])
    with psycopg.connect(url) as connection:
        connection.execute("update duly.queue_fill set took = 500, depth = 1000000")

    clock.advance(61 * SECOND)

    assert depth(store) == 1


def test_a_few_rows_are_counted_again_soon_however_long_that_took(
    url: str, open_store: Callable[..., PostgresStore]
) -> None:
    clock = FakeClock()
    store = open_store(clock=clock)
    depth(store)
    store.jobs.enqueue([NewJob("default", "send", b"{}")])
    with psycopg.connect(url) as connection:
        connection.execute("update duly.queue_fill set took = 0.5")

    clock.advance(SECOND / 20)
    old = depth(store)
    clock.advance(SECOND / 10)
    new = depth(store)

    assert (old, new) == (0, 1)


def test_who_finds_another_one_counting_takes_what_was_counted_before(
    url: str, open_store: Callable[..., PostgresStore]
) -> None:
    clock = FakeClock()
    store = open_store(clock=clock)
    depth(store)
    store.jobs.enqueue([NewJob("default", "send", b"{}")])
    clock.advance(2 * SECOND)

    with psycopg.connect(url) as connection:
        connection.execute("select pg_advisory_xact_lock(duly.door_class_1(), hashtext('fills'))")
        beside = depth(store)
    after = depth(store)

    assert (beside, after) == (0, 1)
