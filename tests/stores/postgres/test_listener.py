"""The bell: who rings when, and a listener that comes back from whatever happens to its connection."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Self

import psycopg
import pytest

from duly.core.job import NewJob
from duly.stores.postgres import listener as listening
from duly.stores.postgres.listener import PostgresListener
from duly.stores.postgres.store import PostgresStore
from tests.services import PostgresServer
from tests.stores.postgres.acts import Proxy, claim, put, worker
from tests.stores.postgres.conftest import Open
from tests.waiting import wait_until

JOB = NewJob("default", "ok", b"{}")


class Bell:
    """Counts what the listener calls."""

    def __init__(self, store: PostgresStore) -> None:
        self._changed = threading.Condition()
        self.calls = 0
        self.finds = False
        """Whether each call finds a job."""
        listener = store.listen(self._ring)
        assert isinstance(listener, PostgresListener)
        self.listener = listener

    def _ring(self) -> None:
        if self.finds:
            self.listener.found()
        with self._changed:
            self.calls += 1
            self._changed.notify_all()

    def rings_after(self, act: Callable[[], object], within: float = 5.0) -> bool:
        with self._changed:
            before = self.calls
            act()
            return self._changed.wait_for(lambda: self.calls > before, within)


@contextmanager
def bell_on(store: PostgresStore) -> Iterator[Bell]:
    bell = Bell(store)
    try:
        yield bell
    finally:
        bell.listener.close()


def doors(url: str) -> int:
    """How many sessions stand at the door of this database."""
    return len(_places(url, 1))


def rounds(url: str) -> list[int]:
    """The sessions that go round instead."""
    return _places(url, 2)


def _places(url: str, number: int) -> list[int]:
    with psycopg.connect(url, autocommit=True) as connection:
        rows = connection.execute(
            "select pid from pg_locks where locktype = 'advisory' and mode = 'ExclusiveLock' and granted "
            "and objsubid = 2 and objid = %s "
            "and database = (select oid from pg_database where datname = current_database())",
            (number,),
        ).fetchall()
    return [row[0] for row in rows]


def listeners(url: str) -> list[int]:
    with psycopg.connect(url, autocommit=True) as connection:
        rows = connection.execute(
            "select pid from pg_stat_activity where datname = current_database() and application_name = 'duly' "
            "and query ~ '(listen|pg_notify|advisory)'"
        ).fetchall()
    return [row[0] for row in rows]


def _has_reconnected(bell: Bell, times: int) -> bool:
    return bell.listener.reconnects > times


def test_an_idle_worker_is_woken_by_every_way_into_ready(store: PostgresStore, url: str) -> None:
    with bell_on(store) as bell:
        bell.listener.idle(True)
        wait_until(lambda: doors(url) == 1)

        assert bell.rings_after(lambda: put(store))
        assert bell.rings_after(lambda: put(store, 1000))
        me = worker(store)
        claim(store, me, 5)
        assert bell.rings_after(lambda: store.leases.retire(me))
        with psycopg.connect(url) as connection:
            store.enqueue_on(connection, [JOB])
            assert bell.rings_after(connection.commit)


def test_nobody_rings_while_every_worker_is_busy(store: PostgresStore, url: str) -> None:
    with psycopg.connect(url, autocommit=True) as ear, bell_on(store) as bell:
        number = ear.execute("select 'duly.worker'::regclass::oid::bigint").fetchone()
        assert number is not None
        ear.execute(f"listen duly_{number[0]}".encode())
        bell.listener.idle(True)
        wait_until(lambda: doors(url) == 1)
        put(store)
        assert len(list(ear.notifies(timeout=5, stop_after=1))) == 1

        bell.listener.idle(False)
        wait_until(lambda: doors(url) == 0)
        put(store, 10)

        ear.execute("select pg_notify('duly_' || %s, 'end')", (str(number[0]),))
        # Who leaves the door tells the others; a producer's ring has no words.
        assert [told.payload for told in ear.notifies(timeout=5, stop_after=2)] == ["door", "end"]


def test_one_stands_at_the_door_for_all_and_hands_over(open_store: Open, url: str) -> None:
    first, second = open_store(), open_store()
    with bell_on(first) as one, bell_on(second) as other:
        one.listener.idle(True)
        wait_until(lambda: doors(url) == 1)
        other.listener.idle(True)

        assert other.rings_after(lambda: put(first))
        one.listener.close()
        wait_until(lambda: doors(url) == 1, what="the other has taken the door over")
        assert other.rings_after(lambda: put(first))


def test_a_producer_in_an_open_transaction_makes_the_idle_look_for_themselves(
    store: PostgresStore, url: str
) -> None:
    with psycopg.connect(url) as connection, bell_on(store) as bell:
        store.enqueue_on(connection, [JOB])
        bell.listener.idle(True)

        # The door cannot be taken while the producer is inside, and it did not ring: so the listener looks by itself.
        assert bell.rings_after(lambda: None)
        assert bell.rings_after(lambda: None)
        assert doors(url) == 0
        connection.commit()
        wait_until(lambda: doors(url) == 1)


class Rush:
    """Producers that have rung and stand in their commit, since a standby that does not exist must confirm it."""

    def __init__(self, stores: list[PostgresStore], url: str) -> None:
        self._url = url
        self._threads = [threading.Thread(target=put, args=(store,), daemon=True) for store in stores]

    def __enter__(self) -> Self:
        self._confirm("'nobody'")
        wait_until(lambda: self._ask("show synchronous_standby_names") == "nobody")
        for thread in self._threads:
            thread.start()
        wait_until(
            lambda: self._waiting() == len(self._threads) - 1, what="all but one wait for the first commit"
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._confirm("''")
        for thread in self._threads:
            thread.join(30)

    def let_one_commit(self) -> None:
        """A commit that is cancelled while it waits for its standby has happened all the same."""
        before = self._waiting()
        self._ask("select pg_cancel_backend(pid) from pg_stat_activity where wait_event = 'SyncRep'")
        wait_until(lambda: self._waiting() < before)

    def _waiting(self) -> int:
        return int(
            self._ask(
                "select count(*) from pg_locks where locktype = 'object' and database = 0 and classid = 1262 "
                "and not granted"
            )
        )

    def _confirm(self, by: str) -> None:
        self._ask(f"alter system set synchronous_standby_names = {by}")
        self._ask("select pg_reload_conf()")

    def _ask(self, text: str) -> str:
        with psycopg.connect(self._url, autocommit=True) as connection:
            found = connection.execute(text.encode())
            return str((found.fetchone() or [""])[0]) if found.description else ""


def test_producers_that_wait_for_each_other_need_not_ring_any_more(
    open_store: Open, store: PostgresStore, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listening, "_SUSPICION", (60.0, 0.0))
    # The rounds last until the test says so.
    monkeypatch.setattr(listening, "_ROUNDS", (600.0, 600.0))
    monkeypatch.setattr(listening, "_DRY", 600.0)
    producers = [open_store() for _ in range(6)]
    with bell_on(store) as bell, psycopg.connect(url, autocommit=True) as ear:
        channel = ear.execute("select 'duly_' || 'duly.worker'::regclass::oid").fetchone()
        assert channel is not None
        bell.listener.idle(True)
        bell.listener.found()
        wait_until(lambda: doors(url) == 1)
        with Rush(producers, url) as rush:
            rush.let_one_commit()
            rush.let_one_commit()
            wait_until(lambda: len(rounds(url)) == 1 and doors(url) == 0, what="it goes round")

        ear.execute(f'listen "{channel[0]}"'.encode())
        assert bell.rings_after(lambda: put(store)), "it looks by itself"
        ear.execute("select pg_notify(%s, 'end')", (channel[0],))
        assert [told.payload for told in ear.notifies(timeout=5, stop_after=1)] == ["end"]

        monkeypatch.setattr(listening, "_DRY", 0.0)
        wait_until(lambda: rounds(url) == [] and doors(url) == 1, what="it stands at the door again")
        assert bell.rings_after(lambda: put(store))


def test_one_producer_with_many_connections_is_no_rush(
    open_store: Open, store: PostgresStore, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listening, "_SUSPICION", (60.0, 0.0))
    producers = [open_store() for _ in range(3)]
    with bell_on(store) as bell:
        bell.listener.idle(True)
        wait_until(lambda: doors(url) == 1)

        for turn in range(30):
            assert bell.rings_after(partial(put, producers[turn % 3]))

        assert doors(url) == 1
        assert rounds(url) == []


def test_who_goes_round_and_gets_busy_is_followed_by_another(open_store: Open, url: str) -> None:
    first, second = open_store(), open_store()
    with psycopg.connect(url) as inside, bell_on(first) as one, bell_on(second) as other:
        first.enqueue_on(inside, [JOB])
        one.listener.idle(True)
        wait_until(lambda: len(rounds(url)) == 1)
        (before,) = rounds(url)
        other.listener.idle(True)

        one.listener.idle(False)

        wait_until(lambda: len(rounds(url)) == 1 and rounds(url) != [before])
        assert other.rings_after(lambda: put(first))
        inside.commit()
        wait_until(lambda: doors(url) == 1 and rounds(url) == [])
        assert other.rings_after(lambda: put(first))


def test_who_is_cut_off_on_the_rounds_goes_on_with_them(store: PostgresStore, url: str) -> None:
    with psycopg.connect(url) as inside, bell_on(store) as bell:
        store.enqueue_on(inside, [JOB])
        bell.listener.idle(True)
        wait_until(lambda: len(rounds(url)) == 1)
        (before,) = rounds(url)

        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("select pg_terminate_backend(%s)", (before,))

        wait_until(lambda: len(rounds(url)) == 1 and rounds(url) != [before])
        inside.commit()
        wait_until(lambda: doors(url) == 1)
        assert bell.rings_after(lambda: put(store))


def test_rounds_that_find_jobs_stay_quick(
    store: PostgresStore, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A round that finds nothing is the last one that this test can see.
    monkeypatch.setattr(listening, "_CROWDED", (600.0, 600.0))
    monkeypatch.setattr(listening, "_DRY", 30.0)
    with psycopg.connect(url) as inside, bell_on(store) as bell:
        store.enqueue_on(inside, [JOB])
        bell.finds = True
        bell.listener.found()
        bell.listener.idle(True)

        wait_until(lambda: bell.calls > 50)


def test_a_listener_that_is_cut_off_again_and_again_comes_back(store: PostgresStore, url: str) -> None:
    with bell_on(store) as bell, psycopg.connect(url, autocommit=True) as connection:
        bell.listener.idle(True)
        for turn in range(5):
            wait_until(lambda: doors(url) == 1)
            (pid,) = listeners(url)
            connection.execute("select pg_terminate_backend(%s)", (pid,))
            wait_until(partial(_has_reconnected, bell, turn))
        wait_until(lambda: doors(url) == 1)

        assert bell.rings_after(lambda: put(store), within=1.0)


def test_a_deaf_connection_is_noticed_and_replaced(
    open_store: Open,
    store: PostgresStore,
    url: str,
    proxied_url: str,
    proxy: Proxy,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert listening._PULSE + listening._DEAF < 30
    monkeypatch.setattr(listening, "_PULSE", 0.2)
    monkeypatch.setattr(listening, "_DEAF", 0.3)
    with bell_on(open_store(proxied_url)) as bell:
        bell.listener.idle(True)
        wait_until(lambda: doors(url) == 1)
        (pid,) = listeners(url)

        proxy.treat("silent")

        wait_until(lambda: bell.listener.reconnects > 0)
        # The server has not noticed; its session would keep the door until its keepalive ends.
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("select pg_terminate_backend(%s)", (pid,))
        wait_until(lambda: doors(url) == 1)
        assert bell.rings_after(lambda: put(store))


def test_a_listener_outlives_a_restart_of_the_server(
    store: PostgresStore, url: str, postgres: PostgresServer
) -> None:
    with bell_on(store) as bell:
        bell.listener.idle(True)
        wait_until(lambda: doors(url) == 1)

        assert bell.rings_after(postgres.restart), "what came while nobody listened is looked for"

        wait_until(lambda: doors(url) == 1)
        assert bell.rings_after(lambda: put(store))


def test_without_notify_nothing_listens(open_store: Open, url: str) -> None:
    store = open_store(notify=False)
    quiet = store.listen(lambda: None)
    quiet.idle(True)
    put(store)

    assert not store.capabilities.rings
    assert listeners(url) == []
    quiet.close()
