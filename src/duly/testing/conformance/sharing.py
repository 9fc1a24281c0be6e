"""Cases: who goes on of the tenants of a fair queue that wait behind one limit."""

from duly.core.control import LimitPolicy, TaskLimit
from duly.core.job import ClaimedJob, Incarnation
from duly.core.lifecycle import Event
from duly.core.registration import QueuePolicy

from .bench import Bench, ended


def _one_at_a_time(bench: Bench) -> Incarnation:
    bench.declare(
        LimitPolicy("task:ok", 1),
        takes=[TaskLimit("ok", "task:ok")],
        queues=[QueuePolicy("default", fair=True)],
    )
    return bench.worker()


def _rest(
    bench: Bench, worker: Incarnation, running: list[ClaimedJob], count: int, most: int = 50
) -> list[ClaimedJob]:
    """The next so many, each begun when the one before has ended; `most`: asked for in a claim."""
    begun = []
    for _ in range(count):
        bench.end(worker, *(ended(job, Event.complete) for job in running))
        running = bench.start(worker, most, fair=True)
        begun += running
    return begun


def tenants_go_on_one_by_one_behind_a_limit_that_lets_one_go(bench: Bench) -> None:
    worker = _one_at_a_time(bench)
    for tenant in "abc":
        bench.put_many(4, tenant=tenant, fair=True)
    running = bench.start(worker, 50, fair=True)

    order = "".join(job.tenant for job in _rest(bench, worker, running, 9))

    assert [len(set(order[start : start + 3])) for start in (0, 3, 6)] == [3, 3, 3], order


def tenants_go_on_in_turn_whatever_a_claim_asks_for(bench: Bench) -> None:
    worker = _one_at_a_time(bench)
    for tenant in "abc":
        bench.put_many(20, tenant=tenant, fair=True)
    running = bench.start(worker, 5, fair=True)

    order = "".join(job.tenant for job in _rest(bench, worker, running, 12, most=5))

    assert {tenant: order.count(tenant) for tenant in "abc"} == dict.fromkeys("abc", 4), order


def priority_chooses_within_a_tenant_behind_a_limit(bench: Bench) -> None:
    worker = _one_at_a_time(bench)
    bench.put(tenant="c", fair=True)
    running = bench.start(worker, 50, fair=True)
    patient, urgent = (bench.put(tenant="a", fair=True, priority=priority) for priority in (200, 1))
    bench.put_many(4, tenant="b", fair=True)
    assert bench.start(worker, 50, fair=True) == []

    order = [job.id for job in _rest(bench, worker, running, 6)]

    assert order.index(urgent) < order.index(patient), order
