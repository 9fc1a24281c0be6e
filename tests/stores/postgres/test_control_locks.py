"""What claims and acts of a person do about rows that somebody else has locked, or takes away while they look."""

from datetime import timedelta

import psycopg

from duly.core.control import LimitPolicy, TaskLimit
from duly.core.job import ClaimedJob, ClaimRequest, Exchange, Incarnation, JobId, NewJob, QueueClaim
from duly.core.lifecycle import Event, State
from duly.core.names import key_of
from duly.core.registration import QueuePolicy, Registration
from duly.stores.postgres.store import PostgresStore
from duly.testing.clock import FakeClock
from tests.stores.postgres.acts import ended, put, states, worker
from tests.stores.postgres.conftest import Open
from tests.waiting import wait_until

ONE = LimitPolicy("task:ok", max_running=1)
SOON = timedelta(seconds=1)
LATER = timedelta(milliseconds=10)
"""When who came too late for a lock looks again."""


def ask(store: PostgresStore, me: Incarnation, *ends: ClaimedJob, event: Event = Event.complete) -> Exchange:
    request = ClaimRequest((QueueClaim("default", 1),), 1)
    return store.jobs.exchange(me, [ended(job, event) for job in ends], request)


def ids(told: Exchange) -> list[JobId]:
    return [job.id for job in told.claimed]


def keyed(store: PostgresStore, count: int) -> list[JobId]:
    return [one.id for one in store.jobs.enqueue([NewJob("default", "ok", b"{}", ordering_key="a")] * count)]


def bound(store: PostgresStore) -> None:
    store.schema.declare(
        Registration(
            "shop:jobs",
            "1",
            (QueuePolicy("default"),),
            limits=(ONE,),
            task_limits=(TaskLimit("ok", "task:ok"),),
        )
    )


def held_while_it_should_go_on(
    store: PostgresStore, url: str, me: Incarnation, running: ClaimedJob, next_one: JobId
) -> Exchange:
    """What a claim is told while a caller's transaction has locked the job that waits; then that gives it free."""
    with psycopg.connect(url) as caller:
        caller.execute("select from duly.blocked where id = %s for key share", [next_one])
        told = ask(store, me, running)
        while told.again == timedelta(0):
            told = ask(store, me)
        caller.rollback()
    return told


def test_the_next_of_a_key_goes_on_though_a_caller_had_locked_it(open_store: Open, url: str) -> None:
    clock = FakeClock()
    store = open_store(clock=clock)
    me, (_, second) = worker(store), keyed(store, 2)
    (first,) = ask(store, me).claimed
    assert ids(ask(store, me)) == []

    told = held_while_it_should_go_on(store, url, me, first, second)
    clock.advance(SOON)

    assert (ids(told), told.again is not None and told.again <= SOON) == ([], True)
    assert ids(ask(store, me)) == [second]


def test_a_claim_does_not_spin_on_a_job_that_a_caller_has_locked(open_store: Open, url: str) -> None:
    clock = FakeClock()
    store = open_store(clock=clock)
    bound(store)
    me, (_, second) = worker(store), put(store, 2)
    (first,) = ask(store, me).claimed
    assert ids(ask(store, me)) == []

    told = held_while_it_should_go_on(store, url, me, first, second)
    clock.advance(SOON)

    assert (ids(told), told.again is not None and told.again <= SOON) == ([], True)
    assert ids(ask(store, me)) == [second]


def test_a_claim_does_not_spin_on_a_key_that_another_claim_has_locked(open_store: Open, url: str) -> None:
    clock = FakeClock()
    store = open_store(clock=clock)
    me, (_, second) = worker(store), keyed(store, 2)
    (first,) = ask(store, me).claimed
    assert ids(ask(store, me)) == []

    with psycopg.connect(url) as other:
        other.execute("select from duly.key_head for update")
        told = ask(store, me, first)
    clock.advance(SOON)

    assert (ids(told), told.again) == ([], LATER)
    assert ids(ask(store, me)) == [second]


def test_a_claim_does_not_spin_on_a_limit_that_another_claim_has_locked(open_store: Open, url: str) -> None:
    clock = FakeClock()
    store = open_store(clock=clock)
    bound(store)
    me, (_, second) = worker(store), put(store, 2)
    (first,) = ask(store, me).claimed
    assert ids(ask(store, me)) == []

    with psycopg.connect(url) as other:
        other.execute("select from duly.limit_state for update")
        told = ask(store, me, first)
    clock.advance(SOON)

    assert (ids(told), told.again) == ([], LATER)
    assert ids(ask(store, me)) == [second]


