"""Cases: schedules. Whoever moves the due time on enqueues for it; the past never fires twice, nor after a change."""

from datetime import datetime, timedelta
from functools import partial

from msgspec.structs import replace

from duly.core.job import NewJob, Stored
from duly.core.lifecycle import Outcome, State
from duly.core.registration import Schedule, ScheduleRecord
from duly.stores.protocol import Store
from duly.testing.clock import NOON

from .bench import DAY, HOUR, MINUTE, SECOND, Bench, new_job, request_key, together, unique
from .expect import raises

DIGEST = Schedule("digest", every=HOUR, job=new_job(args=b'{"n":1}', trigger="schedule:digest"))
FIRST = NOON + HOUR


def _only(bench: Bench, name: str = "digest") -> ScheduleRecord:
    return next(record for record in bench.store.schedules.all() if record.schedule.name == name)


def _fire(
    bench: Bench,
    expected: datetime = FIRST,
    *jobs: NewJob,
    next_at: datetime | None = None,
    missed: int = 0,
    store: Store | None = None,
) -> list[Stored] | None:
    """Fire at the due time that is expected; one job unless told otherwise."""
    to = next_at or expected + HOUR
    asked = jobs or (new_job(trigger="schedule:digest"),)
    return (store or bench.store).schedules.fire("digest", expected, to, expected, asked, missed)


def a_new_schedule_waits_for_its_first_due_time(bench: Bench) -> None:
    record = bench.store.schedules.put(DIGEST, FIRST)

    assert (record.schedule, record.origin, record.next_at) == (DIGEST, "", FIRST)
    assert (record.paused, record.fired, record.missed) == (False, 0, 0)
    assert (record.last_at, record.last_id, record.last_waiting, record.last_running) == (
        None,
        None,
        False,
        False,
    )
    assert record.created_at == NOON
    assert bench.store.schedules.all() == [record]


def every_part_of_a_schedule_is_kept_as_given(bench: Bench) -> None:
    job = NewJob(
        "mail",
        "digest",
        b'{"n":1}',
        priority=7,
        expires=HOUR,
        timeout=90 * SECOND,
        attempts=4,
        tenant="acme",
        tags=("a", "b"),
        correlation_id="c",
        unique=unique(live=True, replacing=True),
        version=3,
        then=(new_job("then"),),
        on_dead=(new_job("on_dead", delay=MINUTE),),
        blobs=("b1",),
    )
    given = [
        Schedule("cron", cron="0 9 * * 1-5", tz="Europe/Berlin", job=job, jitter=30 * SECOND),
        Schedule("every", every=timedelta(days=1, microseconds=7), catch_up="all", overlap="allow", job=job),
        Schedule("tick", cron="* * * * *", catch_up="skip", overlap="queue"),
    ]
    for schedule in reversed(given):
        bench.store.schedules.put(schedule, FIRST)

    assert [record.schedule for record in bench.another().schedules.all()] == given


def what_is_due_is_told_with_the_clock_and_the_next_due_time(bench: Bench) -> None:
    schedules = bench.store.schedules
    assert schedules.due() == (NOON, [], None)
    for number, wait in enumerate((MINUTE, HOUR, DAY, 2 * MINUTE)):
        schedules.put(replace(DIGEST, name=f"s{number}"), NOON + wait)
    assert schedules.due() == (NOON, [], NOON + MINUTE)
    bench.clock.advance(2 * MINUTE)

    now, due, following = schedules.due()

    assert (now, following) == (NOON + 2 * MINUTE, NOON + HOUR)
    assert sorted(record.schedule.name for record in due) == ["s0", "s3"]
    assert {record.next_at for record in due} == {NOON + MINUTE, NOON + 2 * MINUTE}


def no_more_are_told_than_asked_for(bench: Bench) -> None:
    for number in range(5):
        bench.store.schedules.put(replace(DIGEST, name=f"s{number}"), NOON + number * MINUTE)
    bench.clock.advance(3 * MINUTE)

    _, due, _ = bench.store.schedules.due(most=2)

    assert len(due) == 2
    assert {record.schedule.name for record in due} <= {"s0", "s1", "s2", "s3"}


def firing_moves_on_counts_and_enqueues(bench: Bench) -> None:
    bench.store.schedules.put(DIGEST, FIRST)
    bench.clock.advance(HOUR + SECOND)

    stored = _fire(bench, missed=2)

    assert stored is not None
    (answer,) = stored
    assert (answer.outcome, bench.state(answer.id)) == (Outcome.created, State.ready)
    record = _only(bench)
    assert (record.next_at, record.last_at, record.last_id) == (FIRST + HOUR, FIRST, answer.id)
    assert (record.fired, record.missed) == (1, 2)
    assert bench.store.schedules.due()[1] == []


