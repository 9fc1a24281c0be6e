"""Bounded jobs on one file: what claims of many rows, other handles, callers' transactions and damage do to them."""

from datetime import timedelta

import pytest

from duly.core.control import LimitPolicy, Rate, Refusal, TaskLimit
from duly.core.job import ClaimedJob, ClaimRequest, Ended, Exchange, Incarnation, JobId, NewJob, QueueClaim
from duly.core.lifecycle import Event, State
from duly.core.registration import QueuePolicy, Registration, TaskPolicy
from duly.stores.sqlite.store import SQLiteStore
from duly.testing.conformance.bench import ended
from tests.stores.sqlite.conftest import Connect, Open, log_statements, worker

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
MANY = 5_000


def keyed(key: str, count: int = 1, **options: object) -> list[NewJob]:
    return [NewJob("default", "ok", b"{}", ordering_key=key, **options)] * count  # type: ignore[arg-type]


def put(store: SQLiteStore, jobs: list[NewJob]) -> list[JobId]:
    return [stored.id for stored in store.jobs.enqueue(jobs)]


def exchange(
    store: SQLiteStore,
    incarnation: Incarnation,
    most: int = 10,
    *ends: Ended,
    fair: bool = False,
    chain: int = 1,
) -> Exchange:
    request = ClaimRequest((QueueClaim("default", most, fair),), most, chain=chain)
    return store.jobs.exchange(incarnation, ends, request)


def until_quiet(store: SQLiteStore, incarnation: Incarnation, most: int = 10) -> list[ClaimedJob]:
    """Claim as a worker does that is told to come again at once."""
    jobs: list[ClaimedJob] = []
    for _ in range(100):
        answer = exchange(store, incarnation, most - len(jobs))
        jobs += answer.claimed
        if answer.again != timedelta(0):
            return jobs
    raise AssertionError("it never came to rest")


def limited(store: SQLiteStore, max_running: int | None = 1, rate: Rate | None = None) -> None:
    store.schema.declare(
        Registration(
            "app",
            f"{max_running} {rate}",
            tasks=(TaskPolicy("ok", "default", 100),),
            limits=(LimitPolicy("resource:api", max_running, rate),),
            task_limits=(TaskLimit("ok", "resource:api"),),
        )
    )


def rows(connect: Connect, statement: str) -> list[tuple[object, ...]]:
    return connect().execute(statement).fetchall()


def test_a_crowd_behind_one_key_is_moved_once_and_hides_no_other_job(
    store: SQLiteStore, connect: Connect
) -> None:
    incarnation = worker(store)
    crowd = put(store, keyed("hot", MANY))
    (other,) = put(store, [NewJob("default", "ok", b"{}")])

    claimed = until_quiet(store, incarnation)

    assert [job.id for job in claimed] == [crowd[0], other]
    assert rows(connect, "select count(*), count(distinct gate) from duly_blocked") == [(MANY - 1, 1)]
    assert exchange(store, incarnation).claimed == ()


def test_followers_are_taken_from_behind_the_key_and_from_the_queue(store: SQLiteStore) -> None:
    incarnation = worker(store)
    early = put(store, keyed("a", 3))
    (first,) = exchange(store, incarnation, 10).claimed
    late = put(store, keyed("a", 3))

    answer = exchange(store, incarnation, 10, ended(first, Event.complete), chain=4)

    assert [job.id for job in answer.claimed] == [*early[1:], *late[:2]]
    assert [job.follows for job in answer.claimed] == [False, True, True, True]


def test_a_key_with_no_job_left_leaves_no_row(store: SQLiteStore, connect: Connect) -> None:
    incarnation = worker(store)
    put(store, keyed("a", 2))
    jobs = exchange(store, incarnation, 10, chain=2).claimed

    store.jobs.exchange(incarnation, [ended(job, Event.complete) for job in jobs], None)

    assert len(jobs) == 2
    for table in ("keyed", "key_head", "hold", "blocked"):
        assert rows(connect, f"select count(*) from duly_{table}") == [(0,)]


