"""Races about keys and limits that only a database with many writers has: late commits, claims and ends at once."""

import threading
from collections import Counter
from datetime import timedelta
from typing import Any

import psycopg

from duly.core.control import LimitPolicy, TaskLimit
from duly.core.job import ClaimedJob, ClaimRequest, Exchange, Incarnation, JobId, NewJob, QueueClaim
from duly.core.lifecycle import Event, State
from duly.core.registration import QueuePolicy, Registration
from duly.stores.postgres.store import PostgresStore
from tests.services import PostgresServer
from tests.stores.postgres.acts import MINUTE, ended, states, together, worker
from tests.stores.postgres.conftest import Open

POISON = 3
SOON = timedelta(milliseconds=10)
"""What a claim is told that came too late for a lock."""


def keyed(key: str = "a", task: str = "ok") -> NewJob:
    return NewJob("default", task, b"{}", ordering_key=key)


def put(store: PostgresStore, *jobs: NewJob) -> list[JobId]:
    return [stored.id for stored in store.jobs.enqueue(jobs)]


def ask(most: int = 10, chain: int = 1) -> ClaimRequest:
    return ClaimRequest((QueueClaim("default", most),), most, chain=chain)


def start(
    store: PostgresStore, me: Incarnation, *ends: ClaimedJob, most: int = 10, chain: int = 1
) -> list[ClaimedJob]:
    """As a worker does: ask again while the store says that it is worth it very soon, many times at most."""
    told = store.jobs.exchange(me, [ended(job) for job in ends], ask(most, chain))
    found = list(told.claimed)
    for _ in range(200):
        if told.again is None or told.again > SOON or len(found) >= most:
            break
        told = store.jobs.exchange(me, (), ask(most - len(found), chain))
        found += told.claimed
    return found


def ids(jobs: list[ClaimedJob]) -> list[JobId]:
    return [job.id for job in jobs]


def declare(store: PostgresStore, *limits: LimitPolicy, takes: tuple[TaskLimit, ...] = ()) -> None:
    store.schema.declare(
        Registration("shop:jobs", "1", (QueuePolicy("default"),), limits=limits, task_limits=takes)
    )


def test_what_was_enqueued_after_a_late_commit_runs_after_it(store: PostgresStore, url: str) -> None:
    me = worker(store)
    with psycopg.connect(url) as late:
        first = store.enqueue_on(late, [keyed()])[0].id
        others = put(store, *(keyed(f"other {number}") for number in range(5)))
        assert ids(start(store, me)) == others
        late.commit()
    (second,) = put(store, keyed())

    (head,) = start(store, me)

    assert head.id == first
    assert ids(start(store, me, head)) == [second]


def test_two_claims_that_meet_a_new_key_start_one_job_of_it(open_store: Open) -> None:
    stores = [open_store() for _ in range(3)]
    me = [worker(store) for store in stores]
    for turn in range(20):
        put(stores[0], *(keyed(f"{turn} {number % 4}") for number in range(24)))
        held: list[list[ClaimedJob]] = [[], [], []]

        def claim(number: int, held: list[list[ClaimedJob]] = held) -> None:
            held[number] = start(stores[number], me[number], most=10)

        together(*(lambda number=number: claim(number) for number in range(3)))

        running = Counter(job.ordering_key for jobs in held for job in jobs)
        assert running == {f"{turn} {number}": 1 for number in range(4)}
        for number, jobs in enumerate(held):
            stores[number].jobs.exchange(me[number], [ended(job) for job in jobs], None)
        while left := start(stores[0], me[0]):
            stores[0].jobs.exchange(me[0], [ended(job) for job in left], None)


