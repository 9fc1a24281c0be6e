"""Cases: batches. Members are counted whoever ends them, and what follows is enqueued once, when it is due."""

from duly.core.batch import BatchCounts, BatchState, OpenBatch
from duly.core.errors import NotFound, UsageError
from duly.core.job import RESULT_MARK, Token
from duly.core.lifecycle import Event, State

from .batches import cancel_batch, close_batch, closed_batch, followed, follower, open_batch, read_batch
from .bench import BOOM, DAY, HOUR, MINUTE, POISON, SECOND, Bench, ended, new_job, unique
from .expect import raises


def a_closed_batch_is_followed_once_when_its_last_job_has_completed(bench: Bench) -> None:
    worker = bench.worker()
    batch, _ = closed_batch(bench, 2)

    bench.work(worker)
    before = followed(bench, batch)
    bench.work(worker)

    assert before == []
    assert followed(bench, batch) == ["after"]
    assert followed(bench, batch) == ["after"]
    record = read_batch(bench, batch)
    assert (record.state, record.counts) == (BatchState.completed, BatchCounts(total=2, completed=2))
    assert (record.progress, record.finished_at, record.name) == (1.0, bench.clock(), "nightly")


def a_batch_that_did_not_complete_is_forgotten_once_nothing_is_left_of_it(bench: Bench) -> None:
    worker = bench.worker()
    dead, (job,) = closed_batch(bench, 1)
    bench.work(worker, Event.bury)
    waiting, around = open_batch(bench), open_batch(bench)
    bench.put(batch=waiting, delay=900 * DAY)
    inside = bench.store.batches.apply(OpenBatch("inside", parent=around))
    bench.put(batch=inside, delay=900 * DAY)
    left = open_batch(bench)

    bench.clock.advance(31 * DAY)
    bench.sweep()
    found = bench.store.batches.lookup([dead, waiting, around, inside, left])
    assert [record is not None for record in found] == [True, True, True, True, False]
    assert read_batch(bench, dead).state is BatchState.dead

    bench.store.operator.purge([job], "ann", "of no use")
    bench.sweep()
    assert bench.store.batches.lookup([dead]) == [None]


def what_follows_a_batch_is_a_plain_ready_job_that_names_it(bench: Bench) -> None:
    batch = bench.store.batches.apply(OpenBatch("b", (new_job("after", args=b"[" + RESULT_MARK + b"]"),)))
    close_batch(bench, batch)
    followed(bench, batch)

    found = follower(bench, batch)

    assert (found.state, found.args) == (State.ready, b"[null]")
    assert found.correlation_id == str(found.id)
    assert bench.store.batches.of([found.id]) == {}


def an_open_batch_is_not_followed_though_all_its_jobs_have_ended(bench: Bench) -> None:
    batch = open_batch(bench)
    bench.put(batch=batch)

    bench.work(bench.worker())

    assert followed(bench, batch) == []
    assert read_batch(bench, batch).state is BatchState.open


def closing_a_batch_whose_jobs_have_ended_is_what_lets_it_be_followed(bench: Bench) -> None:
    batch = open_batch(bench)
    bench.put(batch=batch)
    bench.work(bench.worker())

    close_batch(bench, batch)

    assert followed(bench, batch) == ["after"]


def an_empty_batch_is_followed_when_it_is_closed(bench: Bench) -> None:
    batch = open_batch(bench)

    close_batch(bench, batch)

    assert followed(bench, batch) == ["after"]
    assert (read_batch(bench, batch).progress, read_batch(bench, batch).state) == (0.0, BatchState.completed)


def closing_twice_changes_nothing(bench: Bench) -> None:
    batch, _ = closed_batch(bench, 0)
    followed(bench, batch)

    close_batch(bench, batch)

    assert followed(bench, batch) == ["after"]


