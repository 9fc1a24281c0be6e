"""Cases: what stands around one job, for whoever asks why it does not run; and how jobs of a queue ended lately."""

from duly.core.control import LimitPolicy, TaskLimit
from duly.core.dead_breaker import AUTHOR, Outcomes
from duly.core.job import JobId
from duly.core.lifecycle import Event, State
from duly.core.registration import QueuePolicy
from duly.core.why import JobFacts

from .bench import HOUR, MINUTE, POISON, SECOND, Bench, ended


def _facts(bench: Bench, id: JobId) -> JobFacts:
    found = bench.store.inspection.facts(id)
    assert found is not None, f"nothing is known of job {id}"
    return found


def of_a_job_that_never_was_there_are_no_facts(bench: Bench) -> None:
    bench.put()

    assert bench.store.inspection.facts(JobId(4711)) is None


def facts_hold_the_job_as_a_look_at_it_does(bench: Bench) -> None:
    for id in (bench.put(), bench.put(delay=HOUR), bench.put(tenant="acme", tags=("a",), ordering_key="k")):
        assert _facts(bench, id).job == bench.row(id)


def those_before_it_in_its_lane_are_ahead_of_a_ready_job(bench: Bench) -> None:
    first, second = bench.put_many(2)
    urgent = bench.put(priority=1)
    bench.put(queue="other")
    bench.put(delay=HOUR)
    patient = bench.put(priority=200)

    assert [_facts(bench, id).ahead for id in (urgent, first, second, patient)] == [0, 1, 2, 3]


def nothing_is_ahead_of_a_job_that_is_not_ready(bench: Bench) -> None:
    running, *_ = bench.put_many(3)
    bench.claim_one(bench.worker())
    later = bench.put(delay=HOUR)

    assert [_facts(bench, id).ahead for id in (running, later)] == [0, 0]


def only_jobs_of_its_tenant_are_ahead_in_a_fair_queue(bench: Bench) -> None:
    bench.declare(queues=[QueuePolicy("default", fair=True)])
    bench.put_many(3, tenant="a", fair=True)
    _, second = bench.put_many(2, tenant="b", fair=True)

    assert _facts(bench, second).ahead == 1


def workers_of_its_queue_serve_it_and_some_know_its_task(bench: Bench) -> None:
    id = bench.put()
    seen = [_facts(bench, id)]
    bench.worker("other")
    bench.worker(queues=("elsewhere",))
    seen.append(_facts(bench, id))
    knowing = bench.worker("ok", "other")
    seen.append(_facts(bench, id))
    bench.store.operator.drain_worker(knowing, "ann", "maintenance")
    seen.append(_facts(bench, id))

    assert [(one.serving, one.knowing) for one in seen] == [(0, 0), (1, 0), (2, 1), (1, 0)]


def a_job_of_a_key_knows_its_head_and_its_place(bench: Bench) -> None:
    first, second, third = bench.put_many(3, ordering_key="k")
    other = bench.put(ordering_key="l")
    bench.start(bench.worker(), 10)

    seen = [_facts(bench, id) for id in (first, second, third, other)]

    assert [one.head for one in seen] == [first, first, first, other]
    assert [one.head_state for one in seen] == [State.running] * 4
    assert [one.before for one in seen] == [0, 1, 2, 0]
    assert not any(one.key_paused for one in seen)


def a_dead_head_and_a_paused_key_are_told(bench: Bench) -> None:
    bench.declare(queues=[QueuePolicy("default", ordering="pause_key")])
    first, second = bench.put_many(2, ordering_key="k")
    worker = bench.worker()
    bench.work(worker, Event.bury)
    bench.start(worker, 10)

    seen = _facts(bench, second)

    assert (seen.head, seen.head_state, seen.key_paused, seen.before) == (first, State.dead, True, 1)


