"""The stores under test: SQLite in both journals, PostgreSQL in two versions. One empty database for each case.

Also what only SQL can do to a store: the damage that a careless clean-up or a badly timed death leaves behind.
"""

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal

import psycopg
from psycopg.pq import TransactionStatus

from duly.core.job import Incarnation, JobId
from duly.core.names import key_of
from duly.stores.postgres.patience import PatientConnection
from duly.stores.postgres.store import PostgresStore
from duly.stores.protocol import Clock, Store
from duly.stores.sqlite.store import SQLiteStore
from duly.testing.conformance import Database
from duly.testing.conformance.bench import NO_SUCH_JOB

# Only what was written to. A truncation makes new files, after which every session plans its statements anew: what
# holds little is deleted instead.
_EMPTY: Final = b"""
do $$
declare
    dirty record;
begin
    for dirty in
        select c.oid::regclass as name, pg_relation_size(c.oid) as size
          from pg_class c join pg_namespace n on n.oid = c.relnamespace
         where n.nspname = 'duly' and c.relkind = 'r' and c.relname <> 'schema_version'
           and pg_relation_size(c.oid) > 0
    loop
        execute case when dirty.size > 256 * 1024 then 'truncate ' else 'delete from ' end || dirty.name;
    end loop;
    perform setval('duly.pos', 1, false);
end
$$
"""

Journal = Literal["wal", "truncate"]
Place = Callable[[], AbstractContextManager[Database]]

STORES = ("sqlite-wal", "sqlite-truncate", "postgres15", "postgres18")


class SQLitePlace:
    """One file."""

    def __init__(self, path: Path, journal: Journal) -> None:
        self.path = path
        self.journal = journal

    def open(self, clock: Clock) -> Store:
        return SQLiteStore(self.path, clock=clock, journal=self.journal)

    def forget_worker(self, incarnation: Incarnation) -> None:
        self._execute("delete from duly_worker where incarnation = ?", incarnation)

    def next_id(self, at_least: int) -> None:
        self._execute("update duly_seq set value = max(value, ?)", at_least)

    def wish_cancel(self, id: JobId, by: str, reason: str) -> None:
        self._execute(
            "insert into duly_wish (id, verb, by, reason, at) values (?, 'cancel', ?, ?, ?)",
            id,
            by,
            reason,
            int(datetime(2030, 5, 1, 12, tzinfo=UTC).timestamp() * 1_000_000),
        )

    def forget_heads(self) -> None:
        self._execute("delete from duly_key_head")

    def mislead_heads(self) -> None:
        self._execute("update duly_key_head set id = ?", NO_SUCH_JOB)

    def leak_hold(self, limit: str, id: JobId) -> None:
        self._execute(
            "insert into duly_hold (key, id, incarnation) values (?, ?, 987654321)", key_of(limit), id
        )

    def rewrite_entry(self, id: int, reason: str) -> None:
        self._execute("update duly_audit_entry set reason = ? where id = ?", reason, id)

    def remove_entry(self, id: int) -> None:
        self._execute("delete from duly_audit_entry where id = ?", id)

    def _execute(self, statement: str, *values: object) -> None:
        with closing(sqlite3.connect(self.path, timeout=10, isolation_level=None)) as connection:
            connection.execute(statement, values)


class PostgresPlace:
    """One database of a server."""

    def __init__(self, url: str, sessions: "Sessions | None" = None) -> None:
        self.url = url
        self._sessions = sessions

    def open(self, clock: Clock) -> Store:
        store = PostgresStore(self.url, clock=clock)
        if self._sessions is not None:
            self._sessions.serve(store)
        return store

    def forget_worker(self, incarnation: Incarnation) -> None:
        self._execute("delete from duly.worker where incarnation = %s", incarnation)

    def next_id(self, at_least: int) -> None:
        self._execute("select setval('duly.pos', %s)", at_least)

    def wish_cancel(self, id: JobId, by: str, reason: str) -> None:
        self._execute(
            "insert into duly.wish (id, verb, by, reason, at) values (%s, 'cancel', %s, %s, clock_timestamp())",
            id,
            by,
            reason,
        )

    def forget_heads(self) -> None:
        self._execute("delete from duly.key_head")

    def mislead_heads(self) -> None:
        self._execute("update duly.key_head set id = %s", NO_SUCH_JOB)

    def leak_hold(self, limit: str, id: JobId) -> None:
        self._execute(
            "insert into duly.hold (key, id, incarnation) values (%s, %s, 987654321)", key_of(limit), id
        )

    def rewrite_entry(self, id: int, reason: str) -> None:
        self._execute("update duly.audit_entry set reason = %s where id = %s", reason, id)

    def remove_entry(self, id: int) -> None:
        self._execute("delete from duly.audit_entry where id = %s", id)

    def _execute(self, statement: str, *values: object) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(statement.encode(), values)


class Sessions:
    """Connections that closed stores leave to the next one: a new session compiles every function before its first use,
    which takes longer than most cases do."""

    def __init__(self) -> None:
        self._idle: list[PatientConnection] = []

    def serve(self, store: PostgresStore) -> None:
        pool = store._database.pool
        connect = pool._connect

        def kept() -> PatientConnection:
            while self._idle:
                connection = self._idle.pop()
                if self._usable(connection):
                    # What the server does when a session ends.
                    connection.execute("select pg_advisory_unlock_all()")
                    return connection
            return self._kept(connect())

        pool._connect = kept

    def _kept(self, connection: PatientConnection) -> PatientConnection:
        end = connection.close

        def close() -> None:
            if self._usable(connection):
                self._idle.append(connection)
            else:
                end()

        vars(connection)["close"] = close
        return connection

    def _usable(self, connection: PatientConnection) -> bool:
        return not connection.closed and connection.pgconn.transaction_status == TransactionStatus.IDLE


def has_control(database: Database) -> bool:
    """Whether a store bounds jobs at all."""
    store = database.open(lambda: datetime(2030, 5, 1, tzinfo=UTC))
    try:
        return hasattr(store, "control")
    finally:
        store.close()


def sqlite_place(folder: Path, journal: Journal) -> Place:
    """Copies of one migrated file in `folder`."""
    template = folder / f"template-{journal}.db"
    store = SQLiteStore(template, journal=journal)
    store.schema.migrate()
    store.close()
    numbers = iter(range(1_000_000_000))

    @contextmanager
    def place() -> Iterator[Database]:
        path = folder / f"{journal}-{next(numbers)}.db"
        shutil.copyfile(template, path)
        try:
            yield SQLitePlace(path, journal)
        finally:
            for left in folder.glob(f"{path.name}*"):
                left.unlink()

    return place


def postgres_place(url: str) -> Place:
    """One migrated database, emptied before each use: that takes a fraction of the time of a new one."""
    store = PostgresStore(url)
    store.schema.migrate()
    store.close()
    sessions = Sessions()

    @contextmanager
    def place() -> Iterator[Database]:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(_EMPTY)
        yield PostgresPlace(url, sessions)

    return place