def a_skipped_a_cancelled_and_an_expired_job_count_as_ended(bench: Bench) -> None:
    batch = open_batch(bench)
    worker = bench.worker()
    bench.put(batch=batch)
    cancelled = bench.put(batch=batch, delay=HOUR)
    bench.put(batch=batch, delay=MINUTE, expires=SECOND)
    close_batch(bench, batch)

    bench.work(worker, Event.skip, reason="nothing to do")
    bench.store.operator.cancel([cancelled], "ann", "not needed")
    before = followed(bench, batch)
    bench.clock.advance(2 * MINUTE)
    bench.store.upkeep.promote()

    assert before == []
    assert followed(bench, batch) == ["after"]
    assert read_batch(bench, batch).counts == BatchCounts(total=3, skipped=2, cancelled=1)


def a_retry_a_snooze_and_an_interruption_are_no_ends(bench: Bench) -> None:
    batch, _ = closed_batch(bench, 3)
    worker = bench.worker()

    for event in (Event.fail, Event.snooze, Event.interrupt):
        bench.work(worker, event, error=BOOM if event is Event.fail else None)

    assert followed(bench, batch) == []
    assert read_batch(bench, batch).counts == BatchCounts(total=3)


def a_death_is_followed_once_and_holds_back_what_would_follow_success(bench: Bench) -> None:
    batch, _ = closed_batch(bench, 3)
    worker = bench.worker()

    bench.work(worker, Event.bury)
    first = followed(bench, batch)
    bench.work(worker, Event.bury)
    bench.work(worker)

    assert first == ["alarm"]
    assert followed(bench, batch) == ["alarm"]
    record = read_batch(bench, batch)
    assert (record.state, record.counts) == (BatchState.dead, BatchCounts(total=3, completed=1, dead=2))
    assert record.finished_at is None


def a_death_in_an_open_batch_is_followed_at_once(bench: Bench) -> None:
    batch = open_batch(bench)
    bench.put(batch=batch)

    bench.work(bench.worker(), Event.bury)

    assert followed(bench, batch) == ["alarm"]
    assert read_batch(bench, batch).state is BatchState.open


def a_dead_job_that_completes_after_its_redrive_lets_the_batch_be_followed(bench: Bench) -> None:
    batch, ids = closed_batch(bench, 2)
    worker = bench.worker()
    bench.work(worker)
    bench.work(worker, Event.bury)

    bench.store.operator.redrive(ids, "ann", "fixed")
    redriven = read_batch(bench, batch)
    bench.work(worker)

    assert (redriven.state, redriven.counts) == (BatchState.running, BatchCounts(total=2, completed=1))
    assert followed(bench, batch) == ["alarm", "after"]
    assert read_batch(bench, batch).counts == BatchCounts(total=2, completed=2)


def a_second_death_is_not_followed_again(bench: Bench) -> None:
    batch, ids = closed_batch(bench, 1)
    worker = bench.worker()
    bench.work(worker, Event.bury)
    followed(bench, batch)

    bench.store.operator.redrive(ids, "ann", "fixed")
    bench.work(worker, Event.bury)

    assert followed(bench, batch) == ["alarm"]


def a_batch_that_was_followed_is_not_followed_again_after_a_redrive(bench: Bench) -> None:
    batch, ids = closed_batch(bench, 1)
    worker = bench.worker()
    bench.work(worker, Event.skip, reason="no")
    followed(bench, batch)

    bench.store.operator.redrive(ids, "ann", "do it")
    bench.work(worker)

    assert followed(bench, batch) == ["after"]


def a_purged_dead_job_stays_a_death(bench: Bench) -> None:
    batch, ids = closed_batch(bench, 1)
    bench.work(bench.worker(), Event.bury)

    bench.store.operator.purge(ids, "ann", "never mind")

    assert followed(bench, batch) == ["alarm"]
    assert read_batch(bench, batch).state is BatchState.dead


def jobs_of_a_vanished_worker_count_when_they_have_really_ended(bench: Bench) -> None:
    batch, _ = closed_batch(bench, 1)
    lost = bench.worker()
    claimed = bench.claim_one(lost)
    bench.reap(lost)
    before = read_batch(bench, batch).counts

    bench.end(lost, ended(claimed, Event.complete))
    ignored = followed(bench, batch)
    again = bench.worker()
    bench.end(again, ended(bench.claim_one(again, suspects=True), Event.complete))

    assert (before, ignored) == (BatchCounts(total=1), [])
    assert followed(bench, batch) == ["after"]


