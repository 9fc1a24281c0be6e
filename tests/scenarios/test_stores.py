"""Every statement beyond 31 bits, and all kinds of bulk acts at one time, on each store."""

import json
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from functools import partial

import psycopg
import pytest
from click.testing import CliRunner

from duly.cli.main import cli
from duly.core.decide import completed
from duly.core.filters import Filter
from duly.core.job import ClaimRequest, Ended, JobId, Progress, QueueClaim
from duly.core.lifecycle import Event, State
from duly.stores.open import open_store
from duly.stores.protocol import Store
from duly.testing.conformance import Bench
from duly.testing.conformance.bench import BOOM, HOUR, POISON, SECOND, ended, new_job, together
from tests.scenarios.crowd import register
from tests.services import PostgresServer

EDGE = 2**31 - 6


def move_numbers(url: str, to: int) -> int:
    """Let every counter of the store stand there, as after years of use; how many there are."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)) as connection:
            connection.execute("update duly_seq set value = ?", (to,))
        return 1
    with psycopg.connect(url, autocommit=True) as server:
        query = "select setval('duly.' || sequencename, %s) from pg_sequences where schemaname = 'duly'"
        return len(server.execute(query, (to,)).fetchall())


def test_nothing_breaks_when_numbers_outgrow_31_bits(bench: Bench, url: str) -> None:
    assert move_numbers(url, EDGE) >= 1
    store, worker = bench.store, bench.worker(timeout=HOUR)
    ids = bench.put_many(10, tags=("t",), correlation_id="c")
    assert min(ids) < 2**31 < max(ids)
    child = bench.put(delay=HOUR)
    jobs = bench.claim(worker, 10)

    store.jobs.report(worker, [Progress(job.id, job.run, 2**33) for job in jobs])
    assert {store.inspection.lookup([job.id])[0].progress.done for job in jobs} == {2**33}  # type: ignore[union-attr]
    assert all(store.jobs.extend(worker, job.id, job.run, HOUR) for job in jobs)
    assert sorted(id for id, _ in store.jobs.report(worker, [])[0]) == ids
    ends = [Event.complete, Event.fail, Event.snooze, Event.skip, Event.bury, Event.interrupt]
    assert (
        len(bench.end(worker, *(ended(job, end, error=BOOM) for job, end in zip(jobs, ends, strict=False))))
        == 6
    )
    assert store.operator.cancel(ids[6:7], "ann", "no") == {ids[6]: State.running}
    assert store.leases.disown(worker, [(jobs[7].id, 1)], "killed", POISON) == 4

    assert bench.states(ids[5:]) == [State.ready, State.cancelled, State.ready, State.ready, State.ready]
    assert store.operator.redrive([ids[3], ids[4], ids[6]], "ann", "again") == [ids[3], ids[4], ids[6]]
    assert store.operator.reprioritise(ids[8:], 7, "ann", "urgent") == ids[8:]
    assert store.operator.run_now([child], "ann", "now") == [child]
    bench.clock.advance(HOUR)
    assert store.upkeep.promote()[0] == 2
    after = bench.worker()
    claimed = bench.claim(after, 20) + bench.claim(after, 20, suspects=True)
    assert sorted(job.id for job in claimed) == sorted([*ids[1:], child])
    bench.end(after, *(ended(job, Event.bury, error=BOOM) for job in claimed))
    assert store.operator.purge([ids[9]], "ann", "spam") == [ids[9]]
    operation = store.operator.start_operation("redrive", Filter(), None, None, 1, "ann", "again")
    assert store.operator.advance_operation(operation.id, ids[8], 1, 0, ended=True)
    assert operation.upto >= child

    page = store.inspection.page(Filter(tag="t"), limit=20)
    assert [record.id for record in page.jobs] == sorted(ids[:9], reverse=True)
    assert [group.count for group in store.inspection.dead_groups(Filter())] == [9]
    assert [attempt.incarnation for attempt in bench.history(ids[1])] == [worker, after]
    assert store.upkeep.retain({}, {}, timedelta(0), timedelta(0)) == 1


def test_large_ids_are_exact_in_json(url: str) -> None:
    move_numbers(url, 2**53)
    store = open_store(url)
    (stored,) = store.jobs.enqueue([new_job()])
    store.close()

    listed = CliRunner().invoke(cli, ["jobs", "--all", "--url", url, "-o", "json"])
    shown = CliRunner().invoke(cli, ["job", str(stored.id), "--url", url, "-o", "json"])

    assert stored.id > 2**53
    assert (listed.exit_code, shown.exit_code) == (0, 0), listed.output + shown.output
    assert str(stored.id) in listed.stdout
    assert json.loads(shown.stdout)["job"]["id"] == stored.id


def repeatedly(act: Callable[[], object], until: float) -> int:
    done = 0
    while time.monotonic() < until:
        act()
        done += 1
    return done


def fail_often(store: Store) -> Callable[[], None]:
    """A worker that ends its batches in all ways at once."""
    worker = register(store)
    request = ClaimRequest((QueueClaim("default", 40),), 40)
    held: list[Ended] = []

    def work() -> None:
        answer = store.jobs.exchange(worker, held, request)
        held.clear()
        for number, job in enumerate(reversed(answer.claimed)):
            if number % 4 == 0:
                held.append(Ended(job.id, job.run, Event.bury, State.dead, job.counters, error=BOOM))
            elif number % 4 == 1:
                held.append(
                    Ended(job.id, job.run, Event.snooze, State.scheduled, job.counters, delay=SECOND / 10)
                )
            else:
                held.append(completed(job, b"1", SECOND))

    return work


@pytest.mark.slow
def test_bulk_acts_of_all_kinds_at_one_time_never_deadlock(url: str, request: pytest.FixtureRequest) -> None:
    log = _server_log(url, request)
    before = len(log())
    stores = [open_store(url) for _ in range(11)]
    stored: list[int] = []
    purged: list[int] = []
    guard = threading.Lock()
    until = time.monotonic() + 4

    def enqueue(store: Store) -> None:
        answer = store.jobs.enqueue([new_job(priority=number % 3) for number in range(50)])
        with guard:
            stored.extend(one.id for one in answer)

    def ids(state: State, most: int = 200) -> list[JobId]:
        return [record.id for record in stores[9].inspection.page(Filter(state=state), limit=most).jobs]

    def sweep(store: Store) -> None:
        store.upkeep.promote()
        store.upkeep.sweep(HOUR, POISON, SECOND)
        store.upkeep.retain({}, {}, timedelta(0), timedelta(days=1), 100)

    def purge(store: Store) -> None:
        gone = store.operator.purge(ids(State.dead)[::3], "ann", "spam")
        with guard:
            purged.extend(gone)

    def redrive_all(store: Store) -> None:
        store.operator.redrive(list(reversed(ids(State.dead))), "bob", "again")

    def meddle(store: Store) -> None:
        ready = ids(State.ready, 50)
        store.operator.cancel(ready[::5], "eve", "no")
        store.operator.reprioritise(list(reversed(ready[1::5])), 1, "eve", "urgent")

    acts = [enqueue, enqueue, enqueue, sweep, sweep, purge, redrive_all, meddle]
    workers = [fail_often(store) for store in stores[8:]]
    together(
        *(partial(repeatedly, partial(act, store), until) for act, store in zip(acts, stores, strict=False)),
        *(partial(repeatedly, worker, until) for worker in workers),
    )
    for beat in stores[0].leases.beats():
        stores[0].leases.retire(beat.incarnation)

    left = {record.id for record in stores[0].inspection.lookup([JobId(id) for id in stored]) if record}
    states = [record.state for record in stores[0].inspection.lookup(sorted(left)) if record]
    for store in stores:
        store.close()
    assert State.running not in states
    assert len(stored) > 100
    assert set(stored) - left >= set(purged)
    assert "deadlock" not in log()[before:]


def _server_log(url: str, request: pytest.FixtureRequest) -> Callable[[], str]:
    if url.startswith("sqlite"):
        return lambda: ""
    server = request.getfixturevalue("postgres")
    assert isinstance(server, PostgresServer)
    return lambda: server.log
