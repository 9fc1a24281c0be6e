"""Keys among many writers: races for one key, open transactions that hold one, and who never waits for them."""

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import Any

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from duly.core.defaults import KEEP_KEYS, KEEP_VERSIONS
from duly.core.errors import KeyReused
from duly.core.filters import Filter
from duly.core.job import ClaimedJob, JobId, NewJob, Stored, UniqueKey
from duly.core.keys import idempotency_digest, unique_digest
from duly.core.lifecycle import Event, Outcome, State
from duly.core.names import key_of, suspect_key
from duly.stores.postgres.statements import migrations
from duly.stores.postgres.store import PostgresStore
from tests.services import PostgresServer
from tests.stores.postgres.acts import claim, ended, put, request, states, together, worker
from tests.stores.postgres.conftest import Open
from tests.stores.postgres.test_races import waits_for_lock
from tests.waiting import wait_until

MINUTE = timedelta(minutes=1)
ROUNDS = 15


def unique(key: str = "k", *, live: bool = False, replace: bool = False) -> UniqueKey:
    return UniqueKey(unique_digest("ok", "", key), live, replace)


def job(key: str = "k", *, live: bool = False, replace: bool = False, **more: Any) -> NewJob:
    return NewJob("default", "ok", b'{"n":1}', unique=unique(key, live=live, replace=replace), **more)


def repeated(key: str = "i", args: bytes = b'{"n":1}') -> NewJob:
    return NewJob("default", "ok", args, idempotency=idempotency_digest("ok", "", key))


@contextmanager
def another(url: str, isolation: psycopg.IsolationLevel | None = None) -> Iterator[psycopg.Connection[Any]]:
    """A caller's own connection, rolled back at the end unless committed before."""
    with psycopg.connect(url) as connection:
        connection.isolation_level = isolation
        try:
            yield connection
        finally:
            connection.rollback()


@pytest.mark.parametrize("new", [job, repeated], ids=["unique", "idempotent"])
def test_of_two_that_race_for_a_key_one_creates_and_both_get_its_job(open_store: Open, new: Any) -> None:
    stores = [open_store() for _ in range(3)]

    def enqueue(store: PostgresStore, key: str, told: list[Stored]) -> None:
        told += store.jobs.enqueue([new(key)])

    for number in range(ROUNDS):
        told: list[Stored] = []
        together(*(partial(enqueue, store, f"k{number}", told) for store in stores))

        assert len({one.id for one in told}) == 1
        assert sorted(one.outcome for one in told) == ["created", "duplicate", "duplicate"]


def test_an_enqueue_waits_for_the_transaction_that_is_taking_its_key(store: PostgresStore, url: str) -> None:
    told: list[Stored] = []
    with another(url) as user, psycopg.connect(url, autocommit=True) as watcher:
        (mine,) = store.enqueue_on(user, [job()])
        waiting = threading.Thread(target=lambda: told.extend(store.jobs.enqueue([job()])))
        waiting.start()
        wait_until(lambda: waits_for_lock(watcher, "enqueue_keyed_1"), what="the second waits for the key")
        user.commit()
        waiting.join()

    assert told == [Stored(mine.id, Outcome.duplicate)]


def test_a_key_whose_transaction_rolls_back_goes_to_the_one_that_waited(
    store: PostgresStore, url: str
) -> None:
    told: list[Stored] = []
    with another(url) as user, psycopg.connect(url, autocommit=True) as watcher:
        (mine,) = store.enqueue_on(user, [job()])
        waiting = threading.Thread(target=lambda: told.extend(store.jobs.enqueue([job()])))
        waiting.start()
        wait_until(lambda: waits_for_lock(watcher, "enqueue_keyed_1"), what="the second waits for the key")
        user.rollback()
        waiting.join()

    assert [one.outcome for one in told] == ["created"]
    assert states(store, [mine.id, told[0].id]) == [None, State.ready]


def test_a_rolled_back_savepoint_gives_its_key_back(store: PostgresStore, url: str) -> None:
    with another(url) as user:
        user.execute("select 1")
        with pytest.raises(LookupError), user.transaction():
            store.enqueue_on(user, [job()])
            raise LookupError("the user's own")
        (again,) = store.enqueue_on(user, [job()])
        user.commit()

    assert again.outcome == "created"
    assert states(store, [again.id]) == [State.ready]


def test_a_duplicate_in_an_open_transaction_keeps_the_job_from_running_before_the_commit(
    store: PostgresStore, url: str
) -> None:
    (first,) = store.jobs.enqueue([job()])
    (other,) = put(store)
    me = worker(store)
    with another(url) as user:
        assert store.enqueue_on(user, [job()]) == [Stored(first.id, Outcome.duplicate, pending=True)]

        assert [found.id for found in claim(store, me, 10)] == [other]
        user.commit()

    found = wait_until(lambda: claim(store, me, 10), what="a claim of the job that was held")
    assert [one.id for one in found] == [first.id]