def a_job_lost_for_the_last_time_is_a_death(bench: Bench) -> None:
    batch, (id,) = closed_batch(bench, 1)
    for _ in range(POISON):
        worker = bench.worker()
        assert bench.claim(worker, suspects=bench.row(id).counters.lost > 0)
        bench.reap(worker)

    assert followed(bench, batch) == ["alarm"]


def an_end_that_is_handed_in_twice_counts_once(bench: Bench) -> None:
    batch, _ = closed_batch(bench, 2)
    worker = bench.worker()
    claimed = bench.claim_one(worker)

    for _ in range(2):
        bench.end(worker, ended(claimed, Event.complete))

    assert followed(bench, batch) == []
    assert read_batch(bench, batch).counts.completed == 1


def a_job_of_a_batch_may_add_to_it_while_it_runs(bench: Bench) -> None:
    batch, _ = closed_batch(bench, 1)
    worker = bench.worker()
    claimed = bench.claim_one(worker)
    (own,) = bench.store.batches.of([claimed.id]).values()

    bench.put(batch=own, holder=Token(worker, claimed.id, claimed.run))
    bench.end(worker, ended(claimed, Event.complete))
    before = followed(bench, batch)
    bench.work(worker)

    assert (own, before) == (batch, [])
    assert followed(bench, batch) == ["after"]


def nothing_is_added_to_a_batch_that_has_ended_or_was_never_made(bench: Bench) -> None:
    completed, _ = closed_batch(bench, 0)
    followed(bench, completed)
    cancelled = open_batch(bench)
    cancel_batch(bench, cancelled)

    for batch in (completed, cancelled):
        with raises(UsageError):
            bench.put(batch=batch)
    with raises(NotFound):
        bench.put(batch=4_000_000_000)

    assert bench.claim(bench.worker()) == ()


def what_follows_a_member_is_a_member(bench: Bench) -> None:
    batch = open_batch(bench)
    worker = bench.worker()
    bench.put(batch=batch, then=(new_job("ok"),))
    bench.put(batch=batch, on_dead=(new_job("ok"),))
    close_batch(bench, batch)

    bench.work(worker)
    bench.work(worker, Event.bury)
    counted = read_batch(bench, batch).counts
    bench.work(worker)
    bench.work(worker)

    assert counted == BatchCounts(total=4, completed=1, dead=1)
    assert read_batch(bench, batch).counts == BatchCounts(total=4, completed=3, dead=1)


def a_duplicate_does_not_become_a_member_and_a_replaced_job_ends_as_one(bench: Bench) -> None:
    batch = open_batch(bench)
    bench.put(unique=unique("a"))
    bench.put(batch=batch, unique=unique("a"))
    bench.put(batch=batch, unique=unique("b"))
    close_batch(bench, batch)
    before = read_batch(bench, batch).counts

    bench.put(unique=unique("b", replacing=True))

    assert before == BatchCounts(total=1)
    assert followed(bench, batch) == ["after"]
    assert read_batch(bench, batch).counts == BatchCounts(total=1, skipped=1)


def a_cancelled_batch_cancels_what_waits_of_it_and_is_not_followed(bench: Bench) -> None:
    batch = open_batch(bench)
    ids = [*bench.put_many(3, batch=batch), bench.put(batch=batch, delay=HOUR)]
    stranger = bench.put()
    worker = bench.worker()
    claimed = bench.claim_one(worker)

    cancel_batch(bench, batch)

    assert bench.states(ids) == [State.running, *[State.cancelled] * 3]
    assert bench.row(ids[0]).cancel_wished
    assert bench.state(stranger) is State.ready
    bench.end(worker, ended(claimed, Event.bury))
    assert followed(bench, batch) == []
    record = read_batch(bench, batch)
    assert (record.state, record.reason) == (BatchState.cancelled, "given up")
    assert record.counts == BatchCounts(total=4, cancelled=3, dead=1)


def cancelling_an_ended_batch_changes_nothing(bench: Bench) -> None:
    batch, _ = closed_batch(bench, 0)
    followed(bench, batch)

    cancel_batch(bench, batch)

    assert read_batch(bench, batch).state is BatchState.completed