def several_jobs_may_be_fired_at_once(bench: Bench) -> None:
    bench.store.schedules.put(DIGEST, FIRST)
    bench.clock.advance(DAY)
    jobs = [new_job(trigger=f"t{number}") for number in range(3)]

    stored = bench.store.schedules.fire("digest", FIRST, NOON + 2 * DAY, FIRST + 2 * HOUR, jobs, 0)

    assert stored is not None
    assert [bench.row(one.id).trigger for one in stored] == ["t0", "t1", "t2"]
    record = _only(bench)
    assert (record.fired, record.last_id, record.last_at) == (3, stored[-1].id, FIRST + 2 * HOUR)


def a_due_time_may_pass_without_a_job(bench: Bench) -> None:
    bench.store.schedules.put(DIGEST, FIRST)
    first = _fire(bench)

    assert first is not None
    assert bench.store.schedules.fire("digest", FIRST + HOUR, FIRST + DAY, FIRST + HOUR, [], 3) == []

    record = _only(bench)
    assert (record.next_at, record.last_at) == (FIRST + DAY, FIRST + HOUR)
    assert (record.fired, record.missed, record.last_id) == (1, 3, first[0].id)


def a_due_time_that_has_moved_on_fires_nothing(bench: Bench) -> None:
    bench.store.schedules.put(DIGEST, FIRST)
    assert _fire(bench) is not None
    before = bench.store.schedules.all()

    assert _fire(bench) is None
    assert _fire(bench, FIRST - HOUR) is None
    assert _fire(bench, FIRST + 2 * HOUR) is None

    assert bench.store.schedules.all() == before
    assert bench.store.inspection.counts()[0].ready == 1


def of_many_who_fire_at_once_one_wins(bench: Bench) -> None:
    bench.store.schedules.put(DIGEST, FIRST)
    stores = [bench.another() for _ in range(4)]

    for number in range(5):
        due = FIRST + number * HOUR
        answers = together(*(partial(_fire, bench, due, store=store) for store in stores))
        assert sum(answer is not None for answer in answers) == 1

    assert len(bench.followers("schedule:digest")) == 5
    assert _only(bench).fired == 5


def an_unknown_schedule_fires_nothing(bench: Bench) -> None:
    assert _fire(bench) is None
    assert bench.store.inspection.counts() == []


def the_last_job_is_told_while_it_waits_and_runs(bench: Bench) -> None:
    worker = bench.worker()
    bench.store.schedules.put(DIGEST, FIRST)
    seen = []

    def look() -> None:
        record = _only(bench)
        seen.append((record.last_waiting, record.last_running))

    _fire(bench, FIRST, new_job(delay=MINUTE))
    look()
    bench.clock.advance(MINUTE)
    bench.store.upkeep.promote()
    look()
    bench.claim(bench.worker("other"), 1)
    look()
    bench.claim(worker, 1, unparked=("ok",))
    look()
    bench.store.leases.retire(worker)
    look()
    bench.work(bench.worker())
    look()
    bench.clock.advance(2 * DAY)
    bench.retain()
    look()

    waiting, running, over = (True, False), (False, True), (False, False)
    assert seen == [waiting, waiting, waiting, running, waiting, over, over]
    assert _only(bench).fired == 1


def a_duplicate_by_its_key_counts_as_missed(bench: Bench) -> None:
    holder = bench.put(unique=unique(live=True))
    bench.store.schedules.put(DIGEST, FIRST)

    stored = _fire(bench, FIRST, new_job(unique=unique(live=True)), new_job(), missed=1)

    assert stored is not None
    assert [one.outcome for one in stored] == [Outcome.duplicate, Outcome.created]
    assert stored[0].id == holder
    record = _only(bench)
    assert (record.fired, record.missed, record.next_at) == (1, 2, FIRST + HOUR)


def a_job_refused_for_its_key_counts_as_missed_and_stops_no_other(bench: Bench) -> None:
    first = bench.put(args=b'{"a":1}', idempotency=request_key())
    bench.store.schedules.put(DIGEST, FIRST)

    stored = _fire(bench, FIRST, new_job(args=b'{"a":2}', idempotency=request_key()), new_job())

    assert stored is not None
    assert [one.outcome for one in stored] == [Outcome.duplicate, Outcome.created]
    assert stored[0].id == first
    record = _only(bench)
    assert (record.fired, record.missed, record.next_at) == (1, 1, FIRST + HOUR)
    assert bench.store.inspection.counts()[0].ready == 2


def the_same_definition_again_changes_nothing(bench: Bench) -> None:
    first = bench.store.schedules.put(DIGEST, FIRST)
    bench.clock.advance(MINUTE)

    again = bench.store.schedules.put(DIGEST, FIRST + 7 * MINUTE)

    assert again == first
    assert bench.store.schedules.all() == [first]
    assert _fire(bench, FIRST) is not None