def test_an_end_in_a_callers_transaction_lets_the_next_go_with_its_commit(
    store: SQLiteStore, connect: Connect
) -> None:
    limited(store)
    incarnation = worker(store)
    ids = put(store, keyed("a", 2))
    (first,) = exchange(store, incarnation).claimed
    connection = connect(isolation_level=None)
    connection.execute("begin immediate")
    assert store.complete_on(connection, incarnation, ended(first, Event.complete))

    connection.execute("commit")

    assert [job.id for job in exchange(store, incarnation).claimed] == ids[1:]


def test_an_end_that_is_rolled_back_lets_nobody_go(store: SQLiteStore, connect: Connect) -> None:
    limited(store)
    incarnation = worker(store)
    ids = put(store, [NewJob("default", "ok", b"{}")] * 2)
    (first,) = exchange(store, incarnation).claimed
    connection = connect(isolation_level=None)
    connection.execute("begin immediate")
    assert store.complete_on(connection, incarnation, ended(first, Event.complete))

    connection.execute("rollback")

    assert exchange(store, incarnation).claimed == ()
    answer = exchange(store, incarnation, 10, ended(first, Event.complete))
    assert [job.id for job in answer.claimed] == ids[1:]


def test_a_limit_holds_for_every_handle_on_the_file(open_store: Open) -> None:
    one, other = open_store("truncate"), open_store("truncate")
    limited(one, 2)
    first, second = worker(one), worker(other)
    put(one, [NewJob("default", "ok", b"{}")] * 5)

    jobs = [*exchange(one, first).claimed, *exchange(other, second).claimed]

    assert len(jobs) == 2
    assert other.control.limits(["resource:api"])[0].running == 2


