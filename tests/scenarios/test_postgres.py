"""PostgreSQL at its worst: restarts, silence, forgotten transactions, poolers, purges beside work."""

import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from statistics import quantiles

import psycopg
import pytest

from duly import App
from duly.core.decide import completed
from duly.core.job import ClaimRequest, JobId, NewJob, QueueClaim
from duly.core.lifecycle import State
from duly.stores.open import open_store
from duly.stores.postgres import database, patience
from duly.stores.protocol import Clock, Store
from duly.testing import conformance
from duly.testing.conformance import Case
from duly.testing.conformance.bench import SECOND, new_job, together
from duly.worker.embedded import Embedded
from duly.worker.options import WorkerOptions
from tests.conformance.places import PostgresPlace
from tests.drill.proxy import Proxy
from tests.e2e.chores_app import hold, quick
from tests.e2e.workers import Place, a_place
from tests.scenarios.crowd import register
from tests.scenarios.inside import answers, record_of
from tests.scenarios.pooler import Pooler
from tests.services import PostgresServer
from tests.waiting import wait_until

JOB = new_job(args=b'{"n":1}')


def churn(store: Store, rounds: int, batch: int) -> list[list[float]]:
    """Store, claim and end `batch` jobs a round; the seconds of each claim, by round."""
    worker = register(store)
    request = ClaimRequest((QueueClaim("default", 50),), 50)
    seconds: list[list[float]] = []
    for _ in range(rounds):
        store.jobs.enqueue([NewJob("default", "ok", b"{}")] * batch)
        took: list[float] = []
        while True:
            began = time.monotonic()
            claimed = store.jobs.exchange(worker, [], request).claimed
            took.append(time.monotonic() - began)
            if not claimed:
                break
            store.jobs.exchange(worker, [completed(job, None, SECOND) for job in claimed], None)
        seconds.append(took)
    return seconds


def p95(seconds: list[float]) -> float:
    return quantiles(seconds, n=20)[-1]


@pytest.mark.slow
def test_a_forgotten_transaction_does_not_slow_the_claims_down(store: Store, postgres_database: str) -> None:
    churn(store, 1, 500)
    with psycopg.connect(postgres_database) as pinned:
        pinned.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        pinned.execute("select 1")

        seconds = churn(store, 16, 1000)

    first, last = (p95([one for took in part for one in took]) for part in (seconds[:4], seconds[-4:]))
    assert last < 5 * first, (first, last)


def test_no_transaction_is_open_while_a_handler_runs(postgres_database: str) -> None:
    app = App(postgres_database)
    running, go_on = threading.Event(), threading.Event()

    @app.task
    def work() -> None:
        running.set()
        go_on.wait(20)

    id = work.enqueue().id
    open_ones = (
        "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
        " and (state like 'idle in transaction%' or (state = 'idle' and xact_start is not null))"
    )
    with Embedded(app), psycopg.connect(postgres_database, autocommit=True) as looking:
        assert running.wait(10)
        seen = [looking.execute(open_ones).fetchone() for _ in range(20)]
        go_on.set()
        wait_until(lambda: record_of(app, id).state is State.completed)
    app.close()

    assert set(seen) == {(0,)}


@pytest.fixture
def place(postgres_database: str, tmp_path: Path) -> Iterator[Place]:
    with a_place(postgres_database, tmp_path) as made:
        yield made


@pytest.mark.process
def test_an_end_that_met_a_restart_of_the_server_is_written_after_it(
    place: Place, postgres: PostgresServer
) -> None:
    id = place.enqueue_one(hold)
    worker = place.start(lease=60.0, heartbeat=1.0)
    place.wait_started(id)

    postgres.halt("immediate")
    place.release()
    wait_until(lambda: place.ledger("ended", id), what="the end of the handler")
    wait_until(lambda: "does not answer" in worker.log, what="its word about the outage")
    postgres.resume()
    wait_until(lambda: answers(place.store), timeout=30)

    (record,) = place.wait_final([id])
    (after,) = place.wait_final([place.enqueue_one(quick)])
    assert (record.state, record.run, record.counters.lost) == (State.completed, 1, 0)
    assert len(place.ledger("started", id)) == 1
    assert after.state is State.completed
    assert worker.stop() == 0