def test_keys_and_caps_hold_among_workers_that_claim_and_end_at_once(
    open_store: Open, postgres: PostgresServer
) -> None:
    before = len(postgres.log)
    stores = [open_store() for _ in range(4)]
    me = [worker(store, "ok", "slow") for store in stores[:3]]
    declare(stores[0], LimitPolicy("task:slow", max_running=2), takes=(TaskLimit("slow", "task:slow"),))
    jobs = [keyed(f"{number % 5}", "slow" if number % 3 == 0 else "ok") for number in range(150)]
    jobs += [NewJob("default", "slow", b"{}")] * 30
    expected = put(stores[0], *jobs)
    guard = threading.Lock()
    running: Counter[str] = Counter()
    order: dict[str, list[JobId]] = {}
    wrong: list[str] = []

    def began(job: ClaimedJob) -> None:
        for name, most in ((job.ordering_key, 1), ("slow" if job.task == "slow" else None, 2)):
            if name is None:
                continue
            running[name] += 1
            if running[name] > most:
                wrong.append(f"{running[name]} of {name} at once")
        if job.ordering_key is not None:
            order.setdefault(job.ordering_key, []).append(job.id)

    def work(number: int) -> None:
        held: list[ClaimedJob] = []
        for _ in range(2000):
            with guard:
                for job in held:
                    # Counted down before the end is told, up after the claim: never more than the store lets run.
                    for name in (job.ordering_key, "slow" if job.task == "slow" else None):
                        if name is not None:
                            running[name] -= 1
            told = stores[number].jobs.exchange(me[number], [ended(job) for job in held], ask(4))
            held = list(told.claimed)
            with guard:
                for job in held:
                    began(job)
            if not held and told.again is None:
                with stores[number].transaction() as connection:
                    row: Any = connection.execute(
                        "select (select count(*) from duly.ready) + (select count(*) from duly.blocked)"
                    ).fetchone()
                if row[0] == 0:
                    return

    together(lambda: work(0), lambda: work(1), lambda: work(2))

    assert not wrong
    assert all(one == sorted(one) for one in order.values()), order
    assert set(states(stores[0], expected)) == {State.completed}
    assert "deadlock detected" not in postgres.log[before:]
    with stores[0].transaction() as connection:
        left: Any = connection.execute(
            "select (select count(*) from duly.hold), (select count(*) from duly.keyed)"
        ).fetchone()
    assert left == (0, 0)


def test_a_head_completed_by_its_caller_hands_over_with_the_commit(store: PostgresStore, url: str) -> None:
    me = worker(store)
    first, second = put(store, keyed(), keyed())
    (head,) = start(store, me)
    with psycopg.connect(url) as connection:
        assert store.complete_on(connection, me, ended(head))

        assert start(store, me) == []
        (other,) = put(store, keyed("b"))
        assert ids(start(store, me)) == [other]
        connection.commit()

    assert ids(start(store, me)) == [second]
    assert states(store, [first]) == [State.completed]


def test_a_head_whose_completion_was_rolled_back_keeps_its_key(store: PostgresStore, url: str) -> None:
    me = worker(store)
    _, second = put(store, keyed(), keyed())
    (head,) = start(store, me)
    with psycopg.connect(url) as connection:
        store.complete_on(connection, me, ended(head))
        connection.rollback()

    assert start(store, me) == []
    assert ids(start(store, me, head)) == [second]


def test_no_claim_and_no_end_waits_for_a_callers_completion_of_a_limited_job(
    store: PostgresStore, url: str
) -> None:
    declare(store, LimitPolicy("task:ok", max_running=2), takes=(TaskLimit("ok", "task:ok"),))
    me = worker(store)
    put(store, *[NewJob("default", "ok", b"{}")] * 4)
    first, second = start(store, me)
    with psycopg.connect(url) as connection:
        store.complete_on(connection, me, ended(first))

        (third,) = start(store, me, second)
        connection.commit()

    assert len(start(store, me)) == 1
    assert store.control.limits(["task:ok"])[0].running == 2
    assert third.id not in {first.id, second.id}


def test_a_job_of_two_limits_runs_beside_a_stream_of_each(open_store: Open) -> None:
    clock_store = open_store()
    declare(
        clock_store,
        LimitPolicy("resource:a", max_running=1),
        LimitPolicy("resource:b", max_running=1),
        takes=(
            TaskLimit("a", "resource:a"),
            TaskLimit("b", "resource:b"),
            TaskLimit("both", "resource:a"),
            TaskLimit("both", "resource:b"),
        ),
    )
    me = worker(clock_store, "a", "b", "both")
    put(clock_store, NewJob("default", "a", b"{}"), NewJob("default", "b", b"{}"))
    held = start(clock_store, me)
    (wanted,) = put(clock_store, NewJob("default", "both", b"{}"))
    assert start(clock_store, me) == []
    with clock_store.transaction() as connection:
        connection.execute("update duly.blocked set since = since - interval '1 minute'")

    for _ in range(6):
        # One ends, then the other: never both at once.
        put(clock_store, NewJob("default", held[0].task, b"{}"))
        held = held[1:] + start(clock_store, me, held[0])
        if wanted in ids(held):
            break

    assert wanted in ids(held)


def test_the_limits_of_a_reaped_worker_are_free(store: PostgresStore) -> None:
    declare(store, LimitPolicy("task:ok", max_running=1), takes=(TaskLimit("ok", "task:ok"),))
    me, other = worker(store), worker(store)
    first, second = put(store, keyed(), NewJob("default", "ok", b"{}"))
    assert ids(start(store, me)) == [first]
    assert start(store, other) == []

    beats = [beat for beat in store.leases.beats() if beat.incarnation == me]
    assert store.leases.reap(beats, POISON) == 1

    assert ids(start(store, other)) == [second]
    assert store.control.limits(["task:ok"])[0].running == 1