def a_job_names_the_limits_that_it_takes_and_who_holds_them(bench: Bench) -> None:
    bench.declare(
        LimitPolicy("task:ok", 2),
        LimitPolicy("task:ok#customer", 1),
        LimitPolicy("resource:api", 5),
        LimitPolicy("queue:default", 3),
        takes=[
            TaskLimit("ok", "task:ok"),
            TaskLimit("ok", "task:ok#customer", "customer"),
            TaskLimit("ok", "resource:api"),
        ],
    )
    running = bench.put(args=b'{"customer":7}')
    same, none = bench.put(args=b'{"customer":7}'), bench.put(args=b"{}")
    assert bench.start_ids(bench.worker(), 1) == [running]

    assert _facts(bench, same).limits == ("resource:api", "task:ok", "task:ok#customer=7")
    assert _facts(bench, none).limits == ("resource:api", "task:ok")
    assert sorted(_facts(bench, same).holders) == [
        ("queue:default", running),
        ("resource:api", running),
        ("task:ok", running),
        ("task:ok#customer=7", running),
    ]


def at_most_five_holders_of_a_limit_are_named(bench: Bench) -> None:
    bench.declare(LimitPolicy("task:ok", 7), takes=[TaskLimit("ok", "task:ok")])
    ids = bench.put_many(8)
    bench.start(bench.worker(), 10)

    holders = _facts(bench, ids[-1]).holders

    assert {name for name, _ in holders} == {"task:ok"}
    assert len({id for _, id in holders} & set(ids[:7])) == 5


def ends_of_a_queue_are_counted_since_a_moment(bench: Bench) -> None:
    worker = bench.worker()
    bench.put_many(3)
    bench.work(worker)
    bench.clock.advance(MINUTE)
    since = bench.clock()
    bench.clock.advance(SECOND)
    bench.work(worker)
    bench.work(worker, Event.bury)
    bench.put(queue="other")
    bench.end(worker, ended(bench.claim_one(worker, queues=("other",)), Event.bury))

    count = bench.store.inspection.outcomes

    assert count("default", since, 100, 0.5) == Outcomes(1, 1)
    assert count("other", since, 100, 0.5) == Outcomes(0, 1)
    assert count("default", since - HOUR, 100, 0.5) == Outcomes(2, 1)


def skipped_and_cancelled_jobs_are_no_outcomes(bench: Bench) -> None:
    worker = bench.worker()
    since = bench.clock() - SECOND
    bench.put()
    bench.work(worker, Event.skip, reason="nothing to do")
    bench.store.operator.cancel([bench.put()], "ann", "no use")

    assert bench.store.inspection.outcomes("default", since, 100, 0.5) == Outcomes(0, 0)


def completed_ones_are_counted_only_as_far_as_the_question_needs(bench: Bench) -> None:
    worker = bench.worker()
    since = bench.clock() - SECOND
    bench.put_many(9)
    for _ in range(7):
        bench.work(worker)
    for _ in range(2):
        bench.work(worker, Event.bury)

    count = bench.store.inspection.outcomes

    few, half, all_of_them = (
        count("default", since, *asked).completed for asked in ((3, 1.0), (3, 0.5), (100, 0.5))
    )
    # Of 4 ends 2 dead ones are the half.
    assert (3 <= few <= 4, 4 <= half <= 5, all_of_them) == (True, True, 7)


def a_lost_job_that_died_is_an_outcome(bench: Bench) -> None:
    since = bench.clock() - SECOND
    id = bench.put()
    for _ in range(POISON):
        worker = bench.worker()
        bench.claim_one(worker, suspects=bench.row(id).counters.lost > 0)
        bench.reap(worker)

    assert bench.store.inspection.outcomes("default", since, 100, 0.5) == Outcomes(0, 1)


def ends_count_anew_once_the_breakers_own_override_was_lifted(bench: Bench) -> None:
    worker = bench.worker()
    since = bench.clock() - SECOND
    control = bench.store.control
    bench.put_many(3)
    bench.work(worker, Event.bury)
    made = control.override("queue:default", "limit", {"max_running": 1}, None, AUTHOR, "jobs die")
    by_hand = control.override("queue:default", "limit", {"max_running": 9}, None, "ann", "a try")
    control.lift(by_hand.id, "ann", "over")
    before = bench.store.inspection.outcomes("default", since, 100, 0.5)
    bench.clock.advance(SECOND)
    control.lift(made.id, AUTHOR, "one has completed")
    bench.clock.advance(SECOND)
    after = bench.store.inspection.outcomes("default", since, 100, 0.5)

    assert (before, after) == (Outcomes(0, 1), Outcomes(0, 0))
