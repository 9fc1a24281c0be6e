"""Cases: batches whose last end no worker has in hand. What follows comes at once, or the next claim says to look."""

from typing import Unpack

from duly.core.batch import CloseBatch
from duly.core.job import JobId
from duly.core.lifecycle import Event, State
from duly.core.registration import QueuePolicy

from .batches import close_batch, closed_batch, followed, open_batch
from .bench import HOUR, MINUTE, POISON, SECOND, Bench, JobOptions, ended, request, unique


def _seen(bench: Bench, batch: int) -> list[str]:
    """The tasks that have followed a batch, though nobody has asked for it."""
    return [row.task for row in bench.followers(f"batch:{batch}")]


def _heard(bench: Bench, batch: int) -> list[str]:
    """Those that have followed once a worker has claimed, and looked where it was told to."""
    worker = bench.worker("after", "alarm", queues=("elsewhere",))
    if bench.store.jobs.exchange(worker, [], request(1, "elsewhere")).batches:
        bench.store.batches.finish()
    again = bench.store.jobs.exchange(worker, [], request(1, "elsewhere"))
    assert not again.batches, "it was told twice of one end"
    return _seen(bench, batch)


def _closed(bench: Bench, task: str = "ok", **options: Unpack[JobOptions]) -> tuple[int, JobId]:
    batch = open_batch(bench)
    options["batch"] = batch
    id = bench.put(task, **options)
    close_batch(bench, batch)
    return batch, id


def a_cancel_lets_a_batch_be_followed_at_once(bench: Bench) -> None:
    batch, (id,) = closed_batch(bench, 1)

    bench.store.operator.cancel([id], "ann", "not needed")

    assert _seen(bench, batch) == ["after"]


def a_cancel_of_a_job_that_comes_back_lets_its_batch_be_followed(bench: Bench) -> None:
    batch, (id,) = closed_batch(bench, 1)
    worker = bench.worker()
    bench.claim_one(worker)

    bench.store.operator.cancel([id], "ann", "not needed")
    bench.store.leases.retire(worker)

    assert bench.state(id) is State.cancelled
    assert _seen(bench, batch) == ["after"]


def a_cancel_in_a_callers_transaction_is_told_to_the_next_claim(bench: Bench) -> None:
    batch, (id,) = closed_batch(bench, 1)

    with bench.store.transaction() as connection:
        bench.store.cancel_on(connection, [id], "ann", "not needed")

    assert _heard(bench, batch) == ["after"]


def a_completion_in_a_callers_transaction_is_told_to_the_next_claim(bench: Bench) -> None:
    batch, _ = closed_batch(bench, 1)
    worker = bench.worker()
    claimed = bench.claim_one(worker)

    with bench.store.transaction() as connection:
        assert bench.store.complete_on(connection, worker, ended(claimed, Event.complete))

    assert _heard(bench, batch) == ["after"]


def a_close_in_a_callers_transaction_is_told_to_the_next_claim(bench: Bench) -> None:
    batch = open_batch(bench)
    bench.put(batch=batch)
    bench.work(bench.worker())
    followed(bench, batch)

    with bench.store.transaction() as connection:
        bench.store.batch_on(connection, CloseBatch(batch))

    assert _heard(bench, batch) == ["after"]


def a_death_of_a_child_is_followed_at_once(bench: Bench) -> None:
    batch, (id,) = closed_batch(bench, 1)
    worker = bench.worker()
    claimed = bench.claim_one(worker)

    bench.store.leases.disown(worker, [(claimed.id, claimed.run)], "its process was killed", 1)

    assert bench.state(id) is State.dead
    assert _seen(bench, batch) == ["alarm"]


def a_death_by_a_lapsed_lease_is_followed_at_once(bench: Bench) -> None:
    batch, (id,) = closed_batch(bench, 1)

    for _ in range(POISON):
        worker = bench.worker()
        bench.claim_one(worker, suspects=bench.row(id).counters.lost > 0)
        bench.reap(worker)

    assert bench.state(id) is State.dead
    assert _seen(bench, batch) == ["alarm"]


def what_a_worker_ended_last_is_followed_when_it_retires(bench: Bench) -> None:
    batch, _ = closed_batch(bench, 1)
    worker = bench.worker()
    bench.work(worker)

    bench.store.leases.retire(worker)

    assert _seen(bench, batch) == ["after"]


def a_job_that_is_due_too_late_lets_its_batch_be_followed(bench: Bench) -> None:
    batch, id = _closed(bench, delay=MINUTE, expires=SECOND)
    bench.clock.advance(2 * MINUTE)

    bench.store.upkeep.promote()

    assert bench.state(id) is State.skipped
    assert _seen(bench, batch) == ["after"]


def a_ready_job_that_a_claim_finds_expired_lets_its_batch_be_followed(bench: Bench) -> None:
    batch, id = _closed(bench, expires=SECOND)
    bench.clock.advance(MINUTE)

    assert bench.claim(bench.worker(), 5) == ()

    assert bench.state(id) is State.skipped
    assert _heard(bench, batch) == ["after"]


def a_stale_job_lets_its_batch_be_followed(bench: Bench) -> None:
    worker = bench.worker()
    _, id = _closed(bench, unique=unique(), version=1)
    newer = bench.start(worker)[0]
    _, older = _closed(bench, unique=unique(), version=2)
    bench.work(worker)
    stale, last = _closed(bench, unique=unique(), version=1)

    assert bench.claim(worker, 5) == ()

    assert (newer.id, bench.state(older), bench.state(last)) == (id, State.completed, State.skipped)
    assert _heard(bench, stale) == ["after"]


def a_job_that_another_one_replaces_lets_its_batch_be_followed(bench: Bench) -> None:
    batch, id = _closed(bench, unique=unique(replacing=True), delay=HOUR)

    bench.put(unique=unique(replacing=True), delay=HOUR)

    assert bench.state(id) is State.skipped
    assert _heard(bench, batch) == ["after"]


def what_a_sweep_ends_is_followed_in_the_sweep(bench: Bench) -> None:
    worker = bench.worker()
    unknown, _ = _closed(bench, "mystery")
    bench.claim(worker, 5)
    expired, _ = _closed(bench, queue="other", expires=SECOND)
    bench.declare(queues=[QueuePolicy("full", max_depth=1, when_full="shed")])
    bench.put(queue="full")
    shed, _ = _closed(bench, queue="full")
    bench.clock.advance(2 * HOUR)

    bench.sweep()

    assert [_seen(bench, batch) for batch in (expired, unknown, shed)] == [["after"], ["alarm"], ["after"]]
