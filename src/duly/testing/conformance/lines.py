"""What the cases of ordering keys have in common: lines of jobs, worked off one after another."""

from duly.core.control import KeyRecord, Ordering
from duly.core.job import ClaimedJob, Incarnation, JobId
from duly.core.lifecycle import Event
from duly.core.registration import QueuePolicy

from .bench import Bench, ended


def three(bench: Bench) -> list[JobId]:
    return bench.put_many(3, ordering_key="a")


def complete(bench: Bench, worker: Incarnation, job: ClaimedJob, most: int = 10) -> list[JobId]:
    """End one job and ask for more in the same breath."""
    return [one.id for one in bench.start(worker, most, ends=[ended(job, Event.complete)])]


def rest(bench: Bench, worker: Incarnation) -> list[JobId]:
    """Work off what is left, one after another; in which order it began."""
    order: list[JobId] = []
    while started := bench.start(worker, 10):
        assert len(started) == 1, "two jobs of one key run at once"
        order.append(started[0].id)
        bench.end(worker, ended(started[0], Event.complete))
    return order


def first_dies(bench: Bench, ordering: Ordering | None) -> tuple[Incarnation, list[JobId]]:
    """Three jobs of one key, of which the first is dead."""
    if ordering is not None:
        bench.declare(queues=[QueuePolicy("default", ordering=ordering)])
    worker, ids = bench.worker(), three(bench)
    (first,) = bench.start(worker, 10)
    bench.end(worker, ended(first, Event.bury))
    return worker, ids


def key_record(bench: Bench, queue: str = "default", tenant: str = "", key: str = "a") -> KeyRecord | None:
    found = [one for one in bench.store.control.keys(queue) if (one.tenant, one.key) == (tenant, key)]
    assert len(found) <= 1
    return found[0] if found else None
