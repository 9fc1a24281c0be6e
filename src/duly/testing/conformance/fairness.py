"""Cases: whose turn it is. Tenants in turn, by weight and within their bounds; and the oldest beside the urgent."""

from collections import Counter

from duly.core.control import LimitPolicy, Rate, TaskLimit, TenantPlan
from duly.core.job import ClaimedJob, Incarnation, JobId
from duly.core.lifecycle import Event, State
from duly.core.registration import QueuePolicy

from .bench import MINUTE, SECOND, Bench, ended, new_job

FAIR = QueuePolicy("default", fair=True)


def _fair(bench: Bench, *limits: LimitPolicy) -> Incarnation:
    bench.declare(*limits, queues=[FAIR])
    return bench.worker()


def _put(bench: Bench, tenant: str, count: int = 1, priority: int = 100) -> list[JobId]:
    return bench.put_many(count, tenant=tenant, fair=True, priority=priority)


def _singly(bench: Bench, worker: Incarnation, count: int) -> list[ClaimedJob]:
    """So many jobs, each claimed alone and ended at once."""
    jobs: list[ClaimedJob] = []
    for _ in range(count):
        for job in bench.start(worker, 1, fair=True):
            jobs.append(job)
            bench.end(worker, ended(job, Event.complete))
    return jobs


def _tenants(jobs: list[ClaimedJob]) -> str:
    return "".join(job.tenant for job in jobs)


# Turns


def tenants_are_served_in_turn(bench: Bench) -> None:
    worker = _fair(bench)
    for tenant in "abc":
        _put(bench, tenant, 10)

    order = _tenants(_singly(bench, worker, 12))

    assert all(set(order[at : at + 3]) == set("abc") for at in range(10)), order


def one_claim_of_many_serves_all_tenants_alike(bench: Bench) -> None:
    worker = _fair(bench)
    for tenant in "abc":
        _put(bench, tenant, 10)

    claimed = bench.start(worker, 9, fair=True)

    assert Counter(_tenants(claimed)) == {"a": 3, "b": 3, "c": 3}


def jobs_of_one_tenant_keep_their_order(bench: Bench) -> None:
    worker = _fair(bench)
    a, b = _put(bench, "a", 5), _put(bench, "b", 5)

    jobs = _singly(bench, worker, 10)

    assert [job.id for job in jobs if job.tenant == "a"] == a
    assert [job.id for job in jobs if job.tenant == "b"] == b


def one_tenant_alone_uses_everything(bench: Bench) -> None:
    worker = _fair(bench)
    ids = _put(bench, "a", 20)

    assert bench.start_ids(worker, 8, fair=True) == ids[:8]
    assert bench.start_ids(worker, 12, fair=True) == ids[8:]


def what_one_tenant_does_not_use_the_others_may(bench: Bench) -> None:
    worker = _fair(bench)
    _put(bench, "a", 20)
    (b,) = _put(bench, "b")

    claimed = bench.start(worker, 10, fair=True)

    assert len(claimed) == 10
    assert b in [job.id for job in claimed]


def the_flood_of_one_tenant_delays_another_by_one_round_at_most(bench: Bench) -> None:
    worker = _fair(bench)
    _put(bench, "a", 500)
    _singly(bench, worker, 3)
    _put(bench, "b", 1)
    _put(bench, "c", 10)

    order = _tenants(_singly(bench, worker, 33))

    assert order.index("b") < 4
    assert order[:33].count("c") == 10
    assert len(order) == 33


def tenants_go_on_in_turn_behind_a_limit_that_they_share(bench: Bench) -> None:
    bench.declare(LimitPolicy("task:ok", 2), takes=[TaskLimit("ok", "task:ok")], queues=[FAIR])
    worker = bench.worker()
    _put(bench, "whale", 200)
    running = bench.start(worker, 50, fair=True)
    _put(bench, "small", 2)
    _put(bench, "other", 1)
    order = ""
    for _ in range(8):
        for job in running:
            bench.end(worker, ended(job, Event.complete))
        running = bench.start(worker, 50, fair=True)
        order += "".join(job.tenant[0] for job in running)

    assert order.index("o") < 6, order
    assert order.rindex("s") < 8, order
    assert len(order) == 16, order


def a_tenant_that_comes_back_waits_for_its_turn(bench: Bench) -> None:
    worker = _fair(bench)
    _put(bench, "b", 5)
    order = ""
    for _ in range(5):
        _put(bench, "a")
        order += _tenants(_singly(bench, worker, 2))

    assert order.count("a") == order.count("b") == 5


