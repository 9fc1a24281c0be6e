"""What callers and operators may count on: whole bulks, pauses and cancels that outlast processes, bounded times."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from duly import App, Draft, Enqueued, PayloadError
from duly.core.job import JobId
from duly.core.lifecycle import Event, State
from duly.testing.conformance import Bench
from duly.testing.conformance.bench import DAY, LEASE, MINUTE, SECOND, ended

MANY = 20_000
BEYOND_ANY_PARAMETER_LIMIT = 70_000


def test_a_bulk_beyond_any_parameter_limit_is_whole_or_nothing(jobs: App) -> None:
    @jobs.task
    def count(n: float) -> None: ...

    def drafts(last: float) -> Iterator[Draft[None]]:
        yield from (count.draft(n) for n in range(MANY - 1))
        yield count.draft(last)

    with pytest.raises(PayloadError, match=f"draft {MANY - 1} of enqueue_many"):
        jobs.enqueue_many(drafts(float("nan")))
    none: list[Enqueued[None]] = jobs.enqueue_many([])
    stored = jobs.enqueue_many(drafts(1.0))

    ids = [one.id for one in stored]
    records = jobs.store.inspection.lookup(ids)
    assert none == []
    assert len(ids) == len(set(ids)) == MANY
    assert [record.args for record in records[:3] if record is not None] == [
        b'{"n":0}',
        b'{"n":1}',
        b'{"n":2}',
    ]
    assert ids == sorted(ids)
    assert sum(one.ready for one in jobs.store.inspection.counts()) == MANY


def test_acts_and_looks_take_any_number_of_ids(bench: Bench) -> None:
    ids = bench.put_many(50)
    asked = [*ids, *(JobId(10**12 + n) for n in range(BEYOND_ANY_PARAMETER_LIMIT))]

    found = bench.store.inspection.lookup(asked)
    cancelled = bench.store.operator.cancel(asked, "ada", "all of them")

    assert [record.id for record in found if record is not None] == ids
    assert cancelled == dict.fromkeys(ids, State.cancelled)


def test_a_pause_outlasts_every_process_and_loses_nothing(bench: Bench) -> None:
    worker = bench.worker()
    running = bench.put()
    held = bench.claim_one(worker)
    ready = bench.put_many(5)
    delayed = [bench.put(delay=10 * SECOND) for _ in range(3)]

    bench.store.operator.pause("queue:default", None, "ada", "INC-311")
    meanwhile = bench.put_many(2)
    bench.end(worker, ended(held, Event.complete))
    restarted = bench.another()
    bench.clock.advance(MINUTE)
    restarted.upkeep.promote()
    during = bench.claim(bench.worker(), 50)
    (pause,) = restarted.inspection.pauses()
    restarted.operator.resume("queue:default", "ada", "over")
    after = bench.claim(bench.worker(), 50)

    assert bench.row(running).state is State.completed
    assert not during
    assert (pause.by, pause.reason) == ("ada", "INC-311")
    assert sorted(job.id for job in after) == sorted([*ready, *delayed, *meanwhile])


def test_a_cancel_is_a_durable_state_of_the_job(bench: Bench) -> None:
    worker = bench.worker()
    delayed = bench.put(delay=MINUTE)
    retrying = bench.put()
    bench.end(worker, ended(bench.claim_one(worker), Event.fail, State.scheduled, delay=MINUTE))
    batch = bench.put_many(2)
    first, second = bench.claim(worker, 2)

    bench.store.operator.cancel([delayed, retrying, second.id], "ada", "not needed")
    bench.store.leases.retire(worker)
    bench.clock.advance(DAY)
    bench.store.upkeep.promote()
    claimed = bench.claim(bench.worker(), 10)

    assert [job.id for job in claimed] == [first.id]
    assert {bench.row(id).state for id in (delayed, retrying, second.id)} == {State.cancelled}
    assert batch == [first.id, second.id]


@pytest.mark.parametrize("timeout", [SECOND, timedelta(seconds=2**31), timedelta(days=36_500)])
def test_a_held_job_never_shows_a_time_that_is_over(bench: Bench, timeout: timedelta) -> None:
    worker = bench.worker()
    id = bench.put(timeout=timeout)
    bench.claim_one(worker)

    held = bench.row(id)
    bench.clock.advance(2 * LEASE)
    bench.store.leases.disown(worker, [(id, 1)], "killed", 3)
    free = bench.row(id)
    refused = bench.store.jobs.extend(worker, id, 1, MINUTE)

    assert held.deadline is not None
    assert held.deadline - (held.started_at or held.deadline) == timeout
    assert (free.state, free.deadline, refused) == (State.ready, None, False)
