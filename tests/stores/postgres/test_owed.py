"""Follow-ups whose key an open transaction holds: no end waits for it; what is owed is paid once the key is free."""

from datetime import timedelta
from typing import Any

from duly.core.job import NewJob
from duly.core.lifecycle import State
from duly.stores.postgres.store import PostgresStore
from tests.stores.postgres.acts import claim, ended, states, worker
from tests.stores.postgres.test_keys import another, job
from tests.waiting import wait_until

MINUTE = timedelta(minutes=1)


def test_an_end_does_not_wait_for_a_key_that_its_follow_up_needs(store: PostgresStore, url: str) -> None:
    me = worker(store)
    (parent,) = store.jobs.enqueue([NewJob("default", "ok", b"{}", then=(job("free"), job("wanted")))])
    (held,) = claim(store, me)
    with another(url) as user:
        store.enqueue_on(user, [job("wanted")])

        assert store.jobs.exchange(me, [ended(held)], None).acked == {(parent.id, 1)}

        assert states(store, [parent.id]) == [State.completed]
        (follow,) = claim(store, me, 10)
        store.upkeep.sweep(MINUTE, 3, MINUTE)
        assert claim(store, me, 10) == ()
        user.rollback()

    # Nobody else came: the sweep pays what is owed.
    sweep_until(store, lambda: store.inspection.counts()[0].ready == 1)
    (paid,) = claim(store, me, 10)
    assert {follow.correlation_id, paid.correlation_id} == {str(parent.id)}


def test_many_ends_wait_once_for_a_key_that_all_their_follow_ups_need(store: PostgresStore, url: str) -> None:
    me = worker(store)
    parent = NewJob("default", "ok", b"{}", then=(job("wanted"),))
    store.jobs.enqueue([parent] * 8)
    held = claim(store, me, 8)
    with another(url) as user:
        store.enqueue_on(user, [job("wanted")])

        answer = store.jobs.exchange(me, [ended(one) for one in held], None)

        assert len(answer.acked) == 8
        assert owed(store) == 8
        user.commit()

    # The user's own job stands for all of them.
    sweep_until(store, lambda: owed(store) == 0)
    assert [count.ready for count in store.inspection.counts()] == [1]


def owed(store: PostgresStore) -> int:
    with store.transaction() as connection:
        row = connection.execute("select count(*) from duly.owed").fetchone()
    assert row is not None
    return int(row[0])


def sweep_until(store: PostgresStore, seen: Any) -> None:
    def swept() -> bool:
        store.upkeep.sweep(MINUTE, 3, MINUTE)
        return bool(seen())

    wait_until(swept, what="a sweep that does it")
