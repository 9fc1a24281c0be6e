"""Cases: a cancel at every moment of a job's life; and what a worker reports and learns meanwhile."""

from duly.core.job import Counters, Ended, Incarnation, Progress
from duly.core.lifecycle import Event, State
from duly.testing.clock import NOON

from .bench import BOOM, HOUR, MINUTE, NO_SUCH_JOB, SECOND, USUAL, Bench, ended, new_job
from .expect import raises


def a_waiting_job_is_cancelled_at_once(bench: Bench) -> None:
    ready = bench.put()
    scheduled = bench.put(delay=HOUR)
    blocked = bench.put("mystery", queue="other")
    bench.claim(bench.worker(), 1, queues=("other",))

    answer = bench.store.operator.cancel([ready, scheduled, blocked], "ann", "not needed")

    assert answer == dict.fromkeys([ready, scheduled, blocked], State.cancelled)
    for id in (ready, scheduled, blocked):
        row = bench.row(id)
        assert (row.state, row.reason) == (State.cancelled, "not needed")
        assert row.finished_at is not None
    assert bench.claim(bench.worker(), 10) == ()


def a_cancelled_scheduled_job_is_never_promoted(bench: Bench) -> None:
    id = bench.put(delay=MINUTE)
    bench.store.operator.cancel([id], "ann", "not needed")
    bench.clock.advance(HOUR)

    assert bench.store.upkeep.promote()[0] == 0
    assert bench.state(id) is State.cancelled