def test_claims_and_ends_go_on_while_an_open_transaction_holds_keys(store: PostgresStore, url: str) -> None:
    me = worker(store)
    running, kept = store.jobs.enqueue([job("running", live=True), job("kept")])
    (held,) = claim(store, me)
    with another(url) as user:
        # One key is taken over after this, one is locked by nothing but its own row.
        store.enqueue_on(user, [job("kept", replace=True), job("new")])
        user.execute("select 1 from duly.unique_key for update")
        others = put(store, 2)

        answer = store.jobs.exchange(me, [ended(held)], request(10))

        assert answer.acked == {(running.id, 1)}
        assert [one.id for one in answer.claimed] == others
        user.rollback()

    # Behind a mark, it is found by the next scan from the front.
    found = wait_until(lambda: claim(store, me, 10), what="a claim of the job whose rival was rolled back")
    assert [one.id for one in found] == [kept.id]


def test_a_key_that_a_claim_could_not_give_back_is_free_all_the_same(store: PostgresStore, url: str) -> None:
    me = worker(store)
    (first,) = store.jobs.enqueue([job()])
    with another(url) as user:
        user.execute("select 1 from duly.unique_key for update")
        claim(store, me)
        user.rollback()
    assert left(store) == 1

    (second,) = store.jobs.enqueue([job()])

    assert second.outcome == "created"
    assert second.id != first.id


def test_a_retry_does_not_take_back_a_key_that_its_claim_could_not_give_back(
    store: PostgresStore, url: str
) -> None:
    me = worker(store)
    store.jobs.enqueue([job()])
    with another(url) as user:
        user.execute("select 1 from duly.unique_key for update")
        (held,) = claim(store, me)
        store.jobs.exchange(me, [ended(held, Event.fail)], None)
        user.rollback()

    assert store.jobs.enqueue([job()])[0].outcome == "created"


@pytest.mark.parametrize("live", [False, True])
def test_the_sweep_removes_keys_that_were_left(store: PostgresStore, url: str, live: bool) -> None:
    me = worker(store)
    gone, waiting = store.jobs.enqueue([job("gone", live=live), job("waiting", live=live)])
    with another(url) as user:
        user.execute("select 1 from duly.unique_key for update")
        (held,) = claim(store, me)
        store.jobs.exchange(me, [ended(held)], None)
        user.rollback()
    assert left(store) == 2

    store.upkeep.sweep(MINUTE, 3, MINUTE)

    assert left(store) == 1
    assert store.jobs.enqueue([job("waiting")]) == [Stored(waiting.id, Outcome.duplicate)]
    assert states(store, [gone.id]) == [State.completed]


def test_no_key_is_left_once_a_batch_of_all_kinds_has_completed(store: PostgresStore) -> None:
    me = worker(store)
    store.jobs.enqueue([job("live", live=True), job("queued"), job("versioned", live=True, version=1)])
    put(store, 2)
    held = claim(store, me, 10)
    assert left(store) == 2

    store.jobs.exchange(me, [ended(one) for one in held], None)

    assert left(store) == 0


def left(store: PostgresStore) -> int:
    with store.transaction() as connection:
        row = connection.execute("select count(*) from duly.unique_key").fetchone()
    assert row is not None
    return int(row[0])


def test_callers_that_take_the_same_keys_in_another_order_do_not_deadlock(
    open_store: Open, postgres: PostgresServer
) -> None:
    before = len(postgres.log)
    stores = [open_store() for _ in range(3)]
    keys = ["a", "b", "c", "d"]

    def enqueue(store: PostgresStore, order: list[str]) -> None:
        for number in range(ROUNDS):
            store.jobs.enqueue([job(f"{key}{number}") for key in order])
            store.jobs.enqueue([repeated(f"{key}{number}") for key in order])

    together(
        partial(enqueue, stores[0], keys),
        partial(enqueue, stores[1], keys[::-1]),
        partial(enqueue, stores[2], keys[2:] + keys[:2]),
    )

    assert "deadlock detected" not in postgres.log[before:]
    assert left(stores[0]) == len(keys) * ROUNDS


def test_a_deadlock_of_two_callers_reaches_one_of_them_unchanged(store: PostgresStore, url: str) -> None:
    faults: list[BaseException] = []
    barrier = threading.Barrier(2)

    def enqueue(first: str, second: str) -> None:
        with another(url) as user:
            try:
                store.enqueue_on(user, [job(first)])
                barrier.wait()
                store.enqueue_on(user, [job(second)])
                user.commit()
            except psycopg.errors.DeadlockDetected as error:
                faults.append(error)

    together(partial(enqueue, "a", "b"), partial(enqueue, "b", "a"))

    assert len(faults) == 1
    assert left(store) == 2


