"""Cases: locks and permits taken outside a claim, and overrides: what a person changes for a while."""

from duly.core.control import BreakerPolicy, LimitPolicy, Override, Permit, Rate, Refusal, TaskLimit
from duly.core.errors import LeaseLost
from duly.core.job import ClaimedJob, Incarnation, Token
from duly.core.lifecycle import Event, State
from duly.core.registration import QueuePolicy
from duly.testing.clock import NOON

from .bench import HOUR, MINUTE, SECOND, Bench, ended, new_job
from .expect import raises

LOCK = ("lock:report",)
API = "resource:api"
OF_API = TaskLimit("ok", API)


def _got(answer: Permit | Refusal) -> Permit:
    assert isinstance(answer, Permit), f"refused by {answer.name}"
    return answer


def _refused(answer: Permit | Refusal, by: str) -> Refusal:
    assert isinstance(answer, Refusal), "granted"
    assert answer.name == by
    return answer


def _take(bench: Bench, *names: str) -> Permit | Refusal:
    return bench.store.control.acquire(names, None, MINUTE)


def _token(worker: Incarnation, job: ClaimedJob) -> Token:
    return Token(worker, job.id, job.run)


def _api(bench: Bench, most: int = 1) -> None:
    bench.declare(LimitPolicy(API, max_running=most), takes=[OF_API])


# Locks


def a_lock_is_held_by_one(bench: Bench) -> None:
    permit = _got(_take(bench, *LOCK))

    _refused(_take(bench, *LOCK), "lock:report")
    assert (permit.names, permit.incarnation, permit.until) == (LOCK, 0, NOON + MINUTE)
    _got(_take(bench, "lock:other"))
    assert bench.store.control.release(permit)
    _got(_take(bench, *LOCK))


def a_lock_is_given_back_once_and_by_its_holder_only(bench: Bench) -> None:
    control = bench.store.control
    first = _got(_take(bench, *LOCK))
    assert control.release(first)
    assert not control.release(first)
    second = _got(_take(bench, *LOCK))

    assert not control.release(first)

    _refused(_take(bench, *LOCK), "lock:report")
    assert control.release(second)


def a_lock_runs_out_after_its_time(bench: Bench) -> None:
    first = _got(_take(bench, *LOCK))
    bench.clock.advance(59 * SECOND)
    _refused(_take(bench, *LOCK), "lock:report")
    bench.clock.advance(2 * SECOND)

    second = _got(_take(bench, *LOCK))

    assert not bench.store.control.release(first)
    _refused(_take(bench, *LOCK), "lock:report")
    assert bench.store.control.release(second)


def a_lock_that_ran_out_cannot_be_given_back(bench: Bench) -> None:
    permit = _got(_take(bench, *LOCK))
    bench.sweep()

    assert not bench.store.control.release(permit)
    assert bench.running(LOCK[0]) == 0


def the_lock_of_a_job_ends_with_its_attempt(bench: Bench) -> None:
    worker = bench.worker()
    control = bench.store.control
    for event in (Event.complete, Event.fail, Event.snooze):
        bench.put()
        (job,) = bench.start(worker)
        permit = _got(control.acquire(LOCK, _token(worker, job), None))
        assert (permit.id, permit.incarnation, permit.until) == (job.id, worker, None)
        bench.clock.advance(HOUR)
        _refused(_take(bench, *LOCK), "lock:report")

        bench.end(worker, ended(job, event))

        other = _got(_take(bench, *LOCK))
        assert not control.release(permit)
        assert control.release(other)


def the_lock_of_a_job_ends_when_its_worker_is_lost(bench: Bench) -> None:
    worker = bench.worker()
    bench.put()
    (job,) = bench.start(worker)
    _got(bench.store.control.acquire(LOCK, _token(worker, job), None))

    bench.reap(worker)

    _got(_take(bench, *LOCK))


def a_job_that_is_not_held_gets_no_lock(bench: Bench) -> None:
    worker = bench.worker()
    bench.put()
    (job,) = bench.start(worker)
    bench.end(worker, ended(job, Event.interrupt))

    with raises(LeaseLost):
        bench.store.control.acquire(LOCK, _token(worker, job), None)

    _got(_take(bench, *LOCK))


def a_job_does_not_get_its_own_lock_twice(bench: Bench) -> None:
    worker = bench.worker()
    bench.put()
    (job,) = bench.start(worker)
    permit = _got(bench.store.control.acquire(LOCK, _token(worker, job), None))

    _refused(bench.store.control.acquire(LOCK, _token(worker, job), None), "lock:report")

    assert bench.store.control.release(permit)
    _got(bench.store.control.acquire(LOCK, _token(worker, job), None))


