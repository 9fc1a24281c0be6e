"""Claims that start behind dead entries: the arithmetic of jumps, and exact order under a pinned snapshot."""

import random
from itertools import pairwise
from operator import itemgetter
from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duly.core.ageing import aged
from duly.core.job import JobId, NewJob
from duly.stores.postgres import marks
from duly.stores.postgres.database import Database
from duly.stores.postgres.jobs import PostgresJobs
from duly.stores.postgres.marks import BEYOND, LOWEST, MET, MOST, SETTLED, Lane, Seen
from duly.stores.postgres.store import PostgresStore
from tests.stores.postgres.acts import claim, ended, put, request, worker
from tests.stores.postgres.explained import Explained
from tests.waiting import wait_until

MARKS = st.dictionaries(st.integers(-5, 200), st.integers(0, 10_000), max_size=100)


def lane_with(known: dict[int, int]) -> Lane:
    """A lane that has met many dead entries up to these positions."""
    lane = Lane()
    lane.learn(Seen(1, 0, None, None, 10_000, 0, False), {}, 0.0)
    for priority, pos in sorted(known.items(), reverse=True):
        lane.learn(Seen(MET, MET, priority, pos, 10_000, 0, False), {priority: MET}, SETTLED)
    return lane


@given(MARKS, st.integers(-5, 200), st.integers(1, 20_000))
def test_a_place_is_skipped_only_behind_the_mark_of_its_own_priority(
    known: dict[int, int], priority: int, pos: int
) -> None:
    lane = lane_with(known)

    jumps = lane.jumps()

    found = [jump for jump in jumps if (jump.low, jump.pos) < (priority, pos) and priority < jump.high]
    assert len(found) <= 1
    if not found:
        assert lane.jumped(priority, pos)


@given(MARKS)
def test_jumps_cover_all_priorities_in_order_and_stay_few(known: dict[int, int]) -> None:
    jumps = lane_with(known).jumps()

    assert 1 <= len(jumps) <= MOST + 1
    assert (jumps[0].low, jumps[-1].high) == (LOWEST, BEYOND)
    assert all(one.high == two.low for one, two in pairwise(jumps))


def test_a_lane_without_dead_entries_has_one_scan_and_needs_no_sweep() -> None:
    lane = Lane()

    lane.learn(Seen(10, 3, 100, 7, 7, 90, False), {100: 3}, 0.0)

    assert lane.jumps() == [(LOWEST, -1, BEYOND)]
    assert not lane.sweep_due(10.0)


def test_what_was_given_out_lately_stands_behind_no_mark() -> None:
    lane = Lane()
    full = {100: MET}

    lane.learn(Seen(MET, MET, 100, 1_000, 5_000, 0, False), full, 0.0)
    assert not lane.jumped(100, 0), "nothing is known of what others have not committed yet"
    lane.learn(Seen(MET, 0, None, None, 6_000, 0, False), {}, SETTLED * 0.9)
    assert not lane.jumped(100, 5_000)
    lane.learn(Seen(MET, 0, None, None, 9_000, 0, False), {}, SETTLED)
    assert lane.jumped(100, 5_000)
    assert not lane.jumped(100, 5_001)
    lane.learn(Seen(MET, 0, None, None, 9_000, 1_000_000, False), {}, SETTLED * 1.9 + 1.0)
    assert lane.jumped(100, 6_000), "at the time when the scan began"
    assert not lane.jumped(100, 6_001)
    lane.learn(Seen(1, 1, 100, 2_000, 9_000, 0, True), {100: 1}, SETTLED * 3 + 1.0)
    assert not lane.jumped(100, 2_001), "a scan from the front goes back"


def test_a_commit_that_a_claim_has_missed_is_found_by_the_next(store: PostgresStore, url: str) -> None:
    me = worker(store)
    put(store, 2 * MET)
    jobs = claim(store, me, 2 * MET)
    store.jobs.exchange(me, [ended(job) for job in jobs], None)
    assert claim(store, me, 1) == (), "the scan of this second from the front has been"
    with psycopg.connect(url) as late:
        (hidden,) = store.enqueue_on(late, [NewJob("default", "ok", b"{}")])
        assert claim(store, me, 1) == ()
        late.commit()
    found = claim(store, me, 1)

    assert [job.id for job in found] == [hidden.id]
    assert isinstance(store.jobs, PostgresJobs)
    assert store.jobs.stragglers() == 0


def test_jobs_come_in_exact_order_while_a_snapshot_is_pinned(store: PostgresStore, url: str) -> None:
    numbers = random.Random(7)
    me = worker(store)
    waiting: list[tuple[int, JobId]] = []
    given_out = 0
    with psycopg.connect(url) as pin:
        pin.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        pin.execute("select 1 from duly.ready")
        for _ in range(60):
            for priority in (1, 50, 100, 100, numbers.randrange(200)):
                waiting += [(priority, id) for id in put(store, numbers.randrange(40), priority=priority)]
            wanted = numbers.randrange(1, 150)
            jobs = claim(store, me, wanted)
            oldest = sorted(sorted(waiting, key=itemgetter(1))[: aged(given_out, wanted)])
            urgent = sorted(set(waiting) - set(oldest))[: wanted - len(oldest)]
            assert [(job.priority, job.id) for job in jobs] == oldest + urgent
            waiting = sorted(set(waiting) - {*oldest, *urgent})
            given_out += len(jobs)
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


def test_claims_read_a_handful_of_pages_behind_many_dead_entries(
    database: Database, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(marks, "SETTLED", 0.0)
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
