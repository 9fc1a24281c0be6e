"""Cases: what some worker must do from time to time. Promotion, the sweep, retention."""

from datetime import timedelta

from duly.core.defaults import PURGE_NOTICE
from duly.core.job import Counters, JobId
from duly.core.lifecycle import Event, State
from duly.testing.clock import NOON

from .bench import (
    BOOM,
    DAY,
    HOUR,
    MINUTE,
    POISON,
    SECOND,
    SWEEP_EVERY,
    Bench,
    ended,
    new_job,
)


def due_jobs_become_ready_and_others_wait(bench: Bench) -> None:
    due, exactly, later = bench.put_all(
        [new_job(delay=MINUTE), new_job(delay=2 * MINUTE), new_job(delay=3 * MINUTE)]
    )
    bench.clock.advance(2 * MINUTE)

    promoted, wait = bench.store.upkeep.promote()

    assert (promoted, wait) == (2, MINUTE)
    assert bench.states([due, exactly, later]) == [State.ready, State.ready, State.scheduled]


def nothing_scheduled_means_nothing_to_wait_for(bench: Bench) -> None:
    bench.put()

    assert bench.store.upkeep.promote() == (0, None)


def nothing_can_claim_a_job_before_it_is_due(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put(delay=6 * HOUR)

    for _ in range(6):
        bench.store.upkeep.promote()
        assert bench.claim(worker, 10) == ()
        bench.clock.advance(HOUR)
    bench.store.upkeep.promote()

    assert (bench.claim_one(worker).id, bench.row(id).counters) == (id, Counters())


def one_promotion_moves_no_more_than_asked(bench: Bench) -> None:
    ids = bench.put_many(5, delay=MINUTE)
    bench.clock.advance(HOUR)

    promoted, wait = bench.store.upkeep.promote(most=3)

    assert promoted == 3
    assert wait is not None
    assert wait <= timedelta(0)
    assert bench.states(ids).count(State.ready) == 3


def jobs_are_promoted_in_the_order_of_their_due_times(bench: Bench) -> None:
    worker = bench.worker()
    delays = [5, 1, 3, 2, 4]
    ids = bench.put_all([new_job(delay=delay * MINUTE) for delay in delays])
    bench.clock.advance(HOUR)

    bench.store.upkeep.promote()

    order = [job.id for job in bench.claim(worker, 5)]
    assert order == [ids[delays.index(delay)] for delay in sorted(delays)]


def a_promoted_job_stands_at_the_tail(bench: Bench) -> None:
    worker = bench.worker()
    scheduled = bench.put(delay=MINUTE)
    waiting = bench.put()
    bench.clock.advance(HOUR)
    bench.store.upkeep.promote()
    later = bench.put()

    assert [job.id for job in bench.claim(worker, 3)] == [waiting, scheduled, later]


def a_promoted_job_keeps_its_priority_counters_and_run(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put(priority=7)
    bench.put_many(2, priority=8)
    bench.end(worker, ended(bench.claim_one(worker), Event.fail, delay=MINUTE))
    bench.clock.advance(HOUR)
    bench.store.upkeep.promote()

    claimed = bench.claim_one(worker)

    assert (claimed.id, claimed.priority, claimed.run, claimed.counters) == (id, 7, 2, Counters(failed=1))


def a_scheduled_job_past_its_expiry_is_skipped_at_promotion(bench: Bench) -> None:
    id = bench.put(delay=MINUTE, expires=MINUTE)
    bench.clock.advance(HOUR)

    bench.store.upkeep.promote()

    row = bench.row(id)
    assert (row.state, row.reason) == (State.skipped, "expired")


def a_retry_is_not_expired_since_its_job_has_started_in_time(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put(expires=MINUTE)
    bench.end(worker, ended(bench.claim_one(worker), Event.fail, delay=HOUR, elapsed=SECOND))
    bench.clock.advance(2 * HOUR)
    bench.store.upkeep.promote()
    bench.sweep()

    assert bench.claim_one(worker).id == id


def a_sweep_that_is_not_due_does_not_run(bench: Bench) -> None:
    assert bench.sweep().ran

    swept = bench.store.upkeep.sweep(HOUR, POISON, MINUTE)

    assert not swept.ran
    assert (swept.orphans, swept.overdue, swept.expired, swept.abandoned, swept.unparked) == (0, 0, 0, 0, 0)


def a_sweep_over_healthy_jobs_changes_nothing(bench: Bench) -> None:
    worker = bench.worker("ok", timeout=HOUR)
    ids = bench.put_all([new_job(), new_job(), new_job("mystery"), new_job(delay=DAY), new_job(expires=DAY)])
    bench.claim(worker, 2)
    bench.claim(worker, 1, queues=("default",))
    before = [bench.picture(id) for id in ids]

    swept = bench.sweep(unknown_after=DAY)

    assert (swept.orphans, swept.overdue, swept.expired, swept.abandoned, swept.unparked) == (0, 0, 0, 0, 0)
    assert [bench.picture(id) for id in ids] == before


def a_job_whose_workers_row_is_gone_comes_back_with_the_sweep(bench: Bench) -> None:
    worker = bench.worker()
    ids = bench.put_many(2)
    bench.claim(worker, 2)
    bench.database.forget_worker(worker)
    assert bench.states(ids) == [State.running] * 2

    swept = bench.sweep()

    assert swept.orphans == 2
    assert bench.states(ids) == [State.ready] * 2
    assert bench.row(ids[0]).counters == Counters(lost=1)
    assert [attempt.event for attempt in bench.history(ids[0])] == [Event.lose]


def an_attempt_past_its_deadline_is_taken_back_from_a_beating_worker(bench: Bench) -> None:
    worker = bench.worker(timeout=SWEEP_EVERY + MINUTE)
    id = bench.put()
    stale = bench.claim_one(worker)
    bench.store.leases.beat([worker])
    assert bench.sweep(grace=SECOND).overdue == 0

    assert bench.sweep(grace=SECOND).overdue == 1

    assert bench.state(id) is State.ready
    assert bench.row(id).counters == Counters(lost=1)
    assert bench.end(worker, ended(stale, Event.complete)) == frozenset()
    assert bench.store.leases.beat([worker]) == {worker}


def only_what_is_overdue_is_taken_back(bench: Bench) -> None:
    worker = bench.worker(timeout=HOUR)
    short, long = bench.put_all([new_job(timeout=SECOND), new_job()])
    bench.claim(worker, 2)

    assert bench.sweep().overdue == 1
    assert bench.states([short, long]) == [State.ready, State.running]


def an_attempt_within_its_grace_is_left_alone(bench: Bench) -> None:
    worker = bench.worker(timeout=SECOND)
    id = bench.put()
    bench.claim_one(worker)

    assert bench.sweep(grace=HOUR).overdue == 0
    assert bench.state(id) is State.running


def an_extended_attempt_is_left_alone(bench: Bench) -> None:
    worker = bench.worker(timeout=SECOND)
    id = bench.put()
    bench.claim_one(worker)
    bench.store.jobs.extend(worker, id, 1, HOUR)

    assert bench.sweep().overdue == 0
    assert bench.state(id) is State.running


def a_long_job_is_never_taken_back_for_its_age_alone(bench: Bench) -> None:
    worker = bench.worker(timeout=30 * DAY)
    id = bench.put()
    claimed = bench.claim_one(worker)

    for _ in range(10):
        bench.clock.advance(DAY)
        bench.store.leases.beat([worker])
        assert bench.sweep().overdue == 0

    assert bench.end(worker, ended(claimed, Event.complete)) == {(id, 1)}


def ready_jobs_past_their_expiry_are_skipped_by_the_sweep(bench: Bench) -> None:
    ids = bench.put_many(3, expires=MINUTE)
    good = bench.put(expires=DAY)

    assert bench.sweep().expired == 3

    assert bench.states(ids) == [State.skipped] * 3
    assert [bench.row(id).reason for id in ids] == ["expired"] * 3
    assert bench.state(good) is State.ready


def jobs_in_a_paused_queue_expire_too(bench: Bench) -> None:
    id = bench.put(expires=MINUTE)
    bench.store.operator.pause("queue:default", None, "ann", "incident")

    assert bench.sweep().expired == 1
    assert bench.state(id) is State.skipped


def a_suspect_overdue_at_the_limit_is_dead_as_poison(bench: Bench) -> None:
    id = bench.put(timeout=SECOND)
    for number in range(1, POISON + 1):
        bench.claim_one(bench.worker(), suspects=number > 1)
        bench.sweep(poison=POISON)
        assert bench.state(id) is (State.dead if number == POISON else State.ready), number

    assert bench.row(id).reason == "poison: its worker was lost 3 times"


def _finish(bench: Bench, count: int = 1, queue: str = "default") -> list[JobId]:
    worker = bench.worker()
    ids = bench.put_many(count, queue=queue)
    claimed = bench.claim(worker, count, queues=(queue,))
    bench.end(worker, *(ended(job, Event.complete, result=b'"' + b"r" * 9_000 + b'"') for job in claimed))
    return ids


def _bury(bench: Bench, queue: str = "default") -> JobId:
    worker = bench.worker()
    id = bench.put(queue=queue)
    (claimed,) = bench.claim(worker, 1, queues=(queue,))
    bench.end(worker, ended(claimed, Event.bury, reason="broken", error=BOOM))
    return id


def _retain(bench: Bench, keep: timedelta = DAY, keep_dead: timedelta = 30 * DAY, most: int = 2000) -> int:
    return bench.store.upkeep.retain({}, {}, keep, keep_dead, most)


def finished_jobs_are_deleted_after_their_retention(bench: Bench) -> None:
    (old,) = _finish(bench)
    bench.clock.advance(DAY - SECOND)
    (young,) = _finish(bench)
    assert _retain(bench) == 0
    bench.clock.advance(2 * SECOND)

    assert _retain(bench) == 1

    assert bench.states([old, young]) == [None, State.completed]
    assert bench.store.jobs.arguments([old, young]) == {young: b"{}"}


def cancelled_and_skipped_jobs_are_deleted_too(bench: Bench) -> None:
    cancelled = bench.put()
    bench.store.operator.cancel([cancelled], "ann", "not needed")
    skipped = bench.put(expires=SECOND)
    bench.sweep()
    bench.clock.advance(2 * DAY)

    assert _retain(bench) == 2
    assert bench.states([cancelled, skipped]) == [None, None]


def nothing_of_a_deleted_job_is_left(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put(tags=("t",))
    bench.end(worker, ended(bench.claim_one(worker), Event.interrupt))
    bench.end(worker, ended(bench.claim_one(worker), Event.complete, result=b"1"))
    bench.clock.advance(2 * DAY)

    _retain(bench)

    assert bench.picture(id) == (None, [])
    assert bench.store.jobs.arguments([id]) == {}


def each_queue_keeps_its_own_time(bench: Bench) -> None:
    (short,) = _finish(bench, queue="short")
    (long,) = _finish(bench, queue="long")
    (usual,) = _finish(bench)
    bench.clock.advance(2 * DAY)

    deleted = bench.store.upkeep.retain({"short": HOUR, "long": 9 * DAY}, {}, 3 * DAY, 30 * DAY)

    assert deleted == 1
    assert bench.states([short, long, usual]) == [None, State.completed, State.completed]


def one_chunk_deletes_no_more_than_asked_oldest_first(bench: Bench) -> None:
    ids = []
    for _ in range(5):
        ids += _finish(bench)
        bench.clock.advance(SECOND)
    bench.clock.advance(2 * DAY)

    assert _retain(bench, most=2) == 2
    assert bench.states(ids) == [None, None] + [State.completed] * 3
    assert [_retain(bench, most=2) for _ in range(3)] == [2, 1, 0]


def retention_never_touches_a_live_job(bench: Bench) -> None:
    worker = bench.worker(timeout=999 * DAY)
    running = bench.put()
    bench.claim_one(worker)
    blocked = bench.put("mystery")
    bench.claim(worker, 1)
    retried = bench.put()
    bench.end(worker, ended(bench.claim_one(worker), Event.fail, delay=900 * DAY))
    ready = bench.put()
    scheduled = bench.put(delay=800 * DAY)
    live = [running, blocked, retried, ready, scheduled]
    before = [bench.picture(id) for id in live]
    bench.clock.advance(700 * DAY)

    assert _retain(bench) == 0

    assert [bench.picture(id) for id in live] == before


def a_far_scheduled_job_outlives_the_retention_of_its_neighbours(bench: Bench) -> None:
    worker = bench.worker()
    far = bench.put(delay=60 * DAY, args=b'{"far":1}')
    _finish(bench, 3)
    bench.clock.advance(61 * DAY)
    assert _retain(bench) == 3
    bench.store.upkeep.promote()

    claimed = bench.claim_one(worker)
    acked = bench.end(worker, ended(claimed, Event.complete))

    assert (claimed.id, claimed.args) == (far, b'{"far":1}')
    assert acked == {(far, 1)}
    assert bench.state(far) is State.completed


def a_redriven_job_is_not_deleted_for_its_former_end(bench: Bench) -> None:
    id = bench.put()
    bench.store.operator.cancel([id], "ann", "no")
    bench.clock.advance(DAY - SECOND)
    bench.store.operator.redrive([id], "ann", "yes")
    bench.clock.advance(2 * DAY)

    assert _retain(bench) == 0
    assert bench.state(id) is State.ready


def a_dead_letter_is_never_deleted_unannounced(bench: Bench) -> None:
    id = _bury(bench)
    bench.clock.advance(900 * DAY)

    assert _retain(bench) == 0
    assert bench.state(id) is State.dead


def an_announced_dead_letter_is_deleted_after_the_notice(bench: Bench) -> None:
    id = _bury(bench)
    bench.clock.advance(30 * DAY)
    bench.store.upkeep.announce_dead({}, 30 * DAY, PURGE_NOTICE)
    bench.clock.advance(7 * DAY - MINUTE)
    assert _retain(bench) == 0
    assert bench.state(id) is State.dead
    bench.clock.advance(2 * MINUTE)

    assert _retain(bench) == 1
    assert bench.picture(id) == (None, [])


def an_announcement_says_how_many_of_which_queue_and_from_when(bench: Bench) -> None:
    _bury(bench, "mail")
    bench.clock.advance(HOUR)
    _bury(bench, "mail")
    _bury(bench, "reports")
    bench.clock.advance(24 * DAY)

    told = bench.store.upkeep.announce_dead({"reports": 90 * DAY}, 30 * DAY, PURGE_NOTICE)

    assert [(queue, count) for queue, count, _ in told] == [("mail", 2)]
    assert told[0][2] >= NOON + 30 * DAY


def a_dead_letter_far_from_its_end_is_not_announced(bench: Bench) -> None:
    _bury(bench)
    bench.clock.advance(22 * DAY)

    assert bench.store.upkeep.announce_dead({}, 30 * DAY, PURGE_NOTICE) == []


def announcing_again_does_not_renew_the_notice(bench: Bench) -> None:
    id = _bury(bench)
    bench.clock.advance(24 * DAY)
    for _ in range(8):
        bench.store.upkeep.announce_dead({}, 30 * DAY, PURGE_NOTICE)
        bench.clock.advance(DAY)

    assert _retain(bench) == 1
    assert bench.states([id]) == [None]


def a_later_letter_does_not_renew_the_notice_of_an_earlier_one(bench: Bench) -> None:
    first = _bury(bench)
    bench.clock.advance(3 * DAY)
    second = _bury(bench)
    for wait in (21 * DAY, 3 * DAY, 4 * DAY + MINUTE):
        bench.clock.advance(wait)
        bench.store.upkeep.announce_dead({}, 30 * DAY, PURGE_NOTICE)

    assert _retain(bench) == 1
    assert bench.states([first, second]) == [None, State.dead]


def a_dead_letter_within_its_own_queues_time_is_kept(bench: Bench) -> None:
    id = _bury(bench, "legal")
    bench.clock.advance(24 * DAY)
    bench.store.upkeep.announce_dead({}, 30 * DAY, PURGE_NOTICE)
    bench.clock.advance(60 * DAY)

    assert bench.store.upkeep.retain({}, {"legal": 365 * DAY}, DAY, 30 * DAY) == 0
    assert bench.state(id) is State.dead


def a_letter_that_died_again_must_be_announced_again(bench: Bench) -> None:
    id = _bury(bench)
    bench.clock.advance(30 * DAY)
    bench.store.upkeep.announce_dead({}, 30 * DAY, PURGE_NOTICE)
    bench.store.operator.redrive([id], "ann", "fixed")
    worker = bench.worker()
    bench.end(worker, ended(bench.claim_one(worker), Event.bury))
    bench.clock.advance(60 * DAY)

    assert _retain(bench) == 0
    assert bench.state(id) is State.dead