def test_a_claim_asks_a_limit_once_however_many_jobs_miss_it(
    open_store: Open, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    log_statements(monkeypatch, asked)
    store = open_store()
    store.schema.migrate()
    incarnation = worker(store)
    limited(store, max_running=5)
    put(store, [NewJob("default", "ok", b"{}")] * 30)
    held = exchange(store, incarnation, 30).claimed
    made = store.control.override("resource:api", "limit", {"max_running": 30}, HOUR, "ann", "sale")
    assert store.control.lift(made.id, "ann", "over")
    for one in held:
        store.jobs.exchange(incarnation, [ended(one, Event.complete)], None)
    ((let_go,),) = rows(connect, "select count(*) from duly_ready where since is not null")
    asked.clear()

    taken = exchange(store, incarnation, 30).claimed

    assert (len(held), let_go, len(taken)) == (5, 25, 5)
    assert 1 <= len([one for one in asked if "breaker_state" in one and "json_each" in one]) <= 2


def test_a_limit_that_is_raised_by_hand_lets_jobs_go_at_once(store: SQLiteStore) -> None:
    limited(store)
    incarnation = worker(store)
    put(store, [NewJob("default", "ok", b"{}")] * 4)
    assert len(exchange(store, incarnation).claimed) == 1

    made = store.control.override("resource:api", "limit", {"max_running": 3}, HOUR, "ann", "sale")

    assert len(exchange(store, incarnation).claimed) == 2
    assert store.control.limits(["resource:api"])[0].override == made.id
    assert store.control.lift(made.id, "ann", "over")
    assert exchange(store, incarnation).claimed == ()


def test_a_limit_of_a_later_release_holds_for_jobs_that_wait_already(store: SQLiteStore) -> None:
    incarnation = worker(store)
    put(store, [NewJob("default", "ok", b"{}")] * 3)
    limited(store)

    assert len(exchange(store, incarnation).claimed) == 1


def test_a_limit_that_is_no_longer_declared_lets_everybody_go(store: SQLiteStore) -> None:
    limited(store)
    incarnation = worker(store)
    put(store, [NewJob("default", "ok", b"{}")] * 1_200)
    assert len(until_quiet(store, incarnation, 2_000)) == 1

    store.schema.declare(Registration("app", "none", tasks=(TaskPolicy("ok", "default", 100),)))
    store.upkeep.sweep(HOUR, 3, MINUTE)

    assert len(until_quiet(store, incarnation, 2_000)) == 1_199


@pytest.mark.parametrize(
    "damage",
    [
        "delete from duly_key_head",
        "delete from duly_keyed",
        "update duly_key_head set id = 999999",
        "delete from duly_claimed",
        "delete from duly_limit_state",
        "insert into duly_hold (key, id, incarnation) select key, 999999, 7 from duly_limit_state",
    ],
)
def test_a_sweep_heals_what_a_stranger_broke(store: SQLiteStore, connect: Connect, damage: str) -> None:
    limited(store)
    incarnation = worker(store)
    ids = put(store, keyed("a", 3))
    (first,) = exchange(store, incarnation).claimed
    connection = connect()
    with connection:
        connection.execute(damage)

    store.upkeep.sweep(HOUR, 3, MINUTE)
    done: list[JobId] = []
    ends = [ended(first, Event.complete)]
    for _ in range(5):
        answer = exchange(store, incarnation, 10, *ends)
        ends = [ended(job, Event.complete) for job in answer.claimed]
        done += [job.id for job in answer.claimed]

    assert done == ids[1:]


def test_a_walk_with_each_sweep_forgets_limits_of_which_nothing_is_left(
    store: SQLiteStore, connect: Connect
) -> None:
    limited(store)
    incarnation = worker(store)
    put(store, [NewJob("default", "ok", b"{}")] * 2)
    (first,) = exchange(store, incarnation).claimed
    (second,) = exchange(store, incarnation, 10, ended(first, Event.complete)).claimed
    store.jobs.exchange(incarnation, [ended(second, Event.complete)], None)

    store.upkeep.sweep(HOUR, 3, MINUTE)

    assert rows(connect, "select * from duly_limit_state") == []


def test_a_tenant_whose_queue_is_fair_no_more_is_served_after_a_sweep(store: SQLiteStore) -> None:
    store.schema.declare(Registration("app", "1", queues=(QueuePolicy("default", fair=True),)))
    incarnation = worker(store)
    ids = put(store, [NewJob("default", "ok", b"{}", tenant="acme", fair=True)] * 3)
    store.schema.declare(Registration("app", "2", queues=(QueuePolicy("default"),)))
    assert exchange(store, incarnation).claimed == ()

    store.upkeep.sweep(HOUR, 3, MINUTE)

    assert [job.id for job in exchange(store, incarnation).claimed] == ids


def test_many_tenants_that_may_run_nothing_hide_none_that_may(store: SQLiteStore) -> None:
    store.schema.declare(
        Registration(
            "app",
            "1",
            queues=(QueuePolicy("default", fair=True),),
            limits=(LimitPolicy("tenant:default", max_running=1),),
        )
    )
    incarnation = worker(store)
    names = [f"tenant {number}" for number in range(1_100)]
    put(store, [NewJob("default", "ok", b"{}", tenant=name, fair=True) for name in names * 2])
    running: set[str] = set()

    for _ in range(10):
        answer = exchange(store, incarnation, 500, fair=True)
        running |= {job.tenant for job in answer.claimed}

    assert running == set(names)
    assert exchange(store, incarnation, 10, fair=True).claimed == ()
    # Nobody is told to come again at once for ever.
    assert any(exchange(store, incarnation, 10, fair=True).again is None for _ in range(20))


def test_a_lock_is_had_by_one_and_ends_with_its_time(store: SQLiteStore) -> None:
    permit = store.control.acquire(["lock:report"], None, HOUR)
    refused = store.control.acquire(["lock:report"], None, HOUR)

    assert isinstance(refused, Refusal)
    assert not isinstance(permit, Refusal)
    assert store.control.release(permit)
    assert not store.control.release(permit)
    assert not isinstance(store.control.acquire(["lock:report"], None, HOUR), Refusal)


def test_the_state_of_a_bounded_job_says_what_it_waits_for(store: SQLiteStore) -> None:
    limited(store)
    incarnation = worker(store)
    ids = put(store, [NewJob("default", "ok", b"{}"), NewJob("default", "ok", b"{}"), *keyed("a", 2)])
    exchange(store, incarnation)

    found = [record for record in store.inspection.lookup(ids) if record is not None]

    assert [record.state for record in found] == [State.running, *[State.blocked] * 3]
    assert [record.waits_for for record in found] == [None, "resource:api", "resource:api", "key"]