class Outage(Proxy):
    """A server that is away for whoever comes through here."""

    down = False

    def begin(self) -> None:
        self.down = True
        for one in list(self._pairs):
            self._drop(one)

    def _accept(self) -> None:
        if self.down:
            self._listener.accept()[0].close()
        else:
            super()._accept()


@pytest.mark.process
def test_an_end_that_comes_after_the_lease_is_refused_and_the_worker_lives(
    place: Place, postgres: PostgresServer, tmp_path: Path
) -> None:
    apart = tmp_path / "apart"
    apart.mkdir()
    outage = Outage(postgres.port)
    try:
        url = place.url.replace(f":{postgres.port}", f":{outage.port}")
        with a_place(url, apart) as first:
            id = place.enqueue_one(hold)
            cut_off = first.start(lease=2.0, heartbeat=0.3)
            (line,) = wait_until(lambda: first.ledger("started", id), timeout=60, what="the first run")
            outage.begin()
            first.release()
            second = place.start(lease=2.0, heartbeat=0.3)
            place.wait_started(id, attempt=2)
            outage.down = False
            wait_until(lambda: len(place.workers()) == 2, timeout=60, what="the first worker's return")
            place.release()
            (record,) = place.wait_final([id])
            assert second.stop() == 0

            wait_until(lambda: answers(first.store), timeout=30)
            (after,) = first.wait_final([place.enqueue_one(quick)])
            assert cut_off.stop() == 0
    finally:
        outage.close()

    assert (record.state, record.counters.lost, record.counters.failed) == (State.completed, 1, 0)
    assert f"the ends of job {id} in process {line.pid} came too late" in cut_off.log, cut_off.log
    assert after.state is State.completed


