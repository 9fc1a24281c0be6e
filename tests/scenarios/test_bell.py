"""PostgreSQL's bell: cut and deaf listeners, and what ringing costs those who store jobs."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import partial

import psycopg
import pytest

from duly import App
from duly.core.lifecycle import State
from duly.stores.open import open_store
from duly.stores.postgres import listener as listening
from duly.stores.postgres.database import Database
from duly.stores.postgres.listener import PostgresListener
from duly.stores.protocol import Listener, Store
from duly.testing.conformance.bench import new_job, together
from duly.worker.embedded import Embedded
from duly.worker.options import WorkerOptions
from tests.drill.proxy import Proxy
from tests.scenarios.inside import answers, record_of
from tests.services import PostgresServer
from tests.waiting import wait_until

JOB = new_job(args=b'{"n":1}')
SLOW_POLL = WorkerOptions(poll=timedelta(seconds=30))


@contextmanager
def heard(store: Store) -> Iterator[tuple[PostgresListener, Callable[[], int]]]:
    """An idle worker's listener, and how often it was called so far."""
    calls: list[float] = []
    listener: Listener = store.listen(lambda: calls.append(time.monotonic()))
    assert isinstance(listener, PostgresListener)
    try:
        listener.idle(True)
        yield listener, lambda: len(calls)
    finally:
        listener.close()


def at_the_door(store: Store) -> bool:
    with store.transaction() as connection:
        return bool(connection.execute(DOOR).fetchall())


DOOR = (
    "select from pg_locks where locktype = 'advisory' and mode = 'ExclusiveLock' and granted "
    "and objsubid = 2 and objid = 1"
)
CUT = "select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and mode = 'ExclusiveLock'"


def wakes(store: Store, calls: Callable[[], int]) -> bool:
    """Whether an enqueue is heard within a second."""
    before = calls()
    store.jobs.enqueue([JOB])
    with suppress(AssertionError):
        return wait_until(lambda: calls() > before, timeout=1.0)
    return False


def test_a_listener_that_was_cut_off_hears_again_and_learns_what_it_missed(
    store: Store, postgres: PostgresServer
) -> None:
    with heard(store) as (listener, calls):
        for cut in range(1, 5):
            wait_until(lambda: at_the_door(store), what="the listener at the door")
            before = calls()
            postgres.execute(CUT)
            store.jobs.enqueue([JOB])

            wait_until(
                partial(reached, lambda: listener.reconnects, cut), timeout=30, what="its new connection"
            )
            wait_until(partial(reached, calls, before + 1), timeout=30, what="its look at what it missed")
            wait_until(lambda: at_the_door(store), timeout=30, what="the listener at the door")
            assert wakes(store, calls)


def test_a_worker_with_a_cut_listener_starts_jobs_at_once_again(
    postgres_database: str, postgres: PostgresServer
) -> None:
    app = App(postgres_database)
    started: list[float] = []

    @app.task
    def work() -> None:
        started.append(time.monotonic())

    with Embedded(app, SLOW_POLL) as worker:
        worker.until_idle(10)
        for cut in range(3):
            wait_until(lambda: at_the_door(app.store), what="the listener at the door")
            postgres.execute(CUT)
            wait_until(lambda: not at_the_door(app.store), what="the cut")
            wait_until(lambda: at_the_door(app.store), timeout=30, what="the listener back at the door")
            sent = time.monotonic()
            work.enqueue()
            wait_until(partial(reached, lambda: len(started), cut + 1), timeout=30, what="the start")
            assert started[-1] - sent < 1.0
    app.close()


def test_a_listener_without_a_server_waits_longer_and_longer(store: Store, postgres: PostgresServer) -> None:
    with heard(store) as (listener, calls):
        wait_until(lambda: at_the_door(store), what="the listener at the door")
        used = time.process_time()
        postgres.halt("immediate")
        try:
            wait_until(lambda: listener.reconnects >= 4, timeout=60, what="four tries")
            spent = time.process_time() - used
        finally:
            postgres.resume()
        wait_until(lambda: answers(store), timeout=30)
        wait_until(lambda: at_the_door(store), timeout=60, what="the listener back at the door")

        assert wakes(store, calls)
    # Backing off from 0.2 s: four tries take at least half a second, of which next to nothing is work.
    assert spent < 0.5


