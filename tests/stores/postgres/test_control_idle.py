"""What bounded queues cost while nothing is in them."""

from datetime import timedelta

import psycopg

from duly.core.control import LimitPolicy
from duly.core.registration import QueuePolicy, Registration
from duly.testing.clock import FakeClock
from tests.stores.postgres.acts import worker
from tests.stores.postgres.conftest import Open
from tests.stores.postgres.test_control_locks import ask


def test_a_bounded_queue_with_nothing_in_it_is_not_written_about_by_claims_and_sweeps(
    open_store: Open, url: str
) -> None:
    clock = FakeClock()
    store = open_store(clock=clock)
    limits = (LimitPolicy("queue:default", max_running=2),)
    store.schema.declare(Registration("shop:jobs", "1", (QueuePolicy("default"),), limits=limits))
    me = worker(store)
    told, rows = [], []

    for _ in range(3):
        told.append(ask(store, me))
        clock.advance(timedelta(minutes=1))
        assert store.upkeep.sweep(timedelta(hours=1), 3, timedelta(0)).ran
        with psycopg.connect(url) as connection:
            rows.append(connection.execute("select name, ctid::text from duly.limit_state").fetchall())

    assert [one.again for one in told] == [None] * 3
    assert rows[0] == rows[1] == rows[2]
    assert [name for name, _ in rows[0]] == ["queue:default"]
