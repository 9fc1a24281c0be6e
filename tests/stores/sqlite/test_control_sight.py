"""Jobs between two tables: while a claim decides, nobody of an ordering key or a limit is lost from sight."""

from datetime import timedelta
from pathlib import Path

from duly.core.control import LimitPolicy, TaskLimit
from duly.core.job import JobId, NewJob
from duly.core.lifecycle import Event, State
from duly.core.names import key_of
from duly.core.registration import Registration
from duly.stores.sqlite.store import SQLiteStore
from duly.testing.clock import FakeClock
from duly.testing.conformance.bench import ended
from tests.stores.sqlite.conftest import Connect, worker
from tests.stores.sqlite.test_control_claims import exchange, put, until_quiet

HOUR = timedelta(hours=1)
CHUNKS = 500


def key(name: str, **options: object) -> NewJob:
    return NewJob("default", "ok", b"{}", ordering_key=name, **options)  # type: ignore[arg-type]


def states(store: SQLiteStore, ids: list[JobId]) -> list[State | None]:
    return [None if record is None else record.state for record in store.inspection.lookup(ids)]


def test_an_urgent_follower_that_is_met_before_its_head_is_claimed_once(
    store: SQLiteStore, connect: Connect
) -> None:
    incarnation = worker(store)
    head, follower = put(store, [key("a"), key("a", priority=1)])

    # Too few for the oldest to have their share.
    claimed = exchange(store, incarnation, 2, chain=2).claimed

    assert [(job.id, job.follows) for job in claimed] == [(head, False), (follower, True)]
    assert connect().execute("select count(*) from duly_blocked").fetchall() == [(0,)]


def test_a_paused_head_that_was_set_aside_first_keeps_its_key(store: SQLiteStore) -> None:
    incarnation = worker(store, "ok", "other")
    store.operator.pause("task:other", None, "ann", "incident")
    (head,) = put(store, [NewJob("default", "other", b"{}", ordering_key="a")])
    put(store, [key("b")] * CHUNKS)
    (second,) = put(store, [key("a")])

    claimed = until_quiet(store, incarnation)

    assert second not in [job.id for job in claimed]
    assert states(store, [head, second]) == [State.blocked, State.blocked]
    store.operator.resume("task:other", "ann", "over")
    store.upkeep.sweep(HOUR, 3, HOUR)
    assert head in [job.id for job in until_quiet(store, incarnation)]


def test_an_owner_that_is_found_while_a_lane_is_read_is_not_taken_for_read(
    store: SQLiteStore, connect: Connect
) -> None:
    incarnation = worker(store)
    ids = put(store, [key("a")] * 3)
    until_quiet(store, incarnation)
    connection = connect()
    with connection:
        # The owner is gone without a word, the others wait behind the key.
        connection.execute("delete from duly_claimed")
    put(store, [key("a")])

    claimed = until_quiet(store, incarnation)

    assert [job.id for job in claimed] == ids[1:2]
    assert states(store, ids[1:]) == [State.running, State.blocked]


def test_a_place_that_is_reserved_is_free_again_when_its_job_is_cancelled(sqlite_path: Path) -> None:
    first, second = sorted(("resource:a", "resource:b"), key=key_of)
    clock = FakeClock()
    store = SQLiteStore(sqlite_path, clock=clock)
    takes = (("first", first), ("second", second), ("both", first), ("both", second))
    store.schema.declare(
        Registration(
            "app",
            "1",
            limits=(LimitPolicy(first, 1), LimitPolicy(second, 1)),
            task_limits=tuple(TaskLimit(task, name) for task, name in takes),
        )
    )
    incarnation = worker(store, "first", "second", "both")
    _, _, both = put(store, [NewJob("default", task, b"{}") for task in ("first", "second", "both")])
    running = {job.task: job for job in until_quiet(store, incarnation)}
    clock.advance(timedelta(minutes=1))
    exchange(store, incarnation, 10, ended(running["first"], Event.complete))
    reserved = store.control.limits([first])[0].running

    store.operator.cancel([both], "ann", "no more")

    assert (reserved, store.control.limits([first])[0].running) == (1, 0)
    assert states(store, [both]) == [State.cancelled]
    store.close()