def reached(count: Callable[[], int], wanted: int) -> bool:
    return count() >= wanted


def test_a_deaf_connection_is_noticed_and_replaced(
    store: Store, postgres: PostgresServer, postgres_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert listening._PULSE + 2 * listening._DEAF < 30
    monkeypatch.setattr(listening, "_PULSE", 0.4)
    monkeypatch.setattr(listening, "_DEAF", 0.4)
    proxy = Proxy(postgres.port)
    calls: list[float] = []
    through = Database(postgres_database.replace(f":{postgres.port}", f":{proxy.port}"), "duly", None, 2)
    listener = PostgresListener(through, lambda: calls.append(time.monotonic()))
    try:
        listener.idle(True)
        wait_until(lambda: at_the_door(store), what="the listener at the door")
        assert wakes(store, lambda: len(calls))

        assert proxy.hang() == 1
        before = len(calls)
        store.jobs.enqueue([JOB])

        wait_until(lambda: listener.reconnects == 1, timeout=30, what="that it noticed")
        wait_until(lambda: len(calls) > before, timeout=30, what="its look at what it missed")
        assert wakes(store, lambda: len(calls))
    finally:
        listener.close()
        proxy.close()
        through.close()


@contextmanager
def ear(url: str, *, at_door: bool) -> Iterator[Callable[[], int]]:
    """A connection that counts all notifications of the store, and may stand at the door as an idle worker does."""
    with psycopg.connect(url, autocommit=True) as connection:
        (channel,) = connection.execute("select 'duly_' || 'duly.worker'::regclass::oid").fetchone() or ("",)
        connection.execute(f'listen "{channel}"'.encode())
        if at_door:
            connection.execute("select pg_advisory_lock(duly.door_class_1(), 1)")

        def count() -> int:
            # The reply to a statement brings along what was notified before it.
            connection.execute("select 1")
            return len(list(connection.notifies(timeout=0.05)))

        yield count


def test_one_transaction_rings_at_most_once_and_only_for_someone_idle(
    store: Store, postgres_database: str
) -> None:
    def enqueue_much() -> None:
        with store.transaction() as connection:
            for _ in range(10):
                store.enqueue_on(connection, [JOB])
            store.enqueue_on(connection, [JOB] * 1000)

    with ear(postgres_database, at_door=True) as rung:
        enqueue_much()
        assert rung() == 1
        store.jobs.enqueue([JOB] * 1000)
        assert rung() == 1
    with ear(postgres_database, at_door=False) as rung:
        enqueue_much()
        store.jobs.enqueue([JOB] * 1000)
        assert rung() == 0


def test_without_the_bell_nothing_listens_and_jobs_run_by_polling(
    postgres_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DULY_NOTIFY", "off")
    app = App(postgres_database)

    @app.task
    def work() -> None: ...

    with Embedded(app, WorkerOptions(poll=timedelta(seconds=0.1))) as worker:
        worker.until_idle(10)
        assert not at_the_door(app.store)
        id = work.enqueue().id
        wait_until(lambda: record_of(app, id).state is State.completed, timeout=30)
        assert not at_the_door(app.store)
    app.close()


@pytest.mark.slow
def test_ringing_costs_little_of_what_many_writers_can_store(store: Store, postgres_database: str) -> None:
    writers, each = 8, 40
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        connection.execute("create table business (n int)")
    stores = [open_store(postgres_database) for _ in range(writers)]

    def write(number: int) -> None:
        for n in range(each):
            with stores[number].transaction() as connection:
                connection.execute("insert into business values (%s)", (n,))
                stores[number].enqueue_on(connection, [JOB])

    def rate() -> float:
        began = time.monotonic()
        together(*(lambda number=number: write(number) for number in range(writers)))
        return writers * each / (time.monotonic() - began)

    rate()
    ratios = []
    for _ in range(5):
        off = rate()
        with ear(postgres_database, at_door=True):
            ratios.append(rate() / off)
        if max(ratios) >= 0.7:
            break
    for one in stores:
        one.close()

    # Other work on the machine only ever makes a single measurement worse.
    assert max(ratios) >= 0.7, ratios
