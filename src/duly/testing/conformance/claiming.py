"""Cases: which jobs a worker is given, in which order, and what it is told of them."""

from datetime import timedelta

from duly.core.defaults import INLINE_PAYLOAD, MAX_PRIORITY, MIN_PRIORITY
from duly.core.job import ClaimRequest, Counters, Incarnation, QueueClaim
from duly.core.lifecycle import Event, State
from duly.testing.clock import NOON

from .bench import HOUR, MINUTE, SECOND, Bench, ended, new_job


def a_claim_makes_ready_jobs_running(bench: Bench) -> None:
    worker = bench.worker(timeout=MINUTE)
    id = bench.put()
    bench.clock.advance(7 * SECOND)

    bench.claim_one(worker)

    row = bench.row(id)
    assert (row.state, row.run, row.incarnation) == (State.running, 1, worker)
    assert (row.started_at, row.deadline) == (NOON + 7 * SECOND, NOON + 67 * SECOND)
    assert row.finished_at is None


def a_claimed_job_says_all_that_a_handler_needs(bench: Bench) -> None:
    worker = bench.worker("mail", timeout=MINUTE)
    id = bench.put(
        "mail",
        queue="q",
        args=b'{"n":1}',
        priority=3,
        timeout=5 * SECOND,
        attempts=2,
        tenant="acme",
        tags=("a", "b"),
        correlation_id="c-1",
    )
    bench.clock.advance(SECOND)

    claimed = bench.claim_one(worker, queues=("q",))

    assert (claimed.id, claimed.run, claimed.queue, claimed.task) == (id, 1, "q", "mail")
    assert (claimed.args, claimed.priority, claimed.tenant) == (b'{"n":1}', 3, "acme")
    assert (claimed.tags, claimed.correlation_id) == (("a", "b"), "c-1")
    assert (claimed.attempts, claimed.timeout, claimed.counters) == (2, 5 * SECOND, Counters())
    assert (claimed.enqueued_at, claimed.claimed_at, claimed.attempt) == (NOON, NOON + SECOND, 1)


def a_claimed_job_without_limits_of_its_own_has_none(bench: Bench) -> None:
    bench.put()

    claimed = bench.claim_one(bench.worker())

    assert (claimed.attempts, claimed.timeout) == (None, None)


def the_jobs_own_time_to_run_goes_before_the_tasks(bench: Bench) -> None:
    worker = bench.worker(timeout=HOUR)
    own = bench.put(timeout=5 * SECOND)
    tasks = bench.put()

    bench.claim(worker, 2)

    assert bench.row(own).deadline == NOON + 5 * SECOND
    assert bench.row(tasks).deadline == NOON + HOUR


def each_task_brings_its_own_time_to_run(bench: Bench) -> None:
    slow = bench.worker("slow", timeout=HOUR)
    quick = bench.worker("quick", timeout=SECOND)
    slow_job = bench.put("slow", queue="slow")
    quick_job = bench.put("quick", queue="quick")

    bench.claim(slow, queues=("slow",))
    bench.claim(quick, queues=("quick",))

    assert bench.row(slow_job).deadline == NOON + HOUR
    assert bench.row(quick_job).deadline == NOON + SECOND


def a_claimed_job_is_given_to_nobody_else(bench: Bench) -> None:
    first, second = bench.worker(), bench.worker()
    bench.put()
    bench.claim_one(first)

    assert bench.claim(second, 10) == ()
    assert bench.claim(first, 10) == ()


def a_claim_gives_no_more_than_asked(bench: Bench) -> None:
    worker = bench.worker()
    ids = bench.put_many(10)

    claimed = bench.claim(worker, 4)

    assert [job.id for job in claimed] == ids[:4]
    assert bench.states(ids[4:]) == [State.ready] * 6


