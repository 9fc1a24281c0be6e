"""Cases: what happened, counted by the minute and by the hour from the records of ends."""

from datetime import datetime, timedelta

from duly.core.fingerprint import ErrorRecord
from duly.core.job import JobId
from duly.core.lifecycle import Event, State
from duly.core.operating import TALLY_LAG, Tally

from .bench import BOOM, DAY, HOUR, MINUTE, SECOND, Bench, ended, together, unique

TIMEOUT = ErrorRecord("Timeout", "15 min are over", "", "timeout")


def _fold(bench: Bench) -> int:
    """Count all that is over; how many minutes."""
    folded = 0
    while more := bench.store.tallies.fold():
        folded += more
    return folded


def _pass(bench: Bench) -> None:
    """Until this minute is over and can be counted."""
    bench.clock.advance(MINUTE + TALLY_LAG)
    _fold(bench)


def _minute(bench: Bench) -> datetime:
    return bench.clock().replace(second=0, microsecond=0)


def _run(
    bench: Bench, event: Event = Event.complete, to: State | None = None, error: ErrorRecord | None = None
) -> JobId:
    worker = bench.worker()
    id = bench.put()
    job = bench.claim_one(worker)
    bench.end(worker, ended(job, event, to, error=error, elapsed=timedelta(0)))
    return id


def _only(bench: Bench) -> Tally:
    tallies = bench.store.tallies.read("minute", bench.clock() - DAY)
    assert len(tallies) == 1, f"one tally was expected, not {len(tallies)}: {tallies}"
    return tallies[0]


def nothing_is_counted_before_the_first_fold(bench: Bench) -> None:
    _run(bench)

    assert bench.store.tallies.counted() is None
    assert bench.store.tallies.read("minute", bench.clock() - DAY) == []


def completed_jobs_are_counted_with_how_long_they_waited_and_ran(bench: Bench) -> None:
    worker, minute = bench.worker(), _minute(bench)
    bench.put_many(2)
    bench.clock.advance(5 * SECOND)
    jobs = bench.claim(worker, 2)
    bench.clock.advance(3 * SECOND)
    bench.end(worker, *(ended(job, Event.complete, elapsed=3 * SECOND) for job in jobs))

    _pass(bench)

    waited, ran = 10 * SECOND, 6 * SECOND
    assert _only(bench) == Tally("default", "ok", minute, completed=2, waited=waited, ran=ran)


def each_end_is_counted_as_what_it_is(bench: Bench) -> None:
    minute = _minute(bench)
    _run(bench, Event.skip)
    _run(bench, Event.bury, error=BOOM)
    _run(bench, Event.bury, error=BOOM)
    bench.store.operator.cancel([bench.put()], "ann", "no")

    _pass(bench)

    assert _only(bench) == Tally("default", "ok", minute, skipped=1, dead=2, cancelled=1)


def failed_attempts_are_counted_and_those_out_of_time_among_them(bench: Bench) -> None:
    minute = _minute(bench)
    _run(bench, Event.fail, error=BOOM)
    _run(bench, Event.fail, error=TIMEOUT)
    _run(bench, Event.fail, State.dead, error=BOOM)

    _pass(bench)

    assert _only(bench) == Tally("default", "ok", minute, failed=3, timeout=1, dead=1)


def lost_and_interrupted_attempts_are_counted_apart(bench: Bench) -> None:
    minute = _minute(bench)
    _run(bench, Event.interrupt)
    worker = bench.worker()
    bench.claim_one(worker)
    bench.database.forget_worker(worker)
    bench.store.upkeep.sweep(HOUR, 3, SECOND)

    _pass(bench)

    tally = _only(bench)
    assert (tally.at, tally.redelivered, tally.lost, tally.failed) == (minute, 1, 1, 0)


def an_attempt_that_never_began_is_no_second_run(bench: Bench) -> None:
    worker = bench.worker()
    bench.put()
    bench.end(worker, ended(bench.claim_one(worker), Event.interrupt))

    _pass(bench)

    assert bench.store.tallies.read("minute", bench.clock() - DAY) == []


def redriven_jobs_are_counted_when_somebody_redrives_them(bench: Bench) -> None:
    dead = [_run(bench, Event.bury, error=BOOM) for _ in range(2)]
    _pass(bench)
    minute = _minute(bench)

    bench.store.operator.redrive(dead, "ann", "fixed")

    _pass(bench)
    assert [(one.at, one.redriven) for one in bench.store.tallies.read("minute", minute)] == [(minute, 2)]


def suppressed_copies_are_counted_among_the_skipped(bench: Bench) -> None:
    key = unique(replacing=True)
    bench.put(unique=key)
    bench.put(unique=key)
    _run(bench, Event.skip)

    _pass(bench)

    tally = _only(bench)
    assert (tally.skipped, tally.suppressed) == (2, 1)


