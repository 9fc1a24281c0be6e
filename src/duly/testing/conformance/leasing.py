"""Cases: workers come, beat, vanish and are vanished; what they held goes back exactly once."""

from duly.core.job import Counters, Incarnation, JobId
from duly.core.leases import Watch
from duly.core.lifecycle import Event, State
from duly.testing.clock import NOON, FakeClock

from .bench import (
    DAY,
    HOUR,
    LEASE,
    MINUTE,
    POISON,
    SECOND,
    USUAL,
    Bench,
    ended,
)


def every_registration_is_a_new_incarnation(bench: Bench) -> None:
    seen = []
    for _ in range(5):
        worker = bench.worker()
        seen.append(worker)
        bench.store.leases.retire(worker)
    seen.append(bench.worker(store=bench.another()))

    assert len(set(seen)) == 6


def every_end_by_a_stranger_is_refused(bench: Bench) -> None:
    holder, stranger = bench.worker(), bench.worker()
    id = bench.put()
    claimed = bench.claim_one(holder)

    for event in USUAL:
        assert bench.end(stranger, ended(claimed, event)) == frozenset(), event

    assert (bench.row(id).state, bench.row(id).incarnation) == (State.running, holder)
    assert bench.end(holder, ended(claimed, Event.complete)) == {(id, 1)}
    assert bench.row(id).incarnation == holder


def no_attempt_starts_before_its_claim_whatever_the_workers_clock_says(bench: Bench) -> None:
    worker = bench.worker()
    done, dead = bench.put_many(2)
    bench.clock.advance(MINUTE)
    first, second = bench.claim(worker, 2)
    bench.clock.advance(MINUTE)

    bench.end(worker, ended(first, Event.complete, elapsed=HOUR), ended(second, Event.bury, elapsed=HOUR))

    assert [bench.row(id).started_at for id in (done, dead)] == [NOON + MINUTE] * 2


def beating_counts_one_for_each_worker_named(bench: Bench) -> None:
    first, second, third = bench.worker(), bench.worker(), bench.worker()
    before = {beat.incarnation: beat.beat for beat in bench.store.leases.beats()}

    alive = bench.store.leases.beat([first, second])

    after = {beat.incarnation: beat.beat for beat in bench.store.leases.beats()}
    assert alive == {first, second}
    assert after == {first: before[first] + 1, second: before[second] + 1, third: before[third]}


def a_reaped_worker_is_missing_in_the_answer_to_its_beat(bench: Bench) -> None:
    first, second = bench.worker(), bench.worker()
    bench.reap(first)

    assert bench.store.leases.beat([first, second, Incarnation(98_765)]) == {second}
    assert bench.store.leases.beat([]) == frozenset()


def a_beat_counts_however_late_it_comes(bench: Bench) -> None:
    worker = bench.worker()
    bench.clock.advance(30 * DAY)

    assert bench.store.leases.beat([worker]) == {worker}


def beats_tell_the_lease_and_the_age_by_the_stores_clock(bench: Bench) -> None:
    worker = bench.worker(lease=45 * SECOND)
    bench.clock.advance(20 * SECOND)

    beat = bench.beat_of(worker)

    assert (beat.lease, beat.age) == (45.0, 20.0)
    bench.store.leases.beat([worker])
    assert bench.beat_of(worker).age == 0.0


def reaping_makes_what_a_worker_held_ready_and_lost(bench: Bench) -> None:
    worker = bench.worker()
    ids = bench.put_many(5)
    bench.claim(worker, 4)

    moved = bench.reap(worker)

    assert moved == 4
    assert bench.states(ids) == [State.ready] * 5
    assert [bench.row(id).counters.lost for id in ids] == [1, 1, 1, 1, 0]
    assert bench.store.leases.beats() == []