def a_claim_of_none_changes_nothing(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put()

    assert bench.claim(worker, 0) == ()
    assert bench.state(id) is State.ready


def a_claim_from_an_empty_queue_is_empty(bench: Bench) -> None:
    assert bench.claim(bench.worker(), 10) == ()
    assert bench.claim(bench.worker(), 10, queues=("nobody", "knows")) == ()


def each_queue_gives_at_most_its_own_share(bench: Bench) -> None:
    worker = bench.worker()
    bench.put_many(5, queue="a")
    bench.put_many(5, queue="b")
    asked = ClaimRequest((QueueClaim("a", 2), QueueClaim("b", 3)), most=10)

    claimed = bench.store.jobs.exchange(worker, [], asked).claimed

    assert [job.queue for job in claimed] == ["a", "a", "b", "b", "b"]


def all_queues_together_give_at_most_what_was_asked(bench: Bench) -> None:
    worker = bench.worker()
    bench.put_many(5, queue="a")
    bench.put_many(5, queue="b")
    asked = ClaimRequest((QueueClaim("a", 4), QueueClaim("b", 4)), most=6)

    claimed = bench.store.jobs.exchange(worker, [], asked).claimed

    assert [job.queue for job in claimed] == ["a"] * 4 + ["b"] * 2


def queues_are_tried_in_the_order_given(bench: Bench) -> None:
    worker = bench.worker()
    bench.put(queue="a", priority=1)
    bench.put(queue="b", priority=100)

    assert bench.claim_one(worker, queues=("b", "a")).queue == "b"
    assert bench.claim_one(worker, queues=("b", "a")).queue == "a"


def a_worker_is_given_only_the_queues_it_asks_for(bench: Bench) -> None:
    worker = bench.worker()
    other = bench.put(queue="other")

    assert bench.claim(worker, 10) == ()
    assert bench.state(other) is State.ready


def lower_priorities_come_first(bench: Bench) -> None:
    worker = bench.worker()
    priorities = [100, MAX_PRIORITY, 0, -1, 99, MIN_PRIORITY, 101, 1]
    bench.put_all([new_job(priority=priority) for priority in priorities])

    claimed = bench.claim(worker, 7) + bench.claim(worker, 1)

    assert [job.priority for job in claimed] == sorted(priorities)


def equal_priorities_run_first_in_first_out(bench: Bench) -> None:
    worker = bench.worker()
    ids = [bench.put() for _ in range(12)]

    order = [bench.claim_one(worker).id for _ in ids]

    assert order == ids


def a_thousand_jobs_of_one_transaction_keep_their_order(bench: Bench) -> None:
    worker = bench.worker()
    ids = bench.put_many(1_000)

    order = [job.id for _ in range(10) for job in bench.claim(worker, 100)]

    assert order == ids


def priorities_within_a_batch_keep_their_order_across_claims(bench: Bench) -> None:
    worker = bench.worker()
    ids = bench.put_all([new_job(priority=number % 3) for number in range(300)])

    order = [job.id for _ in range(30) for job in bench.claim(worker, 10)]

    lines = [ids[start::3] for start in range(3)]
    assert [[id for id in order if id in line] for line in lines] == lines
    # One in eight is the oldest, whatever its priority.
    assert sum(id not in lines[0] for id in order[:100]) <= 13


def urgent_work_that_comes_later_goes_first(bench: Bench) -> None:
    worker = bench.worker()
    bench.put_many(3)
    urgent = bench.put(priority=1)

    assert bench.claim_one(worker).id == urgent


def the_run_grows_with_every_claim(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put()

    runs = []
    for _ in range(4):
        claimed = bench.claim_one(worker)
        runs.append((claimed.id, claimed.run))
        bench.end(worker, ended(claimed, Event.interrupt))

    assert runs == [(id, 1), (id, 2), (id, 3), (id, 4)]


def failures_and_losses_raise_the_attempt_but_snoozes_and_interrupts_do_not(bench: Bench) -> None:
    worker = bench.worker()
    bench.put()

    seen = []
    for event in (Event.snooze, Event.interrupt, Event.fail, Event.snooze, Event.fail):
        claimed = bench.claim_one(worker)
        seen.append(claimed.attempt)
        bench.end(worker, ended(claimed, event))
        bench.clock.advance(MINUTE)
        bench.store.upkeep.promote()
    last = bench.claim_one(worker)

    assert seen == [1, 1, 1, 2, 2]
    assert (last.attempt, last.run) == (3, 6)
    assert last.counters == Counters(failed=2, lost=0, interrupted=0, snoozed=2)


def a_returning_job_stands_at_the_tail_of_its_priority(bench: Bench) -> None:
    worker = bench.worker()
    first, second, third = bench.put_many(3)
    bench.end(worker, ended(bench.claim_one(worker), Event.interrupt))

    assert [job.id for job in bench.claim(worker, 3)] == [second, third, first]


def a_returning_job_keeps_its_priority(bench: Bench) -> None:
    worker = bench.worker()
    urgent = bench.put(priority=1)
    bench.put_many(2)
    bench.end(worker, ended(bench.claim_one(worker), Event.interrupt))

    assert bench.claim_one(worker).id == urgent


def a_worker_that_never_registered_claims_nothing(bench: Bench) -> None:
    id = bench.put()

    assert bench.claim(Incarnation(777_777), 10) == ()
    assert bench.state(id) is State.ready


def a_reaped_worker_claims_nothing(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put()
    bench.reap(worker)

    assert bench.claim(worker, 10) == ()
    assert bench.state(id) is State.ready


def a_retired_worker_claims_nothing(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put()
    bench.store.leases.retire(worker)

    assert bench.claim(worker, 10) == ()
    assert bench.state(id) is State.ready


def a_large_payload_is_left_for_when_its_slot_starts(bench: Bench) -> None:
    args = b'"' + b"x" * (INLINE_PAYLOAD - 1) + b'"'
    id = bench.put(args=args)

    claimed = bench.claim_one(bench.worker())

    assert len(args) == INLINE_PAYLOAD + 1
    assert claimed.args is None
    assert bench.store.jobs.arguments([id]) == {id: args}


def a_payload_of_the_inline_size_comes_with_the_claim(bench: Bench) -> None:
    args = b'"' + b"x" * (INLINE_PAYLOAD - 2) + b'"'
    bench.put(args=args)

    assert bench.claim_one(bench.worker()).args == args


def a_job_past_its_expiry_is_skipped_at_the_claim(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put(expires=MINUTE)
    bench.clock.advance(MINUTE + SECOND)

    claimed = bench.claim(worker, 10)

    assert claimed == ()
    row = bench.row(id)
    assert (row.state, row.reason, row.run) == (State.skipped, "expired", 0)
    assert row.finished_at == NOON + MINUTE + SECOND


def expired_jobs_are_not_counted_in_what_was_asked(bench: Bench) -> None:
    worker = bench.worker()
    bench.put_many(5, expires=MINUTE)
    good = bench.put_many(3)
    bench.clock.advance(HOUR)

    claimed = [job.id for _ in range(3) for job in bench.claim(worker, 3)]

    assert claimed == good


def a_job_before_its_expiry_is_claimed(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put(expires=MINUTE)
    bench.clock.advance(MINUTE - timedelta(microseconds=1))

    assert bench.claim_one(worker).id == id


def an_attempt_that_started_in_time_is_not_expired_later(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put(expires=MINUTE)
    claimed = bench.claim_one(worker)
    bench.clock.advance(5 * MINUTE)
    bench.sweep()

    assert bench.end(worker, ended(claimed, Event.complete)) == {(id, 1)}
    assert bench.state(id) is State.completed


def a_job_handed_back_unstarted_still_expires(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put(expires=MINUTE)
    for _ in range(2):
        bench.end(worker, ended(bench.claim_one(worker), Event.interrupt))
    bench.clock.advance(HOUR)

    assert bench.claim(worker, 10) == ()
    row = bench.row(id)
    assert (row.state, row.reason) == (State.skipped, "expired")


def ends_and_a_claim_go_in_one_exchange(bench: Bench) -> None:
    worker = bench.worker()
    ids = bench.put_many(4)
    first = bench.claim(worker, 2)
    asked = ClaimRequest((QueueClaim("default", 2),), most=2)

    answer = bench.store.jobs.exchange(worker, [ended(job, Event.complete) for job in first], asked)

    assert answer.acked == {(ids[0], 1), (ids[1], 1)}
    assert [job.id for job in answer.claimed] == ids[2:]
    assert bench.states(ids[:2]) == [State.completed] * 2


def what_an_exchange_returns_is_not_claimed_by_the_same_exchange_out_of_turn(bench: Bench) -> None:
    worker = bench.worker()
    first, second = bench.put_many(2)
    claimed = bench.claim_one(worker)
    asked = ClaimRequest((QueueClaim("default", 1),), most=1)

    answer = bench.store.jobs.exchange(worker, [ended(claimed, Event.interrupt)], asked)

    assert [job.id for job in answer.claimed] == [second]
    assert bench.state(first) is State.ready


def a_jobs_own_time_to_run_counts_beside_one_that_is_set_aside(bench: Bench) -> None:
    worker = bench.worker(timeout=MINUTE)
    bench.put(expires=SECOND)
    id = bench.put(timeout=HOUR)
    bench.clock.advance(2 * SECOND)

    bench.claim(worker, 2)

    assert bench.row(id).deadline == NOON + 2 * SECOND + HOUR
