"""The page about transactions has a row for every kind of connection that is tested, and for no other."""

import re

from tests.connections.callers import FILE_KINDS, SERVER_KINDS
from tests.house.tree import ROOT

ROWS = {
    "psycopg": "`psycopg.Connection`",
    "psycopg-async": "`psycopg.AsyncConnection`",
    "asyncpg": "`asyncpg.Connection`",
    "asyncpg-pool": "`asyncpg` connection of a pool",
    "sqlalchemy-connection": "`sqlalchemy.Connection`",
    "sqlalchemy-session": "`sqlalchemy.orm.Session`",
    "sqlalchemy-scoped-session": "`sqlalchemy.orm.scoped_session`",
    "sqlalchemy-async-connection": "`sqlalchemy.ext.asyncio.AsyncConnection`",
    "sqlalchemy-async-session": "`sqlalchemy.ext.asyncio.AsyncSession`",
    "sqlalchemy-async-session-psycopg": "`sqlalchemy.ext.asyncio.AsyncSession`",
    "django": "`django.db.connection`, `connections[alias]`",
    "sqlite3": "`sqlite3.Connection`",
    "aiosqlite": "`aiosqlite.Connection`",
}


def test_every_kind_has_a_row_and_every_row_a_test() -> None:
    page = (ROOT / "docs/transactions.md").read_text().partition("## What can be passed")[2]

    rows = re.findall(r"^\| (`.*?) \| (?:blocking|async|both) \|", page, re.MULTILINE)

    assert set(rows) == {ROWS[kind] for kind in (*SERVER_KINDS, *FILE_KINDS)}


def test_a_row_says_what_happens_without_a_transaction() -> None:
    page = (ROOT / "docs/transactions.md").read_text()

    for kind, caller in (*SERVER_KINDS.items(), *FILE_KINDS.items()):
        (said,) = re.findall(rf"^\| {re.escape(ROWS[kind])} \| (\w+) \| (\w+)", page, re.MULTILINE)

        colour = "both" if kind in {"django", "sqlite3"} else "async" if caller.is_async else "blocking"
        assert said == (colour, "pending" if caller.begins_by_itself else "stored")
