"""What follows many jobs: it comes in each case that has an end, once, and only after the last retry."""

from datetime import timedelta

import pytest

from duly.core.batch import BatchState
from duly.core.lifecycle import Event, State
from duly.testing.conformance import Bench
from duly.testing.conformance.batches import close_batch, closed_batch, followed, open_batch, read_batch
from duly.testing.conformance.bench import DAY, SECOND, ended


def test_a_batch_of_which_one_is_dead_and_one_cancelled_says_so_and_ends(bench: Bench) -> None:
    batch, (good, bad, unwanted) = closed_batch(bench, 3)
    empty = open_batch(bench)
    close_batch(bench, empty)
    worker = bench.worker()

    assert bench.store.operator.cancel([unwanted], "ada", "no")
    first, second = bench.claim(worker, 3)
    bench.end(worker, ended(first, Event.complete), ended(second, Event.bury))
    dying = followed(bench, batch)
    bench.retain()
    seen = read_batch(bench, batch)
    bench.store.operator.redrive([bad], "ada", "fixed")
    bench.work(worker)

    assert (first.id, second.id) == (good, bad)
    assert dying == ["alarm"]
    assert (seen.counts.completed, seen.counts.dead, seen.counts.cancelled) == (1, 1, 1)
    assert followed(bench, batch) == ["alarm", "after"]
    assert followed(bench, empty) == ["after"]
    assert {read_batch(bench, one).state for one in (batch, empty)} == {BatchState.completed}


def test_a_member_that_ran_twice_counts_once(bench: Bench) -> None:
    batch, ids = closed_batch(bench, 3)
    former, worker = bench.worker(), bench.worker()
    lost = bench.claim_one(former)
    bench.reap(former)
    again = bench.claim_one(worker, suspects=True)

    late = bench.end(former, ended(lost, Event.complete))
    bench.end(worker, ended(again, Event.complete))
    bench.end(former, ended(lost, Event.complete))
    bench.work(worker)
    before = followed(bench, batch)
    bench.work(worker)

    assert lost.id == again.id == ids[0]
    assert late == frozenset()
    assert (before, followed(bench, batch)) == ([], ["after"])


def test_what_follows_waits_for_the_last_retry(bench: Bench) -> None:
    batch, ids = closed_batch(bench, 2)
    worker = bench.worker()
    first, second = bench.claim(worker, 2)
    bench.end(worker, ended(first, Event.fail, delay=10 * SECOND), ended(second, Event.complete))
    bench.sweep()
    early = followed(bench, batch)

    bench.pass_time(10 * SECOND)
    again = bench.work(worker)

    assert (early, again) == ([], ids[0])
    assert followed(bench, batch) == ["after"]
    assert bench.row(ids[0]).state is State.completed


@pytest.mark.parametrize("apart", [SECOND, 10 * SECOND, DAY])
def test_what_follows_comes_though_nothing_of_the_members_is_kept(bench: Bench, apart: timedelta) -> None:
    batch, ids = closed_batch(bench, 3)
    worker = bench.worker()

    for _ in ids:
        bench.work(worker, result=b"1")
        bench.pass_time(apart)
        bench.retain()

    assert bench.states(ids) == [None] * 3
    assert followed(bench, batch) == ["after"]
    assert read_batch(bench, batch).counts.completed == 3
