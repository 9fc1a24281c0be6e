"""Cases: what is told of a job for whoever asks why it does not run, and of a queue for its dead-letter breaker."""

from datetime import datetime

from duly.core.control import LimitPolicy, TaskLimit
from duly.core.dead_breaker import AUTHOR
from duly.core.job import JobId
from duly.core.lifecycle import Event, State
from duly.core.registration import QueuePolicy
from duly.core.why import JobFacts

from .bench import HOUR, MINUTE, NO_SUCH_JOB, SECOND, Bench, ended, new_job


def _facts(bench: Bench, id: JobId) -> JobFacts:
    found = bench.store.inspection.facts(id)
    assert found is not None
    assert found.job == bench.row(id)
    return found


def nothing_is_told_of_a_job_that_is_not_there(bench: Bench) -> None:
    assert bench.store.inspection.facts(NO_SUCH_JOB) is None


def who_is_ahead_of_a_job_are_the_more_urgent_and_the_older_of_its_queue(bench: Bench) -> None:
    ids = bench.put_all([new_job(priority=priority) for priority in (100, 100, 1, 200)])
    bench.put(queue="other", priority=1)
    bench.put(delay=HOUR, priority=1)

    assert [_facts(bench, id).ahead for id in ids] == [1, 2, 0, 3]


def who_serves_a_queue_and_knows_a_task_is_told(bench: Bench) -> None:
    bench.worker("ok")
    bench.worker("other")
    bench.worker("ok", queues=("elsewhere",))
    away = bench.worker("ok")
    bench.store.operator.drain_worker(away, "ann", "maintenance")

    facts = _facts(bench, bench.put())

    assert (facts.serving, facts.knowing) == (2, 1)


def the_head_of_a_key_and_who_stands_before_are_told(bench: Bench) -> None:
    worker, ids = bench.worker(), bench.put_many(3, ordering_key="a")
    bench.put(ordering_key="b")
    (first,) = bench.start(worker, 1)
    assert first.id == ids[0]

    told = [_facts(bench, id) for id in ids]

    assert [(one.head, one.head_state, one.before) for one in told] == [
        (ids[0], State.running, place) for place in range(3)
    ]
    assert not any(one.key_paused for one in told)


def a_paused_key_is_told(bench: Bench) -> None:
    bench.declare(queues=[QueuePolicy("default", ordering="pause_key")])
    worker, ids = bench.worker(), bench.put_many(2, ordering_key="a")
    (first,) = bench.start(worker, 1)
    bench.end(worker, ended(first, Event.bury))
    bench.start(worker, 10)

    facts = _facts(bench, ids[1])

    assert (facts.head, facts.head_state, facts.key_paused) == (ids[0], State.dead, True)


def the_limits_of_a_job_and_who_holds_them_are_told(bench: Bench) -> None:
    per_customer = "task:ok#customer"
    bench.declare(
        LimitPolicy("task:ok", max_running=5),
        LimitPolicy(per_customer, max_running=1),
        takes=[TaskLimit("ok", "task:ok"), TaskLimit("ok", per_customer, "customer")],
    )
    worker = bench.worker()
    first, second, other = bench.put_all(
        [new_job(args=b'{"customer":%d}' % customer) for customer in (7, 7, 8)]
    )
    assert bench.start_ids(worker) == [first, other]

    facts = _facts(bench, second)

    assert facts.limits == ("task:ok", f"{per_customer}=7")
    assert set(facts.holders) == {("task:ok", first), ("task:ok", other), (f"{per_customer}=7", first)}


# Queues


def _ends(bench: Bench, *events: Event, queue: str = "default") -> datetime:
    """One job after another ends like this; then a second passes. When the first could have ended at the earliest."""
    worker, began = bench.worker(queues=(queue,)), bench.clock()
    for event in events:
        bench.put(queue=queue)
        job = bench.claim_one(worker, queues=(queue,))
        bench.clock.advance(SECOND)
        bench.end(worker, ended(job, event))
    return began


def deaths_and_completions_of_a_queue_are_counted(bench: Bench) -> None:
    since = _ends(bench, Event.complete, Event.bury, Event.complete, Event.skip, Event.cancel, Event.fail)
    _ends(bench, Event.bury, Event.complete, queue="other")

    told = bench.store.inspection.outcomes("default", since, 100, 0.5)

    assert (told.completed, told.dead) == (2, 1)


def what_ended_before_is_not_counted(bench: Bench) -> None:
    _ends(bench, Event.complete, Event.bury)
    bench.clock.advance(MINUTE)
    since = _ends(bench, Event.complete, Event.bury, Event.bury)

    told = bench.store.inspection.outcomes("default", since, 100, 0.5)

    assert (told.completed, told.dead) == (1, 2)


def what_ended_before_the_last_trial_was_over_is_not_counted(bench: Bench) -> None:
    since = _ends(bench, Event.bury, Event.bury)
    cap = bench.store.control.override("queue:default", "limit", {"max_running": 1}, None, AUTHOR, "a trial")
    assert bench.store.control.lift(cap.id, AUTHOR, "it went well")
    _ends(bench, Event.complete, Event.bury)

    told = bench.store.inspection.outcomes("default", since, 100, 0.5)

    assert (told.completed, told.dead) == (1, 1)


def completions_are_counted_as_far_as_the_share_needs(bench: Bench) -> None:
    since = _ends(bench, *[Event.complete] * 9, Event.bury)

    told = bench.store.inspection.outcomes("default", since, 3, 0.5)

    assert (3 <= told.completed <= 9, told.dead) == (True, 1)
    assert bench.store.inspection.outcomes("default", since, 100, 0.5).completed == 9
