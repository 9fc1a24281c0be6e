"""Claims and ends of bounded jobs touch only what they are about, whatever waits behind keys, limits and tenants.

As in test_plans the tables were analysed when empty; once the plans are made after they were filled, once before, as in
a worker that has been there since the first job.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from functools import partial
from typing import Any

import psycopg
import pytest

from duly.core.control import LimitPolicy, TaskLimit
from duly.core.job import ClaimedJob, ClaimRequest, Incarnation, NewJob, QueueClaim
from duly.core.registration import QueuePolicy, Registration
from duly.stores.postgres.database import Database
from duly.stores.postgres.jobs import PostgresJobs
from duly.stores.postgres.store import PostgresStore
from duly.stores.postgres.upkeep import PostgresUpkeep
from tests.stores.postgres.acts import ended, worker
from tests.stores.postgres.explained import Explained, nodes

CONTROL = {
    "job", "ready", "scheduled", "blocked", "claimed", "finished", "keyed", "key_head", "hold", "limit_state",
    "released",
}  # fmt: skip
WAITING = 5_000
RUNNING = 1_500
CLAIMED = 10
TOUCHED = 120
MOST_SWEPT = 6_000
"""A round of the sweep looks at a thousand keys, limits or holders, and at each of them at several places."""
HOUR = timedelta(hours=1)
_PER_CUSTOMER = LimitPolicy("task:limited#customer", max_running=1)

pytestmark = [pytest.mark.slow, pytest.mark.parametrize("postgres", [15, 18], indirect=True)]


def _keyed(key: str) -> NewJob:
    return NewJob("keys", "ok", b"{}", ordering_key=key)


def _limited(customer: int) -> NewJob:
    return NewJob("limits", "limited", b'{"customer":%d}' % customer)


def _of(tenant: str) -> NewJob:
    return NewJob("tenants", "ok", b"{}", tenant=tenant, fair=True)


MADE: dict[str, Callable[[int], NewJob]] = {
    "keys": lambda number: _keyed(f"key {number}"),
    "limits": _limited,
    "tenants": lambda number: _of(f"tenant {number}"),
}
CROWD = {"keys": _keyed("one"), "limits": _limited(-1), "tenants": _of("one")}


def _request(queue: str, most: int) -> ClaimRequest:
    return ClaimRequest((QueueClaim(queue, most, queue == "tenants"),), most, chain=4)


class Acts:
    """A claim of a few jobs that others do not hold back, and their ends, over and over."""

    def __init__(self, store: PostgresStore, jobs: PostgresJobs, me: Incarnation) -> None:
        self._store, self._jobs, self._me = store, jobs, me
        self._numbers = iter(range(10_000_000, 20_000_000))
        self._held: dict[str, tuple[ClaimedJob, ...]] = dict.fromkeys(MADE, ())

    def put(self, queue: str) -> None:
        self._store.jobs.enqueue([MADE[queue](next(self._numbers)) for _ in range(CLAIMED)])

    def exchange(self, queue: str) -> None:
        ends = [ended(job) for job in self._held[queue]]
        self._held[queue] = self._jobs.exchange(self._me, ends, _request(queue, CLAIMED)).claimed
        assert len(self._held[queue]) == CLAIMED


def _fill(store: PostgresStore, busy: Incarnation) -> None:
    """Many of each run, each behind a key, a limit or in a tenant of its own; and more wait behind one of them."""
    for queue, made in MADE.items():
        store.jobs.enqueue([CROWD[queue]])
        for start in range(0, RUNNING, 500):
            store.jobs.enqueue([made(number) for number in range(start, start + 500)])
            while store.jobs.exchange(busy, (), _request(queue, 500)).claimed:
                pass
        for _ in range(WAITING // 1_000):
            store.jobs.enqueue([CROWD[queue]] * 1_000)
        if queue != "tenants":
            assert not store.jobs.exchange(busy, (), _request(queue, 500)).claimed
            while (answer := store.jobs.exchange(busy, (), _request(queue, 500))).again is not None:
                assert not answer.claimed


def _faults(explained: Explained, act: Callable[[], object], most: int = TOUCHED) -> list[str]:
    """What the statements of an act do in vain, each with how it begins."""
    explained.of(act)
    plans = [json.loads(text[text.index("{") :]) for text in explained.told if "plan:" in text]
    return [
        f"{' '.join(plan['Query Text'].split())[:80]}...: {fault}"
        for plan in plans
        for fault in _in_vain(nodes(plan["Plan"]), most)
    ]


def _in_vain(found: Iterable[dict[str, Any]], most: int) -> Iterator[str]:
    for node in found:
        kind, table, loops = node["Node Type"], node.get("Relation Name"), node.get("Actual Loops", 1)
        removed = node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Join Filter", 0)
        if kind == "Sample Scan":
            continue
        where = f"{kind} on {table} by {node.get('Index Name')}"
        # The sweep reads all holders, which are as many as there are slots.
        if table in CONTROL and kind in {"Seq Scan", "Bitmap Heap Scan"} and most == TOUCHED:
            yield where
        if (table in CONTROL or kind == "Nested Loop") and removed * loops > 5 * most:
            yield f"{where}: {removed * loops} rows in vain"
        if table in CONTROL and node.get("Actual Rows", 0) * loops > most:
            yield f"{where}: {node['Actual Rows'] * loops} rows"


@pytest.mark.parametrize("early", [False, True], ids=["made after", "made before"])
def test_claims_and_ends_touch_only_their_own_keys_and_limits(url: str, early: bool) -> None:
    store = PostgresStore(url)
    queues = (QueuePolicy("tenants", fair=True),)
    takes = (TaskLimit("limited", _PER_CUSTOMER.name, "customer"),)
    assert store.schema.declare(
        Registration("suite", "1", queues, limits=(_PER_CUSTOMER,), task_limits=takes)
    )
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("vacuum analyze")
        connection.execute("alter system set autovacuum to off")
        connection.execute("select pg_reload_conf()")
        busy, me = worker(store, "ok", "limited"), worker(store, "ok", "limited")
        database = Database(url, "duly", None, 1)
        acts = Acts(store, PostgresJobs(database), me)
        explained = Explained(database)
        if not early:
            _fill(store, busy)
        for queue in list(MADE) * 6:
            acts.put(queue)
            acts.exchange(queue)
        if early:
            _fill(store, busy)
        wrong = {}
        for queue in MADE:
            # What the turns before have left is met once.
            acts.put(queue)
            acts.exchange(queue)
            acts.put(queue)
            wrong[queue] = _faults(explained, partial(acts.exchange, queue))
        upkeep = PostgresUpkeep(database, int)
        wrong["promote"] = _faults(explained, lambda: upkeep.promote(10))
        connection.execute("update duly.sweep set last_at = '-infinity' where name = 'sweep'")
        wrong["sweep"] = _faults(explained, lambda: upkeep.sweep(HOUR, 3, HOUR), MOST_SWEPT)
        connection.execute("alter system reset autovacuum")
        connection.execute("select pg_reload_conf()")
    store.close()
    database.close()

    assert [f"{name}: {fault}" for name, found in wrong.items() for fault in found] == []
