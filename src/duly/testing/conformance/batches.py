"""What the cases of batches have in common: short verbs over one bench."""

from duly.core.batch import BatchRecord, CancelBatch, CloseBatch, OpenBatch
from duly.core.job import JobId, JobRecord
from duly.stores.protocol import Store

from .bench import Bench, new_job

THEN = new_job("after", queue="after")
ON_DEAD = new_job("alarm", queue="after")


def open_batch(bench: Bench, *, parent: int | None = None, store: Store | None = None) -> int:
    act = OpenBatch("nightly", (THEN,), (ON_DEAD,), parent)
    return (store or bench.store).batches.apply(act)


def close_batch(bench: Bench, batch: int) -> None:
    bench.store.batches.apply(CloseBatch(batch))


def cancel_batch(bench: Bench, batch: int) -> None:
    bench.store.batches.apply(CancelBatch(batch, "ann", "given up"))


def closed_batch(bench: Bench, count: int) -> tuple[int, list[JobId]]:
    """A closed batch of so many ready jobs."""
    batch = open_batch(bench)
    ids = bench.put_many(count, batch=batch)
    close_batch(bench, batch)
    return batch, ids


def read_batch(bench: Bench, batch: int) -> BatchRecord:
    found = bench.store.batches.lookup([batch])[0]
    assert found is not None, f"batch {batch} has vanished"
    return found


def followed(bench: Bench, batch: int) -> list[str]:
    """The tasks that have followed a batch, in order. Whoever ends jobs calls `finish` soon."""
    bench.store.batches.finish()
    return [row.task for row in bench.followers(f"batch:{batch}")]


def follower(bench: Bench, batch: int) -> JobRecord:
    (found,) = bench.followers(f"batch:{batch}")
    return found