def priority_chooses_within_a_tenant(bench: Bench) -> None:
    worker = _fair(bench)
    late, urgent = _put(bench, "a"), _put(bench, "a", priority=1)
    _put(bench, "b", 2)

    jobs = _singly(bench, worker, 4)

    assert [job.id for job in jobs if job.tenant == "a"] == urgent + late


def priority_chooses_within_a_tenant_that_may_have_less_than_is_asked_for(bench: Bench) -> None:
    worker = _fair(bench, LimitPolicy("tenant:default", max_running=5))
    _put(bench, "a", 15)
    (urgent,) = _put(bench, "a", priority=10)

    claimed = bench.start_ids(worker, 50, fair=True)

    assert len(claimed) == 5
    assert urgent in claimed


def an_urgent_flood_of_one_tenant_starves_no_other(bench: Bench) -> None:
    worker = _fair(bench)
    _put(bench, "a", 50, priority=1)
    _put(bench, "b", 3, priority=100)

    assert _tenants(_singly(bench, worker, 6)).count("b") == 3


def a_job_without_a_tenant_has_its_turn(bench: Bench) -> None:
    worker = _fair(bench)
    _put(bench, "a", 10)
    nobody = _put(bench, "", 2)

    assert {job.id for job in _singly(bench, worker, 4)} >= set(nobody)


def retries_wait_with_their_tenant(bench: Bench) -> None:
    worker = _fair(bench)
    _put(bench, "a", 10)
    (id,) = _put(bench, "b")
    while (job := bench.start(worker, 1, fair=True)[0]).tenant != "b":
        bench.end(worker, ended(job, Event.complete))
    bench.end(worker, ended(job, Event.fail, delay=SECOND))
    bench.pass_time(2 * SECOND)

    assert id in [one.id for one in _singly(bench, worker, 2)]


def a_queue_that_is_not_fair_is_first_in_first_out_for_all_tenants(bench: Bench) -> None:
    worker = bench.worker()
    ids = bench.put_all([new_job(tenant=tenant) for tenant in "aaabbcab"])

    assert [bench.claim_one(worker).id for _ in ids] == ids


# Fair or not, from one moment to the next


def a_backlog_from_before_a_queue_was_fair_is_one_tenant(bench: Bench) -> None:
    bench.declare(queues=[QueuePolicy("default")])
    old = bench.put_all([new_job(tenant=tenant) for tenant in "abcabcabc"])
    worker = _fair(bench)
    new = _put(bench, "d", 3)

    jobs = _singly(bench, worker, 12)

    assert len(jobs) == 12
    assert [job.id for job in jobs if job.id in old] == old
    assert {job.id for job in jobs[:6]} >= set(new)


def a_queue_that_is_fair_no_more_forgets_nobody(bench: Bench) -> None:
    _fair(bench)
    ids = _put(bench, "a", 3) + _put(bench, "b", 2)
    bench.declare(queues=[QueuePolicy("default")])
    bench.sweep()

    assert sorted(bench.start_ids(bench.worker())) == ids


def jobs_of_who_did_not_know_that_a_queue_is_fair_have_their_turn_after_a_sweep(bench: Bench) -> None:
    worker = _fair(bench, LimitPolicy("tenant:default", max_running=2))
    flood = bench.put_many(6, tenant="a")
    other = bench.put(tenant="b")
    plain = bench.put()

    bench.sweep()

    started = [job.id for job in bench.start(worker, 10, fair=True)]
    assert sorted(started) == sorted([*flood[:2], other, plain])


def many_jobs_of_who_did_not_know_are_moved_at_once(bench: Bench) -> None:
    _fair(bench)
    bench.put()
    bench.put_many(700, tenant="a")
    bench.put_many(200, tenant="b")

    bench.sweep()

    assert [(one.tenant, one.ready) for one in bench.store.control.waits()] == [("a", 700), ("b", 200)]


def a_job_that_came_into_its_turn_late_stays_in_it(bench: Bench) -> None:
    worker = _fair(bench, LimitPolicy("tenant:default", max_running=1))
    first, second = bench.put_many(2, tenant="a")
    bench.sweep()
    (claimed,) = bench.start(worker, 10, fair=True)

    bench.end(worker, ended(claimed, Event.snooze, delay=MINUTE))
    bench.clock.advance(2 * MINUTE)
    bench.store.upkeep.promote()

    assert claimed.id == first
    assert [job.id for job in bench.start(worker, 10, fair=True)] == [second]


def a_redriven_job_counts_with_its_tenant_where_the_queue_has_become_fair(bench: Bench) -> None:
    ids = bench.put_many(3, tenant="a")
    old = bench.worker()
    for _ in ids:
        bench.work(old, Event.bury)
    worker = _fair(bench, LimitPolicy("tenant:default", max_running=2))

    bench.store.operator.redrive(ids, "ann", "again")

    assert len(bench.start(worker, 10, fair=True)) == 2
    assert bench.start(worker, 10, fair=True) == []