# Permits of limits


def a_permit_counts_like_a_job(bench: Bench) -> None:
    _api(bench)
    worker, id = bench.worker(), bench.put()
    permit = _got(_take(bench, API))

    assert bench.start_ids(worker) == []
    assert bench.running(API) == 1
    assert bench.row(id).waits_for == API
    assert bench.store.control.release(permit)
    assert bench.start_ids(worker) == [id]
    _refused(_take(bench, API), API)


def a_permit_that_ran_out_lets_jobs_go(bench: Bench) -> None:
    _api(bench)
    worker, id = bench.worker(), bench.put()
    _got(_take(bench, API))
    assert bench.start_ids(worker) == []
    bench.sweep()

    assert bench.start_ids(worker) == [id]


def several_permits_are_taken_all_or_none(bench: Bench) -> None:
    _api(bench)
    permit = _got(_take(bench, "lock:a"))

    _refused(_take(bench, "lock:a", API), "lock:a")

    assert bench.running(API) == 0
    assert bench.store.control.release(permit)
    both = _got(_take(bench, "lock:a", API))
    assert set(both.names) == {"lock:a", API}
    _refused(_take(bench, API), API)
    assert bench.store.control.release(both)
    _got(_take(bench, API))
    _got(_take(bench, "lock:a"))


def a_permit_waits_for_a_rate_and_a_hold(bench: Bench) -> None:
    bench.declare(LimitPolicy(API, rate=Rate(10)), LimitPolicy("resource:held"))
    _got(_take(bench, API))
    bench.clock.advance(4 * SECOND)

    assert _refused(_take(bench, API), API).wait == 6 * SECOND

    bench.store.control.hold("resource:held", MINUTE, "ann", "429")
    assert _refused(_take(bench, "resource:held"), "resource:held").wait == MINUTE
    bench.clock.advance(7 * SECOND)
    _got(_take(bench, API))


def a_resource_that_is_closed_by_hand_gives_no_permit_and_names_no_time(bench: Bench) -> None:
    bench.declare(LimitPolicy(API, breaker=BreakerPolicy()), takes=[OF_API])
    assert bench.store.control.set_breaker(API, "open", "ann", "the other side asked for it")

    assert _refused(_take(bench, API), API).wait is None


def a_permit_of_what_is_not_bounded_is_granted(bench: Bench) -> None:
    permits = [_got(_take(bench, "resource:free")) for _ in range(3)]

    assert all(bench.store.control.release(permit) for permit in permits)


def a_job_that_has_a_limit_already_takes_nothing_more(bench: Bench) -> None:
    _api(bench)
    worker = bench.worker()
    bench.put_many(2)
    (job,) = bench.start(worker, 10)

    permit = _got(bench.store.control.acquire([API], _token(worker, job), None))

    assert permit.names == ()
    bench.store.control.release(permit)
    assert bench.running(API) == 1
    assert bench.start_ids(worker) == []


# Overrides


def _override(bench: Bench, target: str, **value: object) -> Override:
    return bench.store.control.override(target, "limit", value, None, "ann", "incident")


def an_override_takes_the_place_of_what_is_declared(bench: Bench) -> None:
    _api(bench, most=3)
    worker, ids = bench.worker(), bench.put_many(5)

    override = _override(bench, API, max_running=1)

    assert bench.start_ids(worker) == ids[:1]
    assert [
        (one.id, one.target, one.kind, one.by, one.reason) for one in bench.store.control.overrides()
    ] == [(override.id, API, "limit", "ann", "incident")]
    record = bench.limit(API)
    assert record is not None
    assert (record.max_running, record.override) == (1, override.id)


def a_lifted_override_lets_jobs_go(bench: Bench) -> None:
    _api(bench, most=3)
    worker, ids = bench.worker(), bench.put_many(5)
    override = _override(bench, API, max_running=1)
    bench.start(worker, 10)
    bench.start(worker, 10)

    assert bench.store.control.lift(override.id, "ann", "over")

    assert bench.start_ids(worker) == ids[1:3]
    assert not bench.store.control.lift(override.id, "ann", "again")
    assert bench.store.control.overrides() == []


