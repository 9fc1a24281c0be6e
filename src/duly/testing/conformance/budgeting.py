"""Cases: what a store knows of its own size and of who gives way, and the shedding of queues by their order."""

from duly.core.budget import STORE_FULL, Rank
from duly.core.lifecycle import State
from duly.core.registration import QueuePolicy

from .bench import HOUR, SECOND, Bench, unique

_SPAN = 20 * SECOND


def _used(bench: Bench) -> int:
    bench.clock.advance(2 * SECOND)
    use = bench.store.pressing.use()
    assert use is not None
    return use.bytes


def a_store_that_takes_in_jobs_uses_more(bench: Bench) -> None:
    before = _used(bench)

    bench.put_many(300)

    assert _used(bench) > before


def a_store_uses_less_once_finished_jobs_are_gone(bench: Bench) -> None:
    ids = bench.put_many(1000)
    full = _used(bench)

    bench.store.operator.cancel(ids, "alice", "by mistake")
    bench.pass_time(2 * HOUR)
    while bench.store.upkeep.retain({"default": HOUR}, {}, 24 * HOUR, 24 * HOUR):
        pass

    assert _used(bench) < full


def what_a_store_uses_is_not_measured_again_within_a_second(bench: Bench) -> None:
    before = _used(bench)
    bench.put_many(300)

    bench.clock.advance(SECOND / 2)
    use = bench.store.pressing.use()

    assert use is not None
    assert use.bytes == before


def what_a_store_uses_is_measured_again_sooner_for_who_asks_so(bench: Bench) -> None:
    before = _used(bench)
    bench.put_many(300)

    bench.clock.advance(SECOND / 2)
    use = bench.store.pressing.use(SECOND / 10)

    assert use is not None
    assert use.bytes > before


def declared_queues_are_told_with_their_importance_and_whether_they_shed(bench: Bench) -> None:
    bench.declare(
        queues=[
            QueuePolicy("payments", importance=1),
            QueuePolicy("analytics", importance=200, when_full="shed"),
        ]
    )

    use = bench.store.pressing.use()

    assert use is not None
    assert [rank for rank in use.ranks if rank.queue != "default"] == [
        Rank("analytics", 200, sheds=True),
        Rank("payments", 1, sheds=False),
    ]


def a_sweep_keeps_what_the_store_uses(bench: Bench) -> None:
    bench.sweep()
    bench.put_many(300)
    bench.clock.advance(_SPAN)
    bench.sweep()

    uses = bench.store.pressing.uses(HOUR / 10)

    assert [at for at, _ in uses] == sorted(at for at, _ in uses)
    assert uses[-1][1].bytes > uses[0][1].bytes
    assert len(bench.store.pressing.uses(_SPAN / 2)) < len(uses)


def queues_are_shed_in_the_order_given_and_the_least_urgent_of_each_first(bench: Bench) -> None:
    first = bench.put_many(2, queue="analytics")
    urgent = bench.put_many(1, queue="reports", priority=1)
    patient = bench.put_many(2, queue="reports", priority=200)
    payments = bench.put_many(2, queue="payments")

    shed = bench.store.pressing.shed(["analytics", "reports"], 3, STORE_FULL)

    assert shed == 3
    assert bench.states([*first, *urgent, *patient]) == [
        State.shed,
        State.shed,
        State.ready,
        State.ready,
        State.shed,
    ]
    assert bench.states(payments) == [State.ready] * 2


def a_job_shed_for_the_store_says_so(bench: Bench) -> None:
    id = bench.put()

    bench.store.pressing.shed(["default"], 10, STORE_FULL)

    record = bench.store.inspection.lookup([id])[0]
    assert record is not None
    assert (record.state, record.reason) == (State.shed, STORE_FULL)


def what_runs_or_is_not_due_is_not_shed_for_the_store(bench: Bench) -> None:
    running = bench.put()
    bench.claim_one(bench.worker())
    later = bench.put(delay=HOUR)

    shed = bench.store.pressing.shed(["default"], 10, STORE_FULL)

    assert shed == 0
    assert bench.states([running, later]) == [State.running, State.scheduled]


def a_job_shed_for_the_store_gives_its_keys_back(bench: Bench) -> None:
    worker = bench.worker()
    key = unique(live=True)
    bench.put(unique=key)
    bench.put(ordering_key="a", priority=200)
    second = bench.put(ordering_key="a", priority=1)

    bench.store.pressing.shed(["default"], 2, STORE_FULL)

    bench.must_be_free(key)
    assert second in bench.start_ids(worker)


def shedding_more_than_a_chunk_stops_at_what_was_asked(bench: Bench) -> None:
    bench.put_many(1300)

    shed = bench.store.pressing.shed(["default"], 1200, STORE_FULL)

    assert shed == 1200
    assert bench.store.inspection.counts()[0].ready == 100