def a_running_job_goes_on_with_the_wish_set(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put()
    bench.claim_one(worker)

    answer = bench.store.operator.cancel([id], "ann", "not needed")

    assert answer == {id: State.running}
    row = bench.row(id)
    assert (row.state, row.cancel_wished, row.incarnation) == (State.running, True, worker)


def final_and_unknown_jobs_are_absent_from_the_answer(bench: Bench) -> None:
    worker = bench.worker()
    done, dead, waiting = bench.put_many(3)
    bench.end(worker, ended(bench.claim_one(worker), Event.complete))
    bench.end(worker, ended(bench.claim_one(worker), Event.bury))
    before = [bench.picture(done), bench.picture(dead)]

    answer = bench.store.operator.cancel([done, dead, NO_SUCH_JOB, waiting], "ann", "not needed")

    assert answer == {waiting: State.cancelled}
    assert [bench.picture(done), bench.picture(dead)] == before


def cancelling_twice_changes_nothing_more(bench: Bench) -> None:
    worker = bench.worker()
    running, waiting = bench.put_many(2)
    bench.claim_one(worker)
    bench.store.operator.cancel([running, waiting], "ann", "first")
    before = [bench.picture(running), bench.picture(waiting)]

    answer = bench.store.operator.cancel([running, waiting], "ann", "first")

    assert answer == {running: State.running}
    assert [bench.picture(running), bench.picture(waiting)] == before


def the_worker_learns_of_a_wish_with_its_next_exchange(bench: Bench) -> None:
    worker, other = bench.worker(), bench.worker()
    id, _ = bench.put_many(2)
    bench.claim_one(worker)
    bench.claim_one(other)
    bench.store.operator.cancel([id], "ann", "not needed")

    assert bench.store.jobs.exchange(worker, [], None).wishes == (id,)
    assert bench.store.jobs.exchange(other, [], None).wishes == ()


def the_worker_learns_of_a_wish_with_its_report(bench: Bench) -> None:
    worker = bench.worker()
    id, other = bench.put_many(2)
    bench.claim(worker, 2)
    bench.store.operator.cancel([id], "ann", "not needed")

    held, wishes = bench.store.jobs.report(worker, [])

    assert sorted(held) == [(id, 1), (other, 1)]
    assert wishes == [id]


def a_wish_turns_every_return_to_waiting_into_cancelled(bench: Bench) -> None:
    for event in (Event.fail, Event.snooze, Event.interrupt, Event.lose):
        worker = bench.worker()
        id = bench.put()
        claimed = bench.claim_one(worker)
        bench.store.operator.cancel([id], "ann", "not needed")

        acked = bench.end(worker, ended(claimed, event, reason="went wrong"))

        assert acked == {(id, 1)}, event
        row = bench.row(id)
        assert (row.state, row.reason) == (State.cancelled, "not needed"), event
        assert not row.cancel_wished, event


def a_wish_does_not_undo_what_was_achieved(bench: Bench) -> None:
    expected = {Event.complete: State.completed, Event.skip: State.skipped, Event.bury: State.dead}
    for event, state in expected.items():
        worker = bench.worker()
        id = bench.put()
        claimed = bench.claim_one(worker)
        bench.store.operator.cancel([id], "ann", "not needed")

        assert bench.end(worker, ended(claimed, event)) == {(id, 1)}, event
        assert bench.state(id) is state, event


def a_wish_does_not_undo_a_completion_in_a_later_run(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put()
    bench.end(worker, ended(bench.claim_one(worker), Event.interrupt))
    claimed = bench.claim_one(worker)
    bench.store.operator.cancel([id], "ann", "not needed")

    assert bench.end(worker, ended(claimed, Event.complete, result=b"7")) == {(id, 2)}

    row = bench.row(id)
    assert (row.state, row.result, row.reason) == (State.completed, b"7", None)
    assert bench.store.jobs.report(worker, []) == ([], [])


def a_wish_does_not_hide_a_death_at_the_last_attempt(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put()
    claimed = bench.claim_one(worker)
    bench.store.operator.cancel([id], "ann", "not needed")

    bench.end(worker, ended(claimed, Event.fail, State.dead, error=BOOM))

    assert bench.state(id) is State.dead


def a_handler_that_stops_for_the_wish_is_cancelled(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put()
    claimed = bench.claim_one(worker)
    bench.store.operator.cancel([id], "ann", "not needed")

    bench.end(worker, ended(claimed, Event.cancel, reason="stopped when asked"))

    assert (bench.state(id), bench.row(id).reason) == (State.cancelled, "not needed")
    assert [(attempt.event, attempt.reason) for attempt in bench.history(id)] == [
        (Event.cancel, "stopped when asked")
    ]


def an_end_that_became_cancelled_is_acknowledged_again(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put()
    claimed = bench.claim_one(worker)
    bench.store.operator.cancel([id], "ann", "not needed")
    bench.end(worker, ended(claimed, Event.fail))
    before = bench.picture(id)

    assert bench.end(worker, ended(claimed, Event.fail)) == {(id, 1)}
    assert bench.picture(id) == before


def a_wish_is_spent_when_it_is_granted(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put()
    claimed = bench.claim_one(worker)
    bench.store.operator.cancel([id], "ann", "not needed")
    bench.end(worker, ended(claimed, Event.fail))
    bench.store.operator.redrive([id], "ann", "after all")

    again = bench.claim_one(worker)
    bench.end(worker, ended(again, Event.fail))

    assert bench.state(id) is State.scheduled


def a_wish_is_spent_when_the_job_ended_otherwise(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put()
    claimed = bench.claim_one(worker)
    bench.store.operator.cancel([id], "ann", "not needed")
    bench.end(worker, ended(claimed, Event.bury))
    bench.store.operator.redrive([id], "ann", "after all")

    bench.end(worker, ended(bench.claim_one(worker), Event.fail))

    assert bench.state(id) is State.scheduled
    assert not bench.row(id).cancel_wished


def a_wish_whose_author_died_is_granted_at_promotion(bench: Bench) -> None:
    id = bench.put(delay=MINUTE)
    bench.database.wish_cancel(id, "ann", "not needed")
    bench.clock.advance(HOUR)

    bench.store.upkeep.promote()

    row = bench.row(id)
    assert (row.state, row.reason) == (State.cancelled, "not needed")


def a_wish_is_granted_when_a_sweep_takes_the_job_back(bench: Bench) -> None:
    worker = bench.worker(timeout=SECOND)
    id = bench.put()
    bench.claim_one(worker)
    bench.store.operator.cancel([id], "ann", "not needed")

    assert bench.sweep().overdue == 1
    assert bench.state(id) is State.cancelled


def progress_of_a_live_attempt_is_told(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put()
    bench.claim_one(worker)

    bench.store.jobs.report(worker, [Progress(id, 1, 3, 10, "third page")])
    assert bench.row(id).progress == Progress(id, 1, 3, 10, "third page")

    bench.store.jobs.report(worker, [Progress(id, 1, 4, None, None)])
    assert bench.row(id).progress == Progress(id, 1, 4, None, None)


def progress_of_a_former_holder_is_ignored(bench: Bench) -> None:
    former, holder = bench.worker(), bench.worker()
    id = bench.put()
    bench.claim_one(former)
    bench.reap(former)
    bench.claim_one(holder, suspects=True)
    bench.store.jobs.report(holder, [Progress(id, 2, 1)])

    bench.store.jobs.report(former, [Progress(id, 1, 99)])
    bench.store.jobs.report(holder, [Progress(id, 1, 98), Progress(NO_SUCH_JOB, 1, 97)])

    assert bench.row(id).progress == Progress(id, 2, 1)


def progress_goes_with_the_outcome(bench: Bench) -> None:
    worker = bench.worker()
    for event in (Event.complete, Event.interrupt):
        id = bench.put(priority=1)
        claimed = bench.claim_one(worker)
        bench.store.jobs.report(worker, [Progress(id, claimed.run, 5)])

        bench.end(worker, ended(claimed, event))

        assert bench.row(id).progress is None, event


def a_report_shows_claims_whose_reply_was_lost(bench: Bench) -> None:
    worker = bench.worker()
    lost = bench.put_many(3)
    bench.claim(worker, 3)
    known = bench.put()
    bench.claim_one(worker)

    held, wishes = bench.store.jobs.report(worker, [])

    assert sorted(held) == [(id, 1) for id in [*lost, known]]
    assert wishes == []


def strange_claims_go_back_as_interrupted(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put()
    bench.claim_one(worker)
    ((strange, run),) = bench.store.jobs.report(worker, [])[0]

    back = Ended(strange, run, Event.interrupt, State.ready, Counters(interrupted=1), reason="reply lost")
    acked = bench.end(worker, back)

    assert acked == {(id, 1)}
    assert bench.state(id) is State.ready
    assert bench.store.jobs.report(worker, []) == ([], [])


def a_report_tells_only_of_the_workers_own_jobs(bench: Bench) -> None:
    first, second = bench.worker(), bench.worker()
    one, two = bench.put_many(2)
    bench.claim_one(first)
    bench.claim_one(second)

    assert bench.store.jobs.report(first, []) == ([(one, 1)], [])
    assert bench.store.jobs.report(second, []) == ([(two, 1)], [])


def a_completion_in_the_callers_transaction_counts_from_its_commit(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put()
    claimed = bench.claim_one(worker)

    with bench.store.transaction() as connection:
        done = ended(claimed, Event.complete, result=b'"sent"')
        assert bench.store.complete_on(connection, worker, done)
        child = bench.store.enqueue_on(connection, [new_job()])[0].id

    row = bench.row(id)
    assert (row.state, row.result) == (State.completed, b'"sent"')
    assert bench.state(child) is State.ready


def a_completion_in_a_transaction_that_rolls_back_leaves_the_job_running(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put()
    claimed = bench.claim_one(worker)
    before = bench.picture(id)

    with raises(ZeroDivisionError), bench.store.transaction() as connection:
        assert bench.store.complete_on(connection, worker, ended(claimed, Event.complete))
        raise ZeroDivisionError

    assert bench.picture(id) == before
    assert bench.end(worker, ended(claimed, Event.complete)) == {(id, 1)}


def a_completion_in_a_transaction_is_fenced_like_any_other(bench: Bench) -> None:
    former, holder = bench.worker(), bench.worker()
    id = bench.put()
    stale = bench.claim_one(former)
    bench.reap(former)
    bench.claim_one(holder, suspects=True)
    before = bench.picture(id)

    with bench.store.transaction() as connection:
        assert not bench.store.complete_on(connection, former, ended(stale, Event.complete))

    assert bench.picture(id) == before


def any_end_may_be_written_in_the_callers_transaction(bench: Bench) -> None:
    for event, state in USUAL.items():
        worker = bench.worker()
        id = bench.put(priority=1)
        claimed = bench.claim_one(worker)

        with bench.store.transaction() as connection:
            assert bench.store.complete_on(connection, worker, ended(claimed, event)), event

        assert bench.state(id) is state, event
        bench.store.operator.cancel([id], "suite", "next round")


def extending_moves_the_deadline_of_one_attempt(bench: Bench) -> None:
    worker = bench.worker(timeout=MINUTE)
    id, other = bench.put_many(2)
    bench.claim(worker, 2)

    assert bench.store.jobs.extend(worker, id, 1, HOUR)

    assert bench.row(id).deadline == NOON + MINUTE + HOUR
    assert bench.row(other).deadline == NOON + MINUTE


def only_the_live_token_extends(bench: Bench) -> None:
    worker, stranger = bench.worker(timeout=MINUTE), bench.worker()
    id = bench.put()
    claimed = bench.claim_one(worker)
    before = bench.picture(id)

    assert not bench.store.jobs.extend(stranger, id, 1, HOUR)
    assert not bench.store.jobs.extend(worker, id, 2, HOUR)
    assert not bench.store.jobs.extend(Incarnation(55_555), id, 1, HOUR)
    assert bench.picture(id) == before

    bench.end(worker, ended(claimed, Event.complete))
    assert not bench.store.jobs.extend(worker, id, 1, HOUR)


def a_cancel_in_a_transaction_wishes_from_its_commit_on(bench: Bench) -> None:
    worker = bench.worker()
    id, other = bench.put_many(2)
    claimed = bench.claim_one(worker)
    with raises(ZeroDivisionError), bench.store.transaction() as connection:
        assert bench.store.cancel_on(connection, [id, other], "ann", "no") == {
            id: State.running,
            other: State.cancelled,
        }
        raise ZeroDivisionError
    assert not bench.row(id).cancel_wished
    assert bench.state(other) is State.ready

    with bench.store.transaction() as connection:
        bench.store.cancel_on(connection, [id, NO_SUCH_JOB], "ann", "no")

    assert bench.row(id).cancel_wished
    assert bench.store.jobs.report(worker, []) == ([(id, 1)], [id])
    bench.end(worker, ended(claimed, Event.fail))
    assert bench.state(id) is State.cancelled
