"""Cases: what a job has done of itself. Finished steps and cursors are there for its next run, and only for that."""

from duly.core.job import ClaimedJob, Cursor, FinishedStep, Incarnation, JobId, Steps
from duly.core.lifecycle import Event, State
from duly.stores.faults import DataFault

from .bench import DAY, HOUR, NO_SUCH_JOB, SECOND, Bench, ended
from .expect import raises


def _keep(
    bench: Bench, worker: Incarnation, job: ClaimedJob, name: str = "charge", value: bytes = b"1"
) -> bool:
    return bench.store.steps.keep_steps(worker, [FinishedStep(job.id, job.run, name, value)]) == [True]


def _report(bench: Bench, worker: Incarnation, job: ClaimedJob, name: str, position: int) -> None:
    bench.store.jobs.report(worker, [], [Cursor(job.id, job.run, name, position)])


def a_job_that_has_done_nothing_has_no_steps(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put()

    claimed = bench.claim_one(worker)

    assert not claimed.has_steps
    assert bench.store.steps.steps(id) == Steps()
    assert bench.store.steps.steps(NO_SUCH_JOB) == Steps()


def a_finished_step_is_there_for_the_next_run(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put()
    claimed = bench.claim_one(worker)
    value = '{"charge":"ch_7","name":"Zoë"}'.encode()
    assert _keep(bench, worker, claimed, "charge", value)
    assert _keep(bench, worker, claimed, "näme with spaces", b"null")
    bench.end(worker, ended(claimed, Event.interrupt))

    again = bench.claim_one(worker)

    assert (again.id, again.has_steps) == (id, True)
    assert bench.another().steps.steps(id) == Steps({"charge": value, "näme with spaces": b"null"}, {})


def the_first_value_of_a_step_stays(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put()
    claimed = bench.claim_one(worker)
    assert _keep(bench, worker, claimed, value=b"1")

    assert _keep(bench, worker, claimed, value=b"2")

    assert bench.store.steps.steps(id).finished == {"charge": b"1"}


def steps_of_many_attempts_are_kept_in_one_call(bench: Bench) -> None:
    worker, stranger = bench.worker(), bench.worker()
    ids = bench.put_many(4)
    claimed = bench.claim(worker, 4)
    bench.end(worker, ended(claimed[1], Event.complete))
    asked = [
        FinishedStep(claimed[2].id, 1, "mail", b"3"),
        FinishedStep(claimed[1].id, 1, "charge", b"2"),
        FinishedStep(claimed[0].id, 1, "charge", b"1"),
        FinishedStep(claimed[0].id, 2, "mail", b"1"),
        FinishedStep(claimed[3].id, 1, "charge", b"4"),
        FinishedStep(claimed[2].id, 1, "charge", b"5"),
        FinishedStep(NO_SUCH_JOB, 1, "charge", b"6"),
    ]

    answers = bench.store.steps.keep_steps(worker, asked)

    assert answers == [True, False, True, False, True, True, False]
    assert bench.store.steps.keep_steps(stranger, asked) == [False] * len(asked)
    assert bench.store.steps.keep_steps(worker, []) == []
    assert [bench.store.steps.steps(id).finished for id in ids] == [
        {"charge": b"1"},
        {},
        {"mail": b"3", "charge": b"5"},
        {"charge": b"4"},
    ]


def of_two_values_of_a_step_in_one_call_the_first_stays(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put()
    claimed = bench.claim_one(worker)
    _report(bench, worker, claimed, "charge", 7)

    answers = bench.store.steps.keep_steps(
        worker, [FinishedStep(id, claimed.run, "charge", value) for value in (b"2", b"1", b"3")]
    )

    assert answers == [True, True, True]
    assert bench.store.steps.steps(id) == Steps({"charge": b"2"}, {"charge": 7})


def a_step_that_cannot_be_stored_leaves_none_of_its_call(bench: Bench) -> None:
    worker = bench.worker()
    first, second = bench.put_many(2)
    bench.claim(worker, 2)
    asked = [FinishedStep(first, 1, "charge", b"1"), FinishedStep(second, 1, "\ud800", b"2")]

    with raises(DataFault):
        bench.store.steps.keep_steps(worker, asked)

    assert bench.store.steps.steps(first) == Steps()
    assert bench.store.steps.keep_steps(worker, asked[:1]) == [True]


def a_former_holder_keeps_no_step(bench: Bench) -> None:
    worker, stranger = bench.worker(), bench.worker()
    id = bench.put()
    claimed = bench.claim_one(worker)
    steps = bench.store.steps
    for holder, job, run in ((stranger, id, 1), (worker, id, 0), (worker, id, 2), (worker, NO_SUCH_JOB, 1)):
        assert steps.keep_steps(holder, [FinishedStep(job, run, "charge", b"1")]) == [False]
    bench.reap(worker)

    assert not _keep(bench, worker, claimed)

    other = bench.worker()
    second = bench.claim_one(other, suspects=True)
    assert not second.has_steps
    assert not _keep(bench, worker, claimed)
    assert steps.keep_steps(other, [FinishedStep(id, 1, "charge", b"1")]) == [False]
    assert steps.steps(id) == Steps()
    assert _keep(bench, other, second)


def an_ended_attempt_keeps_no_step(bench: Bench) -> None:
    worker = bench.worker()
    for event in (Event.complete, Event.fail, Event.bury):
        id = bench.put()
        claimed = bench.claim_one(worker)
        bench.end(worker, ended(claimed, event))

        assert not _keep(bench, worker, claimed)
        assert bench.store.steps.steps(id) == Steps()


def steps_survive_every_way_back_to_the_queue(bench: Bench) -> None:
    for way in ("fail", "snooze", "interrupt", "retire", "reap", "orphan"):
        worker = bench.worker()
        id = bench.put()
        claimed = bench.claim_one(worker)
        _keep(bench, worker, claimed)
        _report(bench, worker, claimed, "rows", 7)
        match way:
            case "retire":
                bench.store.leases.retire(worker)
            case "reap":
                bench.reap(worker)
            case "orphan":
                bench.database.forget_worker(worker)
                bench.sweep()
            case _:
                bench.end(worker, ended(claimed, Event(way), delay=SECOND if way != "interrupt" else None))
        bench.clock.advance(HOUR)
        bench.store.upkeep.promote()

        other = bench.worker()
        again = bench.claim_one(other, suspects=way in {"reap", "orphan"})

        assert (again.id, again.run, again.has_steps) == (id, 2, True), way
        assert bench.store.steps.steps(id) == Steps({"charge": b"1"}, {"rows": 7}), way
        bench.end(other, ended(again, Event.complete))


def steps_survive_a_redrive(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put()
    claimed = bench.claim_one(worker)
    _keep(bench, worker, claimed)
    bench.end(worker, ended(claimed, Event.bury, cursors=(("rows", 40),)))
    assert bench.store.steps.steps(id) == Steps({"charge": b"1"}, {"rows": 40})
    bench.store.operator.redrive([id], "ann", "fixed")

    again = bench.claim_one(worker)

    assert again.has_steps
    assert bench.store.steps.steps(id) == Steps({"charge": b"1"}, {"rows": 40})


def cursors_of_an_end_are_there_for_the_next_run(bench: Bench) -> None:
    worker = bench.worker()
    for event in (Event.fail, Event.snooze, Event.interrupt):
        id = bench.put()
        claimed = bench.claim_one(worker)
        bench.end(worker, ended(claimed, event, cursors=(("rows", 40), ("files", 0))))
        bench.store.operator.run_now([id], "ann", "now")

        again = bench.claim_one(worker)

        assert (again.id, again.has_steps) == (id, True)
        assert bench.store.steps.steps(id) == Steps({}, {"rows": 40, "files": 0})
        bench.end(worker, ended(again, Event.complete))


def a_later_position_takes_the_place_of_an_earlier_one(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put()
    claimed = bench.claim_one(worker)
    for position in (10, 2**40):
        _report(bench, worker, claimed, "rows", position)
        assert bench.store.steps.steps(id).cursors == {"rows": position}
    bench.end(worker, ended(claimed, Event.fail, cursors=(("rows", 2**40 + 1), ("files", 3))))

    assert bench.store.steps.steps(id).cursors == {"rows": 2**40 + 1, "files": 3}


def a_former_holder_moves_no_cursor(bench: Bench) -> None:
    worker, stranger = bench.worker(), bench.worker()
    id = bench.put()
    claimed = bench.claim_one(worker)
    _report(bench, worker, claimed, "rows", 5)
    for incarnation, run in ((stranger, 1), (worker, 0), (worker, 2)):
        bench.store.jobs.report(incarnation, [], [Cursor(id, run, "rows", 99)])
    bench.reap(worker)
    _report(bench, worker, claimed, "rows", 99)
    late = ended(claimed, Event.fail, cursors=(("rows", 99),))

    assert bench.end(worker, late) == frozenset()

    assert bench.store.steps.steps(id).cursors == {"rows": 5}


def a_report_with_cursors_says_what_is_held(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put()
    claimed = bench.claim_one(worker)
    bench.store.operator.cancel([id], "ann", "no")

    told = bench.store.jobs.report(worker, [], [Cursor(id, claimed.run, "rows", 1)])

    assert told == ([(id, 1)], [id])


def a_step_and_a_cursor_may_share_a_name(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put()
    claimed = bench.claim_one(worker)
    _report(bench, worker, claimed, "rows", 7)

    _keep(bench, worker, claimed, "rows", b'"done"')

    assert bench.store.steps.steps(id) == Steps({"rows": b'"done"'}, {"rows": 7})


def steps_are_read_as_long_as_the_job_is_kept(bench: Bench) -> None:
    worker = bench.worker()
    kept: list[JobId] = []
    for event in (Event.complete, Event.bury):
        id = bench.put()
        claimed = bench.claim_one(worker)
        _keep(bench, worker, claimed)
        _report(bench, worker, claimed, "rows", 7)
        bench.end(worker, ended(claimed, event))
        kept.append(id)
    done, letter = kept
    assert [bench.store.steps.steps(id).finished for id in kept] == [{"charge": b"1"}] * 2
    bench.clock.advance(2 * DAY)

    bench.retain()
    bench.store.operator.purge([letter], "ann", "spam")

    assert bench.states(kept) == [None, None]
    assert [bench.store.steps.steps(id) for id in (done, letter)] == [Steps(), Steps()]


def steps_of_one_job_are_not_those_of_another(bench: Bench) -> None:
    worker = bench.worker()
    first, second = bench.put_many(2)
    mine, other = bench.claim(worker, 2)
    _keep(bench, worker, mine, value=b"1")
    _keep(bench, worker, other, value=b"2")
    bench.end(worker, ended(mine, Event.complete))

    assert bench.store.steps.steps(first).finished == {"charge": b"1"}
    assert bench.store.steps.steps(second).finished == {"charge": b"2"}


def a_job_cancelled_between_two_runs_may_go_on_where_it_was(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put()
    claimed = bench.claim_one(worker)
    bench.store.operator.cancel([id], "ann", "not now")
    bench.end(worker, ended(claimed, Event.fail, cursors=(("rows", 40),)))
    assert bench.state(id) is State.cancelled

    bench.store.operator.redrive([id], "ann", "now")

    assert bench.claim_one(worker).has_steps
    assert bench.store.steps.steps(id).cursors == {"rows": 40}


def a_completion_that_rolls_back_leaves_the_steps(bench: Bench) -> None:
    worker = bench.worker()
    id = bench.put()
    claimed = bench.claim_one(worker)
    _keep(bench, worker, claimed)
    with raises(ZeroDivisionError), bench.store.transaction() as connection:
        bench.store.complete_on(connection, worker, ended(claimed, Event.complete))
        raise ZeroDivisionError

    assert bench.state(id) is State.running
    assert _keep(bench, worker, claimed, "mail", b"2")
    assert bench.store.steps.steps(id).finished == {"charge": b"1", "mail": b"2"}
