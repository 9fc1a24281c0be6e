"""Cases: unique keys and versions. At most one live job per key, and the key leaves with the job by every way."""

from duly.core.lifecycle import Event, Outcome, State

from .bench import (
    BOOM,
    DAY,
    HOUR,
    MINUTE,
    SECOND,
    Bench,
    ended,
    new_job,
    request_key,
    unique,
)
from .expect import raises

QUEUED, LIVE = unique(), unique(live=True)


def a_second_job_of_a_key_is_answered_with_the_first(bench: Bench) -> None:
    for key in (unique("q"), unique("l", live=True)):
        first = bench.ask(args=b'{"a":1}', unique=key)

        again = bench.ask(args=b'{"a":2}', unique=key)

        assert (first.outcome, again.outcome) == (Outcome.created, Outcome.duplicate)
        assert again.id == first.id
        assert bench.row(first.id).args == b'{"a":1}'
    assert bench.store.inspection.counts()[0].ready == 2


def jobs_of_other_keys_and_of_none_do_not_meet(bench: Bench) -> None:
    stored = [bench.ask(unique=unique("a")), bench.ask(unique=unique("b")), bench.ask(), bench.ask()]

    assert {one.outcome for one in stored} == {Outcome.created}
    assert len({one.id for one in stored}) == 4


def a_scheduled_and_a_blocked_job_hold_their_keys(bench: Bench) -> None:
    for key in (unique("q"), unique("l", live=True)):
        scheduled = bench.put(unique=key, delay=HOUR)
        bench.must_hold(scheduled, key)
    blocked = bench.put("mystery", unique=unique("m"), queue="odd")
    bench.claim(bench.worker(), 10, queues=("odd",))
    assert bench.state(blocked) is State.blocked

    bench.must_hold(blocked, unique("m"))


def a_key_of_scope_queued_is_free_once_its_job_is_claimed(bench: Bench) -> None:
    worker = bench.worker()
    first = bench.put(unique=QUEUED)
    bench.claim_one(worker)

    second = bench.ask(unique=QUEUED)

    assert second.outcome is Outcome.created
    assert second.id != first
    bench.must_hold(second.id, QUEUED)


