"""A schema for tests: dropped, or emptied between two of them. Refuses every name that does not say it is for tests."""

from typing import Final

import psycopg
from psycopg import sql

from duly.core.errors import StoreUnreachable, UsageError

MARK: Final = "_test"


def drop(url: str, schema: str) -> None:
    """Remove the schema with all that is in it."""
    _check(schema)
    with _connected(url) as connection:
        connection.execute(sql.SQL("drop schema if exists {} cascade").format(sql.Identifier(schema)))


def empty(url: str, schema: str) -> None:
    """Remove every job and all that belongs to jobs; the tables stay."""
    _check(schema)
    with _connected(url) as connection:
        found = connection.execute(
            "select tablename from pg_tables where schemaname = %s and tablename <> 'schema_version'",
            [schema],
        ).fetchall()
        if not found:
            return
        tables = sql.SQL(", ").join([sql.Identifier(schema, str(name)) for (name,) in found])
        connection.execute(sql.SQL("truncate {}").format(tables))


def _connected(url: str) -> psycopg.Connection[tuple[object, ...]]:
    try:
        return psycopg.connect(url, autocommit=True)
    except psycopg.OperationalError as error:
        raise StoreUnreachable(f"the database of the tests does not answer: {error}") from error


def _check(schema: str) -> None:
    if MARK not in schema:
        raise UsageError(f"schema {schema!r} is not one for tests: its name lacks {MARK!r}")
