"""What a person is told when the file cannot be used, and that nothing is lost by it."""

import os
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from duly.core.errors import StoreFull, StoreUnreachable, UsageError
from duly.core.job import NewJob
from duly.core.lifecycle import Event, State
from duly.stores.faults import DataFault, Full, ReadOnly
from duly.stores.sqlite.connecting import Journal
from duly.stores.sqlite.store import SQLiteStore
from duly.testing.conformance.bench import ended
from tests.disks import small_disk
from tests.stores.sqlite.conftest import Open, claim, exists, job, put, worker


def _message(error: pytest.ExceptionInfo[BaseException]) -> str:
    text = str(error.value)
    assert "\n" not in text
    return text


def test_a_missing_folder_is_told_with_the_remedy(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "nowhere" / "jobs.db")

    with pytest.raises(StoreUnreachable) as error:
        put(store)

    assert "create it, or name another file" in _message(error)
    assert not (tmp_path / "nowhere").exists()


def test_a_folder_in_place_of_a_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(StoreUnreachable, match="is a folder; name a file"):
        put(SQLiteStore(tmp_path))


def test_a_file_that_is_no_database_is_told_and_left_as_it_is(sqlite_path: Path, open_store: Open) -> None:
    text = "Dear diary,\n" * 500
    sqlite_path.write_text(text)

    with pytest.raises(StoreUnreachable, match="not an SQLite database; name another file"):
        put(open_store())

    assert sqlite_path.read_text() == text


def test_a_damaged_file_is_told(sqlite_path: Path, store: SQLiteStore) -> None:
    put(store, 2000)
    store.close()
    with sqlite_path.open("r+b") as file:
        file.seek(4096)
        file.write(os.urandom(sqlite_path.stat().st_size - 4096))

    with pytest.raises(StoreUnreachable, match="restore it from a backup"):
        put(store)


@pytest.mark.parametrize("journal", ["truncate", "wal"])
def test_a_full_disk_is_told_loses_nothing_and_heals(tmp_path: Path, journal: Journal) -> None:
    with small_disk(tmp_path, "2m"):
        store = SQLiteStore(tmp_path / "jobs.db", journal=journal)
        ballast = tmp_path / "ballast"
        ballast.write_bytes(bytes(700_000))
        large = NewJob("default", "ok", b'"' + b"x" * 100_000 + b'"')
        kept = put(store, 3)

        with pytest.raises(StoreFull) as error:
            while True:
                kept += [stored.id for stored in store.jobs.enqueue([large])]

        assert isinstance(error.value, Full)
        assert not error.value.outcome_unknown
        assert "is full; nothing of this call was stored. Free some space" in _message(error)
        ballast.unlink()
        kept += [stored.id for stored in store.jobs.enqueue([large])]
        assert all(exists(store, kept))
        assert store.inspection.counts()[0].ready == len(kept)
        store.close()
        with closing(sqlite3.connect(tmp_path / "jobs.db")) as connection:
            assert connection.execute("pragma integrity_check").fetchall() == [("ok",)]


@pytest.mark.parametrize("journal", ["truncate", "wal"])
def test_a_worker_on_a_full_disk_ends_its_jobs_once_there_is_space(tmp_path: Path, journal: Journal) -> None:
    with small_disk(tmp_path, "2m"):
        store = SQLiteStore(tmp_path / "jobs.db", journal=journal)
        incarnation = worker(store)
        ids = put(store, 3)
        claimed = claim(store, incarnation, 3)
        ballast = tmp_path / "ballast"
        _fill(ballast)
        result = b'"' + b"x" * 200_000 + b'"'
        ends = [ended(one, Event.complete, result=result) for one in claimed]

        with pytest.raises(Full):
            store.jobs.exchange(incarnation, ends, None)

        assert [record.state for record in store.inspection.lookup(ids) if record] == [State.running] * 3
        ballast.unlink()
        acked = store.jobs.exchange(incarnation, ends, None).acked
        assert {id for id, _ in acked} == set(ids)
        store.close()


def _fill(ballast: Path) -> None:
    """Until no byte is left on its disk."""
    with pytest.raises(OSError, match="No space left"), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))


def test_a_read_only_file_is_told_with_the_remedy_and_can_be_read(tmp_path: Path) -> None:
    with small_disk(tmp_path, "2m"):
        store = SQLiteStore(tmp_path / "jobs.db", journal="truncate")
        ids = put(store)
        store.close()
        subprocess.run(["mount", "-o", "remount,ro", str(tmp_path)], check=True)

        with pytest.raises(StoreUnreachable) as error:
            put(store)

        assert isinstance(error.value, ReadOnly)
        assert "write permission" in _message(error)
        assert exists(store, ids) == [True]
        store.close()


@pytest.mark.parametrize(
    "bad",
    [
        NewJob("default", "t" * 201, b"{}"),
        NewJob("default", "ok", b"{}", priority=2**31),
        NewJob("default", "ok", b"{}", attempts=2**70),
        NewJob("default", "\ud800", b"{}"),
    ],
)
def test_a_row_that_cannot_be_stored_takes_its_batch_with_it(store: SQLiteStore, bad: NewJob) -> None:
    with pytest.raises(DataFault):
        store.jobs.enqueue([job(), bad, job()])

    assert store.inspection.counts() == []


def test_an_end_that_cannot_be_stored_leaves_all_of_its_batch_running(store: SQLiteStore) -> None:
    incarnation = worker(store)
    ids = put(store, 3)
    first, second, third = claim(store, incarnation, 3)

    for bad in (
        ended(second, Event.bury, reason="a\0b"),
        ended(second, Event.complete, note="\ud800"),
    ):
        with pytest.raises(DataFault):
            store.jobs.exchange(
                incarnation, [ended(first, Event.complete), bad, ended(third, Event.complete)], None
            )

        states = [record.state for record in store.inspection.lookup(ids) if record]
        assert states == [State.running] * 3


@pytest.mark.parametrize("schema", ["Duly", "1st", "a-b", "x; drop table y", "", "a" * 41, "sqlite_x"])
def test_a_schema_that_cannot_name_tables_is_refused(tmp_path: Path, schema: str) -> None:
    with pytest.raises(UsageError, match="cannot name tables"):
        SQLiteStore(tmp_path / "jobs.db", schema=schema)


def test_two_schemas_in_one_file_do_not_meet(open_store: Open) -> None:
    ours, theirs = open_store(schema="duly"), open_store(schema="other")

    put(ours, 2)
    put(theirs)

    assert ours.inspection.counts()[0].ready == 2
    assert theirs.inspection.counts()[0].ready == 1
