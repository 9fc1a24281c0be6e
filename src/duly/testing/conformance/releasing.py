"""Cases: what becomes of a limit when its holder ends, is lost or gives up, and when the limit itself changes."""

from duly.core.control import LimitPolicy, TaskLimit
from duly.core.job import ClaimedJob, JobId
from duly.core.lifecycle import Event, State
from duly.core.registration import QueuePolicy, Registration

from .bench import HOUR, MINUTE, Bench, ended, new_job, unique
from .expect import raises

OK = LimitPolicy("task:ok", max_running=2)
OF_OK = TaskLimit("ok", "task:ok")
PER_CUSTOMER = LimitPolicy("task:ok#customer", max_running=1)
OF_CUSTOMER = TaskLimit("ok", "task:ok#customer", "customer")
STRIPE = LimitPolicy("resource:stripe", max_running=1)


def _two_of_ok(bench: Bench) -> None:
    bench.declare(OK, takes=[OF_OK])


def _one_of_ok(bench: Bench) -> None:
    bench.declare(LimitPolicy("task:ok", max_running=1), takes=[OF_OK])


def _gives_back(bench: Bench, job: ClaimedJob, ids: list[JobId], *, redo: bool = False) -> None:
    """Whatever became of `job`: nothing is held, and one more may start."""
    assert bench.running("task:ok") == 0, "a job that does not run holds its limit"
    other = bench.worker()
    started = bench.start(other, 10) or bench.start(other, 10, suspects=True)
    assert [one.id for one in started] == ([job.id] if redo else ids[1:2])


def every_end_gives_a_limit_back(bench: Bench) -> None:
    _one_of_ok(bench)
    worker = bench.worker()
    for event in (Event.complete, Event.fail, Event.snooze, Event.skip, Event.bury, Event.cancel):
        ids = bench.put_many(2)
        (job,) = bench.start(worker, 10)
        assert job.id == ids[0]

        (second,) = bench.start(worker, 10, ends=[ended(job, event, delay=HOUR)])

        assert second.id == ids[1], f"after {event}"
        bench.end(worker, ended(second, Event.complete))
        assert bench.running("task:ok") == 0


def an_interrupted_job_gives_its_limit_back(bench: Bench) -> None:
    _one_of_ok(bench)
    worker, ids = bench.worker(), bench.put_many(2)
    (job,) = bench.start(worker, 10)
    bench.start(worker, 10)
    bench.end(worker, ended(job, Event.interrupt))

    assert bench.running("task:ok") == 0
    (again,) = bench.start_ids(worker)
    assert again in ids


def a_reaped_worker_gives_its_limits_back(bench: Bench) -> None:
    _one_of_ok(bench)
    worker, ids = bench.worker(), bench.put_many(2)
    (job,) = bench.start(worker, 10)
    bench.start(bench.worker(), 10)
    bench.reap(worker)

    _gives_back(bench, job, ids)


def a_child_that_died_gives_its_limits_back(bench: Bench) -> None:
    _one_of_ok(bench)
    worker, ids = bench.worker(), bench.put_many(2)
    (job,) = bench.start(worker, 10)
    bench.start(bench.worker(), 10)
    bench.store.leases.disown(worker, [(job.id, job.run)], "killed", 3)

    _gives_back(bench, job, ids)


def a_poisonous_job_gives_its_limit_back(bench: Bench) -> None:
    _one_of_ok(bench)
    worker, ids = bench.worker(), bench.put_many(2)
    (job,) = bench.start(worker, 10)
    bench.start(bench.worker(), 10)
    bench.store.leases.disown(worker, [(job.id, job.run)], "killed", 1)

    _gives_back(bench, job, ids)


def a_worker_that_retires_gives_its_limits_back(bench: Bench) -> None:
    _one_of_ok(bench)
    worker, ids = bench.worker(), bench.put_many(1)
    (job,) = bench.start(worker, 10)
    bench.store.leases.retire(worker)

    _gives_back(bench, job, ids, redo=True)


def a_sweep_gives_back_the_limits_of_a_worker_whose_row_is_gone(bench: Bench) -> None:
    _one_of_ok(bench)
    worker, ids = bench.worker(), bench.put_many(2)
    (job,) = bench.start(worker, 10)
    bench.start(bench.worker(), 10)
    bench.database.forget_worker(worker)
    bench.sweep()

    _gives_back(bench, job, ids)


def a_sweep_gives_back_the_limits_of_a_job_past_its_deadline(bench: Bench) -> None:
    _one_of_ok(bench)
    worker, ids = bench.worker(timeout=MINUTE), bench.put_many(2)
    (job,) = bench.start(worker, 10)
    bench.start(worker, 10)
    bench.sweep()

    _gives_back(bench, job, ids)


