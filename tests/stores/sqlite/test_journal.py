"""Which journal a file gets, and that a file in WAL is left so."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from duly.core.job import NewJob
from duly.stores.sqlite.connecting import Journal, default_journal, wal_is_safe
from tests.stores.sqlite.conftest import Connect, Open, put


@pytest.mark.parametrize(
    ("version", "safe"),
    [
        ((3, 37, 0), False),
        ((3, 40, 1), False),
        ((3, 44, 5), False),
        ((3, 44, 6), True),
        ((3, 45, 0), False),
        ((3, 50, 6), False),
        ((3, 50, 7), True),
        ((3, 51, 2), False),
        ((3, 51, 3), True),
        ((3, 52, 0), True),
    ],
)
def test_wal_is_taken_only_where_it_loses_no_commits(version: tuple[int, int, int], safe: bool) -> None:
    assert wal_is_safe(version) is safe


def test_the_journal_follows_the_linked_library(open_store: Open) -> None:
    store = open_store()

    put(store)

    facts = store.inspection.describe()
    assert facts["journal"] == default_journal()
    assert facts["sync"] == "full"


def _journal_of(path: Path) -> str:
    with closing(sqlite3.connect(path)) as connection:
        return str(connection.execute("pragma journal_mode").fetchall()[0][0])


@pytest.mark.parametrize(("asked", "found"), [("wal", "wal"), ("truncate", "delete")])
def test_a_new_file_gets_the_journal_asked_for(
    open_store: Open, sqlite_path: Path, asked: Journal, found: str
) -> None:
    put(open_store(asked))

    assert _journal_of(sqlite_path) == found


@pytest.mark.skipif(wal_is_safe(sqlite3.sqlite_version_info), reason="this SQLite has no fault to warn of")
@pytest.mark.parametrize(
    ("journal", "words"), [("wal", "is in WAL mode"), ("truncate", "uses the rollback journal")]
)
def test_each_journal_of_a_faulty_library_is_told_with_its_remedy(
    open_store: Open, journal: Journal, words: str
) -> None:
    store = open_store(journal)
    put(store)

    (warning,) = store.inspection.warnings()

    assert words in warning
    assert "3.51.3" in warning


def test_a_file_that_the_application_runs_in_wal_is_left_so(
    open_store: Open, connect: Connect, sqlite_path: Path
) -> None:
    connect().execute("pragma journal_mode = wal")
    store = open_store("truncate")

    (id,) = put(store)

    assert store.inspection.describe()["journal"] == "wal"
    assert _journal_of(sqlite_path) == "wal"
    assert store.inspection.lookup([id])[0] is not None


def test_every_connection_of_ours_syncs_fully_and_maps_nothing(open_store: Open) -> None:
    store = open_store("truncate")

    with store.transaction() as connection:
        settings = [
            connection.execute(f"pragma {name}").fetchall()[0][0] for name in ("synchronous", "mmap_size")
        ]

    full = 2
    assert settings[0] == full
    assert settings[1] == 0


def test_the_log_of_a_wal_file_shrinks_once_its_reader_is_gone(
    open_store: Open, connect: Connect, sqlite_path: Path
) -> None:
    store = open_store("wal")
    put(store)
    reader = connect(isolation_level=None)
    reader.execute("begin")
    reader.execute("select count(*) from duly_job").fetchall()
    log = sqlite_path.with_name(f"{sqlite_path.name}-wal")
    limit = 32 * 2**20
    large = b'"' + b"x" * 200_000 + b'"'
    while log.stat().st_size <= limit + 2**20:
        store.jobs.enqueue([NewJob("default", "ok", large)] * 50)

    reader.execute("rollback")
    put(store)
    put(store)

    assert log.stat().st_size <= limit
