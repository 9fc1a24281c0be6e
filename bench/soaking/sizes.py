"""How large the store is at one moment: tables, WAL, dead rows, jobs that wait. Reads only."""

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import psycopg

_TABLES = """
select coalesce(sum(pg_total_relation_size(relid)) filter (where relname <> 'idempotency'), 0)::float8 / 1048576,
       coalesce(sum(pg_total_relation_size(relid)) filter (where relname = 'idempotency'), 0)::float8 / 1048576,
       coalesce(sum(n_dead_tup), 0)::int8, (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::float8 / 1048576
  from pg_stat_user_tables where schemaname = 'duly'
"""
_WAITING = """
select (select count(*) from duly.ready), (select count(*) from duly.scheduled) + (select count(*) from duly.blocked),
       (select count(*) from duly.claimed), (select count(*) from duly.dead)
"""
_DEAREST = """
select total_exec_time, calls, wal_bytes::float8, query from pg_stat_statements order by total_exec_time desc limit 15
"""


@dataclass(frozen=True, slots=True)
class Sizes:
    """In MB; `wal` is all that was ever written, of SQLite the side file as it is."""

    tables: float
    kept_keys: float
    """Of idempotency records, which are kept for 30 days whatever becomes of their jobs."""
    wal: float
    dead: int
    """Dead rows; of SQLite free pages."""
    ready: int
    later: int
    running: int
    dead_letters: int

    @property
    def unfinished(self) -> int:
        return self.ready + self.later + self.running + self.dead_letters


class Scales(Protocol):
    def weigh(self) -> Sizes: ...

    def dearest(self, jobs: int) -> list[str]:
        """The statements that took most of the server's time, where that is measured."""


class PostgresScales:
    def __init__(self, url: str, *, statements: bool = False) -> None:
        self._connection = psycopg.connect(url, autocommit=True)
        self._statements = statements
        if statements:
            self._connection.execute("create extension if not exists pg_stat_statements")

    def dearest(self, jobs: int) -> list[str]:
        if not self._statements:
            return []
        rows = self._connection.execute(_DEAREST).fetchall()
        return [
            f"  {spent * 1000 / max(1, jobs):6.1f} µs/job, {calls:9,} calls of {spent / calls:.3f} ms, "
            f"{wal / max(1, jobs):5.0f} B WAL/job: {' '.join(text.split())[:120]}"
            for spent, calls, wal, text in rows
        ]

    def weigh(self) -> Sizes:
        tables, keys, dead, wal = self._row(_TABLES)
        ready, later, running, letters = self._row(_WAITING)
        return Sizes(tables, keys, wal, int(dead), int(ready), int(later), int(running), int(letters))

    def close(self) -> None:
        self._connection.close()

    def _row(self, statement: str) -> tuple[float, ...]:
        row = self._connection.execute(statement.encode()).fetchone()
        assert row is not None
        return tuple(row)


class SQLiteScales:
    def __init__(self, path: Path) -> None:
        self._path = path

    def weigh(self) -> Sizes:
        # A connection for each look: an open one would be one more that keeps the WAL from being cut.
        with closing(sqlite3.connect(f"file:{self._path}?mode=ro", uri=True, timeout=30)) as connection:
            free = self._one(connection, "pragma freelist_count")
            ready = self._one(connection, "select count(*) from duly_ready")
            later = self._one(
                connection,
                "select (select count(*) from duly_scheduled) + (select count(*) from duly_blocked)",
            )
            running = self._one(connection, "select count(*) from duly_claimed")
            letters = self._one(connection, "select count(*) from duly_dead")
        wal = self._path.with_name(f"{self._path.name}-wal")
        return Sizes(
            self._path.stat().st_size / 2**20,
            0.0,
            wal.stat().st_size / 2**20 if wal.exists() else 0.0,
            free,
            ready,
            later,
            running,
            letters,
        )

    def dearest(self, jobs: int) -> list[str]:
        return []

    @staticmethod
    def _one(connection: sqlite3.Connection, statement: str) -> int:
        return int(connection.execute(statement).fetchall()[0][0])