def test_a_claim_that_meets_another_in_a_bounded_queue_comes_back_soon_and_leaves_no_word(
    open_store: Open, url: str
) -> None:
    store = open_store(clock=FakeClock())
    limits = (LimitPolicy("queue:default", max_running=2),)
    store.schema.declare(Registration("shop:jobs", "1", (QueuePolicy("default"),), limits=limits))
    me = worker(store)
    assert ids(ask(store, me)) == []
    put(store, 1)

    with psycopg.connect(url) as other:
        other.execute("select from duly.limit_state for update")
        told = [ask(store, me), ask(store, me)]
        words = other.execute("select count(*) from duly.released").fetchone()

    assert [(ids(one), one.again) for one in told] == [([], timedelta(milliseconds=50))] * 2
    assert words == (0,)
    assert len(ask(store, me).claimed) == 1


def test_a_job_set_behind_a_limit_that_is_being_forgotten_meets_it_anew(
    store: PostgresStore, url: str
) -> None:
    bound(store)
    me = worker(store)
    put(store)
    (first,) = ask(store, me).claimed
    assert ids(ask(store, me, first)) == []
    (second,) = put(store)
    with psycopg.connect(url) as sweep:
        # As the sweep does with what seems to be out of use.
        sweep.execute("select from duly.limit_state where key = %s for update", [key_of("task:ok")])
        assert ids(ask(store, me)) == []
        assert states(store, [second]) == [State.blocked]
        sweep.execute("delete from duly.limit_state where key = %s", [key_of("task:ok")])

    wait_until(lambda: ids(ask(store, me)) == [second], what="the word of who came too late")


def test_a_limit_whose_state_has_just_been_forgotten_fails_no_claim(url: str) -> None:
    with psycopg.connect(url) as claim:
        claim.execute("set local search_path = duly")

        row = claim.execute("select lock_limits_1('{123}', null, null, now())").fetchone()

    assert row == ([],)


def test_a_key_that_is_resumed_keeps_the_place_of_a_head_that_is_being_redriven(
    store: PostgresStore, url: str
) -> None:
    me, (first, second) = worker(store), keyed(store, 2)
    (head,) = ask(store, me).claimed
    assert ids(ask(store, me, head, event=Event.bury)) == []

    with psycopg.connect(url) as caller:
        caller.execute("select duly.redrive_4(%s, 'ann', 'fixed', null, null)", [[first]])
        assert not store.control.resume_key("default", "", "a", "ann", "fixed")

    (again,) = ask(store, me).claimed
    assert again.id == first
    assert ids(ask(store, me, again)) == [second]


def test_a_sweep_that_skips_the_dead_keeps_the_place_of_one_that_is_being_redriven(
    store: PostgresStore, url: str
) -> None:
    me, (first, second) = worker(store), keyed(store, 2)
    (head,) = ask(store, me).claimed
    assert ids(ask(store, me, head, event=Event.bury)) == []
    store.schema.declare(Registration("shop:jobs", "1", (QueuePolicy("default", ordering="skip_dead"),)))

    with psycopg.connect(url) as caller:
        caller.execute("select duly.redrive_4(%s, 'ann', 'fixed', null, null)", [[first]])
        store.upkeep.sweep(timedelta(hours=1), 3, timedelta(0))

    (again,) = ask(store, me).claimed
    assert again.id == first
    assert ids(ask(store, me, again)) == [second]


def test_overrides_that_ended_long_ago_are_forgotten(open_store: Open, url: str) -> None:
    clock = FakeClock()
    store = open_store(clock=clock)
    control = store.control
    lifted = control.override("task:ok", "limit", {"max_running": 1}, None, "ann", "slowly")
    assert control.lift(lifted.id, "ann", "enough")
    control.override("queue:default", "limit", {"max_running": 1}, SOON, "ann", "slowly")
    standing = control.override("task:ok", "limit", {"max_running": 2}, None, "ann", "slowly")

    clock.advance(timedelta(days=31))
    assert store.upkeep.sweep(timedelta(hours=1), 3, timedelta(0)).ran

    with psycopg.connect(url) as connection:
        assert connection.execute("select id from duly.override").fetchall() == [(standing.id,)]
