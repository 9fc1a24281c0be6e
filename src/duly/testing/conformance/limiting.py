"""Cases: how many jobs may run at once: per queue, task, argument and resource; who waits, and in which order."""

from duly.core.control import LimitPolicy, TaskLimit
from duly.core.job import ClaimedJob, Counters, Incarnation, JobId
from duly.core.lifecycle import Event, State

from .bench import SECOND, Bench, ended, new_job

OK = LimitPolicy("task:ok", max_running=2)
OF_OK = TaskLimit("ok", "task:ok")
PER_CUSTOMER = LimitPolicy("task:ok#customer", max_running=1)
OF_CUSTOMER = TaskLimit("ok", "task:ok#customer", "customer")
STRIPE = LimitPolicy("resource:stripe", max_running=1)


def _two_of_ok(bench: Bench) -> None:
    bench.declare(OK, takes=[OF_OK])


def _one_of_ok(bench: Bench) -> None:
    bench.declare(LimitPolicy("task:ok", max_running=1), takes=[OF_OK])


def _two_resources(bench: Bench) -> None:
    """Tasks that take a, b, or both; each lets one run."""
    policies = [LimitPolicy(f"resource:{name}", max_running=1) for name in "ab"]
    takes = [TaskLimit(task, f"resource:{name}") for task, names in WANTS.items() for name in names]
    bench.declare(*policies, takes=takes)


WANTS = {"a": "a", "b": "b", "both": "ab"}


# Per task, per argument, per resource, per queue


def no_more_of_a_task_run_than_its_limit_allows(bench: Bench) -> None:
    _two_of_ok(bench)
    worker, ids = bench.worker(), bench.put_many(5)

    assert bench.start_ids(worker) == ids[:2]
    assert bench.start_ids(worker) == []
    assert bench.start_ids(bench.worker()) == []
    assert bench.states(ids) == [State.running] * 2 + [State.blocked] * 3
    assert bench.running("task:ok") == 2


def a_job_behind_a_limit_costs_no_attempt(bench: Bench) -> None:
    _one_of_ok(bench)
    worker, ids = bench.worker(), bench.put_many(2)
    (job,) = bench.start(worker, 10)
    bench.start(worker, 10)

    row = bench.row(ids[1])
    assert (row.state, row.waits_for) == (State.blocked, "task:ok")
    assert (row.run, row.counters, bench.history(ids[1])) == (0, Counters(), [])
    (second,) = bench.start(worker, 10, ends=[ended(job, Event.complete)])
    assert (second.id, second.run, bench.row(ids[1]).waits_for) == (ids[1], 1, None)


def other_tasks_pass_those_behind_a_limit(bench: Bench) -> None:
    _one_of_ok(bench)
    worker = bench.worker("ok", "other")
    limited = bench.put_many(300)
    others = bench.put_many(5, "other")

    assert bench.start_ids(worker) == [limited[0], *others]


def a_task_without_a_limit_is_bounded_by_none(bench: Bench) -> None:
    bench.declare(OK, takes=[TaskLimit("other", "task:ok")])
    ids = bench.put_many(5)

    assert bench.start_ids(bench.worker()) == ids


def a_limit_counts_through_all_queues_and_workers(bench: Bench) -> None:
    _two_of_ok(bench)
    one, other = bench.worker(), bench.worker()
    first, second, _ = bench.put_all([new_job(queue=queue) for queue in "abc"])

    assert bench.start_ids(one, queues=("a",)) == [first]
    assert bench.start_ids(other, queues=("b", "c")) == [second]
    assert bench.start_ids(one, queues=("a", "b", "c")) == []


def one_value_of_an_argument_has_a_limit_of_its_own(bench: Bench) -> None:
    bench.declare(PER_CUSTOMER, takes=[OF_CUSTOMER])
    worker = bench.worker()
    values = (b"7", b"7", b'"seven"', b"7", b"8", b'"seven"')
    ids = bench.put_all([new_job(args=b'{"customer":%b}' % value) for value in values])

    assert bench.start_ids(worker) == [ids[0], ids[2], ids[4]]
    assert bench.row(ids[1]).waits_for == "task:ok#customer=7"
    assert bench.row(ids[5]).waits_for == "task:ok#customer=seven"
    assert bench.running("task:ok#customer=8") == 1


def a_job_without_the_argument_is_not_limited_by_it(bench: Bench) -> None:
    bench.declare(PER_CUSTOMER, takes=[OF_CUSTOMER])
    ids = bench.put_all([new_job(args=args) for args in (b"{}", b'{"customer":null}', b"{}", b'{"other":7}')])

    assert bench.start_ids(bench.worker()) == ids


def an_argument_counts_per_task(bench: Bench) -> None:
    other = LimitPolicy("task:other#customer", max_running=1)
    bench.declare(PER_CUSTOMER, other, takes=[OF_CUSTOMER, TaskLimit("other", other.name, "customer")])
    worker = bench.worker("ok", "other")
    ids = bench.put_all([new_job(task, args=b'{"customer":7}') for task in ("ok", "other", "ok", "other")])

    assert bench.start_ids(worker) == ids[:2]