def a_granted_cancel_gives_a_limit_back(bench: Bench) -> None:
    _one_of_ok(bench)
    worker, ids = bench.worker(), bench.put_many(2)
    (job,) = bench.start(worker, 10)
    bench.start(worker, 10)
    bench.store.operator.cancel([job.id], "ann", "not needed")
    bench.end(worker, ended(job, Event.fail))

    _gives_back(bench, job, ids)


def a_hold_of_nobody_is_swept_away(bench: Bench) -> None:
    _one_of_ok(bench)
    worker, id = bench.worker(), bench.put()
    bench.database.leak_hold("task:ok", JobId(4_000_000_000))
    bench.start(worker, 10)
    bench.sweep()

    assert bench.start_ids(worker) == [id] or bench.states([id]) == [State.running]
    assert bench.running("task:ok") == 1


def a_hold_left_of_an_earlier_attempt_keeps_no_job_from_starting(bench: Bench) -> None:
    limits = ("task:ok", "queue:default", "tenant:default=acme")
    bench.declare(
        LimitPolicy("task:ok", max_running=2),
        LimitPolicy("queue:default", max_running=2),
        LimitPolicy("tenant:default", max_running=2),
        takes=[OF_OK],
        queues=[QueuePolicy("default", fair=True)],
    )
    worker, id = bench.worker(), bench.put(tenant="acme", fair=True)
    for limit in limits:
        bench.database.leak_hold(limit, id)

    (job,) = bench.start(worker, 10, fair=True)
    bench.sweep()

    assert (job.id, [bench.running(limit) for limit in limits]) == (id, [1, 1, 1])
    bench.end(worker, ended(job, Event.complete))
    assert [bench.running(limit) for limit in limits] == [0, 0, 0]


def a_completion_in_a_transaction_gives_its_limit_back_with_the_commit(bench: Bench) -> None:
    _one_of_ok(bench)
    worker, ids = bench.worker(), bench.put_many(2)
    (job,) = bench.start(worker, 10)
    bench.start(worker, 10)
    with bench.store.transaction() as connection:
        assert bench.store.complete_on(connection, worker, ended(job, Event.complete))

    assert bench.start_ids(worker) == ids[1:]
    assert bench.running("task:ok") == 1


def a_completion_that_rolls_back_keeps_its_limit(bench: Bench) -> None:
    _one_of_ok(bench)
    worker, ids = bench.worker(), bench.put_many(2)
    (job,) = bench.start(worker, 10)
    with raises(ZeroDivisionError), bench.store.transaction() as connection:
        assert bench.store.complete_on(connection, worker, ended(job, Event.complete))
        raise ZeroDivisionError

    assert bench.start_ids(worker) == []
    assert bench.running("task:ok") == 1
    assert bench.start_ids(worker, ends=[ended(job, Event.complete)]) == ids[1:]


def a_job_behind_a_limit_may_be_cancelled(bench: Bench) -> None:
    _one_of_ok(bench)
    worker, ids = bench.worker(), bench.put_many(3)
    (job,) = bench.start(worker, 10)
    bench.start(worker, 10)
    assert bench.store.operator.cancel(ids[1:2], "ann", "not needed") == {ids[1]: State.cancelled}

    assert bench.start_ids(worker, ends=[ended(job, Event.complete)]) == ids[2:]


def a_job_behind_a_limit_may_expire(bench: Bench) -> None:
    _one_of_ok(bench)
    worker = bench.worker()
    ids = bench.put_all([new_job(expires=expires) for expires in (None, MINUTE, None)])
    (job,) = bench.start(worker, 10)
    bench.start(worker, 10)
    bench.sweep()

    assert bench.states(ids) == [State.running, State.skipped, State.blocked]
    assert bench.start_ids(worker, ends=[ended(job, Event.complete)]) == ids[2:]


def an_expired_job_behind_a_limit_is_not_let_go(bench: Bench) -> None:
    _one_of_ok(bench)
    worker = bench.worker()
    ids = bench.put_all([new_job(expires=expires) for expires in (None, MINUTE, None)])
    (job,) = bench.start(worker, 10)
    bench.start(worker, 10)
    bench.clock.advance(2 * MINUTE)

    assert bench.start_ids(worker, ends=[ended(job, Event.complete)]) == ids[2:]


def a_job_behind_a_limit_may_be_replaced(bench: Bench) -> None:
    _one_of_ok(bench)
    worker, key = bench.worker(), unique(replacing=True)
    bench.put()
    second = bench.put(unique=key)
    (job,) = bench.start(worker, 10)
    bench.start(worker, 10)
    third = bench.put(unique=key)

    assert bench.state(second) is State.skipped
    assert bench.start_ids(worker, ends=[ended(job, Event.complete)]) == [third]


