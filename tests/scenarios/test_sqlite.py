"""One file and many processes: locks that nobody hears of, a log that stays small, forks, and kills at any moment."""

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from duly.core.job import JobId
from duly.core.lifecycle import State
from duly.stores.open import open_store
from duly.stores.protocol import Store
from duly.stores.sqlite.store import SQLiteStore
from duly.testing.conformance.bench import new_job
from tests.scenarios.crowd import outcome, start
from tests.waiting import wait_until

MIB = 1024 * 1024


def file_of(url: str) -> Path:
    return Path(url.removeprefix("sqlite:///"))


def sound(path: Path) -> bool:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("pragma integrity_check").fetchall() == [("ok",)]


@contextmanager
def opened(url: str) -> Iterator[Store]:
    store = open_store(url)
    try:
        yield store
    finally:
        store.close()


def hold_the_write_lock(path: Path, seconds: float) -> None:
    """A foreign program in the middle of a long write."""
    with closing(sqlite3.connect(path, timeout=20, isolation_level=None)) as connection:
        connection.execute("begin immediate")
        until = time.monotonic() + seconds
        wait_until(lambda: time.monotonic() >= until, timeout=seconds + 5)
        connection.execute("commit")


@pytest.mark.process
def test_many_writers_and_a_foreign_lock_cost_time_and_no_job(sqlite_file: str) -> None:
    producers, workers, each = 4, 3, 60
    total = producers * each
    crowd = [start("enqueue", sqlite_file, each) for _ in range(producers)]
    crowd += [start("work", sqlite_file, total) for _ in range(workers)]
    over = threading.Event()
    seen: list[int] = []
    failures: list[BaseException] = []

    def look() -> None:
        with opened(sqlite_file) as store:
            try:
                while not over.is_set():
                    seen.append(sum(count.ready + count.running for count in store.inspection.counts()))
            except BaseException as failure:
                failures.append(failure)

    dashboard = threading.Thread(target=look)
    dashboard.start()
    try:
        for _ in range(2):
            hold_the_write_lock(file_of(sqlite_file), 1.0)
        outcomes = [outcome(process) for process in crowd]
    finally:
        over.set()
        dashboard.join()

    stored = sorted(int(line) for lines in outcomes[:producers] for line in lines)
    done = sorted(int(line) for lines in outcomes[producers:] for line in lines if line)
    assert failures == []
    assert len(seen) > 10
    assert len(set(stored)) == total
    assert done == stored
    assert sound(file_of(sqlite_file))


def test_the_log_shrinks_to_its_cap_once_a_long_reader_has_ended(sqlite_file: str) -> None:
    path = file_of(sqlite_file)
    log = Path(f"{path}-wal")
    store = SQLiteStore(path, journal="wal")
    store.schema.migrate()
    jobs = [new_job(args=b'{"body":"' + b"x" * 250 * 1024 + b'"}')] * 10

    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("begin")
        reader.execute("select count(*) from duly_job").fetchall()
        for _ in range(30):
            store.jobs.enqueue(jobs)
            store.inspection.counts()
        grown = log.stat().st_size
        reader.execute("commit")
    for _ in range(4):
        store.jobs.enqueue(jobs)

    shrunk = log.stat().st_size
    assert grown > 64 * MIB
    assert shrunk <= 33 * MIB
    store.close()


def test_a_log_beyond_all_measure_is_reported_with_its_remedy(sqlite_file: str) -> None:
    path = file_of(sqlite_file)
    store = SQLiteStore(path, journal="wal")
    store.schema.migrate()
    store.inspection.counts()
    assert not any("-wal has grown" in warning for warning in store.inspection.warnings())

    with Path(f"{path}-wal").open("r+b") as log:
        # Sparse: SQLite reads no further than its own frames.
        log.truncate(300 * MIB)
    warnings = store.inspection.warnings()

    assert [warning for warning in warnings if "300 MiB" in warning and "reader" in warning]
    store.close()


@pytest.mark.process
def test_a_handle_from_before_the_fork_is_used_by_nobody_after_it(url: str) -> None:
    rounds, children, each = 2, 4, 10
    lines = outcome(start("fork", url, rounds, children, each))

    takers = rounds * (children + 1) + 1
    ids = [int(line) for line in lines if line]
    with opened(url) as store:
        states = [record.state for record in store.inspection.lookup([JobId(id) for id in ids]) if record]
    assert len(ids) == len(set(ids)) == takers * each
    assert states == [State.completed] * len(ids)
    if url.startswith("sqlite"):
        assert sound(file_of(url))


@pytest.mark.process
def test_every_job_that_a_killed_process_had_in_hand_is_there(url: str) -> None:
    lines = outcome(start("crash", url, 24, 7, 0))

    ids = [JobId(int(line)) for line in lines if line]
    with opened(url) as store:
        records = store.inspection.lookup(ids)
    assert len(ids) > 15
    assert [record.state for record in records if record] == [State.ready] * len(ids)
    if url.startswith("sqlite"):
        assert sound(file_of(url))


@pytest.mark.process
@pytest.mark.parametrize("before", ["nothing", "an empty file"])
def test_a_kill_while_the_file_comes_into_being_leaves_one_that_opens(tmp_path: Path, before: str) -> None:
    cycles = 30
    files = [tmp_path / f"jobs.db-{number}" for number in range(cycles)]
    if before == "an empty file":
        for file in files:
            file.touch()

    lines = outcome(start("crash", f"sqlite:///{tmp_path}/jobs.db", cycles, 11, 1))

    assert all(sound(file) for file in files)
    kept = 0
    for file in files:
        with opened(f"sqlite:///{file}") as store:
            kept += sum(count.ready for count in store.inspection.counts())
    # One more for each file: the job of whoever looked after the kill. An unheard answer may add some.
    assert kept >= len([line for line in lines if line]) + cycles


def test_the_file_is_written_through_to_the_disk(sqlite_file: str) -> None:
    with opened(sqlite_file) as store:
        store.jobs.enqueue([new_job()])

        assert store.inspection.describe()["sync"] == "full"