def tasks_share_a_resource(bench: Bench) -> None:
    bench.declare(STRIPE, takes=[TaskLimit(task, STRIPE.name) for task in ("charge", "refund")])
    worker = bench.worker("charge", "refund")
    ids = bench.put_all([new_job(task) for task in ("charge", "refund", "charge")])

    assert bench.start_ids(worker) == ids[:1]
    assert bench.row(ids[1]).waits_for == "resource:stripe"


def a_queue_runs_no_more_than_its_limit_allows(bench: Bench) -> None:
    bench.declare(LimitPolicy("queue:default", max_running=3))
    worker, ids = bench.worker(), bench.put_many(5)
    other = bench.put(queue="other")

    claimed = bench.start(worker, 10, queues=("default", "other"))

    assert [job.id for job in claimed] == [*ids[:3], other]
    assert bench.start_ids(bench.worker(), queues=("default", "other")) == []
    again = bench.start(worker, 10, ends=[ended(claimed[1], Event.complete)])
    assert [job.id for job in again] == ids[3:4]


def the_limit_of_a_queue_moves_nothing(bench: Bench) -> None:
    bench.declare(LimitPolicy("queue:default", max_running=1))
    worker, ids = bench.worker(), bench.put_many(3)
    bench.start(worker, 10)
    bench.start(worker, 10)

    assert bench.states(ids) == [State.running, State.ready, State.ready]
    bench.store.operator.reprioritise(ids[2:], 1, "ann", "urgent")
    bench.store.leases.retire(worker)
    assert bench.start_ids(bench.worker(), 1) == ids[2:]


def the_limits_of_a_queue_and_of_its_tasks_hold_together(bench: Bench) -> None:
    bench.declare(OK, LimitPolicy("queue:default", max_running=3), takes=[OF_OK])
    worker = bench.worker("ok", "other")
    ok, other = bench.put_many(4), bench.put_many(4, "other")

    assert bench.start_ids(worker) == [*ok[:2], other[0]]
    assert bench.running("queue:default") == 3


def nothing_runs_where_none_may(bench: Bench) -> None:
    bench.declare(LimitPolicy("task:ok", max_running=0), takes=[OF_OK])
    worker, id = bench.worker(), bench.put()

    assert bench.start_ids(worker) == []
    bench.declare(LimitPolicy("task:ok", max_running=1), takes=[OF_OK])
    bench.sweep()
    assert bench.start_ids(worker) == [id]


def priority_chooses_among_those_behind_a_limit(bench: Bench) -> None:
    _one_of_ok(bench)
    worker = bench.worker()
    _, second = bench.put_many(2)
    (job,) = bench.start(worker, 10)
    urgent = bench.put(priority=1)
    bench.start(worker, 10)
    assert bench.states([second, urgent]) == [State.blocked] * 2

    (job,) = bench.start(worker, 10, ends=[ended(job, Event.complete)])

    assert job.id == urgent


def those_behind_a_limit_keep_their_order(bench: Bench) -> None:
    _two_of_ok(bench)
    worker, ids = bench.worker(), bench.put_many(9)
    started = bench.start(worker, 10)
    order = [job.id for job in started]
    while started:
        ends = [ended(job, Event.complete) for job in started]
        started = bench.start(worker, 10, ends=ends)
        order += [job.id for job in started]

    assert order == ids


def a_release_lets_as_many_go_as_are_free(bench: Bench) -> None:
    _two_of_ok(bench)
    worker, other, ids = bench.worker(), bench.worker(), bench.put_many(9)
    started = bench.start(worker, 10)
    bench.start(worker, 10)

    bench.end(worker, *(ended(job, Event.complete) for job in started))

    assert bench.start_ids(other) == ids[2:4]
    assert bench.states(ids[4:]) == [State.blocked] * 5


def a_release_lets_jobs_of_other_queues_go(bench: Bench) -> None:
    _one_of_ok(bench)
    worker, other = bench.worker(), bench.worker()
    bench.put(queue="a")
    second = bench.put(queue="b")
    (job,) = bench.start(worker, 10, queues=("a",))
    assert bench.start_ids(other, queues=("b",)) == []
    bench.end(worker, ended(job, Event.complete))

    assert bench.start_ids(other, queues=("b",)) == [second]


# Several at once


def several_limits_are_taken_all_or_none(bench: Bench) -> None:
    _two_resources(bench)
    worker = bench.worker(*WANTS)
    ids = bench.put_all([new_job(task) for task in ("b", "both", "a")])

    assert bench.start_ids(worker) == [ids[0], ids[2]]
    assert bench.row(ids[1]).waits_for in {"resource:a", "resource:b"}
    assert (bench.running("resource:a"), bench.running("resource:b")) == (1, 1)


