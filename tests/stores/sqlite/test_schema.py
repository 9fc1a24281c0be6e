"""Making the tables: at first use, once, and never over what a newer or another release has made."""

import sqlite3
from pathlib import Path

import pytest

from duly.core.errors import MigrationNeeded
from duly.stores.sqlite.statements import load, migrations
from duly.stores.sqlite.store import SQLiteStore
from tests.stores.sqlite.conftest import Connect, Open, put


def test_the_tables_come_with_the_first_use(open_store: Open, sqlite_path: Path) -> None:
    store = open_store()
    assert (store.schema.version(), sqlite_path.exists()) == (0, False)

    put(store)

    assert store.schema.version() == store.schema.wanted()
    assert "(just created)" in store.inspection.describe()["where"]
    assert "(just created)" not in open_store().inspection.describe()["where"]


def test_migrating_names_what_it_did_and_repeats_nothing(open_store: Open) -> None:
    store = open_store()

    assert store.schema.migrate() == ["0001_jobs", "0002_keys", "0003_control", "0004_operating"]
    assert store.schema.migrate() == []


def test_an_application_may_have_tables_of_its_own(open_store: Open, connect: Connect) -> None:
    connection = connect()
    connection.execute("create table job (n integer)")
    connection.commit()

    put(open_store())

    names = [name for (name,) in connection.execute("select name from sqlite_master where type = 'table'")]
    assert {name for name in names if not name.startswith(("duly_", "sqlite_"))} == {"job"}


def test_a_newer_schema_is_refused_with_what_to_do(
    store: SQLiteStore, connect: Connect, open_store: Open
) -> None:
    put(store)
    connection = connect()
    connection.execute("insert into duly_schema_version values (99, 'later', 'x', 0)")
    connection.commit()

    with pytest.raises(MigrationNeeded, match="newer release") as error:
        put(open_store())

    assert (error.value.found, error.value.wanted) == (99, store.schema.wanted())


def test_another_releases_migration_is_refused(store: SQLiteStore, connect: Connect) -> None:
    connection = connect()
    connection.execute("update duly_schema_version set checksum = 'x'")
    connection.commit()

    with pytest.raises(MigrationNeeded, match="is not the one of this release"):
        store.schema.migrate()


def test_the_script_makes_the_same_tables(store: SQLiteStore, connect: Connect, tmp_path: Path) -> None:
    by_hand = sqlite3.connect(tmp_path / "by-hand.db")
    by_hand.executescript(store.schema.sql())

    listing = "select type, name, sql from sqlite_master where sql is not null order by name"
    theirs = by_hand.execute(listing).fetchall()
    ours = connect().execute(listing).fetchall()
    by_hand.close()
    assert ours == theirs
    made = SQLiteStore(tmp_path / "by-hand.db")
    assert (made.schema.version(), made.schema.migrate()) == (made.schema.wanted(), [])
    made.close()


def test_no_text_keeps_a_placeholder() -> None:
    texts = [*load("other").values(), *(text for step in migrations("other") for text in step.statements)]

    assert all("{" not in text for text in texts)
    assert not any("duly_" in text for text in texts)