def a_key_of_scope_live_is_taken_until_its_job_has_ended(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put(unique=LIVE)
    claimed = bench.claim_one(worker)
    bench.must_hold(id, LIVE)
    bench.end(worker, ended(claimed, Event.fail, delay=MINUTE))
    bench.must_hold(id, LIVE)
    bench.clock.advance(HOUR)
    bench.store.upkeep.promote()
    bench.must_hold(id, LIVE)

    bench.work(worker)

    assert bench.must_be_free(LIVE) != id


def a_retry_takes_no_key_again_and_frees_none_of_another_job(bench: Bench) -> None:
    worker = bench.worker()
    first = bench.put(unique=QUEUED)
    claimed = bench.claim_one(worker)
    second = bench.put(unique=QUEUED, queue="elsewhere")
    bench.end(worker, ended(claimed, Event.fail))
    bench.must_hold(second, QUEUED)
    bench.store.operator.run_now([first], "ann", "now")
    retried = bench.claim_one(worker)
    assert retried.id == first
    bench.must_hold(second, QUEUED)

    bench.end(worker, ended(retried, Event.complete))

    bench.must_hold(second, QUEUED)


def a_snooze_an_interrupt_and_a_loss_take_no_key_again(bench: Bench) -> None:
    worker = bench.worker()
    for number, event in enumerate((Event.snooze, Event.lose, Event.interrupt)):
        key = unique(f"k{number}")
        bench.put(unique=key)
        bench.work(worker, event)

        assert bench.ask(unique=key, queue="elsewhere").outcome is Outcome.created


def every_final_end_of_an_attempt_gives_the_key_back(bench: Bench) -> None:
    worker = bench.worker()
    for event, to in (
        (Event.complete, State.completed),
        (Event.skip, State.skipped),
        (Event.bury, State.dead),
        (Event.fail, State.dead),
        (Event.cancel, State.cancelled),
        (Event.lose, State.dead),
    ):
        key = unique(f"{event} {to}", live=True)
        bench.put(unique=key)
        claimed = bench.claim_one(worker)

        bench.end(worker, ended(claimed, event, to, error=BOOM if event is Event.fail else None))

        assert bench.state(claimed.id) is to
        bench.must_be_free(key)


def an_end_in_a_transaction_gives_the_key_back_when_it_commits(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put(unique=LIVE)
    claimed = bench.claim_one(worker)
    with raises(ZeroDivisionError), bench.store.transaction() as connection:
        assert bench.store.complete_on(connection, worker, ended(claimed, Event.complete))
        raise ZeroDivisionError
    bench.must_hold(id, LIVE)

    with bench.store.transaction() as connection:
        assert bench.store.complete_on(connection, worker, ended(claimed, Event.complete))

    bench.must_be_free(LIVE)


def a_cancelled_job_gives_its_key_back(bench: Bench) -> None:
    for number, scope in enumerate((False, True)):
        ready, later = unique(f"r{number}", live=scope), unique(f"s{number}", live=scope)
        ids = [bench.put(unique=ready), bench.put(unique=later, delay=HOUR)]

        bench.store.operator.cancel(ids, "ann", "not needed")

        for key in (ready, later):
            bench.must_be_free(key)


def a_cancel_in_a_transaction_gives_the_key_back_when_it_commits(bench: Bench) -> None:
    id = bench.put(unique=LIVE)
    with raises(ZeroDivisionError), bench.store.transaction() as connection:
        assert bench.store.cancel_on(connection, [id], "ann", "no") == {id: State.cancelled}
        seen = bench.store.lookup_on(connection, [id])[0]
        assert seen is not None
        assert seen.state is State.cancelled
        raise ZeroDivisionError
    bench.must_hold(id, LIVE)

    with bench.store.transaction() as connection:
        bench.store.cancel_on(connection, [id], "ann", "no")

    assert bench.state(id) is State.cancelled
    bench.must_be_free(LIVE)


def a_running_job_with_a_wish_holds_its_key_until_it_has_ended(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put(unique=LIVE)
    claimed = bench.claim_one(worker)
    bench.store.operator.cancel([id], "ann", "not needed")
    bench.must_hold(id, LIVE)

    bench.end(worker, ended(claimed, Event.fail))

    assert bench.state(id) is State.cancelled
    bench.must_be_free(LIVE)


def a_wish_granted_at_promotion_gives_the_key_back(bench: Bench) -> None:
    id = bench.put(unique=LIVE, delay=MINUTE)
    bench.database.wish_cancel(id, "ann", "not needed")
    bench.clock.advance(HOUR)
    bench.store.upkeep.promote()

    assert bench.state(id) is State.cancelled
    bench.must_be_free(LIVE)


def an_expired_job_holds_no_key_though_nobody_has_noticed(bench: Bench) -> None:
    for number, delay in enumerate((None, MINUTE)):
        key = unique(f"k{number}", live=True)
        old = bench.put(unique=key, expires=MINUTE, delay=delay)
        bench.clock.advance(HOUR)

        new = bench.must_be_free(key)
        bench.store.upkeep.promote()
        bench.sweep()

        assert bench.states([old, new]) == [State.skipped, State.ready]
        bench.must_hold(new, key)


def a_job_that_expired_gives_its_key_back(bench: Bench) -> None:
    worker = bench.worker()
    for number, notice in enumerate(("claim", "sweep", "promotion")):
        key = unique(f"k{number}", live=True)
        bench.put(unique=key, expires=MINUTE, delay=MINUTE if notice == "promotion" else None)
        bench.clock.advance(HOUR)
        if notice == "claim":
            assert bench.claim(worker, 1) == ()
        elif notice == "sweep":
            bench.sweep()
        else:
            bench.store.upkeep.promote()

        bench.must_be_free(key)


def a_lost_worker_gives_back_no_key_of_a_job_that_runs_again(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put(unique=LIVE)
    bench.claim_one(worker)
    bench.reap(worker)
    assert bench.state(id) is State.ready

    bench.must_hold(id, LIVE)

    other = bench.worker()
    claimed = bench.claim_one(other, suspects=True)
    bench.end(other, ended(claimed, Event.complete))
    bench.must_be_free(LIVE)


def a_job_dead_as_poison_gives_its_key_back(bench: Bench) -> None:
    for way in ("reap", "disown", "sweep"):
        key = unique(way, live=True)
        id = bench.put(unique=key, timeout=SECOND)
        bench.lose_once(id)
        worker = bench.worker()
        run = bench.claim_one(worker, suspects=True).run
        if way == "reap":
            bench.reap(worker, 2)
        elif way == "disown":
            bench.store.leases.disown(worker, [(id, run)], "killed", 2)
        else:
            bench.sweep(poison=2)

        assert bench.state(id) is State.dead, way
        bench.must_be_free(key)


def a_job_whose_workers_row_vanished_keeps_its_key_until_it_is_dead(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put(unique=LIVE)
    bench.claim_one(worker)
    bench.database.forget_worker(worker)
    bench.sweep()

    bench.must_hold(id, LIVE)

    second = bench.worker()
    bench.claim_one(second, suspects=True)
    bench.database.forget_worker(second)
    bench.sweep(poison=2)
    assert bench.state(id) is State.dead
    bench.must_be_free(LIVE)


def an_abandoned_job_gives_its_key_back(bench: Bench) -> None:
    id = bench.put("mystery", unique=LIVE)
    bench.claim(bench.worker(), 1)
    bench.clock.advance(2 * HOUR)
    bench.sweep(unknown_after=HOUR)

    assert bench.state(id) is State.dead
    bench.must_be_free(LIVE)


def a_sweep_takes_no_key_from_a_job_that_holds_it(bench: Bench) -> None:
    worker = bench.worker(timeout=DAY)
    running = bench.put(unique=unique("running", live=True))
    bench.claim_one(worker)
    blocked = bench.put("mystery", unique=unique("blocked"))
    bench.claim(worker, 1)
    ready = bench.put(unique=unique("ready"))
    scheduled = bench.put(unique=unique("scheduled"), delay=DAY)

    for _ in range(2):
        bench.sweep(unknown_after=DAY)

    bench.must_hold(running, unique("running", live=True))
    bench.must_hold(blocked, unique("blocked"))
    bench.must_hold(ready, unique("ready"))
    bench.must_hold(scheduled, unique("scheduled"))


def deleting_an_ended_job_takes_no_key_from_another(bench: Bench) -> None:
    worker = bench.worker()
    bench.put(unique=LIVE)
    dead = bench.work(worker, Event.bury)
    cancelled = bench.put(unique=LIVE)
    bench.store.operator.cancel([cancelled], "ann", "no")
    holder = bench.put(unique=LIVE, queue="elsewhere")
    bench.clock.advance(2 * DAY)

    bench.store.operator.purge([dead], "ann", "spam")
    bench.retain()

    assert bench.states([dead, cancelled, holder]) == [None, None, State.ready]
    bench.must_hold(holder, LIVE)


def a_key_stays_with_its_job_when_a_person_moves_it(bench: Bench) -> None:
    id = bench.put(unique=QUEUED)
    operator = bench.store.operator
    operator.run_at([id], bench.clock() + HOUR, "ann", "later")
    bench.must_hold(id, QUEUED)
    operator.reprioritise([id], 3, "ann", "urgent")
    operator.run_now([id], "ann", "now")

    bench.must_hold(id, QUEUED)


def a_key_whose_job_was_resumed_or_unparked_is_freed_by_its_claim(bench: Bench) -> None:
    id = bench.put("mystery", unique=QUEUED)
    bench.claim(bench.worker(), 1)
    bench.must_hold(id, QUEUED)

    claimed = bench.claim(bench.worker("mystery"), 1, unparked=("mystery",))

    assert [job.id for job in claimed] == [id]
    bench.must_be_free(QUEUED)


def a_redriven_job_takes_its_key_again(bench: Bench) -> None:
    worker = bench.worker()
    for key in (unique("q"), unique("l", live=True)):
        bench.put(unique=key)
        id = bench.work(worker, Event.bury)
        assert bench.store.operator.redrive([id], "ann", "fixed") == [id]

        bench.must_hold(id, key)

        bench.work(worker)
        bench.must_be_free(key)


def a_job_whose_key_is_taken_is_not_redriven(bench: Bench) -> None:
    worker = bench.worker()
    bench.put(unique=LIVE)
    dead = bench.work(worker, Event.bury, error=BOOM)
    other = bench.put(unique=LIVE)
    plain = bench.put(queue="elsewhere")
    bench.store.operator.cancel([plain], "ann", "no")
    before = bench.picture(dead)

    moved = bench.store.operator.redrive([dead, plain], "ann", "again")

    assert moved == [plain]
    assert bench.picture(dead) == before
    bench.work(worker)
    assert bench.state(other) is State.completed
    assert bench.store.operator.redrive([dead], "ann", "again") == [dead]


def of_two_dead_jobs_with_one_key_only_one_is_redriven(bench: Bench) -> None:
    worker = bench.worker()
    ids = []
    for _ in range(2):
        bench.put(unique=LIVE)
        ids.append(bench.work(worker, Event.bury))

    moved = bench.store.operator.redrive(ids, "ann", "again")

    assert moved == [ids[0]]
    assert bench.states(ids) == [State.ready, State.dead]


def duplicates_within_one_call_are_answered_in_the_order_asked(bench: Bench) -> None:
    known = bench.put(unique=unique("k3"))
    asked = [new_job(unique=unique(key)) for key in ("k1", "k2", "k1", "k3", "k2")]

    stored = bench.store.jobs.enqueue([*asked, new_job(), new_job()])

    created, duplicate = Outcome.created, Outcome.duplicate
    assert [one.outcome for one in stored] == [
        created,
        created,
        duplicate,
        duplicate,
        duplicate,
        created,
        created,
    ]
    assert [stored[index].id for index in (2, 3, 4)] == [stored[0].id, known, stored[1].id]
    assert bench.store.inspection.counts()[0].ready == 5


def idempotency_is_looked_at_before_the_unique_key(bench: Bench) -> None:
    worker = bench.worker()
    first = bench.put(unique=unique(replacing=True), idempotency=request_key())

    again = bench.ask(unique=unique(replacing=True), idempotency=request_key())

    assert (again.id, again.outcome) == (first, Outcome.duplicate)
    assert bench.state(first) is State.ready
    bench.work(worker)
    assert bench.ask(unique=unique(replacing=True), idempotency=request_key()).id == first


def a_request_answered_with_another_job_is_so_answered_again(bench: Bench) -> None:
    worker = bench.worker()
    first = bench.put(unique=QUEUED)
    assert bench.ask(unique=QUEUED, idempotency=request_key()).id == first
    bench.work(worker)

    again = bench.ask(unique=QUEUED, idempotency=request_key())

    assert (again.id, again.outcome) == (first, Outcome.duplicate)