def an_edited_schedule_goes_on_from_its_new_first_due_time(bench: Bench) -> None:
    bench.store.schedules.put(DIGEST, FIRST)
    _fire(bench)
    bench.clock.advance(3 * HOUR)
    edited = replace(DIGEST, every=DAY)

    record = bench.store.schedules.put(edited, NOON + DAY)

    assert (record.schedule, record.next_at, record.fired) == (edited, NOON + DAY, 1)
    assert bench.store.schedules.due()[1] == []
    assert _fire(bench, FIRST + HOUR) is None
    assert bench.store.inspection.counts()[0].ready == 1


def any_part_of_the_definition_makes_an_edit(bench: Bench) -> None:
    assert DIGEST.job is not None
    edits = [
        replace(DIGEST, every=None, cron="0 * * * *"),
        replace(DIGEST, tz="Europe/Berlin"),
        replace(DIGEST, jitter=SECOND),
        replace(DIGEST, catch_up="all"),
        replace(DIGEST, overlap="allow"),
        replace(DIGEST, job=replace(DIGEST.job, args=b'{"n":2}')),
        replace(DIGEST, job=replace(DIGEST.job, priority=1)),
        replace(DIGEST, job=None),
    ]
    for number, edited in enumerate(edits):
        bench.store.schedules.put(DIGEST, NOON + DAY)
        first = NOON + 2 * DAY + number * HOUR

        assert bench.store.schedules.put(edited, first).next_at == first
        bench.store.schedules.remove("digest", "ann", "next")


def a_paused_schedule_is_not_due_and_does_not_fire(bench: Bench) -> None:
    schedules = bench.store.schedules
    schedules.put(DIGEST, FIRST)
    schedules.put(replace(DIGEST, name="other"), NOON + DAY)

    assert schedules.pause("digest", "ann", "incident")

    bench.clock.advance(2 * HOUR)
    assert _only(bench).paused
    assert schedules.due() == (NOON + 2 * HOUR, [], NOON + DAY)
    assert _fire(bench) is None
    assert bench.store.inspection.counts() == []


def a_resumed_schedule_does_not_fire_what_was_due_meanwhile(bench: Bench) -> None:
    schedules = bench.store.schedules
    schedules.put(DIGEST, FIRST)
    schedules.pause("digest", "ann", "incident")
    bench.clock.advance(5 * HOUR + MINUTE)

    assert schedules.resume("digest", NOON + 6 * HOUR, "ann", "over")

    record = _only(bench)
    assert (record.paused, record.next_at, record.fired) == (False, NOON + 6 * HOUR, 0)
    assert schedules.due()[1] == []
    assert _fire(bench, FIRST) is None
    bench.clock.advance(HOUR)
    assert _fire(bench, NOON + 6 * HOUR) is not None
    assert bench.store.inspection.counts()[0].ready == 1


def a_removed_schedule_is_gone_and_does_not_fire(bench: Bench) -> None:
    schedules = bench.store.schedules
    schedules.put(DIGEST, FIRST)
    bench.clock.advance(2 * HOUR)

    assert schedules.remove("digest", "ann", "not needed")

    assert schedules.all() == []
    assert schedules.due()[1:] == ([], None)
    assert _fire(bench) is None
    assert not schedules.remove("digest", "ann", "not needed")


def a_schedule_put_again_after_its_removal_begins_anew(bench: Bench) -> None:
    bench.store.schedules.put(DIGEST, FIRST)
    _fire(bench)
    bench.store.schedules.remove("digest", "ann", "no")
    bench.clock.advance(DAY)

    record = bench.store.schedules.put(DIGEST, NOON + 2 * DAY)

    assert (record.next_at, record.fired, record.last_at) == (NOON + 2 * DAY, 0, None)


def unknown_schedules_cannot_be_paused_resumed_or_removed(bench: Bench) -> None:
    schedules = bench.store.schedules

    assert not schedules.pause("nothing", "ann", "incident")
    assert not schedules.resume("nothing", FIRST, "ann", "over")
    assert not schedules.remove("nothing", "ann", "not needed")


def schedules_are_listed_by_name(bench: Bench) -> None:
    for name in ("b", "ü", "a", "B", "c"):
        bench.store.schedules.put(replace(DIGEST, name=name), FIRST)

    names = [record.schedule.name for record in bench.store.schedules.all()]

    assert sorted(names) == sorted(("b", "ü", "a", "B", "c"))
    assert [name for name in names if name in "abc"] == ["a", "b", "c"]


def _failure(bench: Bench) -> tuple[str | None, datetime | None, int]:
    record = _only(bench)
    return record.failure, record.failed_at, record.failures


