"""Upkeep on SQLite: what it costs when there is nothing to do, how long it holds the lock, and what it samples."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from itertools import product
from pathlib import Path

import pytest

from duly.core.defaults import KEEP, KEEP_DEAD, POISON
from duly.core.job import NewJob
from duly.core.lifecycle import Event
from duly.stores.sqlite import sampling
from duly.stores.sqlite.locks import FileQueue
from duly.stores.sqlite.store import SQLiteStore
from duly.testing.clock import FakeClock
from duly.testing.conformance.bench import ended
from tests.stores.sqlite.conftest import Connect, claim, put, worker

HOUR = timedelta(hours=1)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def timed(sqlite_path: Path, clock: FakeClock) -> Iterator[SQLiteStore]:
    """A store by a clock that only the test moves."""
    store = SQLiteStore(sqlite_path, clock=clock, journal="truncate", busy_timeout=0.2)
    yield store
    store.close()


def _sweep(store: SQLiteStore) -> bool:
    return store.upkeep.sweep(HOUR, POISON, timedelta(0)).ran


def test_upkeep_without_work_takes_no_write_lock(
    timed: SQLiteStore, clock: FakeClock, connect: Connect
) -> None:
    put(timed)
    assert _sweep(timed)
    foreign = connect(isolation_level=None)
    foreign.execute("begin immediate")

    assert timed.upkeep.promote() == (0, None)
    assert timed.upkeep.retain({}, {}, KEEP, KEEP_DEAD) == 0
    assert timed.upkeep.announce_dead({}, KEEP_DEAD, HOUR) == []
    assert not _sweep(timed)

    foreign.execute("rollback")


def test_a_large_sweep_gives_the_lock_back_in_between(
    timed: SQLiteStore, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    timed.jobs.enqueue([NewJob("default", "ok", b"{}", expires=HOUR)] * 1_700)
    clock.advance(2 * HOUR)
    commits: list[int] = []
    waiting = iter(range(100))
    monkeypatch.setattr(
        FileQueue, "release", _counted(FileQueue.release, lambda: commits.append(next(waiting)))
    )

    swept = timed.upkeep.sweep(HOUR, POISON, timedelta(0))

    assert swept.expired == 1_700
    # Four chunks of at most 500, beside the turn taken and the sample kept.
    assert len(commits) >= 4 + 2


def _counted(release: Callable[[FileQueue], None], count: Callable[[], None]) -> Callable[[FileQueue], None]:
    def counted(queue: FileQueue) -> None:
        release(queue)
        count()

    return counted


def test_rates_tell_what_comes_in_and_goes_out(timed: SQLiteStore, clock: FakeClock) -> None:
    incarnation = worker(timed)
    put(timed, 10)
    _sweep(timed)
    assert timed.inspection.counts()[0].in_per_s is None
    for _ in range(6):
        clock.advance(timedelta(seconds=10))
        put(timed, 40)
        jobs = claim(timed, incarnation, 20)
        timed.jobs.exchange(incarnation, [ended(job, Event.complete) for job in jobs], None)
        _sweep(timed)

    (count,) = timed.inspection.counts()

    assert count.ready == 10 + 6 * 40 - 6 * 20
    assert (count.in_per_s, count.out_per_s, count.slope_per_s) == (4.0, 2.0, 2.0)


@pytest.mark.parametrize("part", [1, 3, 4, 12, 100])
def test_what_is_counted_in_parts_is_counted_once(
    timed: SQLiteStore, clock: FakeClock, connect: Connect, monkeypatch: pytest.MonkeyPatch, part: int
) -> None:
    monkeypatch.setattr(sampling, "_PART", part)
    incarnation = worker(timed)
    jobs = [
        NewJob(queue, "send", b"{}", tenant=tenant, priority=priority, fair=True)
        for queue, tenant, priority in product(("mail", "sync"), ("", "acme", "zoo"), (90, 100))
        for _ in range(2)
    ]
    timed.jobs.enqueue(jobs)
    put(timed, 8)
    _sweep(timed)
    clock.advance(timedelta(seconds=20))
    # In one moment, so that parts end between jobs that ended at the same time.
    timed.jobs.exchange(
        incarnation, [ended(job, Event.complete) for job in claim(timed, incarnation, 6)], None
    )
    _sweep(timed)

    rows = connect().execute("select queue, ready, finished from duly_sample order by at, queue").fetchall()

    fair = [("mail", 12, 0), ("sync", 12, 0)]
    assert rows == [("default", 8, 0), *fair, ("default", 2, 6), *fair]


def test_dead_letters_go_out_too_and_old_samples_are_forgotten(timed: SQLiteStore, clock: FakeClock) -> None:
    incarnation = worker(timed)
    put(timed, 1)
    _sweep(timed)
    clock.advance(timedelta(hours=3))
    put(timed, 2)
    _sweep(timed)
    clock.advance(timedelta(seconds=20))
    jobs = claim(timed, incarnation, 2)
    timed.jobs.exchange(incarnation, [ended(job, Event.bury) for job in jobs], None)
    _sweep(timed)

    (count,) = timed.inspection.counts()

    assert (count.dead, count.out_per_s) == (2, 0.1)


def test_samples_are_kept_at_most_once_in_ten_seconds(
    timed: SQLiteStore, clock: FakeClock, connect: Connect
) -> None:
    put(timed)
    for _ in range(9):
        assert _sweep(timed)
        clock.advance(timedelta(seconds=2))

    # After 0, 10 and, not yet, 20 seconds.
    assert connect().execute("select count(*) from duly_sample").fetchone() == (2,)


def test_a_clock_that_stepped_back_does_not_stop_the_sweep(timed: SQLiteStore, clock: FakeClock) -> None:
    put(timed)
    assert _sweep(timed)

    clock.advance(-timedelta(days=1))

    assert _sweep(timed)


def test_a_sweep_that_was_dear_once_is_not_put_off_for_ever(
    timed: SQLiteStore, clock: FakeClock, connect: Connect
) -> None:
    put(timed)
    assert _sweep(timed)
    connection = connect()
    connection.execute("update duly_sweep set position = 500000 where name = 'sweep'")
    connection.commit()
    clock.advance(timedelta(seconds=9))
    assert not _sweep(timed)
    clock.advance(timedelta(seconds=2))

    assert _sweep(timed)

    clock.advance(timedelta(seconds=2))
    assert _sweep(timed)


def test_a_promotion_over_many_chunks_keeps_their_order(timed: SQLiteStore, clock: FakeClock) -> None:
    late = timed.jobs.enqueue([NewJob("default", "ok", b"{}", delay=2 * HOUR)] * 600)
    early = timed.jobs.enqueue([NewJob("default", "ok", b"{}", delay=HOUR)] * 600)
    incarnation = worker(timed)
    clock.advance(3 * HOUR)

    assert timed.upkeep.promote(2_000) == (1_200, None)

    order = [job.id for job in claim(timed, incarnation, 2_000)]
    assert order == [stored.id for stored in (*early, *late)]


def test_retention_deletes_a_jobs_tags_and_results_with_it(
    timed: SQLiteStore, clock: FakeClock, connect: Connect
) -> None:
    incarnation = worker(timed)
    timed.jobs.enqueue([NewJob("default", "ok", b"{}", tags=("a", "b"))])
    (job,) = claim(timed, incarnation)
    large = b'"' + b"x" * 20_000 + b'"'
    timed.jobs.exchange(incarnation, [ended(job, Event.complete, result=large)], None)
    assert timed.inspection.lookup([job.id])[0] is not None
    clock.advance(KEEP + HOUR)

    assert timed.upkeep.retain({}, {}, KEEP, KEEP_DEAD) == 1

    tables = (
        "job",
        "job_tag",
        "finished",
        "result",
        "attempt",
        "dead",
        "wish",
        "progress",
        "claimed",
        "ready",
    )
    connection = connect()
    assert {
        table: connection.execute(f"select count(*) from duly_{table}").fetchone()[0] for table in tables
    } == dict.fromkeys(tables, 0)


def test_acts_of_people_are_noted(timed: SQLiteStore) -> None:
    (first, second) = put(timed, 2)
    timed.operator.cancel([first], "ann", "not needed")
    timed.operator.reprioritise([second, second], 5, "bob", "urgent")
    timed.operator.pause("queue:default", None, "cal", "incident")

    assert [(one.verb, one.target, one.actor, one.reason) for one in timed.audits.page()] == [
        ("pause", "queue:default", "cal", "incident"),
        ("reprioritise", f"job:{second}", "bob", "urgent"),
        ("cancel", f"job:{first}", "ann", "not needed"),
    ]


def test_overrides_that_ended_long_ago_are_forgotten(
    timed: SQLiteStore, clock: FakeClock, connect: Connect
) -> None:
    timed.schema.migrate()
    control = timed.control
    lifted = control.override("task:ok", "limit", {"max_running": 1}, None, "ann", "slowly")
    assert control.lift(lifted.id, "ann", "enough")
    control.override("queue:default", "limit", {"max_running": 1}, HOUR, "ann", "slowly")
    standing = control.override("task:ok", "limit", {"max_running": 2}, None, "ann", "slowly")

    clock.advance(timedelta(days=31))
    assert _sweep(timed)

    assert connect().execute("select id from duly_override").fetchall() == [(standing.id,)]
