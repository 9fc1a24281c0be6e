"""Cases: what the sweep sheds of a queue that holds more than it may, and what it leaves alone."""

from duly.core.bounds import Bound, Pressure
from duly.core.control import WhenFull
from duly.core.lifecycle import State
from duly.core.pressure import QUEUE_FULL
from duly.core.registration import QueuePolicy

from .bench import HOUR, SECOND, Bench, new_job, unique


def _bound(bench: Bench, max_depth: int, when_full: WhenFull = "shed") -> None:
    bench.declare(queues=[QueuePolicy("default", max_depth=max_depth, when_full=when_full)])


def the_least_urgent_and_latest_jobs_are_shed_first(bench: Bench) -> None:
    _bound(bench, 3)
    usual = bench.put_many(3, priority=100)
    patient = bench.put_many(2, priority=200)
    urgent = bench.put_many(1, priority=1)

    swept = bench.sweep()

    assert swept.shed == 3
    assert bench.states([*urgent, *usual, *patient]) == [State.ready] * 3 + [State.shed] * 3


def a_shed_job_says_why_and_when(bench: Bench) -> None:
    _bound(bench, 1)
    _, id = bench.put_many(2)

    bench.sweep()

    record = bench.store.inspection.lookup([id])[0]
    assert record is not None
    assert (record.state, record.reason) == (State.shed, QUEUE_FULL)
    assert record.finished_at == bench.clock()


def a_queue_within_its_bound_sheds_nothing(bench: Bench) -> None:
    _bound(bench, 3)
    ids = bench.put_many(3)

    swept = bench.sweep()

    assert swept.shed == 0
    assert bench.states(ids) == [State.ready] * 3


def only_a_queue_that_sheds_loses_jobs(bench: Bench) -> None:
    policies: tuple[WhenFull, ...] = ("reject", "slow")
    for when_full in policies:
        _bound(bench, 1, when_full)
        ids = bench.put_many(3)

        swept = bench.sweep()

        assert swept.shed == 0
        assert bench.states(ids) == [State.ready] * 3


def jobs_that_run_or_are_not_due_do_not_count_and_are_not_shed(bench: Bench) -> None:
    _bound(bench, 1)
    running = bench.put()
    bench.claim_one(bench.worker())
    later = bench.put(delay=HOUR)
    waiting = bench.put()

    swept = bench.sweep()

    assert swept.shed == 0
    assert bench.states([running, later, waiting]) == [State.running, State.scheduled, State.ready]


def other_queues_keep_their_jobs(bench: Bench) -> None:
    _bound(bench, 1)
    elsewhere = bench.put_many(3, queue="elsewhere")
    ids = bench.put_many(2)

    swept = bench.sweep()

    assert swept.shed == 1
    assert bench.states([*elsewhere, *ids]) == [State.ready] * 4 + [State.shed]


def a_shed_job_gives_its_unique_key_back(bench: Bench) -> None:
    key = unique(live=True)
    _bound(bench, 1)
    bench.put()
    id = bench.put(unique=key)

    bench.sweep()

    assert bench.states([id]) == [State.shed]
    bench.must_be_free(key)


def a_shed_head_lets_the_next_of_its_ordering_key_go_on(bench: Bench) -> None:
    worker = bench.worker()
    first = bench.put(ordering_key="a", priority=200)
    second = bench.put(ordering_key="a", priority=1)
    _bound(bench, 1)

    bench.sweep()

    assert bench.states([first, second]) == [State.shed, State.ready]
    assert bench.start_ids(worker) == [second]


def more_than_one_chunk_is_shed_in_one_round(bench: Bench) -> None:
    _bound(bench, 10)
    ids = bench.put_all([new_job()] * 1210)

    swept = bench.sweep()

    assert swept.shed == 1200
    assert bench.store.inspection.counts()[0].ready == 10
    assert bench.states(ids[:10]) == [State.ready] * 10


def a_bound_that_is_lifted_sheds_nothing_more(bench: Bench) -> None:
    _bound(bench, 1)
    bench.declare(queues=[QueuePolicy("default")])
    ids = bench.put_many(3)

    swept = bench.sweep()

    assert swept.shed == 0
    assert bench.states(ids) == [State.ready] * 3


def how_full_a_queue_is_counts_its_ready_jobs_to_one_more_than_asked(bench: Bench) -> None:
    bench.put_many(5)
    bench.put(delay=HOUR)
    bench.put(queue="elsewhere")

    found = bench.store.pressing.fills({"default": 3, "elsewhere": 10, "empty": 10})

    assert {name: fill.depth for name, fill in found.items()} == {"default": 4, "elsewhere": 1, "empty": 0}


def how_full_a_queue_is_says_how_long_its_oldest_job_waits(bench: Bench) -> None:
    bench.put()
    bench.pass_time(HOUR)
    bench.put(priority=1)

    fill = bench.store.pressing.fills({"default": 10})["default"]

    assert fill.oldest is not None
    assert abs(fill.oldest - HOUR) < SECOND


def how_full_a_queue_is_is_known_anew_after_a_second(bench: Bench) -> None:
    bench.put()
    before = bench.store.pressing.fills({"default": 10})["default"].depth
    bench.put_many(2)

    bench.clock.advance(2 * SECOND)
    after = bench.store.pressing.fills({"default": 10})["default"].depth

    assert (before, after) == (1, 3)


def what_is_declared_of_a_queue_is_read_with_what_it_holds_back(bench: Bench) -> None:
    policy = QueuePolicy("default", max_depth=3, max_age=HOUR, when_full="slow", importance=7)
    bench.declare(queues=[policy, QueuePolicy("elsewhere")])

    found = bench.store.pressing.pressures(["default", "elsewhere", "undeclared"])

    assert found == {
        "default": Pressure(Bound(3, HOUR, "slow"), 7),
        "elsewhere": Pressure(),
        "undeclared": Pressure(),
    }


def refused_jobs_are_counted_while_there_are_any_within_an_hour(bench: Bench) -> None:
    pressing = bench.store.pressing
    pressing.turned_away({"default": 2, "elsewhere": 1})
    bench.pass_time(HOUR / 2)
    pressing.turned_away({"default": 3})
    last = bench.clock()

    both = pressing.pressures(["default", "elsewhere"])
    bench.pass_time(HOUR * 3 / 4)
    one = pressing.pressures(["default", "elsewhere"])
    bench.pass_time(HOUR)
    none = pressing.pressures(["default"])["default"]
    pressing.turned_away({"default": 1})
    anew = pressing.pressures(["default"])["default"]

    assert (both["default"].refused, both["default"].refused_at) == (5, last)
    assert both["elsewhere"].refused == 1
    assert (one["default"].refused, one["elsewhere"].refused) == (5, 0)
    assert none == Pressure()
    assert anew.refused == 1


def shed_jobs_are_counted_whoever_shed_them(bench: Bench) -> None:
    _bound(bench, 3)
    bench.put_many(5)
    bench.put_many(2, queue="elsewhere")

    bench.sweep()
    bench.store.pressing.shed(["elsewhere"], 10, "store full")

    found = bench.store.pressing.pressures(["default", "elsewhere"])
    assert (found["default"].shed, found["default"].shed_at) == (2, bench.clock())
    assert found["elsewhere"].shed == 2