# What waits


def the_wait_of_each_tenant_is_measured(bench: Bench) -> None:
    _fair(bench)
    _put(bench, "a", 1, priority=900)
    bench.clock.advance(MINUTE)
    _put(bench, "a", 2)
    _put(bench, "b", 1)
    bench.put()
    bench.put(tenant="c", fair=True, delay=MINUTE)
    bench.put(queue="other", tenant="a")
    bench.clock.advance(SECOND)

    waits = [(one.queue, one.tenant, one.ready, one.oldest) for one in bench.store.control.waits()]

    assert waits == [("default", "a", 3, MINUTE + SECOND), ("default", "b", 1, SECOND)]
    assert [one.tenant for one in bench.store.control.waits("b")] == ["b"]
    assert bench.store.control.waits("nobody") == []
    assert len(bench.store.control.waits(most=1)) == 1


def a_tenant_whose_jobs_have_started_waits_no_more(bench: Bench) -> None:
    worker = _fair(bench)
    _put(bench, "a", 2)
    _put(bench, "b", 1)
    bench.start(worker, 2, fair=True)

    assert [(one.tenant, one.ready) for one in bench.store.control.waits()] == [("a", 1)]


# Bounds of tenants


def a_tenant_runs_no_more_than_its_limit_allows(bench: Bench) -> None:
    worker = _fair(bench, LimitPolicy("tenant:default", max_running=2))
    a, b = _put(bench, "a", 5), _put(bench, "b", 1)

    claimed = bench.start(worker, 10, fair=True)

    assert sorted(job.id for job in claimed) == sorted(a[:2] + b)
    assert bench.states(a[2:]) == [State.ready] * 3
    assert bench.start_ids(bench.worker(), fair=True) == []
    first = next(job for job in claimed if job.id == a[0])
    assert bench.start_ids(worker, ends=[ended(first, Event.complete)], fair=True) == a[2:3]


def a_tenant_with_room_is_found_behind_many_that_have_none(bench: Bench) -> None:
    worker = _fair(bench, LimitPolicy("tenant:default", max_running=1))
    for number in range(30):
        _put(bench, f"tenant {number}", 3)
    running: list[ClaimedJob] = []
    while started := bench.start(worker, 1, fair=True):
        running += started
    assert len(running) == 30

    # The last one served first: the others are all before it, and full.
    for job in reversed(running):
        (next_one,) = bench.start(worker, 1, ends=[ended(job, Event.complete)], fair=True)
        assert next_one.tenant == job.tenant


def a_chain_takes_no_more_of_a_tenant_than_its_limit_allows(bench: Bench) -> None:
    worker = _fair(bench, LimitPolicy("tenant:default", max_running=1))
    for tenant in "ab":
        bench.put_many(3, tenant=tenant, fair=True, ordering_key="k")

    claimed = bench.start(worker, 10, fair=True, chain=3)

    assert sorted(job.tenant for job in claimed) == ["a", "b"]
    assert [bench.running(f"tenant:default={tenant}") for tenant in "ab"] == [1, 1]


def a_chain_starts_no_more_of_a_tenant_than_its_rate_allows(bench: Bench) -> None:
    worker = _fair(bench, LimitPolicy("tenant:default", rate=Rate(60.0)))
    ids = bench.put_many(3, tenant="a", fair=True, ordering_key="k")

    assert bench.start_ids(worker, fair=True, chain=3) == ids[:1]


def the_limit_of_a_tenant_is_given_back_by_the_dead(bench: Bench) -> None:
    worker = _fair(bench, LimitPolicy("tenant:default", max_running=1))
    ids = _put(bench, "a", 2)
    bench.start(worker, 10, fair=True)
    bench.reap(worker)

    assert bench.start_ids(bench.worker(), fair=True) == ids[1:]


def a_tenant_starts_no_more_than_its_rate_allows(bench: Bench) -> None:
    worker = _fair(bench, LimitPolicy("tenant:default", rate=Rate(10)))
    a, b = _put(bench, "a", 2), _put(bench, "b", 2)

    assert sorted(bench.start_ids(worker, fair=True)) == sorted([a[0], b[0]])
    assert bench.start_ids(worker, fair=True) == []
    bench.pass_time(11 * SECOND)
    assert sorted(bench.start_ids(worker, fair=True)) == sorted([a[1], b[1]])


def a_plan_bounds_one_tenant(bench: Bench) -> None:
    worker = _fair(bench, LimitPolicy("tenant:default", max_running=1))
    plan = TenantPlan("a", max_running=3)
    bench.store.control.set_plan(plan, "ann", "sold")
    a, b = _put(bench, "a", 5), _put(bench, "b", 5)

    assert bench.store.control.plans() == [plan]
    assert sorted(bench.start_ids(worker, fair=True)) == sorted(a[:3] + b[:1])


