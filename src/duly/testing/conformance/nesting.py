"""Cases: batches inside batches, in callers' transactions, with many ends at one moment, and as they are read."""

from functools import partial

from duly.core.batch import BatchCounts, BatchState, CancelBatch, CloseBatch, OpenBatch
from duly.core.job import ClaimedJob, Incarnation
from duly.core.lifecycle import Event, State
from duly.stores.protocol import Store

from .batches import THEN, cancel_batch, close_batch, closed_batch, followed, follower, open_batch, read_batch
from .bench import DAY, Bench, ended, new_job, together

MANY = 200


def a_batch_inside_counts_as_one_member(bench: Bench) -> None:
    outer = open_batch(bench)
    inner = open_batch(bench, parent=outer)
    bench.put_many(2, batch=inner)
    close_batch(bench, inner)
    close_batch(bench, outer)
    worker = bench.worker()

    bench.work(worker)
    before = followed(bench, outer)
    bench.work(worker)

    assert before == []
    assert (followed(bench, inner), followed(bench, outer)) == (["after"], ["after"])
    assert read_batch(bench, outer).counts == BatchCounts(total=1, completed=1)
    assert read_batch(bench, inner).parent == outer


def a_batch_inside_with_a_dead_job_is_a_death_once_it_has_ended_until_the_redrive(bench: Bench) -> None:
    outer = open_batch(bench)
    inner = open_batch(bench, parent=outer)
    ids = bench.put_many(2, batch=inner)
    close_batch(bench, inner)
    close_batch(bench, outer)
    worker = bench.worker()

    bench.work(worker, Event.bury)
    early = followed(bench, outer)
    bench.work(worker)
    late = followed(bench, outer)
    bench.store.operator.redrive(ids, "ann", "fixed")
    bench.work(worker)

    assert (early, late) == ([], ["alarm"])
    assert followed(bench, inner) == ["alarm", "after"]
    assert followed(bench, outer) == ["alarm", "after"]


def cancelling_a_batch_cancels_the_batches_inside(bench: Bench) -> None:
    outer = open_batch(bench)
    inner = open_batch(bench, parent=outer)
    ids = bench.put_many(2, batch=inner)

    cancel_batch(bench, outer)

    assert bench.states(ids) == [State.cancelled] * 2
    assert read_batch(bench, inner).state is BatchState.cancelled
    assert followed(bench, outer) == []


def a_cancelled_batch_inside_lets_the_one_around_it_complete(bench: Bench) -> None:
    outer = open_batch(bench)
    inner = open_batch(bench, parent=outer)
    close_batch(bench, outer)

    cancel_batch(bench, inner)

    assert followed(bench, outer) == ["after"]
    assert read_batch(bench, outer).counts == BatchCounts(total=1, cancelled=1)


def a_batch_of_a_transaction_that_rolls_back_has_never_been(bench: Bench) -> None:
    batch = 0
    try:
        with bench.store.transaction() as connection:
            batch = bench.store.batch_on(connection, OpenBatch("gone", (THEN,)))
            bench.store.enqueue_on(connection, [new_job(batch=batch)])
            bench.store.batch_on(connection, CloseBatch(batch))
            raise ZeroDivisionError
    except ZeroDivisionError:
        pass

    assert bench.store.batches.lookup([batch]) == [None]
    assert bench.claim(bench.worker()) == ()


def a_batch_of_a_callers_transaction_comes_with_its_commit(bench: Bench) -> None:
    with bench.store.transaction() as connection:
        batch = bench.store.batch_on(connection, OpenBatch("mine", (THEN,)))
        bench.store.enqueue_on(connection, [new_job(batch=batch)])
        bench.store.batch_on(connection, CloseBatch(batch))

    bench.work(bench.worker())

    assert followed(bench, batch) == ["after"]


def a_cancel_in_a_callers_transaction_comes_with_its_commit(bench: Bench) -> None:
    batch, ids = closed_batch(bench, 3)

    with bench.store.transaction() as connection:
        bench.store.batch_on(connection, CancelBatch(batch, "ann", "no"))

    assert bench.states(ids) == [State.cancelled] * 3
    assert read_batch(bench, batch).counts == BatchCounts(total=3, cancelled=3)


def a_completion_in_a_callers_transaction_counts_with_its_commit(bench: Bench) -> None:
    batch, _ = closed_batch(bench, 1)
    worker = bench.worker()
    claimed = bench.claim_one(worker)

    with bench.store.transaction() as connection:
        assert bench.store.complete_on(connection, worker, ended(claimed, Event.complete))

    assert followed(bench, batch) == ["after"]


def parallel_last_ends_let_a_batch_be_followed_exactly_once(bench: Bench) -> None:
    for _ in range(10):
        batch, _ = closed_batch(bench, 4)
        stores = [bench.another() for _ in range(4)]
        workers = [bench.worker(store=store) for store in stores]
        claimed = [bench.claim(worker, store=store)[0] for worker, store in zip(workers, stores, strict=True)]

        together(*(partial(_end_and_finish, *each) for each in zip(stores, workers, claimed, strict=True)))

        assert followed(bench, batch) == ["after"]
        assert read_batch(bench, batch).counts == BatchCounts(total=4, completed=4)
        bench.store.operator.cancel([follower(bench, batch).id], "suite", "seen")


def _end_and_finish(store: Store, worker: Incarnation, claimed: ClaimedJob) -> None:
    store.jobs.exchange(worker, [ended(claimed, Event.complete)], None)
    store.batches.finish()


def many_ends_of_one_batch_are_all_counted(bench: Bench) -> None:
    batch, ids = closed_batch(bench, MANY)
    worker = bench.worker()

    for claimed in iter(lambda: bench.claim(worker, 50), ()):
        bench.end(worker, *(ended(job, Event.complete) for job in claimed))

    assert read_batch(bench, batch).counts == BatchCounts(total=len(ids), completed=len(ids))
    assert followed(bench, batch) == ["after"]


def a_batch_keeps_its_counts_when_its_jobs_are_no_longer_kept(bench: Bench) -> None:
    batch, _ = closed_batch(bench, 2)
    worker = bench.worker()
    bench.work(worker)
    bench.clock.advance(DAY)
    bench.retain()

    bench.work(worker)

    assert followed(bench, batch) == ["after"]
    assert read_batch(bench, batch).counts == BatchCounts(total=2, completed=2)


def batches_are_listed_newest_first(bench: Bench) -> None:
    made = [open_batch(bench) for _ in range(3)]

    first = bench.store.batches.page(limit=2)
    rest = bench.store.batches.page(before=first[-1].id)

    assert [one.id for one in (*first, *rest)] == made[::-1]
    assert bench.store.batches.lookup([made[1], 4_000_000_000])[1] is None


def a_sweep_finishes_what_nobody_did(bench: Bench) -> None:
    batch, _ = closed_batch(bench, 1)
    bench.work(bench.worker())

    bench.sweep()

    assert [row.task for row in bench.followers(f"batch:{batch}")] == ["after"]
