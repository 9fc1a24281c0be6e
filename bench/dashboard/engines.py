"""SQLite and PostgreSQL as the filling needs them: quick, and durable only once all is there."""

import sqlite3
from datetime import UTC, datetime

import psycopg

from bench.dashboard.filling import Engine
from duly.core.names import key_of

_TICK = 1_000_000


class SQLite:
    """A file that nobody else has open."""

    def __init__(self, path: str) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        for pragma in ("synchronous = off", "cache_size = -1000000", "temp_store = memory"):
            self._connection.execute(f"pragma {pragma}")
        self._now = int(datetime.now(UTC).timestamp() * _TICK)

    def numbers(self, first: int, last: int) -> str:
        every = f"select {first} union all select id + 1 from n where id < {last}"
        return f"with recursive n(id) as ({every}) select id from n"

    def ago(self, seconds: str) -> str:
        return f"{self._now} - {_TICK} * ({seconds})"

    def data(self, text: str) -> str:
        return f"cast({text} as blob)"

    def tags(self, tag: str) -> str:
        return f"json_array({tag})"

    def moment(self, at: datetime) -> object:
        return round(at.timestamp() * _TICK)

    def sample(self, queue: str, at: datetime, ready: int, ended: int) -> tuple[object, ...]:
        return (queue, self.moment(at), ready, ended)

    def table(self, name: str) -> str:
        return f"duly_{name}"

    def columns(self, name: str) -> list[str]:
        return [str(row[1]) for row in self._connection.execute(f"pragma table_info({self.table(name)})")]

    def execute(self, statement: str) -> None:
        self._connection.execute(statement)

    def many(self, statement: str, rows: list[tuple[object, ...]]) -> None:
        self._connection.execute("begin")
        self._connection.executemany(statement, rows)
        self._connection.execute("commit")

    def settle(self, last: int) -> None:
        self._connection.execute("update duly_seq set value = ?", (last,))
        self._connection.execute("pragma optimize")
        self._connection.close()


class PostgreSQL:
    """A database of the bench's own."""

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True)
        self._connection.execute("set synchronous_commit = off")

    def numbers(self, first: int, last: int) -> str:
        return f"select id from generate_series({first}::bigint, {last}::bigint) id"

    def ago(self, seconds: str) -> str:
        return f"clock_timestamp() - interval '1 s' * ({seconds})"

    def data(self, text: str) -> str:
        return f"convert_to({text}, 'UTF8')"

    def tags(self, tag: str) -> str:
        return f"array[{tag}]"

    def moment(self, at: datetime) -> object:
        return at

    def sample(self, queue: str, at: datetime, ready: int, ended: int) -> tuple[object, ...]:
        return (key_of(queue), at, ready, 10, ended)

    def table(self, name: str) -> str:
        return f"duly.{name}"

    def columns(self, name: str) -> list[str]:
        rows = self._connection.execute(
            "select attname from pg_attribute"
            " where attrelid = %s::regclass and attnum > 0 and not attisdropped order by attnum",
            (self.table(name),),
        )
        return [str(name) for (name,) in rows]

    def execute(self, statement: str) -> None:
        self._connection.execute(statement.encode())

    def many(self, statement: str, rows: list[tuple[object, ...]]) -> None:
        with self._connection.cursor() as cursor:
            cursor.executemany(statement.replace("?", "%s").encode(), rows)

    def settle(self, last: int) -> None:
        self._connection.execute("select setval('duly.pos', %s)", (last,))
        self._connection.execute("vacuum (analyze)")
        self._connection.execute("checkpoint")
        self._connection.close()


def engine_of(url: str) -> Engine:
    """For a store's URL."""
    return SQLite(url.removeprefix("sqlite:///")) if url.startswith("sqlite:") else PostgreSQL(url)
