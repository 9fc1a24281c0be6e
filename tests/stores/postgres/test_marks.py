"""Claims that start behind dead entries: the arithmetic of jumps, and exact order under a pinned snapshot."""

import random
from itertools import pairwise
from typing import Any

import psycopg
from hypothesis import given
from hypothesis import strategies as st

from duly.core.job import JobId, NewJob
from duly.stores.postgres.database import Database
from duly.stores.postgres.jobs import PostgresJobs
from duly.stores.postgres.marks import BEYOND, LOWEST, MET, MOST, Lane, Seen
from duly.stores.postgres.store import PostgresStore
from tests.stores.postgres.acts import claim, ended, put, request, worker
from tests.stores.postgres.explained import Explained
from tests.waiting import wait_until

MARKS = st.dictionaries(st.integers(-5, 200), st.integers(0, 10_000), max_size=100)


def lane_with(marks: dict[int, int]) -> Lane:
    """A lane that has met many dead entries up to these positions."""
    lane = Lane()
    for priority, pos in sorted(marks.items(), reverse=True):
        lane.learn(Seen(MET, MET, priority, pos, pos, 0, False), {priority: MET})
    return lane


@given(MARKS, st.integers(-5, 200), st.integers(1, 20_000))
def test_a_place_is_skipped_only_behind_the_mark_of_its_own_priority(
    marks: dict[int, int], priority: int, pos: int
) -> None:
    lane = lane_with(marks)

    jumps = lane.jumps()

    found = [jump for jump in jumps if (jump.low, jump.pos) < (priority, pos) and priority < jump.high]
    assert len(found) <= 1
    if not found:
        assert lane.jumped(priority, pos)


@given(MARKS)
def test_jumps_cover_all_priorities_in_order_and_stay_few(marks: dict[int, int]) -> None:
    jumps = lane_with(marks).jumps()

    assert 1 <= len(jumps) <= MOST + 1
    assert (jumps[0].low, jumps[-1].high) == (LOWEST, BEYOND)
    assert all(one.high == two.low for one, two in pairwise(jumps))


def test_a_lane_without_dead_entries_has_one_scan_and_needs_no_sweep() -> None:
    lane = Lane()

    lane.learn(Seen(10, 3, 100, 7, 7, 90, False), {100: 3})

    assert lane.jumps() == [(LOWEST, -1, BEYOND)]
    assert not lane.sweep_due(10.0)


def test_jobs_come_in_exact_order_while_a_snapshot_is_pinned(store: PostgresStore, url: str) -> None:
    numbers = random.Random(7)
    me = worker(store)
    waiting: list[tuple[int, JobId]] = []
    with psycopg.connect(url) as pin:
        pin.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        pin.execute("select 1 from duly.ready")
        for _ in range(60):
            for priority in (1, 50, 100, 100, numbers.randrange(200)):
                waiting += [(priority, id) for id in put(store, numbers.randrange(40), priority=priority)]
            jobs = claim(store, me, numbers.randrange(1, 150))
            waiting.sort()
            expected, waiting = waiting[: len(jobs)], waiting[len(jobs) :]
            assert [(job.priority, job.id) for job in jobs] == expected
            store.jobs.exchange(me, [ended(job) for job in jobs], None)


def test_a_late_commit_behind_the_marks_is_found_within_seconds(store: PostgresStore, url: str) -> None:
    me = worker(store)
    with psycopg.connect(url) as late:
        (hidden,) = store.enqueue_on(late, [NewJob("default", "ok", b"{}")])
        put(store, 3 * MET)
        for _ in range(3):
            jobs = claim(store, me, MET)
            store.jobs.exchange(me, [ended(job) for job in jobs], None)
        late.commit()

    found = wait_until(lambda: claim(store, me, 1), timeout=30, what="the late job is claimed")

    assert [job.id for job in found] == [hidden.id]


def test_claims_read_a_handful_of_pages_behind_many_dead_entries(database: Database, url: str) -> None:
    store, jobs = PostgresStore(url), PostgresJobs(database)
    me = worker(store)
    with psycopg.connect(url) as pin:
        pin.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        pin.execute("select 1 from duly.ready")
        for _ in range(10):
            put(store, MET)
            held = jobs.exchange(me, (), request(MET)).claimed
            jobs.exchange(me, [ended(job) for job in held], None)
        put(store, 50)
        explained = Explained(database)
        # One of them may be the scan from the front that looks for late commits.
        read = [_pages(explained.of(lambda: jobs.exchange(me, (), request(1)))) for _ in range(5)]
    store.close()

    # A walk over the 10,000 dead entries touches about 200 pages.
    assert sorted(read)[3] < 40


def _pages(nodes: list[dict[str, Any]]) -> int:
    return sum(node["Shared Hit Blocks"] for node in nodes if node.get("Index Name") == "ready_pkey")