def a_changed_plan_holds_from_then_on(bench: Bench) -> None:
    worker = _fair(bench)
    bench.store.control.set_plan(TenantPlan("a", max_running=1), "ann", "trial")
    a = _put(bench, "a", 5)
    assert bench.start_ids(worker, fair=True) == a[:1]

    bench.store.control.set_plan(TenantPlan("a", max_running=3), "ann", "sold")

    assert bench.start_ids(worker, fair=True) == a[1:3]
    assert [plan.max_running for plan in bench.store.control.plans()] == [3]


def a_plan_counts_in_each_queue_by_itself(bench: Bench) -> None:
    other = QueuePolicy("other", fair=True)
    bench.declare(queues=[FAIR, other])
    bench.store.control.set_plan(TenantPlan("a", max_running=1), "ann", "trial")
    worker = bench.worker()
    here = _put(bench, "a", 2)
    there = bench.put_many(2, tenant="a", fair=True, queue="other")

    claimed = bench.start_ids(worker, queues=("default", "other"), fair=True)

    assert claimed == [here[0], there[0]]


def tenants_are_served_by_their_weight(bench: Bench) -> None:
    worker = _fair(bench)
    bench.store.control.set_plan(TenantPlan("a", weight=3), "ann", "sold")
    for tenant in "ab":
        _put(bench, tenant, 60)

    assert 28 <= _tenants(_singly(bench, worker, 40)).count("a") <= 33


def tenants_are_served_by_their_weight_in_claims_of_many(bench: Bench) -> None:
    worker = _fair(bench)
    bench.store.control.set_plan(TenantPlan("a", weight=3), "ann", "sold")
    for tenant in "ab":
        _put(bench, tenant, 100)
    served: Counter[str] = Counter()
    for _ in range(12):
        jobs = bench.start(worker, 8, fair=True)
        served.update(job.tenant for job in jobs)
        bench.end(worker, *(ended(job, Event.complete) for job in jobs))

    assert 62 <= served["a"] <= 84, served


def reserved_slots_are_for_tenants_of_which_nothing_runs(bench: Bench) -> None:
    worker = _fair(bench)
    a = _put(bench, "a", 10)
    assert bench.start_ids(worker, 1, fair=True) == a[:1]

    assert bench.start_ids(worker, 3, fair=True, reserved=1) == a[1:3]

    (b,) = _put(bench, "b", 1)
    assert bench.start_ids(worker, 1, fair=True, reserved=1) == [b]
    assert bench.start_ids(worker, 1, fair=True, reserved=1) == []
    assert bench.start_ids(worker, 1, fair=True) == a[3:4]


# Age


def the_oldest_is_served_beside_a_stream_of_urgent_ones(bench: Bench) -> None:
    worker = bench.worker()
    old = bench.put(priority=100)
    for _ in range(16):
        bench.put_many(2, priority=1)
        job = bench.claim_one(worker)
        bench.end(worker, ended(job, Event.complete))

    assert bench.state(old) is State.completed


def the_oldest_is_served_with_each_batch(bench: Bench) -> None:
    worker = bench.worker()
    old = bench.put_many(3, priority=100)
    bench.put_many(100, priority=1)
    claimed = [job for _ in range(3) for job in bench.claim(worker, 16)]

    assert {job.id for job in claimed} >= set(old)
    assert sum(job.priority == 1 for job in claimed) >= 40


def the_oldest_is_served_where_less_may_run_than_is_asked_for(bench: Bench) -> None:
    bench.declare(LimitPolicy("queue:default", max_running=1))
    worker = bench.worker()
    old = bench.put(priority=100)
    for _ in range(16):
        bench.put_many(2, priority=1)
        (job,) = bench.start(worker, 10)
        bench.end(worker, ended(job, Event.complete))

    assert bench.state(old) is State.completed


def the_oldest_of_a_tenant_is_served_beside_its_urgent_ones(bench: Bench) -> None:
    worker = _fair(bench)
    (old,) = _put(bench, "a")
    _put(bench, "a", 50, priority=1)
    _put(bench, "b", 50, priority=1)

    jobs = _singly(bench, worker, 40)

    assert old in [job.id for job in jobs]
    assert _tenants(jobs).count("b") == 20


def most_go_by_priority(bench: Bench) -> None:
    worker = bench.worker()
    bench.put_many(40, priority=100)
    bench.put_many(40, priority=1)

    claimed = [bench.claim_one(worker) for _ in range(32)]

    assert sum(job.priority == 1 for job in claimed) >= 28