TWO_LIVE = """
select j.unique_key from duly.job j
 where exists (select 1 from duly.ready r where r.id = j.id and (j.unique_live or r.run = 0))
    or exists (select 1 from duly.scheduled s where s.id = j.id and (j.unique_live or s.run = 0))
    or exists (select 1 from duly.claimed c where c.id = j.id and j.unique_live)
 group by 1 having count(*) > 1
"""


@pytest.mark.slow
@pytest.mark.parametrize("postgres", [15, 18], indirect=True)
def test_no_key_ever_has_two_jobs_whoever_enqueues_ends_redrives_and_sweeps(
    open_store: Open, url: str
) -> None:
    stores = [open_store() for _ in range(5)]
    choose = random.Random(7)
    broken: list[object] = []
    done = threading.Event()

    def some() -> list[NewJob]:
        numbers = [choose.randrange(8) for _ in range(3)]
        return [job(f"{n}", live=n % 2 == 0, replace=choose.random() < 0.3) for n in numbers]

    def produce(store: PostgresStore) -> None:
        for _ in range(120):
            store.jobs.enqueue([replace(one, then=tuple(some()[:1])) for one in some()])

    def work(store: PostgresStore) -> None:
        me, held = worker(store), list[ClaimedJob]()
        for turn in range(250):
            event = (Event.complete, Event.bury, Event.fail, Event.interrupt)[turn % 4]
            held = list(store.jobs.exchange(me, [ended(one, event) for one in held], request(4)).claimed)
        store.jobs.exchange(me, [ended(one) for one in held], None)

    def operate(store: PostgresStore) -> None:
        try:
            for _ in range(60):
                ids = [record.id for record in store.inspection.page(Filter(), limit=40).jobs]
                store.operator.redrive(ids[::2], "ann", "torture")
                store.operator.cancel(ids[1::5], "ann", "torture")
                store.operator.run_now(ids[::3], "ann", "torture")
                store.upkeep.sweep(MINUTE, 3, MINUTE)
                store.upkeep.promote()
        finally:
            done.set()

    def watch() -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            while not done.is_set():
                broken.extend(connection.execute(TWO_LIVE).fetchall())

    together(
        partial(produce, stores[0]),
        partial(produce, stores[1]),
        partial(work, stores[2]),
        partial(work, stores[3]),
        partial(operate, stores[4]),
        watch,
    )

    assert not broken


ISOLATIONS = [psycopg.IsolationLevel.REPEATABLE_READ, psycopg.IsolationLevel.SERIALIZABLE]


@pytest.mark.parametrize("isolation", ISOLATIONS, ids=lambda level: level.name.lower())
@pytest.mark.parametrize("new", [job, repeated], ids=["unique", "idempotent"])
def test_a_caller_with_an_old_snapshot_meets_a_younger_key_as_a_serialization_failure(
    store: PostgresStore, url: str, isolation: psycopg.IsolationLevel, new: Any
) -> None:
    with another(url, isolation) as user:
        user.execute("select count(*) from duly.ready")
        (first,) = store.jobs.enqueue([new()])

        with pytest.raises(psycopg.errors.SerializationFailure):
            store.enqueue_on(user, [new()])

        user.rollback()
        assert store.enqueue_on(user, [new()]) == [Stored(first.id, Outcome.duplicate, pending=True)]


@pytest.mark.parametrize("isolation", ISOLATIONS, ids=lambda level: level.name.lower())
def test_callers_with_snapshots_enqueue_other_keys_beside_each_other(
    store: PostgresStore, url: str, isolation: psycopg.IsolationLevel
) -> None:
    with another(url, psycopg.IsolationLevel.REPEATABLE_READ) as one, another(url, isolation) as other:
        one.execute("select count(*) from duly.ready")
        store.enqueue_on(other, [job("b")])
        store.enqueue_on(one, [job("a"), *[NewJob("default", "ok", b"{}")] * 2])
        other.commit()
        one.commit()

    assert len(claim(store, worker(store), 10)) == 4


def test_a_reused_key_takes_back_its_own_call_and_leaves_the_callers_transaction_open(
    store: PostgresStore, url: str
) -> None:
    (first,) = store.jobs.enqueue([repeated("known")])
    with another(url) as user:
        user.execute("create table orders (id int)")
        with pytest.raises(KeyReused) as caught:
            store.enqueue_on(user, [job("other"), repeated("known", b'{"n":2}')])
        (after,) = store.enqueue_on(user, [job("other")])
        user.execute("insert into orders values (1)")
        user.commit()

    assert (caught.value.job_id, caught.value.position) == (first.id, 1)
    assert after.outcome == "created"
    assert states(store, [after.id]) == [State.ready]


