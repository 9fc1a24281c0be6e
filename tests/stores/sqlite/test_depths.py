"""Counts of queues with many jobs: what is estimated says so, ages stay exact, and small queues are counted."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from duly.core.job import ClaimedJob, ClaimRequest, Incarnation, NewJob, QueueClaim
from duly.core.lifecycle import Event, State
from duly.stores.protocol import QueueCount
from duly.stores.sqlite import depths
from duly.stores.sqlite.store import SQLiteStore
from duly.testing.clock import FakeClock
from duly.testing.conformance.bench import ended
from tests.stores.sqlite.conftest import worker

FEW = 20
SOON = timedelta(seconds=1)


@pytest.fixture
def time() -> FakeClock:
    return FakeClock()


@pytest.fixture
def store(sqlite_path: Path, time: FakeClock, monkeypatch: pytest.MonkeyPatch) -> Iterator[SQLiteStore]:
    monkeypatch.setattr(depths, "EXACT", FEW)
    made = SQLiteStore(sqlite_path, clock=time)
    made.schema.migrate()
    yield made
    made.close()


def fill(store: SQLiteStore, queue: str, jobs: int, **more: Any) -> None:
    store.jobs.enqueue([NewJob(queue, "ok", b"{}", **more)] * jobs)


def count(store: SQLiteStore, queue: str) -> QueueCount:
    return next(one for one in store.inspection.counts() if one.queue == queue)


def claim(store: SQLiteStore, incarnation: Incarnation, queue: str, most: int) -> tuple[ClaimedJob, ...]:
    request = ClaimRequest((QueueClaim(queue, most),), most)
    return store.jobs.exchange(incarnation, [], request).claimed


def end(store: SQLiteStore, queue: str, most: int, event: Event, to: State) -> None:
    incarnation = worker(store)
    ends = [ended(job, event, to) for job in claim(store, incarnation, queue, most)]
    assert len(ends) == most
    store.jobs.exchange(incarnation, ends, None)


def test_many_jobs_are_counted_now_and_then_and_told_as_an_estimate(
    store: SQLiteStore, time: FakeClock
) -> None:
    fill(store, "mail", FEW + 5)
    fill(store, "mail", FEW + 7, delay=timedelta(hours=1))
    store.alerts.turn(SOON)
    fill(store, "mail", 3)
    fill(store, "mail", 3, delay=timedelta(hours=2))

    found = count(store, "mail")

    # As they were when somebody counted, which is told.
    assert (found.ready, found.scheduled) == (FEW + 5, FEW + 7)
    assert found.estimated == ("ready", "scheduled")


def test_few_jobs_and_small_queues_beside_a_large_one_are_counted_for_every_look(store: SQLiteStore) -> None:
    fill(store, "mail", FEW + 5)
    fill(store, "quiet", 2)
    fill(store, "quiet", 4, delay=timedelta(hours=1))
    store.alerts.turn(SOON)
    fill(store, "quiet", 1)
    fill(store, "new", 1)

    assert [(found.queue, found.ready, found.estimated) for found in store.inspection.counts()] == [
        ("mail", FEW + 5, ("ready",)),
        ("new", 1, ()),
        ("quiet", 3, ()),
    ]
    assert count(store, "quiet").scheduled == 4


def test_ages_are_those_of_the_heads_though_the_count_is_an_estimate(
    store: SQLiteStore, time: FakeClock
) -> None:
    fill(store, "mail", 1, priority=500)
    time.advance("10m")
    fill(store, "mail", FEW + 5)
    fill(store, "mail", 1, delay=timedelta(minutes=1))
    fill(store, "mail", FEW + 5, delay=timedelta(hours=1))
    store.alerts.turn(SOON)
    first_due = count(store, "mail").next_due
    time.advance("1m")

    found = count(store, "mail")

    assert "ready" in found.estimated
    assert found.oldest_ready == timedelta(minutes=11)
    assert first_due is not None
    assert found.next_due == first_due
    assert first_due == time()


def test_what_was_due_first_is_not_told_once_it_has_gone(
    store: SQLiteStore, time: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(depths, "_DUE", 3)
    fill(store, "rare", 1, delay=timedelta(seconds=10))
    fill(store, "rare", 1, delay=timedelta(hours=2))
    fill(store, "mail", FEW + 5, delay=timedelta(hours=1))
    store.alerts.turn(SOON)
    first = count(store, "rare").next_due
    time.advance("20s")
    store.upkeep.promote(10)

    assert first == time() - timedelta(seconds=10)
    assert count(store, "rare").next_due is None
    assert count(store, "mail").next_due == time() - timedelta(seconds=20) + timedelta(hours=1)


def test_a_queue_that_was_emptied_since_is_not_told(store: SQLiteStore) -> None:
    fill(store, "mail", FEW + 5)
    fill(store, "other", FEW + 5)
    store.alerts.turn(SOON)
    end(store, "mail", FEW + 5, Event.complete, State.completed)

    assert [found.queue for found in store.inspection.counts() if found.ready] == ["other"]


def test_dead_letters_are_estimated_too_once_they_are_many(store: SQLiteStore) -> None:
    fill(store, "mail", FEW + 5)
    fill(store, "quiet", 1)
    end(store, "mail", FEW + 5, Event.fail, State.dead)
    end(store, "quiet", 1, Event.fail, State.dead)
    store.alerts.turn(SOON)

    assert [(found.queue, found.dead, found.estimated) for found in store.inspection.counts()] == [
        ("mail", FEW + 5, ("dead",)),
        ("quiet", 1, ()),
    ]


def test_a_count_of_long_ago_is_no_estimate_and_all_are_counted(store: SQLiteStore, time: FakeClock) -> None:
    fill(store, "mail", FEW + 5)
    store.alerts.turn(SOON)
    fill(store, "mail", 3)
    time.advance("5m")

    found = count(store, "mail")

    assert (found.ready, found.estimated) == (FEW + 8, ())


def test_the_many_are_counted_in_parts_that_add_up(
    store: SQLiteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(depths, "_PART", 7)
    fill(store, "dying", FEW + 5)
    end(store, "dying", FEW + 5, Event.fail, State.dead)
    for queue, jobs in (("mail", FEW + 3), ("parts", 14), ("other", 1)):
        fill(store, queue, jobs, delay=timedelta(hours=1))
    exact = [(found.queue, found.scheduled, found.dead) for found in store.inspection.counts()]

    store.alerts.turn(SOON)

    found = store.inspection.counts()
    assert [(one.queue, one.scheduled, one.dead) for one in found] == exact
    assert {state for one in found for state in one.estimated} == {"scheduled", "dead"}
