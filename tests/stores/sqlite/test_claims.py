"""Claims with many rows in the way: what stands before a job must not hide it."""

from datetime import timedelta

from duly.core.job import ClaimRequest, NewJob, QueueClaim
from duly.stores.sqlite.store import SQLiteStore
from tests.stores.sqlite.conftest import claim, put, worker

MANY = 1_000


def test_a_crowd_parked_in_another_queue_hides_no_parked_job_of_ours(store: SQLiteStore) -> None:
    ignorant, knowing = worker(store, "other"), worker(store, "ok")
    store.jobs.enqueue([NewJob("crowded", "ok", b"{}")] * MANY)
    everything = ClaimRequest((QueueClaim("crowded", MANY), QueueClaim("default", 10)), MANY)
    store.jobs.exchange(ignorant, [], everything)
    (id,) = put(store)
    store.jobs.exchange(ignorant, [], everything)

    request = ClaimRequest((QueueClaim("default", 1),), 1, unparked=("ok",))
    claimed = store.jobs.exchange(knowing, [], request).claimed

    assert [job.id for job in claimed] == [id]


def test_a_crowd_of_expired_jobs_hides_no_live_one_for_long(store: SQLiteStore) -> None:
    incarnation = worker(store)
    store.jobs.enqueue([NewJob("default", "ok", b"{}", expires=timedelta(0))] * MANY)
    (id,) = put(store)

    (claimed,) = claim(store, incarnation)

    assert claimed.id == id
    (count,) = store.inspection.counts()
    assert (count.ready, count.running) == (0, 1)


def test_one_claim_sets_aside_a_bounded_number(store: SQLiteStore) -> None:
    incarnation = worker(store)
    put(store, 5 * MANY)
    store.operator.pause("task:ok", None, "ann", "incident")

    assert claim(store, incarnation) == ()

    (count,) = store.inspection.counts()
    assert MANY <= count.blocked <= 3 * MANY
    assert count.ready + count.blocked == 5 * MANY