def test_a_reused_key_in_a_later_thousand_takes_back_the_earlier_ones(store: PostgresStore) -> None:
    (first,) = store.jobs.enqueue([repeated("known")])
    jobs = [NewJob("default", "ok", b"{}")] * 1_500 + [repeated("known", b'{"n":2}')]

    with pytest.raises(KeyReused) as caught:
        store.jobs.enqueue(jobs)

    assert (caught.value.job_id, caught.value.position) == (first.id, 1_500)
    assert [one.ready for one in store.inspection.counts()] == [1]


def test_a_redrive_does_not_wait_for_the_transaction_that_takes_its_key(
    store: PostgresStore, url: str
) -> None:
    me = worker(store)
    (first,) = store.jobs.enqueue([job(live=True)])
    (held,) = claim(store, me)
    store.jobs.exchange(me, [ended(held, Event.bury)], None)
    with another(url) as user:
        store.enqueue_on(user, [job(live=True)])

        assert store.operator.redrive([first.id], "ann", "fixed") == []

        user.rollback()
    assert store.operator.redrive([first.id], "ann", "fixed") == [first.id]


def test_a_callers_open_completion_of_a_version_holds_up_nobody(store: PostgresStore, url: str) -> None:
    me = worker(store)
    store.jobs.enqueue([job("page", version=7)])
    (one,) = claim(store, me)
    store.jobs.enqueue([job("page", version=7)])
    (other,) = claim(store, me)
    with another(url) as user:
        assert store.complete_on(user, me, ended(one))

        assert store.jobs.exchange(me, [ended(other)], None).acked == {(other.id, 1)}
        user.commit()

    (late,) = store.jobs.enqueue([job("page", version=6)])
    assert claim(store, me) == ()
    assert states(store, [late.id]) == [State.skipped]


def test_a_cancel_in_a_transaction_is_done_with_its_commit_and_undone_with_its_rollback(
    store: PostgresStore, url: str
) -> None:
    me = worker(store)
    waiting, running = put(store), put(store, queue="other")
    claim(store, me, 1, "other")
    with another(url) as user:
        told = store.cancel_on(user, [*waiting, *running, JobId(10**15)], "ann", "no longer wanted")
        assert told == {waiting[0]: State.cancelled, running[0]: State.running}
        assert [record and record.state for record in store.lookup_on(user, waiting)] == [State.cancelled]
        assert states(store, waiting) == [State.ready]
        user.rollback()
        assert states(store, waiting) == [State.ready]

        store.cancel_on(user, [*waiting, *running], "ann", "no longer wanted")
        user.commit()

    assert states(store, waiting) == [State.cancelled]
    assert store.jobs.exchange(me, (), None).wishes == (running[0],)


def test_once_in_a_transaction_is_free_again_after_its_rollback(store: PostgresStore, url: str) -> None:
    with another(url) as user:
        assert store.once_on(user, b"0123456789abcdef", MINUTE)
        assert not store.once_on(user, b"0123456789abcdef", MINUTE)
        user.rollback()

    assert store.keys.once(b"0123456789abcdef", MINUTE)
    assert not store.keys.once(b"0123456789abcdef", MINUTE)


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=40)


def test_names_and_keys_have_the_same_digests_in_sql(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:

        @settings(max_examples=60)
        @given(NAMES, NAMES, NAMES)
        def agree(task: str, tenant: str, key: str) -> None:
            row = connection.execute(
                "select duly.key_of_1(%(task)s), duly.key_of_1(%(task)s || E'\\x1fsuspect'), "
                "duly.key_digest_1('unique', %(task)s, %(tenant)s, %(key)s), "
                "duly.key_digest_1('idempotency', %(task)s, %(tenant)s, %(key)s)",
                {"task": task, "tenant": tenant, "key": key},
            ).fetchone()
            assert row == (
                key_of(task),
                suspect_key(task),
                unique_digest(task, tenant, key),
                idempotency_digest(task, tenant, key),
            )

        agree()


def test_the_functions_keep_keys_and_versions_as_long_as_the_defaults_say() -> None:
    text = migrations()[1].text

    for function, kept in (("take_idempotency_1", KEEP_KEYS), ("settle_ends_1", KEEP_VERSIONS)):
        body = text.partition(f"create function {{schema}}.{function}(")[2].partition("\n$$;")[0]
        assert f"p_now + interval '{kept.days} days'" in body