def a_job_that_holds_several_limits_keeps_others_out_of_each(bench: Bench) -> None:
    _two_resources(bench)
    worker = bench.worker(*WANTS)
    ids = bench.put_all([new_job(task) for task in ("both", "a", "b")])
    (job,) = bench.start(worker, 10)
    assert job.id == ids[0]

    claimed = bench.start(worker, 10, ends=[ended(job, Event.complete)])

    assert sorted(one.id for one in claimed) == ids[1:]


def a_job_waits_until_it_may_have_all_its_limits(bench: Bench) -> None:
    _two_resources(bench)
    worker = bench.worker(*WANTS)
    a, b, both = bench.put_all([new_job(task) for task in ("a", "b", "both")])
    first, second = bench.start(worker, 10)
    assert [first.id, second.id] == [a, b]

    assert bench.start_ids(worker, ends=[ended(first, Event.complete)]) == []
    assert bench.start_ids(worker, ends=[ended(second, Event.complete)]) == [both]


def a_job_with_two_limits_is_not_starved_by_those_with_one(bench: Bench) -> None:
    _two_resources(bench)
    worker = bench.worker(*WANTS)
    bench.put_all([new_job("a"), new_job("b")])
    running = {job.task: job for job in bench.start(worker, 10)}
    both = bench.put("both")
    bench.start(worker, 10)
    # Never are both free at once: one ends, its successor starts, then the other one ends.
    for number in range(40):
        task = "ab"[number % 2]
        bench.put(task)
        bench.pass_time(5 * SECOND)
        ends = [ended(running.pop(task), Event.complete)] if task in running else []
        started = bench.start(worker, 10, ends=ends)
        running |= {job.task: job for job in started}
        if any(job.id == both for job in started):
            return

    raise AssertionError("200 s of others went before it")


def a_job_of_a_paused_task_keeps_no_limit_from_others(bench: Bench) -> None:
    worker, running, both = _impatient(bench)
    kept, other = ("a", "b") if bench.running("resource:a") else ("b", "a")
    bench.store.operator.pause("task:both", None, "ann", "not now")

    bench.sweep()
    assert bench.start_ids(worker, ends=[ended(running[other], Event.complete)]) == []
    bench.sweep()

    assert bench.running(f"resource:{kept}") == 0
    id = bench.put(kept)
    assert bench.start_ids(worker) == [id]
    assert bench.state(both) is State.blocked


def a_job_of_a_paused_queue_keeps_no_limit_from_others(bench: Bench) -> None:
    worker, running, both = _impatient(bench, queue="late")
    kept, other = ("a", "b") if bench.running("resource:a") else ("b", "a")
    bench.store.operator.pause("queue:late", None, "ann", "not now")

    bench.start(worker, 10, queues=("default", "late"), ends=[ended(running[other], Event.complete)])
    bench.sweep()

    id = bench.put(kept)
    assert bench.start_ids(worker, queues=("default", "late")) == [id]
    assert bench.state(both) in {State.ready, State.blocked}


def _impatient(bench: Bench, queue: str = "default") -> tuple[Incarnation, dict[str, ClaimedJob], JobId]:
    """A job that has waited so long for two limits that it keeps one of them; who runs by task."""
    _two_resources(bench)
    worker, queues = bench.worker(*WANTS, queues=("default", "late")), ("default", "late")
    bench.put_all([new_job("a"), new_job("b")])
    running = {job.task: job for job in bench.start(worker, 10)}
    both = bench.put("both", queue=queue)
    assert bench.start_ids(worker, queues=queues) == []
    bench.pass_time(40 * SECOND)
    first = (bench.row(both).waits_for or "")[-1]
    assert bench.start_ids(worker, queues=queues, ends=[ended(running.pop(first), Event.complete)]) == []
    assert bench.running(f"resource:{first}") == 1
    return worker, running, both


def a_key_and_a_limit_hold_together(bench: Bench) -> None:
    _two_of_ok(bench)
    worker = bench.worker()
    keys = "aabbcc"
    ids = bench.put_all([new_job(ordering_key=key) for key in keys])

    started = bench.start(worker, 10)
    assert [job.id for job in started] == [ids[0], ids[2]]
    started += bench.start(worker, 10, ends=[ended(started[0], Event.complete)])
    assert len(started) == 3
    assert started[2].id in {ids[1], ids[4]}
    assert bench.running("task:ok") == 2


def a_chain_stops_at_a_limit(bench: Bench) -> None:
    _two_of_ok(bench)
    worker, ids = bench.worker(), bench.put_many(5, ordering_key="a")

    assert bench.start_ids(worker, chain=4) == ids[:2]
    assert bench.running("task:ok") == 2


def suspects_and_jobs_parked_as_unknown_are_limited_too(bench: Bench) -> None:
    _one_of_ok(bench)
    ignorant, worker = bench.worker("other"), bench.worker("ok", "other")
    bench.put_many(3)
    bench.start(ignorant, 10)

    parked = bench.start(worker, 10, unparked=("ok",))
    assert len(parked) == 1
    bench.store.leases.disown(worker, [(parked[0].id, 1)], "killed", 3)
    other = bench.worker("ok")
    assert len(bench.start(other, 10)) + len(bench.start(other, 10, suspects=True)) == 1