def test_a_chain_comes_in_order_and_goes_back_behind_its_head(store: PostgresStore) -> None:
    me = worker(store)
    expected = put(store, *[keyed()] * 6)

    chain = start(store, me, most=4, chain=4)

    assert ids(chain) == expected[:4]
    assert [job.follows for job in chain] == [False, True, True, True]
    back = [ended(chain[0], Event.fail), *(ended(job, Event.interrupt) for job in chain[1:])]
    told: Exchange = store.jobs.exchange(me, back, ask())
    assert told.claimed == ()
    assert states(store, [expected[0]]) == [State.scheduled]
    store.operator.run_now(expected[:1], "ann", "now")
    assert ids(start(store, me, most=6, chain=6)) == expected


def test_the_sweep_finds_what_was_lost_behind_its_back(store: PostgresStore) -> None:
    declare(store, LimitPolicy("task:slow", max_running=1), takes=(TaskLimit("slow", "task:slow"),))
    me = worker(store, "ok", "slow")
    expected = put(store, keyed(), keyed(), *[NewJob("default", "slow", b"{}")] * 2)
    held = start(store, me)
    assert ids(held) == [expected[0], expected[2]]
    store.jobs.exchange(me, [ended(job) for job in held], None)
    with store.transaction() as connection:
        connection.execute("delete from duly.released")
        connection.execute("insert into duly.hold values (duly.key_of_1('task:slow'), 999, 999)")

    store.upkeep.sweep(MINUTE, POISON, MINUTE)

    assert ids(start(store, me)) == [expected[1], expected[3]]


def test_a_job_that_is_just_being_set_behind_its_head_is_not_forgotten(
    store: PostgresStore, url: str
) -> None:
    me = worker(store)
    (first,) = put(store, keyed())
    (head,) = start(store, me)
    assert head.id == first
    (second,) = put(store, keyed())
    with psycopg.connect(url) as claiming:
        # As a claim does that has looked at the head while it ran, and has yet to commit.
        claiming.execute("select id from duly.key_head for update")
        claiming.execute(
            "with gone as (delete from duly.ready where id = %s returning *) insert into duly.blocked "
            "(id, task, queue, pos, since, cause, gate, priority) "
            "select g.id, g.task, g.queue, g.pos, g.ready_at, 3, j.ordering, g.priority "
            "from gone g join duly.job j on j.id = g.id",
            (second,),
        )

        told = store.jobs.exchange(me, [ended(head)], ask())

        assert (told.claimed, told.again) == ((), SOON)
        claiming.commit()

    assert ids(start(store, me)) == [second]


def claimed_before(url: str, me: Incarnation, most: int) -> list[tuple[JobId, bool]]:
    """What a worker of the previous release takes from the answer, and whether it learns from where in a lane."""
    with psycopg.connect(url) as old:
        rows = old.execute(
            "select e.kind, e.id, e.pos, e.enqueued_at from duly.exchange_2(%s, null, null, null, null, null, null, "
            "null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, "
            "null, '{default}', array[duly.key_of_1('default')], array[%s], '{f}', %s, null, null, null, null, null, "
            "true, null) e",
            (me, most, most),
        ).fetchall()
    # When it was claimed stands in one of these rows alone; without one it believes that there was nothing.
    told = any(kind in {"lane", "now"} and at is not None for kind, _, _, at in rows)
    return sorted((id, pos is not None) for kind, id, pos, _ in rows if kind is None and told)


def test_a_worker_of_the_previous_release_keeps_orders_and_caps(store: PostgresStore, url: str) -> None:
    declare(store, LimitPolicy("task:slow", max_running=1), takes=(TaskLimit("slow", "task:slow"),))
    me = worker(store, "ok", "slow")
    expected = put(store, keyed(), keyed(), *[NewJob("default", "slow", b"{}")] * 2)

    claimed = claimed_before(url, me, 10)

    assert claimed == [(expected[0], False), (expected[2], False)]


def test_a_worker_of_the_previous_release_gets_jobs_of_a_fair_queue(store: PostgresStore, url: str) -> None:
    store.schema.declare(Registration("shop:jobs", "1", (QueuePolicy("default", fair=True),)))
    me = worker(store)
    expected = put(
        store, *[NewJob("default", "ok", b"{}", tenant=tenant, fair=True) for tenant in ("a", "b", "")]
    )

    assert claimed_before(url, me, 10) == [(id, False) for id in expected]


def test_a_worker_of_the_previous_release_gets_what_an_end_let_go(store: PostgresStore, url: str) -> None:
    me, expected = worker(store), put(store, keyed(), keyed())
    (head,) = start(store, me)
    assert start(store, me) == []
    store.jobs.exchange(me, [ended(head)], None)

    assert claimed_before(url, me, 1) == [(expected[1], False)]