def a_reaped_attempt_is_recorded_as_lost(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put()
    bench.claim_one(worker)
    bench.clock.advance(MINUTE)

    bench.reap(worker)

    (attempt,) = bench.history(id)
    assert (attempt.run, attempt.event, attempt.incarnation) == (1, Event.lose, worker)
    assert attempt.ended_at == NOON + MINUTE


def a_worker_that_has_beaten_since_is_not_reaped(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put()
    bench.claim_one(worker)
    seen = bench.beat_of(worker)
    bench.store.leases.beat([worker])

    assert bench.store.leases.reap([seen], POISON) == 0
    assert bench.state(id) is State.running
    assert bench.store.leases.beat([worker]) == {worker}


def reaping_twice_moves_once(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put()
    bench.claim_one(worker)
    seen = bench.beat_of(worker)
    bench.store.leases.reap([seen], POISON)

    assert bench.store.leases.reap([seen], POISON) == 0
    assert bench.row(id).counters == Counters(lost=1)


def reaping_nobody_moves_nothing(bench: Bench) -> None:
    worker = bench.worker()
    bench.put()
    bench.claim_one(worker)

    assert bench.store.leases.reap([], POISON) == 0


def an_idle_worker_is_reaped_too(bench: Bench) -> None:
    worker = bench.worker()

    assert bench.reap(worker) == 0
    assert bench.store.leases.beat([worker]) == frozenset()


def reaping_one_worker_leaves_the_others(bench: Bench) -> None:
    first, second = bench.worker(), bench.worker()
    one, two = bench.put_many(2)
    bench.claim_one(first)
    bench.claim_one(second)

    bench.reap(first)

    assert bench.states([one, two]) == [State.ready, State.running]


def reaping_several_workers_goes_in_one_call(bench: Bench) -> None:
    workers = [bench.worker() for _ in range(3)]
    ids = bench.put_many(6)
    for worker in workers:
        bench.claim(worker, 2)

    assert bench.store.leases.reap(bench.store.leases.beats(), POISON) == 6
    assert bench.states(ids) == [State.ready] * 6


def a_loss_ends_a_row_of_interrupts_and_keeps_the_other_counters(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put()
    before = Counters(failed=2, lost=0, interrupted=5, snoozed=3)
    bench.end(worker, ended(bench.claim_one(worker), Event.interrupt, counters=before))
    bench.claim_one(worker)

    bench.reap(worker)

    assert bench.row(id).counters == Counters(failed=2, lost=1, interrupted=0, snoozed=3)


def a_first_loss_that_nobody_witnessed_convicts_no_job(bench: Bench) -> None:
    worker = bench.worker()
    ids = bench.put_many(3)
    bench.claim(worker, 3)

    bench.reap(worker, poison=1)

    assert bench.states(ids) == [State.ready] * 3


def a_job_lost_alone_to_the_limit_is_dead_as_poison(bench: Bench) -> None:
    id = bench.put(args=b'{"n":1}')
    for number in range(1, POISON + 1):
        worker = bench.worker()
        bench.claim_one(worker, suspects=number > 1)
        bench.reap(worker, POISON)
        assert bench.state(id) is (State.dead if number == POISON else State.ready), number

    row = bench.row(id)
    assert (row.counters, row.run, row.args) == (Counters(lost=3), 3, b'{"n":1}')
    assert row.reason == "poison: its worker was lost 3 times"
    assert [attempt.event for attempt in bench.history(id)] == [Event.lose] * 3


def losses_do_not_count_as_failures(bench: Bench) -> None:
    id = bench.put(attempts=1)
    bench.lose_once(id)

    assert bench.row(id).counters == Counters(failed=0, lost=1)
    assert bench.state(id) is State.ready


def a_wished_cancel_is_granted_when_the_worker_is_reaped(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put()
    bench.claim_one(worker)
    bench.store.operator.cancel([id], "ann", "not needed")

    assert bench.reap(worker) == 1

    row = bench.row(id)
    assert (row.state, row.reason) == (State.cancelled, "not needed")


def only_started_attempts_of_a_dead_child_are_lost(bench: Bench) -> None:
    worker = bench.worker()
    started, waiting, other = bench.put_many(3)
    bench.claim(worker, 3)

    moved = bench.store.leases.disown(worker, [(started, 1)], "killed by signal 9", POISON)

    assert moved == 3
    assert bench.row(started).counters == Counters(lost=1)
    assert bench.row(waiting).counters == bench.row(other).counters == Counters(interrupted=1)
    assert bench.states([started, waiting, other]) == [State.ready] * 3


def a_crash_with_five_hundred_claimed_convicts_only_the_one_that_ran(bench: Bench) -> None:
    worker = bench.worker()
    ids = bench.put_many(500)
    bench.claim(worker, 500)

    bench.store.leases.disown(worker, [(ids[123], 1)], "killed by signal 11", 1)

    rows = [row for row in bench.store.inspection.lookup(ids) if row]
    assert [row.id for row in rows if row.state is State.dead] == [ids[123]]
    assert sum(row.state is State.ready and row.counters == Counters(interrupted=1) for row in rows) == 499


def disowned_attempts_are_recorded_with_the_reason(bench: Bench) -> None:
    worker = bench.worker()
    started, waiting = bench.put_many(2)
    bench.claim(worker, 2)

    bench.store.leases.disown(worker, [(started, 1)], "killed by signal 9", POISON)

    (lost,), (unstarted,) = bench.history(started), bench.history(waiting)
    assert (lost.event, lost.reason, lost.incarnation) == (Event.lose, "killed by signal 9", worker)
    assert lost.started_at == NOON
    assert (unstarted.event, unstarted.started_at) == (Event.interrupt, None)


def disowning_deletes_the_workers_row(bench: Bench) -> None:
    worker = bench.worker()
    bench.put()

    assert bench.store.leases.disown(worker, [], "gone", POISON) == 0
    assert bench.store.leases.beat([worker]) == frozenset()
    assert bench.claim(worker) == ()


def disowning_twice_moves_once(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put()
    bench.claim_one(worker)
    bench.store.leases.disown(worker, [(id, 1)], "gone", POISON)

    assert bench.store.leases.disown(worker, [(id, 1)], "gone", POISON) == 0
    assert bench.row(id).counters == Counters(lost=1)


def a_start_told_twice_is_one_loss(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put()
    bench.claim_one(worker)

    assert bench.store.leases.disown(worker, [(id, 1), (id, 1)], "gone", POISON) == 1
    assert bench.row(id).counters == Counters(lost=1)


def disowning_touches_nothing_that_others_hold(bench: Bench) -> None:
    dead, living = bench.worker(), bench.worker()
    mine, theirs = bench.put_many(2)
    bench.claim_one(dead)
    bench.claim_one(living)

    moved = bench.store.leases.disown(dead, [(mine, 1), (theirs, 1), (JobId(98_765), 1)], "gone", POISON)

    assert moved == 1
    assert bench.state(theirs) is State.running
    assert bench.row(theirs).counters == Counters()


def a_start_of_an_earlier_run_convicts_nobody(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put()
    bench.end(worker, ended(bench.claim_one(worker), Event.interrupt))
    bench.claim_one(worker)

    bench.store.leases.disown(worker, [(id, 1)], "gone", POISON)

    assert bench.row(id).counters == Counters(interrupted=2)


def a_witnessed_loss_at_the_limit_is_dead_as_poison(bench: Bench) -> None:
    id = bench.put()
    for number in range(1, POISON + 1):
        worker = bench.worker()
        claimed = bench.claim_one(worker, suspects=number > 1)
        bench.store.leases.disown(worker, [(id, claimed.run)], "killed", POISON)
        assert bench.state(id) is (State.dead if number == POISON else State.ready), number

    assert bench.row(id).reason == "poison: its worker was lost 3 times"
    assert bench.row(id).counters == Counters(lost=3)


def an_unstarted_suspect_of_a_dead_child_is_not_convicted(bench: Bench) -> None:
    id = bench.put()
    bench.lose_once(id)
    worker = bench.worker()
    bench.end(worker, ended(bench.claim_one(worker, suspects=True), Event.interrupt))
    bench.claim_one(worker, suspects=True)

    bench.store.leases.disown(worker, [], "killed", 1)

    row = bench.row(id)
    assert (row.state, row.counters) == (State.ready, Counters(lost=1, interrupted=2))


def wished_cancels_are_granted_when_a_child_dies(bench: Bench) -> None:
    worker = bench.worker()
    started, waiting = bench.put_many(2)
    bench.claim(worker, 2)
    bench.store.operator.cancel([started, waiting], "ann", "not needed")

    bench.store.leases.disown(worker, [(started, 1)], "killed", POISON)

    assert bench.states([started, waiting]) == [State.cancelled] * 2


def retiring_hands_back_what_is_still_claimed_as_interrupted(bench: Bench) -> None:
    worker = bench.worker()
    ids = bench.put_many(3)
    bench.claim(worker, 2)

    assert bench.store.leases.retire(worker) == 2

    assert bench.states(ids) == [State.ready] * 3
    assert [bench.row(id).counters for id in ids] == [Counters(interrupted=1)] * 2 + [Counters()]
    assert [attempt.event for attempt in bench.history(ids[0])] == [Event.interrupt]
    assert bench.history(ids[0])[0].started_at is None


def retiring_twice_moves_once(bench: Bench) -> None:
    worker = bench.worker()
    bench.put()
    bench.claim_one(worker)
    bench.store.leases.retire(worker)

    assert bench.store.leases.retire(worker) == 0
    assert bench.store.leases.retire(Incarnation(98_765)) == 0


def a_retired_worker_is_reaped_by_nobody(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put()
    bench.claim_one(worker)
    seen = bench.beat_of(worker)
    bench.store.leases.retire(worker)

    assert bench.store.leases.reap([seen], POISON) == 0
    assert bench.row(id).counters == Counters(interrupted=1)


def wished_cancels_are_granted_when_a_worker_retires(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put()
    bench.claim_one(worker)
    bench.store.operator.cancel([id], "ann", "not needed")

    bench.store.leases.retire(worker)

    assert bench.state(id) is State.cancelled


def what_others_gave_back_is_not_given_back_again(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put()
    bench.claim_one(worker)
    bench.reap(worker)

    assert bench.store.leases.retire(worker) == 0
    assert bench.store.leases.disown(worker, [(id, 1)], "killed", POISON) == 0
    assert bench.row(id).counters == Counters(lost=1)


def nobody_is_overdue_after_the_database_was_away_for_two_leases(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put()
    bench.claim_one(worker)
    watch = Watch()
    assert watch.overdue(bench.store.leases.beats(), 0.0, 15.0) == []
    bench.clock.advance(2 * LEASE)
    watch.interrupted()

    overdue = watch.overdue(bench.store.leases.beats(), 60.0, 15.0)

    assert overdue == []
    assert bench.store.leases.beat([worker]) == {worker}
    assert bench.state(id) is State.running


def a_watched_silent_worker_is_overdue_and_reaped(bench: Bench) -> None:
    silent, beating = bench.worker(), bench.worker()
    one, two = bench.put_many(2)
    bench.claim_one(silent)
    bench.claim_one(beating)
    watch = Watch()

    for now in range(0, 30, 5):
        assert watch.overdue(bench.store.leases.beats(), float(now), 15.0) == []
        bench.store.leases.beat([beating])
        bench.clock.advance(5 * SECOND)
    overdue = watch.overdue(bench.store.leases.beats(), 30.0, 15.0)

    assert [beat.incarnation for beat in overdue] == [silent]
    assert bench.store.leases.reap(overdue, POISON) == 1
    assert bench.states([one, two]) == [State.ready, State.running]


def a_primary_whose_clock_is_a_minute_off_lapses_nobody(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put()
    bench.claim_one(worker)
    for shift in (MINUTE, -MINUTE):
        shifted = bench.another(FakeClock(bench.clock() + shift))
        watch = Watch()

        overdue = [
            row for now in (0.0, 10.0, 20.0) for row in watch.overdue(shifted.leases.beats(), now, 15.0)
        ]

        assert overdue == []
        assert shifted.leases.beat([worker]) == {worker}
        assert shifted.upkeep.sweep(HOUR, POISON, MINUTE).overdue == 0
        assert bench.state(id) is State.running


def the_holder_token_of_a_disowned_attempt_is_dead(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put()
    stale = bench.claim_one(worker)
    bench.store.leases.disown(worker, [(id, 1)], "killed", POISON)

    with bench.store.transaction() as connection:
        applied = bench.store.complete_on(connection, worker, ended(stale, Event.complete))

    assert not applied
    assert bench.state(id) is State.ready
    assert bench.store.jobs.report(worker, []) == ([], [])