def what_went_wrong_is_kept_and_counted_and_the_due_time_stays(bench: Bench) -> None:
    fresh = bench.store.schedules.put(DIGEST, FIRST)
    bench.clock.advance(HOUR)

    assert bench.store.schedules.fail("digest", FIRST, "no such table")
    bench.clock.advance(SECOND)
    assert bench.another().schedules.fail("digest", FIRST, "ü" * 1000)

    assert (fresh.failure, fresh.failed_at, fresh.failures) == (None, None, 0)
    record = _only(bench)
    assert _failure(bench) == ("ü" * 1000, FIRST + SECOND, 2)
    assert replace(record, failure=None, failed_at=None, failures=0) == fresh
    assert bench.store.schedules.due()[1] == [record]


def a_success_forgets_what_went_wrong(bench: Bench) -> None:
    store = bench.store
    store.schedules.put(DIGEST, FIRST)
    store.schedules.fail("digest", FIRST, "no such table")

    _fire(bench)

    assert _failure(bench) == (None, None, 0)
    assert store.schedules.fail("digest", FIRST + HOUR, "again")
    with store.transaction() as connection:
        assert store.advance_on(connection, "digest", FIRST + HOUR, FIRST + DAY, FIRST + HOUR, 1)
    assert _failure(bench) == (None, None, 0)


def an_edit_forgets_what_went_wrong_and_a_pause_does_not(bench: Bench) -> None:
    schedules = bench.store.schedules
    schedules.put(DIGEST, FIRST)
    schedules.fail("digest", FIRST, "no such table")
    kept = _failure(bench)

    schedules.put(DIGEST, FIRST + MINUTE)
    schedules.pause("digest", "ann", "incident")
    schedules.resume("digest", FIRST + MINUTE, "ann", "over")

    assert _failure(bench) == kept == ("no such table", NOON, 1)
    schedules.put(replace(DIGEST, every=DAY), FIRST)
    assert _failure(bench) == (None, None, 0)


def who_was_slower_than_a_success_a_pause_or_a_removal_keeps_no_failure(bench: Bench) -> None:
    schedules = bench.store.schedules
    assert not schedules.fail("digest", FIRST, "unknown")
    schedules.put(DIGEST, FIRST)
    _fire(bench)

    assert not schedules.fail("digest", FIRST, "too late")
    schedules.pause("digest", "ann", "incident")
    assert not schedules.fail("digest", FIRST + HOUR, "paused")

    assert _failure(bench) == (None, None, 0)


def a_tick_moves_on_in_the_transaction_that_enqueues_for_it(bench: Bench) -> None:
    bench.store.schedules.put(replace(DIGEST, job=None), FIRST)
    store, later = bench.store, FIRST + HOUR
    with raises(ZeroDivisionError), store.transaction() as connection:
        assert store.advance_on(connection, "digest", FIRST, later, FIRST, 2)
        store.enqueue_on(connection, [new_job(), new_job()])
        raise ZeroDivisionError
    assert _only(bench).next_at == FIRST
    assert store.inspection.counts() == []

    with store.transaction() as connection:
        assert store.advance_on(connection, "digest", FIRST, later, FIRST, 2)
        store.enqueue_on(connection, [new_job(), new_job()])

    record = _only(bench)
    assert (record.next_at, record.last_at, record.fired) == (later, FIRST, 2)
    assert store.inspection.counts()[0].ready == 2


def a_tick_that_was_paused_edited_or_removed_does_not_move_on(bench: Bench) -> None:
    tick = replace(DIGEST, job=None)
    store, schedules = bench.store, bench.store.schedules

    def advance() -> bool:
        with store.transaction() as connection:
            return store.advance_on(connection, "digest", FIRST, FIRST + HOUR, FIRST, 1)

    assert not advance()
    schedules.put(tick, FIRST)
    schedules.pause("digest", "ann", "incident")
    assert not advance()
    schedules.resume("digest", FIRST + MINUTE, "ann", "over")
    assert not advance()
    schedules.put(replace(tick, every=MINUTE), FIRST + 2 * MINUTE)
    assert not advance()
    schedules.remove("digest", "ann", "no")
    assert not advance()


def of_many_who_advance_a_tick_at_once_one_wins(bench: Bench) -> None:
    bench.store.schedules.put(replace(DIGEST, job=None), FIRST)
    stores = [bench.another() for _ in range(4)]

    answers = together(*(partial(_advance_and_enqueue, store) for store in stores))

    assert sorted(answers) == [False, False, False, True]
    assert len(bench.followers("tick")) == 1
    assert _only(bench).fired == 1


def _advance_and_enqueue(store: Store) -> bool:
    with store.transaction() as connection:
        won = store.advance_on(connection, "digest", FIRST, FIRST + HOUR, FIRST, 1)
        if won:
            store.enqueue_on(connection, [new_job(trigger="tick")])
        return won
