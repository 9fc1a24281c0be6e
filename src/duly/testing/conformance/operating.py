"""Cases: acts of a person. Each reports what it really moved, and doing it twice does it once."""

from duly.core.filters import Filter
from duly.core.job import Counters, JobId
from duly.core.lifecycle import Event, State
from duly.stores.protocol import OperationRecord
from duly.testing.clock import NOON

from .bench import BOOM, DAY, HOUR, MINUTE, NO_SUCH_JOB, SECOND, Bench, ended, new_job, together


def _bury(bench: Bench, count: int = 1) -> list[JobId]:
    worker = bench.worker()
    ids = bench.put_many(count)
    ends = [ended(job, Event.bury, reason="broken", error=BOOM) for job in bench.claim(worker, count)]
    bench.end(worker, *ends)
    return ids


def a_redriven_job_is_ready_with_its_budget_renewed_and_its_run_kept(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put()
    spent = Counters(failed=4, lost=0, interrupted=1, snoozed=2)
    bench.end(worker, ended(bench.claim_one(worker), Event.fail, State.dead, counters=spent, error=BOOM))

    assert bench.store.operator.redrive([id], "ann", "fixed") == [id]

    row = bench.row(id)
    assert (row.state, row.counters, row.run) == (State.ready, Counters(), 1)
    assert (row.reason, row.error, row.finished_at) == (None, None, None)
    claimed = bench.claim_one(worker)
    assert (claimed.run, claimed.attempt) == (2, 1)


def dead_cancelled_and_skipped_jobs_can_be_redriven(bench: Bench) -> None:
    worker = bench.worker()
    (dead,) = _bury(bench)
    cancelled = bench.put()
    bench.store.operator.cancel([cancelled], "ann", "no")
    skipped = bench.put()
    bench.end(worker, ended(bench.claim_one(worker), Event.skip, reason="refunded"))

    moved = bench.store.operator.redrive([dead, cancelled, skipped], "ann", "again")

    assert sorted(moved) == sorted([dead, cancelled, skipped])
    assert [job.id for job in bench.claim(worker, 10)] == [dead, cancelled, skipped]


def a_redrive_keeps_every_attribute(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put(
        queue="q",
        args=b'{"n":1}',
        priority=7,
        tenant="a",
        tags=("x",),
        correlation_id="c1",
        attempts=2,
        timeout=MINUTE,
    )
    before = bench.row(id)

    for _ in range(2):
        (claimed,) = bench.claim(worker, 1, queues=("q",))
        bench.end(worker, ended(claimed, Event.bury, error=BOOM))
        assert bench.state(id) is State.dead
        bench.clock.advance(HOUR)
        bench.store.operator.redrive([id], "ann", "fixed")

    after = bench.row(id)
    assert (after.queue, after.task, after.args, after.priority) == ("q", "ok", b'{"n":1}', 7)
    assert (after.tenant, after.tags, after.correlation_id) == ("a", ("x",), "c1")
    assert (after.attempts, after.timeout, after.enqueued_at) == (2, MINUTE, before.enqueued_at)
    assert [attempt.run for attempt in bench.history(id)] == [1, 2]
    (claimed,) = bench.claim(worker, 1, queues=("q",))
    assert bench.end(worker, ended(claimed, Event.complete)) == {(id, 3)}


def a_redrive_may_give_another_priority(bench: Bench) -> None:
    first, second = _bury(bench, 2)

    bench.store.operator.redrive([second], "ann", "urgent", priority=5)
    bench.store.operator.redrive([first], "ann", "later")

    assert [bench.row(first).priority, bench.row(second).priority] == [100, 5]
    assert [job.id for job in bench.claim(bench.worker(), 2)] == [second, first]


def redriving_twice_moves_once(bench: Bench) -> None:
    (id,) = _bury(bench)
    bench.store.operator.redrive([id], "ann", "fixed")
    before = bench.picture(id)

    assert bench.store.operator.redrive([id], "bob", "fixed too") == []
    assert bench.picture(id) == before


def live_completed_and_unknown_jobs_are_not_redriven(bench: Bench) -> None:
    worker = bench.worker()
    done, running, ready = bench.put_many(3)
    first, _ = bench.claim(worker, 2)
    bench.end(worker, ended(first, Event.complete))
    before = [bench.picture(id) for id in (done, running, ready)]

    moved = bench.store.operator.redrive([done, running, ready, NO_SUCH_JOB], "ann", "again")

    assert moved == []
    assert [bench.picture(id) for id in (done, running, ready)] == before


def a_redriven_job_that_had_expired_may_run(bench: Bench) -> None:
    id = bench.put(expires=MINUTE)
    bench.sweep()
    assert bench.state(id) is State.skipped

    bench.store.operator.redrive([id], "ann", "run it all the same")

    assert bench.claim_one(bench.worker()).id == id


def purging_deletes_dead_letters_for_good(bench: Bench) -> None:
    first, second = _bury(bench, 2)
    waiting = bench.put()

    purged = bench.store.operator.purge([first, waiting, NO_SUCH_JOB], "ann", "spam")

    assert purged == [first]
    assert bench.picture(first) == (None, [])
    assert bench.states([second, waiting]) == [State.dead, State.ready]
    assert bench.store.operator.purge([first], "ann", "spam") == []


def only_dead_letters_are_purged(bench: Bench) -> None:
    worker = bench.worker()
    cancelled = bench.put()
    bench.store.operator.cancel([cancelled], "ann", "no")
    done = bench.put()
    bench.end(worker, ended(bench.claim_one(worker), Event.complete))

    assert bench.store.operator.purge([cancelled, done], "ann", "spam") == []
    assert bench.states([cancelled, done]) == [State.cancelled, State.completed]


def a_scheduled_job_can_be_run_now(bench: Bench) -> None:
    worker = bench.worker()
    waiting = bench.put()
    id = bench.put(delay=DAY)

    assert bench.store.operator.run_now([id, NO_SUCH_JOB], "ann", "urgent") == [id]

    assert bench.row(id).run_at is None
    assert [job.id for job in bench.claim(worker, 2)] == [waiting, id]
    assert bench.store.upkeep.promote() == (0, None)


def a_ready_job_may_be_told_to_run_now(bench: Bench) -> None:
    id = bench.put()

    assert bench.store.operator.run_now([id], "ann", "urgent") == [id]
    assert bench.state(id) is State.ready


def a_waiting_job_can_be_given_another_due_time(bench: Bench) -> None:
    ready, scheduled = bench.put_all([new_job(), new_job(delay=DAY)])

    moved = bench.store.operator.run_at([ready, scheduled, NO_SUCH_JOB], NOON + HOUR, "ann", "later")

    assert sorted(moved) == [ready, scheduled]
    assert [bench.row(id).run_at for id in (ready, scheduled)] == [NOON + HOUR] * 2
    assert bench.claim(bench.worker(), 10) == ()
    bench.clock.advance(HOUR)
    assert bench.store.upkeep.promote()[0] == 2


def a_waiting_job_can_be_given_another_priority(bench: Bench) -> None:
    worker = bench.worker()
    first, second = bench.put_many(2)
    scheduled = bench.put(delay=MINUTE)
    blocked = bench.put("mystery", queue="other")
    bench.claim(worker, 1, queues=("other",))

    moved = bench.store.operator.reprioritise([second, scheduled, blocked, NO_SUCH_JOB], 1, "ann", "urgent")

    assert sorted(moved) == [second, scheduled, blocked]
    assert [bench.row(id).priority for id in (second, scheduled, blocked)] == [1, 1, 1]
    assert bench.states([second, scheduled, blocked]) == [State.ready, State.scheduled, State.blocked]
    assert [job.id for job in bench.claim(worker, 2)] == [second, first]


def running_and_final_jobs_keep_their_time_and_priority(bench: Bench) -> None:
    worker = bench.worker()
    running, done = bench.put_many(2)
    _, second = bench.claim(worker, 2)
    bench.end(worker, ended(second, Event.complete))
    before = [bench.picture(running), bench.picture(done)]
    operator = bench.store.operator

    assert operator.run_now([running, done], "ann", "urgent") == []
    assert operator.run_at([running, done], NOON + DAY, "ann", "later") == []
    assert operator.reprioritise([running, done], 1, "ann", "urgent") == []

    assert [bench.picture(running), bench.picture(done)] == before


def a_reprioritised_job_keeps_its_counters_and_run(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put()
    bench.end(worker, ended(bench.claim_one(worker), Event.fail))
    bench.store.operator.reprioritise([id], 9, "ann", "urgent")
    bench.store.operator.run_now([id], "ann", "urgent")

    claimed = bench.claim_one(worker)

    assert (claimed.priority, claimed.run, claimed.counters) == (9, 2, Counters(failed=1))


def a_pause_names_who_why_and_how_long(bench: Bench) -> None:
    pause = bench.store.operator.pause("queue:mail", HOUR, "ann", "INC-311")

    assert (pause.target, pause.until, pause.by, pause.reason, pause.at) == (
        "queue:mail",
        NOON + HOUR,
        "ann",
        "INC-311",
        NOON,
    )
    assert bench.store.inspection.pauses() == [pause]


def a_second_pause_replaces_the_first(bench: Bench) -> None:
    bench.store.operator.pause("queue:mail", MINUTE, "ann", "short")
    second = bench.store.operator.pause("queue:mail", None, "bob", "longer")

    assert bench.store.inspection.pauses() == [second]
    assert second.until is None


def resuming_answers_whether_it_was_paused(bench: Bench) -> None:
    bench.store.operator.pause("task:ok", None, "ann", "incident")

    assert bench.store.operator.resume("task:ok", "ann", "over")
    assert not bench.store.operator.resume("task:ok", "ann", "over")
    assert not bench.store.operator.resume("queue:never", "ann", "over")
    assert bench.store.inspection.pauses() == []


def a_worker_can_be_asked_to_drain(bench: Bench) -> None:
    first, second = bench.worker(), bench.worker()

    assert bench.store.operator.drain_worker(first, "ann", "maintenance")

    assert bench.store.operator.draining([first, second]) == {first}
    assert [told.draining for told in bench.store.inspection.workers()] in ([True, False], [False, True])
    bench.store.leases.retire(first)
    assert not bench.store.operator.drain_worker(first, "ann", "maintenance")


def _operation(bench: Bench, verb: str = "redrive") -> OperationRecord:
    return bench.store.operator.start_operation(
        verb, Filter(queue="mail", state=State.dead), 50.0, 200, 1_000, "ann", "fixed"
    )


def an_operation_is_stored_with_its_author(bench: Bench) -> None:
    bench.put()

    operation = _operation(bench)

    assert (operation.verb, operation.filter) == ("redrive", Filter(queue="mail", state=State.dead))
    assert (operation.rate, operation.priority, operation.total) == (50.0, 200, 1_000)
    assert (operation.by, operation.reason, operation.created_at) == ("ann", "fixed", NOON)
    assert (operation.state, operation.done, operation.skipped, operation.ended_at) == ("running", 0, 0, None)
    assert bench.store.inspection.operations() == [operation]


def an_operation_concerns_only_jobs_that_exist_already(bench: Bench) -> None:
    before = bench.put()
    operation = _operation(bench)
    after = bench.put()

    assert before <= operation.upto < after


def an_operation_moves_on_and_ends(bench: Bench) -> None:
    bench.put_many(10)
    operation = _operation(bench)
    first, last = operation.cursor + 3, operation.upto
    operator = bench.store.operator

    assert operator.advance_operation(operation.id, first, 2, 1, False)
    assert operator.advance_operation(operation.id, last, 4, 0, True)

    (told,) = bench.store.inspection.operations()
    assert (told.cursor, told.done, told.skipped, told.state) == (last, 6, 1, "done")
    assert told.ended_at == NOON
    assert not operator.advance_operation(operation.id, last + 1, 1, 0, False)


def a_slower_worker_does_not_take_an_operation_back(bench: Bench) -> None:
    bench.put_many(10)
    operation = _operation(bench)
    operator = bench.store.operator
    operator.advance_operation(operation.id, 5, 5, 0, False)

    assert not operator.advance_operation(operation.id, 4, 4, 0, False)
    assert not operator.advance_operation(operation.id, 5, 5, 0, False)

    (told,) = bench.store.inspection.operations()
    assert (told.cursor, told.done) == (5, 5)


def a_paused_operation_waits_and_goes_on(bench: Bench) -> None:
    bench.put_many(10)
    operation = _operation(bench)
    operator = bench.store.operator

    paused = operator.set_operation(operation.id, "paused", "ann", "as planned")
    assert paused is not None
    assert paused.state == "paused"
    assert not operator.advance_operation(operation.id, 5, 5, 0, False)

    resumed = operator.set_operation(operation.id, "running", "ann", "as planned")
    assert resumed is not None
    assert resumed.state == "running"
    assert operator.advance_operation(operation.id, 5, 5, 0, False)


def a_cancelled_operation_stays_ended(bench: Bench) -> None:
    operation = _operation(bench)
    operator = bench.store.operator

    cancelled = operator.set_operation(operation.id, "cancelled", "ann", "as planned")

    assert cancelled is not None
    assert (cancelled.state, cancelled.ended_at) == ("cancelled", NOON)
    assert operator.set_operation(operation.id, "running", "ann", "as planned") is None
    assert operator.set_operation(operation.id + 999, "paused", "ann", "as planned") is None
    assert not operator.advance_operation(operation.id, 5, 5, 0, False)


def the_schema_is_as_wanted(bench: Bench) -> None:
    schema = bench.store.schema

    assert schema.version() == schema.wanted() > 0
    assert schema.migrate() == []
    assert "create" in schema.sql().lower()


def many_may_migrate_at_once(bench: Bench) -> None:
    id = bench.put()
    stores = [bench.another() for _ in range(4)]

    applied = together(*(store.schema.migrate for store in stores))

    assert applied == [[], [], [], []]
    assert bench.state(id) is State.ready


def a_closed_handle_loses_nothing(bench: Bench) -> None:
    other = bench.another()
    stored = other.jobs.enqueue([new_job()])
    other.close()

    assert bench.state(stored[0].id) is State.ready
    assert bench.clock() == NOON
    bench.clock.advance(SECOND)
    assert bench.claim_one(bench.worker()).id == stored[0].id
