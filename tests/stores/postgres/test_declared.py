"""What one program has declared, for another that shares the schema: how long a queue keeps its jobs."""

from datetime import timedelta

from duly.core.job import NewJob
from duly.core.lifecycle import Event, State
from duly.core.registration import QueuePolicy, Registration
from duly.testing.clock import FakeClock
from tests.stores.postgres.acts import claim, ended, put, states, worker
from tests.stores.postgres.conftest import Open

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


def test_a_program_that_does_not_know_a_queue_keeps_its_jobs_as_long_as_its_owner_says(
    open_store: Open,
) -> None:
    clock = FakeClock()
    store = open_store(clock=clock)
    queues = (QueuePolicy("short", keep=HOUR), QueuePolicy("long", keep=10 * DAY))
    store.schema.declare(Registration("shop:jobs", "1", queues))
    ids = [put(store, queue=queue)[0] for queue in ("short", "long", "other")]
    me = worker(store)
    store.jobs.exchange(me, [ended(job) for job in claim(store, me, 9, "short", "long", "other")], None)

    clock.advance(2 * HOUR)
    assert store.upkeep.retain({"short": 3 * HOUR}, {}, DAY, DAY) == 0
    assert store.upkeep.retain({}, {}, DAY, DAY) == 1
    clock.advance(2 * DAY)
    assert store.upkeep.retain({}, {}, DAY, DAY) == 1

    assert states(store, ids) == [None, State.completed, None]


def test_a_dead_letter_is_announced_by_the_retention_that_its_owner_declared(open_store: Open) -> None:
    clock = FakeClock()
    store = open_store(clock=clock)
    store.schema.declare(Registration("shop:jobs", "1", (QueuePolicy("default", keep_dead=10 * DAY),)))
    (letter,) = store.jobs.enqueue([NewJob("default", "ok", b"{}")])
    me = worker(store)
    store.jobs.exchange(me, [ended(job, Event.bury) for job in claim(store, me)], None)

    clock.advance(4 * DAY)
    ((queue, letters, purged_from),) = store.upkeep.announce_dead({}, 90 * DAY, 7 * DAY)
    clock.advance(7 * DAY)

    assert (queue, letters, purged_from) == ("default", 1, clock())
    assert store.upkeep.retain({}, {}, DAY, 90 * DAY) == 1
    assert states(store, [letter.id]) == [None]


def test_what_a_worker_of_the_previous_release_finishes_is_kept_as_its_owner_says(open_store: Open) -> None:
    clock = FakeClock()
    store = open_store(clock=clock)
    store.schema.declare(
        Registration("shop:jobs", "1", (QueuePolicy("default", keep=9 * DAY, keep_dead=9 * DAY),))
    )
    ids = put(store, 2)
    me = worker(store)
    done, dead = claim(store, me, 2)
    store.jobs.exchange(me, [ended(done), ended(dead, Event.bury)], None)
    with store.transaction() as connection:
        # Its keys of names are others.
        connection.execute("update duly.finished set queue_key = 11")
        connection.execute("update duly.dead set queue_key = 11")

    assert store.upkeep.announce_dead({}, HOUR, DAY) == []

    clock.advance(8 * DAY)
    assert store.upkeep.retain({"default": 9 * DAY}, {"default": 9 * DAY}, HOUR, HOUR) == 0
    assert states(store, ids) == [State.completed, State.dead]
