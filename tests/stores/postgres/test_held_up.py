"""What an open transaction of a caller must not hold up, and what must not be lost while it does."""

from datetime import UTC, datetime, timedelta
from functools import partial

from duly.core.defaults import KEEP_KEYS
from duly.core.job import FinishedStep, JobId, NewJob
from duly.core.lifecycle import Event, State
from duly.core.registration import Schedule
from duly.stores.postgres.store import PostgresStore
from duly.testing.clock import FakeClock
from tests.stores.postgres.acts import claim, ended, put, states, worker
from tests.stores.postgres.conftest import Open
from tests.stores.postgres.test_keys import another, job, repeated
from tests.stores.postgres.test_owed import owed, sweep_until

DUE = datetime(2030, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


def test_a_schedule_whose_key_an_open_transaction_holds_fires_in_a_later_round(
    store: PostgresStore, url: str
) -> None:
    store.schedules.put(Schedule("hourly", every=HOUR, job=job("wanted")), DUE)
    fire = partial(store.schedules.fire, "hourly", DUE, DUE + HOUR, DUE, [job("wanted")], 0)
    with another(url) as user:
        store.enqueue_on(user, [job("wanted")])

        assert fire() is None

        assert store.schedules.all()[0].next_at == DUE
        user.rollback()
    stored = fire()
    assert stored is not None
    assert [one.outcome for one in stored] == ["created"]


def test_a_tick_in_an_open_transaction_holds_up_no_other_worker(store: PostgresStore, url: str) -> None:
    store.schedules.put(Schedule("hourly", every=HOUR), DUE)
    with another(url) as one, another(url) as other:
        other.execute("set lock_timeout to '5s'")
        assert store.advance_on(one, "hourly", DUE, DUE + HOUR, DUE, 1)

        assert not store.advance_on(other, "hourly", DUE, DUE + HOUR, DUE, 1)
        assert store.schedules.fire("hourly", DUE, DUE + HOUR, DUE, [], 0) is None

        one.commit()
    assert store.schedules.all()[0].next_at == DUE + HOUR


def test_a_step_of_a_job_in_an_open_completion_waits_alone(store: PostgresStore, url: str) -> None:
    me = worker(store)
    store.jobs.enqueue([NewJob("default", "ok", b"{}") for _ in range(3)])
    claimed = [claim(store, me)[0] for _ in range(3)]
    steps = [FinishedStep(one.id, one.run, "pay", b"1") for one in claimed]
    with another(url) as user:
        assert store.complete_on(user, me, ended(claimed[1]))

        assert store.steps.keep_steps(me, steps) == [True, None, True]

        user.rollback()
    assert store.steps.steps(claimed[1].id).finished == {}
    assert store.steps.keep_steps(me, steps) == [True, True, True]
    with another(url) as user:
        assert store.complete_on(user, me, ended(claimed[2]))
        user.commit()
    assert store.steps.keep_steps(me, steps) == [True, True, False]


def dead_parent(store: PostgresStore) -> JobId:
    """Dead, while somebody holds the key of what follows it."""
    me = worker(store)
    (parent,) = store.jobs.enqueue([NewJob("default", "ok", b"{}", on_dead=(job("wanted"),))])
    (held,) = claim(store, me)
    assert store.jobs.exchange(me, [ended(held, Event.bury)], None).acked == {(held.id, 1)}
    assert owed(store) == 1
    return parent.id


def test_a_letter_that_still_owes_a_follow_up_is_not_purged(store: PostgresStore, url: str) -> None:
    with another(url) as user:
        store.enqueue_on(user, [job("wanted")])
        parent = dead_parent(store)

        assert store.operator.purge([parent], "ann", "no use") == []

        user.rollback()
    sweep_until(store, lambda: owed(store) == 0)
    assert store.operator.purge([parent], "ann", "no use") == [parent]
    (follow,) = claim(store, worker(store), 10)
    assert follow.correlation_id == str(parent)


def test_a_finished_job_that_still_owes_a_follow_up_is_kept(store: PostgresStore, url: str) -> None:
    me = worker(store)
    nothing = timedelta(0)
    (parent,) = store.jobs.enqueue([NewJob("default", "ok", b"{}", then=(job("wanted"),))])
    (held,) = claim(store, me)
    with another(url) as user:
        store.enqueue_on(user, [job("wanted")])
        store.jobs.exchange(me, [ended(held)], None)

        assert store.upkeep.retain({}, {}, nothing, nothing) == 0

        assert states(store, [parent.id]) == [State.completed]
        user.rollback()
    sweep_until(store, lambda: owed(store) == 0)
    assert store.upkeep.retain({}, {}, nothing, nothing) == 1


def test_a_job_may_die_again_while_it_still_owes_a_follow_up(store: PostgresStore, url: str) -> None:
    with another(url) as user:
        store.enqueue_on(user, [job("wanted")])
        parent = dead_parent(store)
        store.operator.redrive([parent], "ann", "try again")
        me = worker(store)
        (again,) = claim(store, me)

        assert store.jobs.exchange(me, [ended(again, Event.bury)], None).acked == {(parent, 2)}

        user.rollback()
    sweep_until(store, lambda: owed(store) == 0)
    assert [count.ready for count in store.inspection.counts()] == [1]


def test_keys_past_their_time_go_chunk_after_chunk_though_no_job_does(open_store: Open) -> None:
    clock = FakeClock()
    store = open_store(clock=clock)
    store.jobs.enqueue([repeated(str(number)) for number in range(5)])
    clock.advance(KEEP_KEYS + DAY)
    rounds = 0
    while store.upkeep.retain({}, {}, 9 * KEEP_KEYS, 9 * KEEP_KEYS, 2):
        rounds += 1

    with store.transaction() as connection:
        left = connection.execute("select count(*) from duly.idempotency").fetchone()
    assert (rounds, left) == (2, (0,))


def test_a_wish_that_was_committed_after_the_jobs_end_is_forgotten(store: PostgresStore, url: str) -> None:
    me = worker(store)
    ended_id, running = put(store, 2)
    held, _ = claim(store, me, 2)
    with another(url) as user:
        store.cancel_on(user, [ended_id, running], "ann", "changed my mind")
        store.jobs.exchange(me, [ended(held)], None)
        user.commit()

    def wishes() -> list[tuple[int]]:
        with store.transaction() as connection:
            return connection.execute("select id from duly.wish").fetchall()

    assert len(wishes()) == 2
    sweep_until(store, lambda: wishes() == [(running,)])
