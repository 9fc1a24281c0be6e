"""Cases: how attempts end, what is kept of them, and that an end is applied once."""

from duly.core.job import ClaimedJob, Counters, Ended, JobId
from duly.core.lifecycle import Event, State
from duly.stores.faults import DataFault
from duly.testing.clock import NOON

from .bench import BOOM, HOUR, MINUTE, SECOND, USUAL, Bench, ended, new_job, request
from .expect import raises

# That it was lost is what the store itself has recorded of this very attempt: saying so again is no news.
CLAIMS_OF_A_FORMER_HOLDER = [event for event in USUAL if event is not Event.lose]


def a_result_is_kept_byte_for_byte(bench: Bench) -> None:
    worker = bench.worker()
    results = [b'{"a": 1.0}', b"null", b'"\xc3\xa9"', b'"' + b"r" * 20_000 + b'"', None]
    ids = bench.put_many(len(results))
    claimed = bench.claim(worker, len(results))

    bench.end(
        worker,
        *(ended(job, Event.complete, result=result) for job, result in zip(claimed, results, strict=True)),
    )

    assert [bench.row(id).result for id in ids] == results


def a_completed_job_says_when_and_by_whom(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put(tenant="acme", correlation_id="c", tags=("t",), args=b'{"n":1}', priority=7)
    bench.clock.advance(SECOND)
    claimed = bench.claim_one(worker)
    bench.clock.advance(SECOND)

    bench.end(worker, ended(claimed, Event.complete, note="result not storable: open file"))

    row = bench.row(id)
    assert (row.state, row.run, row.incarnation) == (State.completed, 1, worker)
    assert (row.enqueued_at, row.finished_at) == (NOON, NOON + 2 * SECOND)
    assert (row.note, row.tenant, row.correlation_id) == ("result not storable: open file", "acme", "c")
    assert (row.tags, row.args, row.priority, row.deadline) == (("t",), b'{"n":1}', 7, None)


def a_final_row_says_when_its_last_attempt_started(bench: Bench) -> None:
    worker = bench.worker()
    done, dead = bench.put_many(2)
    bench.clock.advance(MINUTE)
    first, second = bench.claim(worker, 2)
    bench.clock.advance(MINUTE)

    bench.end(worker, ended(first, Event.complete, elapsed=MINUTE), ended(second, Event.bury, elapsed=MINUTE))

    assert [bench.row(id).started_at for id in (done, dead)] == [NOON + MINUTE] * 2


def a_job_completed_in_its_first_run_leaves_no_attempt_record(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put()

    bench.end(worker, ended(bench.claim_one(worker), Event.complete))

    assert bench.history(id) == []


def a_completion_in_a_later_run_is_recorded_as_an_attempt(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put()
    bench.end(worker, ended(bench.claim_one(worker), Event.interrupt))

    bench.end(worker, ended(bench.claim_one(worker), Event.complete))

    assert [(attempt.run, attempt.event) for attempt in bench.history(id)] == [
        (1, Event.interrupt),
        (2, Event.complete),
    ]


def a_failure_waits_for_its_delay_by_the_stores_clock(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put()
    claimed = bench.claim_one(worker)
    bench.clock.advance(5 * SECOND)

    acked = bench.end(worker, ended(claimed, Event.fail, delay=16 * SECOND, reason="no route", error=BOOM))

    assert acked == {(id, 1)}
    row = bench.row(id)
    assert (row.state, row.run_at, row.run) == (State.scheduled, NOON + 21 * SECOND, 1)
    assert row.counters == Counters(failed=1)
    assert row.deadline is None


def a_failure_leaves_an_attempt_record_with_its_error(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put()
    bench.clock.advance(SECOND)
    claimed = bench.claim_one(worker)
    bench.clock.advance(5 * SECOND)

    bench.end(worker, ended(claimed, Event.fail, reason="no route", error=BOOM, elapsed=5 * SECOND))

    (attempt,) = bench.history(id)
    assert (attempt.run, attempt.event, attempt.incarnation) == (1, Event.fail, worker)
    assert (attempt.reason, attempt.error) == ("no route", BOOM)
    assert (attempt.started_at, attempt.ended_at) == (NOON + SECOND, NOON + 6 * SECOND)


def a_failure_at_the_limit_is_dead_with_everything_to_run_again(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put(
        args=b'{"n":7}',
        priority=3,
        tenant="acme",
        tags=("x",),
        correlation_id="c",
        attempts=2,
        timeout=MINUTE,
    )
    claimed = bench.claim_one(worker)

    bench.end(worker, ended(claimed, Event.fail, State.dead, reason="gave up after 1: boom", error=BOOM))

    row = bench.row(id)
    assert (row.state, row.reason, row.error) == (State.dead, "gave up after 1: boom", BOOM)
    assert (row.args, row.priority, row.tenant, row.tags) == (b'{"n":7}', 3, "acme", ("x",))
    assert (row.correlation_id, row.attempts, row.timeout) == ("c", 2, MINUTE)
    assert (row.counters, row.finished_at) == (Counters(failed=1), NOON)


def a_snooze_does_not_use_up_an_attempt(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put()

    for number in range(1, 21):
        claimed = bench.claim_one(worker)
        assert claimed.attempt == 1
        bench.end(worker, ended(claimed, Event.snooze, delay=10 * SECOND, reason="not yet"))
        row = bench.row(id)
        assert (row.state, row.counters) == (State.scheduled, Counters(snoozed=number))
        bench.clock.advance(10 * SECOND)
        bench.store.upkeep.promote()

    assert [attempt.event for attempt in bench.history(id)] == [Event.snooze] * 20


def a_snooze_of_no_time_at_all_still_goes_through_scheduled(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put()

    bench.end(worker, ended(bench.claim_one(worker), Event.snooze, delay=0 * SECOND))

    assert bench.state(id) is State.scheduled
    assert bench.store.upkeep.promote()[0] == 1


def a_skip_keeps_its_reason(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put()

    bench.end(worker, ended(bench.claim_one(worker), Event.skip, reason="refunded"))

    row = bench.row(id)
    assert (row.state, row.reason) == (State.skipped, "refunded")
    assert row.counters == Counters()


def a_buried_job_keeps_its_reason_and_error(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put()

    bench.end(worker, ended(bench.claim_one(worker), Event.bury, reason="unknown account", error=BOOM))

    row = bench.row(id)
    assert (row.state, row.reason, row.error) == (State.dead, "unknown account", BOOM)


def an_interrupted_job_is_ready_at_once(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put()

    bench.end(worker, ended(bench.claim_one(worker), Event.interrupt, reason="shutdown"))

    row = bench.row(id)
    assert (row.state, row.counters) == (State.ready, Counters(interrupted=1))
    assert (row.incarnation, row.deadline, row.started_at) == (None, None, None)
    assert [(attempt.event, attempt.reason) for attempt in bench.history(id)] == [
        (Event.interrupt, "shutdown")
    ]


def an_attempt_given_up_by_its_own_worker_is_lost_and_a_suspect(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put()

    bench.end(worker, ended(bench.claim_one(worker), Event.lose, reason="overran"))

    assert bench.row(id).counters == Counters(lost=1)
    assert bench.claim(worker, 1) == ()
    assert bench.claim_one(worker, suspects=True).id == id


def an_attempt_given_up_as_poison_is_dead(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put()

    bench.end(worker, ended(bench.claim_one(worker), Event.lose, State.dead, reason="poison"))

    row = bench.row(id)
    assert (row.state, row.reason, row.counters) == (State.dead, "poison", Counters(lost=1))


def a_cancelled_attempt_keeps_its_reason(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put()

    bench.end(worker, ended(bench.claim_one(worker), Event.cancel, reason="asked to stop"))

    row = bench.row(id)
    assert (row.state, row.reason) == (State.cancelled, "asked to stop")


def the_counters_sent_are_the_counters_stored(bench: Bench) -> None:
    worker = bench.worker()
    counters = Counters(failed=3, lost=0, interrupted=2, snoozed=9)
    ids = bench.put_many(len(USUAL))
    claimed = bench.claim(worker, len(USUAL))

    bench.end(
        worker, *(ended(job, event, counters=counters) for job, event in zip(claimed, USUAL, strict=True))
    )

    assert [bench.row(id).counters for id in ids] == [counters] * len(ids)


def the_same_end_sent_twice_is_acknowledged_and_applied_once(bench: Bench) -> None:
    worker = bench.worker()
    ids = bench.put_many(len(USUAL))
    ends = [
        ended(job, event, reason="why", error=BOOM if event is Event.fail else None)
        for job, event in zip(bench.claim(worker, len(USUAL)), USUAL, strict=True)
    ]
    first = bench.end(worker, *ends)
    before = [bench.picture(id) for id in ids]
    bench.clock.advance(SECOND)

    second = bench.end(worker, *ends)

    assert first == second == {(id, 1) for id in ids}
    assert [bench.picture(id) for id in ids] == before


def the_same_end_twice_in_one_exchange_is_applied_once(bench: Bench) -> None:
    worker = bench.worker()
    ids = bench.put_many(len(USUAL))
    ends = [ended(job, event) for job, event in zip(bench.claim(worker, len(USUAL)), USUAL, strict=True)]

    acked = bench.end(worker, *ends, *ends)

    assert acked == {(id, 1) for id in ids}
    assert bench.states(ids) == list(USUAL.values())
    assert all(len(bench.history(id)) <= 1 for id in ids)


def a_lost_reply_is_made_good_by_sending_the_same_exchange_again(bench: Bench) -> None:
    worker = bench.worker()
    first, second, third = bench.put_many(3)
    done = ended(bench.claim_one(worker), Event.complete, result=b"1")
    asked = request(1)
    bench.store.jobs.exchange(worker, [done], asked)

    again = bench.store.jobs.exchange(worker, [done], asked)

    assert again.acked == {(first, 1)}
    assert [job.id for job in again.claimed] == [third]
    held, _ = bench.store.jobs.report(worker, [])
    assert sorted(held) == [(second, 1), (third, 1)]


def a_late_repeat_is_acknowledged_after_others_have_run_the_job(bench: Bench) -> None:
    first, second = bench.worker(), bench.worker()
    id = bench.put()
    failed = ended(bench.claim_one(first), Event.fail, delay=SECOND)
    bench.end(first, failed)
    bench.clock.advance(MINUTE)
    bench.store.upkeep.promote()
    again = bench.claim_one(second)
    before = bench.picture(id)

    repeated = bench.end(first, failed)

    assert repeated == {(id, 1)}
    assert bench.picture(id) == before
    assert bench.end(second, ended(again, Event.complete)) == {(id, 2)}


def an_end_of_another_worker_is_no_repeat(bench: Bench) -> None:
    first, second = bench.worker(), bench.worker()
    ids = bench.put_many(2)
    done, buried = bench.claim(first, 2)
    ends = [ended(done, Event.complete), ended(buried, Event.bury)]
    bench.end(first, *ends)
    before = [bench.picture(id) for id in ids]

    assert bench.end(second, *ends) == frozenset()
    assert [bench.picture(id) for id in ids] == before


def another_end_of_an_attempt_that_has_ended_is_refused(bench: Bench) -> None:
    worker = bench.worker()
    failed, completed = bench.put_many(2)
    first, second = bench.claim(worker, 2)
    bench.end(worker, ended(first, Event.fail), ended(second, Event.complete))
    before = [bench.picture(failed), bench.picture(completed)]

    assert bench.end(worker, ended(first, Event.complete), ended(second, Event.fail)) == frozenset()
    assert [bench.picture(failed), bench.picture(completed)] == before


def a_mixed_batch_acknowledges_exactly_the_live_and_the_repeated(bench: Bench) -> None:
    worker, stranger = bench.worker(), bench.worker()
    ids = bench.put_many(4)
    live, repeated, reclaimed = bench.claim(worker, 3)
    foreign = bench.claim_one(stranger)
    bench.end(worker, ended(repeated, Event.complete), ended(reclaimed, Event.interrupt))
    bench.claim_one(stranger)
    wrong_run = Ended(reclaimed.id, 2, Event.complete, State.completed, Counters())

    acked = bench.end(
        worker,
        ended(live, Event.complete),
        ended(repeated, Event.complete),
        ended(foreign, Event.complete),
        wrong_run,
    )

    assert acked == {(ids[0], 1), (ids[1], 1)}
    assert bench.states(ids) == [State.completed, State.completed, State.running, State.running]


def ending_nothing_acknowledges_nothing(bench: Bench) -> None:
    answer = bench.store.jobs.exchange(bench.worker(), [], None)

    assert (answer.acked, answer.claimed, answer.wishes) == (frozenset(), (), ())


def a_former_run_of_the_same_worker_is_refused(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put()
    bench.lose_once(id)
    claimed = bench.claim_one(worker, suspects=True)
    before = bench.picture(id)

    for run in (0, 1, 3):
        stale = Ended(id, run, Event.complete, State.completed, Counters())
        assert bench.end(worker, stale) == frozenset()

    assert bench.picture(id) == before
    assert bench.end(worker, ended(claimed, Event.complete)) == {(id, 2)}


def the_run_survives_a_redrive_so_that_the_first_life_is_fenced(bench: Bench) -> None:
    first, second = bench.worker(), bench.worker()
    id = bench.put()
    claimed = bench.claim_one(first)
    bench.reap(first)
    bench.end(second, ended(bench.claim_one(second, suspects=True), Event.bury))
    bench.store.operator.redrive([id], "ann", "fixed")
    again = bench.claim_one(second)

    assert (again.run, again.attempt) == (3, 1)
    assert bench.end(first, ended(claimed, Event.complete)) == frozenset()
    assert bench.state(id) is State.running


def every_end_of_a_former_holder_is_refused(bench: Bench) -> None:
    former, holder = bench.worker(), bench.worker()
    id = bench.put()
    stale = bench.claim_one(former)
    bench.reap(former)
    live = bench.claim_one(holder, suspects=True)
    before = bench.picture(id)

    for event in CLAIMS_OF_A_FORMER_HOLDER:
        assert bench.end(former, ended(stale, event)) == frozenset(), event
        assert bench.picture(id) == before, event
    assert not bench.store.jobs.extend(former, id, stale.run, HOUR)
    assert bench.store.jobs.report(former, []) == ([], [])
    bench.end(former, ended(stale, Event.lose))
    assert bench.picture(id) == before
    assert bench.end(holder, ended(live, Event.complete)) == {(id, 2)}


def every_end_is_refused_while_the_lost_job_waits(bench: Bench) -> None:
    former = bench.worker()
    id = bench.put()
    stale = bench.claim_one(former)
    bench.reap(former)
    before = bench.picture(id)

    for event in CLAIMS_OF_A_FORMER_HOLDER:
        assert bench.end(former, ended(stale, event)) == frozenset(), event

    assert bench.picture(id) == before


def every_end_is_refused_after_someone_else_has_finished(bench: Bench) -> None:
    former, holder = bench.worker(), bench.worker()
    id = bench.put()
    stale = bench.claim_one(former)
    bench.reap(former)
    bench.end(holder, ended(bench.claim_one(holder, suspects=True), Event.complete, result=b"2"))
    before = bench.picture(id)

    for event in CLAIMS_OF_A_FORMER_HOLDER:
        assert bench.end(former, ended(stale, event)) == frozenset(), event

    assert bench.picture(id) == before


def an_end_of_a_job_that_never_was_is_refused(bench: Bench) -> None:
    worker = bench.worker()
    nowhere = Ended(JobId(123_456_789), 1, Event.complete, State.completed, Counters())

    assert bench.end(worker, nowhere) == frozenset()
    assert bench.store.inspection.lookup([JobId(123_456_789)]) == [None]


def one_bad_end_of_five_hundred_applies_none(bench: Bench) -> None:
    worker = bench.worker()
    ids = bench.put_many(500)
    ends = [ended(job, Event.complete, result=b"1") for job in bench.claim(worker, 500)]
    ends[250] = _ended_badly(ends[250])

    with raises(DataFault):
        bench.end(worker, *ends)

    assert bench.states(ids) == [State.running] * 500
    acked = bench.end(worker, *ends[:250], *ends[251:])
    assert len(acked) == 499
    assert bench.state(ids[250]) is State.running


def a_bad_end_alone_leaves_its_job_running(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put()
    claimed = bench.claim_one(worker)
    before = bench.picture(id)

    with raises(DataFault):
        bench.end(worker, _ended_badly(ended(claimed, Event.complete)))

    assert bench.picture(id) == before
    assert bench.end(worker, ended(claimed, Event.complete, note="result not storable")) == {(id, 1)}


def an_end_past_the_deadline_counts_while_nobody_took_the_job_back(bench: Bench) -> None:
    worker = bench.worker(timeout=SECOND)
    id = bench.put()
    claimed = bench.claim_one(worker)
    bench.clock.advance(HOUR)

    assert bench.end(worker, ended(claimed, Event.complete)) == {(id, 1)}


def attempts_are_told_in_the_order_of_their_runs(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put()
    for event in (Event.interrupt, Event.snooze, Event.fail, Event.bury):
        bench.end(worker, ended(bench.claim_one(worker), event))
        bench.clock.advance(MINUTE)
        bench.store.upkeep.promote()

    told = [(attempt.run, attempt.event) for attempt in bench.history(id)]

    assert told == [(1, Event.interrupt), (2, Event.snooze), (3, Event.fail), (4, Event.bury)]


def hundreds_of_ends_of_all_kinds_go_in_one_exchange(bench: Bench) -> None:
    worker = bench.worker()
    events = [list(USUAL)[number % len(USUAL)] for number in range(400)]
    ids = bench.put_all([new_job(priority=number) for number in range(400)])
    claimed: tuple[ClaimedJob, ...] = bench.claim(worker, 400)

    acked = bench.end(worker, *(ended(job, event) for job, event in zip(claimed, events, strict=True)))

    assert len(acked) == 400
    assert bench.states(ids) == [USUAL[event] for event in events]


def _ended_badly(end: Ended) -> Ended:
    """The same end with half a surrogate pair in its note: no store can keep that as text."""
    return Ended(end.id, end.run, end.event, end.to, end.counters, result=end.result, note="half \ud800 pair")