def a_job_behind_a_limit_of_a_paused_task_waits_for_both(bench: Bench) -> None:
    _one_of_ok(bench)
    worker, ids = bench.worker(), bench.put_many(2)
    (job,) = bench.start(worker, 10)
    bench.start(worker, 10)
    bench.store.operator.pause("task:ok", None, "ann", "incident")

    assert bench.start_ids(worker, ends=[ended(job, Event.complete)]) == []
    bench.store.operator.resume("task:ok", "ann", "over")
    bench.sweep()
    assert bench.start_ids(worker) == ids[1:]


def a_free_limit_is_not_lost_on_a_job_that_may_not_run(bench: Bench) -> None:
    bench.declare(STRIPE, takes=[TaskLimit(task, STRIPE.name) for task in ("charge", "refund")])
    worker = bench.worker("charge", "refund")
    ids = bench.put_all([new_job(task) for task in ("refund", "charge", "refund")])
    (job,) = bench.start(worker, 10)
    bench.start(worker, 10)
    bench.store.operator.pause("task:charge", None, "ann", "incident")

    assert bench.start_ids(worker, ends=[ended(job, Event.complete)]) == ids[2:]


def a_free_limit_is_not_lost_on_a_queue_that_nobody_serves(bench: Bench) -> None:
    _one_of_ok(bench)
    one, other = bench.worker(), bench.worker()
    ids = bench.put_all([new_job(queue=queue) for queue in ("a", "b", "a")])
    (job,) = bench.start(one, 10, queues=("a",))
    bench.start(other, 10, queues=("b",))
    bench.start(one, 10, queues=("a",))
    assert bench.states(ids[1:]) == [State.blocked] * 2
    bench.end(one, ended(job, Event.complete))
    bench.sweep()

    assert bench.start_ids(one, queues=("a",)) == ids[2:]


# Changed while jobs run and wait


def a_limit_declared_later_holds_for_jobs_already_queued(bench: Bench) -> None:
    worker, ids = bench.worker(), bench.put_many(5)
    _two_of_ok(bench)

    assert bench.start_ids(worker) == ids[:2]


def a_raised_limit_lets_more_go(bench: Bench) -> None:
    _two_of_ok(bench)
    worker, ids = bench.worker(), bench.put_many(6)
    bench.start(worker, 10)
    bench.start(worker, 10)
    bench.declare(LimitPolicy("task:ok", max_running=5), takes=[OF_OK])
    bench.sweep()

    assert bench.start_ids(worker) == ids[2:5]


def a_lowered_limit_stops_nobody_and_starts_nobody(bench: Bench) -> None:
    bench.declare(LimitPolicy("task:ok", max_running=3), takes=[OF_OK])
    worker, ids = bench.worker(), bench.put_many(6)
    jobs = bench.start(worker, 10)
    _one_of_ok(bench)

    assert bench.start_ids(worker) == []
    assert bench.start_ids(worker, ends=[ended(jobs[0], Event.complete)]) == []
    assert bench.start_ids(worker, ends=[ended(jobs[1], Event.complete)]) == []
    assert bench.start_ids(worker, ends=[ended(jobs[2], Event.complete)]) == ids[3:4]


def a_limit_that_is_declared_no_more_binds_nobody(bench: Bench) -> None:
    _one_of_ok(bench)
    worker, ids = bench.worker(), bench.put_many(4)
    bench.start(worker, 10)
    bench.start(worker, 10)
    bench.declare()
    bench.sweep()

    assert bench.start_ids(worker) == ids[1:]


def limits_of_another_app_stay(bench: Bench) -> None:
    other = Registration("other app", "1", limits=(OK,), task_limits=(OF_OK,))
    assert bench.store.schema.declare(other)
    bench.declare(STRIPE, takes=[TaskLimit("charge", STRIPE.name)])
    bench.declare()

    ids = bench.put_many(3)

    assert bench.start_ids(bench.worker()) == ids[:2]


def limits_are_told_with_what_holds_them_and_what_waits(bench: Bench) -> None:
    bench.declare(OK, STRIPE, takes=[OF_OK])
    worker = bench.worker()
    bench.put_many(6)
    bench.start(worker, 10)
    bench.start(worker, 10)

    record = bench.limit("task:ok")

    assert record is not None
    assert (record.max_running, record.rate, record.running, record.waiting) == (2, None, 2, 4)
    assert (record.next_at, record.held_until, record.breaker, record.override) == (None, None, None, None)
    assert {"task:ok", "resource:stripe"} <= {one.name for one in bench.store.control.limits()}