def test_a_worker_whose_connections_fell_silent_works_on(
    postgres_database: str, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failover behind a proxy: nothing is closed, and nothing passes."""
    assert patience.SILENCE + 5 < 30 - 5, "two beats must fit into a lease"
    monkeypatch.setattr(database, "SILENCE", 0.5)
    proxy = Proxy(postgres.port)
    app = App(postgres_database.replace(f":{postgres.port}", f":{proxy.port}"))
    direct = open_store(postgres_database)

    @app.task
    def work() -> None: ...

    options = WorkerOptions(lease=timedelta(seconds=6), heartbeat=timedelta(seconds=0.5))
    with Embedded(app, options):
        before = work.enqueue().id
        wait_until(lambda: is_completed(direct, before), what="work before the silence")
        fell_silent = proxy.hang()
        (after,) = direct.jobs.enqueue([NewJob("default", "work", b"{}")])
        wait_until(lambda: is_completed(direct, after.id), timeout=60, what="work on other connections")

    assert fell_silent >= 2
    app.close()
    direct.close()
    proxy.close()


def is_completed(store: Store, id: JobId) -> bool:
    (record,) = store.inspection.lookup([id])
    return record is not None and record.state is State.completed


class PooledPlace(PostgresPlace):
    """The same database, reached through a pooler."""

    def __init__(self, url: str, pooled: str) -> None:
        super().__init__(url)
        self.pooled = pooled

    def open(self, clock: Clock) -> Store:
        return open_store(self.pooled, clock=clock, notify=False)


# A listener needs a session of its own; without a bell there is none.
POOLED = [
    case
    for case in conformance.cases()
    if case.area not in {"transitions", "asynchronous"} and "listener" not in case.name
][::6]


@pytest.fixture
def pooler(postgres: PostgresServer) -> Iterator[Pooler]:
    pooler = Pooler(postgres.port)
    yield pooler
    pooler.close()


@pytest.mark.parametrize("case", POOLED, ids=[case.name for case in POOLED])
def test_the_store_keeps_its_promises_behind_a_transaction_pooler(
    case: Case, pooler: Pooler, postgres_database: str, postgres: PostgresServer
) -> None:
    pooled = postgres_database.replace(f":{postgres.port}", f":{pooler.port}")

    conformance.check(case, PooledPlace(postgres_database, pooled))


def test_a_transaction_of_the_store_needs_no_second_session_of_a_pooler(
    postgres: PostgresServer, postgres_database: str
) -> None:
    pooler = Pooler(postgres.port, size=1)
    store = open_store(postgres_database.replace(f":{postgres.port}", f":{pooler.port}"), notify=False)

    with store.transaction() as connection:
        (stored,) = store.enqueue_on(connection, [NewJob("default", "work", b"{}")])

    assert store.inspection.lookup([stored.id])[0] is not None
    store.close()
    pooler.close()


def test_an_empty_database_is_migrated_through_a_transaction_pooler(
    pooler: Pooler, empty_postgres_url: str, postgres: PostgresServer
) -> None:
    stores = [
        open_store(empty_postgres_url.replace(f":{postgres.port}", f":{pooler.port}")) for _ in range(3)
    ]

    applied = together(*(store.schema.migrate for store in stores))
    (stored,) = stores[0].jobs.enqueue([JOB])

    assert sum(map(len, applied)) >= 1
    assert [store.schema.version() for store in stores] == [stores[0].schema.wanted()] * 3
    assert stores[1].inspection.lookup([stored.id])[0] is not None
    for store in stores:
        store.close()


def test_a_worker_behind_a_transaction_pooler_runs_all_jobs(
    pooler: Pooler, postgres_database: str, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DULY_NOTIFY", "off")
    app = App(postgres_database.replace(f":{postgres.port}", f":{pooler.port}"))

    @app.task
    def work(n: int) -> int:
        return n

    sent = app.enqueue_many(work.draft(n) for n in range(200))
    delayed = work.using(delay="50ms").enqueue(7)
    with Embedded(app, WorkerOptions(poll=timedelta(seconds=0.05))) as worker:
        wait_until(lambda: record_of(app, delayed.id).state is State.completed)
        worker.until_idle(20)
        states = {record_of(app, one.id).state for one in sent}
    app.close()

    assert states == {State.completed}
    assert pooler.switches > 50


@pytest.mark.slow
def test_purgers_beside_each_other_and_beside_work_get_on(
    store: Store, postgres_database: str, postgres: PostgresServer
) -> None:
    old = 6_000
    churn(store, 3, old // 3)
    live = [stored.id for stored in store.jobs.enqueue([new_job(delay=timedelta(days=1))] * 50)]
    normal = p95([one for took in churn(store, 2, 500) for one in took])
    quick_ones = postgres_database + "?options=-c%20statement_timeout%3D2s"
    purgers = [open_store(quick_ones) for _ in range(3)]
    logged = len(postgres.log)
    purged: list[int] = []
    busy: list[list[float]] = []

    def purge(number: int) -> None:
        while gone := purgers[number].upkeep.retain({}, {}, timedelta(0), timedelta(days=1), 200):
            purged.append(gone)

    together(
        *(lambda number=number: purge(number) for number in range(3)),
        lambda: busy.extend(churn(store, 3, 500)),
    )
    for one in purgers:
        one.close()
    while gone := store.upkeep.retain({}, {}, timedelta(0), timedelta(days=1), 2000):
        purged.append(gone)

    assert sum(purged) == old + 2 * 500 + 3 * 500
    assert max(purged[:-1]) <= 2000
    assert {record.state for record in store.inspection.lookup(live) if record} == {State.scheduled}
    assert not any(word in postgres.log[logged:] for word in ("deadlock", "statement timeout"))
    # Two cores, and five threads of this process on them.
    assert p95([one for took in busy for one in took]) < max(10 * normal, 0.1)