def an_override_ends_by_itself(bench: Bench) -> None:
    _api(bench, most=3)
    worker, ids = bench.worker(), bench.put_many(5)
    override = bench.store.control.override(API, "limit", {"max_running": 0}, MINUTE, "ann", "incident")
    assert override.until == NOON + MINUTE
    assert bench.start_ids(worker) == []
    bench.sweep()

    assert bench.start_ids(worker) == ids[:3]
    assert bench.store.control.overrides() == []


def the_newest_override_counts(bench: Bench) -> None:
    _api(bench, most=3)
    worker, ids = bench.worker(), bench.put_many(9)
    _override(bench, API, max_running=1)
    newer = _override(bench, API, max_running=2)

    assert bench.start_ids(worker) == ids[:2]
    assert bench.store.control.lift(newer.id, "ann", "over")
    assert bench.start_ids(worker) == []


def an_override_may_bound_what_nobody_declared(bench: Bench) -> None:
    worker, ids = bench.worker(), bench.put_many(3)
    override = _override(bench, "queue:default", max_running=1)

    assert bench.start_ids(worker) == ids[:1]
    bench.store.control.lift(override.id, "ann", "over")
    assert bench.start_ids(worker) == ids[1:]


def an_override_may_slow_what_has_no_rate(bench: Bench) -> None:
    _api(bench, most=5)
    worker, ids = bench.worker(), bench.put_many(3)
    _override(bench, API, interval=10.0, burst=1)

    assert bench.start_ids(worker) == ids[:1]
    bench.pass_time(11 * SECOND)
    assert bench.start_ids(worker) == ids[1:2]


def an_override_outlives_what_it_lies_over(bench: Bench) -> None:
    bench.declare(LimitPolicy("queue:default", max_running=5), queues=[QueuePolicy("default")])
    override = bench.store.control.override("queue:default", "limit", {"max_running": 1}, None, "ann", "x")
    bench.declare(queues=[QueuePolicy("default")])
    worker, ids = bench.worker(), bench.put_many(3)

    assert bench.start_ids(worker) == ids[:1]
    bench.sweep()
    assert bench.start_ids(worker) == []
    assert bench.store.control.lift(override.id, "ann", "enough")
    bench.sweep()
    assert bench.start_ids(worker) == ids[1:]


def an_override_of_one_value_leaves_the_others(bench: Bench) -> None:
    name = "task:ok#customer"
    bench.declare(LimitPolicy(name, max_running=2), takes=[TaskLimit("ok", name, "customer")])
    worker = bench.worker()
    ids = bench.put_all([new_job(args=b'{"customer":%d}' % customer) for customer in (7, 7, 8, 8)])
    _override(bench, f"{name}=7", max_running=1)

    assert bench.start_ids(worker) == [ids[0], ids[2], ids[3]]


def blocked_arguments_do_not_start(bench: Bench) -> None:
    worker = bench.worker()
    ids = bench.put_all([new_job(args=b'{"customer_id":%d}' % customer) for customer in (7, 8, 7)])
    where = {"where": "args.customer_id = 7"}

    block = bench.store.control.override("queue:default", "block", where, None, "ann", "poisonous")

    assert bench.start_ids(worker) == ids[1:2]
    row = bench.row(ids[0])
    assert (row.state, row.waits_for, row.run) == (State.blocked, f"block:{block.id}", 0)
    assert bench.store.control.lift(block.id, "ann", "fixed")
    assert bench.start_ids(worker) == [ids[0], ids[2]]


def a_block_ends_by_itself(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put(args=b'{"customer_id":7}')
    where = {"where": "args.customer_id = 7"}
    bench.store.control.override("queue:default", "block", where, MINUTE, "ann", "poisonous")
    assert bench.start_ids(worker) == []
    bench.sweep()

    assert bench.start_ids(worker) == [id]


def a_block_stops_no_other_queue(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put(args=b'{"customer_id":7}', queue="other")
    where = {"where": "args.customer_id = 7"}
    bench.store.control.override("queue:default", "block", where, None, "ann", "poisonous")

    assert bench.start_ids(worker, queues=("other",)) == [id]


def a_blocked_head_holds_its_key(bench: Bench) -> None:
    worker = bench.worker()
    ids = bench.put_all(
        [new_job(args=b'{"customer_id":%d}' % customer, ordering_key="a") for customer in (7, 8)]
    )
    where = {"where": "args.customer_id = 7"}
    block = bench.store.control.override("queue:default", "block", where, None, "ann", "poisonous")

    assert bench.start_ids(worker) == []
    assert bench.store.control.lift(block.id, "ann", "fixed")
    assert bench.start_ids(worker) == ids[:1]