def queues_tasks_and_minutes_are_counted_apart(bench: Bench) -> None:
    worker, minute = bench.worker("ok", "mail", queues=("default", "web")), _minute(bench)
    for queue, task in (("default", "ok"), ("default", "mail"), ("web", "ok")):
        bench.put(task, queue=queue)
        job = bench.claim_one(worker, queues=(queue,))
        bench.end(worker, ended(job, Event.complete))
    bench.clock.advance(MINUTE)
    _run(bench)

    _pass(bench)

    read = bench.store.tallies.read
    assert [(one.queue, one.task, one.at, one.completed) for one in read("minute", minute)] == [
        ("default", "mail", minute, 1),
        ("default", "ok", minute, 1),
        ("web", "ok", minute, 1),
        ("default", "ok", minute + MINUTE, 1),
    ]
    assert [one.queue for one in read("minute", minute, queues=["web"])] == ["web"]
    assert [one.task for one in read("minute", minute, tasks=["mail", "none"])] == ["mail"]
    assert len(read("minute", minute, minute + MINUTE)) == 3
    assert len(read("minute", minute + MINUTE)) == 1


def an_hour_is_the_sum_of_its_minutes(bench: Bench) -> None:
    hour = bench.clock().replace(minute=0, second=0, microsecond=0)
    for _ in range(3):
        _run(bench)
        _pass(bench)

    (found,) = bench.store.tallies.read("hour", hour)

    assert found == Tally("default", "ok", hour, completed=3)


def a_minute_is_counted_when_it_is_over_for_a_while(bench: Bench) -> None:
    minute = _minute(bench)
    _run(bench)
    bench.clock.advance(minute + MINUTE + TALLY_LAG - SECOND - bench.clock())
    _fold(bench)
    before = bench.store.tallies.read("minute", minute)
    bench.clock.advance(SECOND)

    assert bench.store.tallies.fold() == 1

    assert before == []
    assert _only(bench).completed == 1
    assert bench.store.tallies.counted() == minute + MINUTE


def a_minute_is_counted_once(bench: Bench) -> None:
    _run(bench)
    _pass(bench)

    assert bench.store.tallies.fold() == 0
    bench.clock.advance(MINUTE)
    assert bench.another().tallies.fold() == 1

    assert _only(bench).completed == 1


def many_who_fold_at_once_count_each_minute_once(bench: Bench) -> None:
    stores = [bench.another() for _ in range(4)]
    _fold(bench)
    for _ in range(5):
        _run(bench)
        bench.clock.advance(MINUTE + TALLY_LAG)

        together(*(store.tallies.fold for store in stores))

    _fold(bench)
    assert sum(one.completed for one in bench.store.tallies.read("minute", bench.clock() - HOUR)) == 5


def the_first_fold_looks_back_an_hour_a_few_minutes_at_once(bench: Bench) -> None:
    bench.clock.advance(SECOND)
    _run(bench)
    bench.clock.advance(30 * MINUTE)

    first, all_of_it = bench.store.tallies.fold(), _fold(bench)

    assert (first, first + all_of_it) == (5, 60)
    assert _only(bench).completed == 1


def minutes_are_kept_for_an_hour_and_hours_for_two_weeks(bench: Bench) -> None:
    _run(bench)
    _pass(bench)
    bench.clock.advance(HOUR + MINUTE)
    _fold(bench)
    minutes = bench.store.tallies.read("minute", bench.clock() - DAY)
    hours = bench.store.tallies.read("hour", bench.clock() - DAY)

    bench.clock.advance(15 * DAY)
    bench.store.tallies.fold()

    assert (minutes, len(hours)) == ([], 1)
    assert bench.store.tallies.read("hour", bench.clock() - 90 * DAY) == []


def what_was_counted_outlives_its_jobs(bench: Bench) -> None:
    _run(bench)
    _pass(bench)

    bench.retain()

    assert _only(bench).completed == 1


def an_entry_of_somebody_else_with_that_verb_breaks_nothing(bench: Bench) -> None:
    bench.store.audits.append("redrive", "", "ann", "by a script", {"ids": ["none", -1]})
    bench.store.audits.append("redrive", "", "ann", "by a script", {"ids": 7})
    _run(bench)

    _pass(bench)

    assert _only(bench).redriven == 0


def the_sweep_counts(bench: Bench) -> None:
    _run(bench)
    bench.store.tallies.fold()
    bench.clock.advance(MINUTE)

    for _ in range(20):
        bench.sweep()

    counted = bench.store.tallies.counted()
    assert counted is not None
    assert counted > bench.clock() - 5 * MINUTE
