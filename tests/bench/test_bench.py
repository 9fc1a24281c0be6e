"""`duly bench` over real stores: it measures, touches nobody's jobs, and leaves nothing behind however it ends."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from duly.app import App
from duly.bench.fleet import WorkerEnded
from duly.bench.run import Plan, run
from duly.cli.main import cli
from duly.client.settings import Settings
from duly.core.errors import UsageError
from duly.stores.open import open_probe, open_store
from duly.stores.probe import LEFT_BEHIND, SCRATCH
from tests.children import command_line
from tests.services import PostgresServer
from tests.waiting import wait_until

TINY = Plan(turns=1, turn_seconds=0.02, latencies=3, most_jobs=1000, drain_seconds=60.0)
pytestmark = pytest.mark.process


def settings(url: str) -> Settings:
    return App(url).settings


def silent(text: str) -> None:
    assert text


def with_a_job(url: str) -> App:
    app = App(url)

    @app.task
    def send(order_id: int) -> None:
        assert order_id

    app.store.schema.migrate()
    send.enqueue(7)
    return app


def schemas(postgres: PostgresServer, url: str) -> list[str]:
    rows = postgres.execute(
        "select nspname from pg_namespace where nspname like 'duly%' order by 1",
        database=url.rsplit("/", 1)[1],
    )
    return [str(name) for (name,) in rows]


def scratch_files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob(f"{SCRATCH}*"))


def test_a_file_is_measured_in_a_file_beside_it(sqlite_path: Path, sqlite_url: str) -> None:
    app = with_a_job(sqlite_url)

    report = run(settings(sqlite_url), TINY, silent)

    assert report.limits.commits_per_s > 0
    assert report.limits.bulk_rows_per_s > report.limits.commits_per_s
    assert report.single_per_s > 0
    assert report.drain.jobs > 1000
    assert report.latency.samples == 3
    assert report.store["where"] == sqlite_url
    assert scratch_files(sqlite_path.parent) == []
    assert [count.ready for count in app.store.inspection.counts()] == [1]
    app.close()


def test_a_database_is_measured_in_a_schema_of_its_own(postgres: PostgresServer, postgres_url: str) -> None:
    app = with_a_job(postgres_url)

    report = run(settings(postgres_url), TINY, silent)

    assert report.limits.unsynced_commits_per_s > 0
    assert report.drain.jobs > 1000
    assert 0 < report.drain.worker_cpu <= 1
    assert report.latency.p99_ms >= report.latency.p50_ms > 0
    assert schemas(postgres, postgres_url) == ["duly"]
    assert [count.ready for count in app.store.inspection.counts()] == [1]
    app.close()


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_nothing_is_left_when_the_run_fails_midway(
    store: str, postgres: PostgresServer, empty_postgres_url: str, sqlite_path: Path, sqlite_url: str
) -> None:
    def interrupt(text: str) -> None:
        if text.startswith("single"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(settings(empty_postgres_url if store == "postgres" else sqlite_url), TINY, interrupt)

    assert scratch_files(sqlite_path.parent) == []
    assert schemas(postgres, empty_postgres_url) == []


def test_a_worker_that_cannot_start_is_told_with_its_own_words(
    sqlite_path: Path, sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(sqlite_path.parent))
    (sqlite_path.parent / "click.py").write_text("raise SystemExit('no click here')\n")

    with pytest.raises(WorkerEnded, match="no click here"):
        run(settings(sqlite_url), TINY, silent)

    assert scratch_files(sqlite_path.parent) == []


def test_the_next_bench_removes_what_a_killed_one_left(
    postgres: PostgresServer, empty_postgres_url: str, sqlite_path: Path, sqlite_url: str
) -> None:
    old, new = int(time.time() - LEFT_BEHIND - 60), int(time.time())
    places = [f"{SCRATCH}{old}_ab12", f"{SCRATCH}{new}_ab12", f"{SCRATCH}of_the_user"]
    for place in places:
        postgres.execute(f"create schema {place}", database=empty_postgres_url.rsplit("/", 1)[1])
        (sqlite_path.parent / f"{place}.db").touch()
        (sqlite_path.parent / f"{place}.db-wal").touch()

    for url in (empty_postgres_url, sqlite_url):
        probe = open_probe(url)
        probe.prepare()
        probe.remove()

    assert schemas(postgres, empty_postgres_url) == sorted(places[1:])
    assert scratch_files(sqlite_path.parent) == sorted(
        [f"{place}.db{end}" for place in places[1:] for end in ("", "-wal")]
    )


def test_programs_get_one_document_with_the_sentence_in_it(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Plan, "within", staticmethod(lambda seconds: TINY))

    told = CliRunner().invoke(cli, ["bench", "--url", sqlite_url, "-o", "json"])

    assert told.exit_code == 0, told.output
    document = msgspec.json.decode(told.stdout)
    assert document["bounds"].startswith("Single enqueues are bound by ")
    assert document["limits"]["commits_per_s"] > 0
    assert document["latency"]["samples"] == 3


def test_a_role_that_may_not_make_a_schema_is_told_what_it_needs(
    postgres: PostgresServer, empty_postgres_url: str
) -> None:
    name = empty_postgres_url.rsplit("/", 1)[1]
    postgres.execute(f"create role reader_{name} login")

    with pytest.raises(UsageError, match="grant it CREATE on the database"):
        run(settings(postgres.url(name, user=f"reader_{name}")), TINY, silent)


def test_a_probe_keeps_the_journal_of_the_users_file(sqlite_path: Path, sqlite_url: str) -> None:
    import sqlite3

    with sqlite3.connect(sqlite_path) as connection:
        connection.execute("pragma journal_mode = wal")
        connection.execute("create table mine (id integer)")
    connection.close()
    probe = open_probe(sqlite_url)

    probe.prepare()
    store = open_store(probe.url, schema=probe.schema)
    store.schema.migrate()
    journal = store.inspection.describe()["journal"]

    assert journal == "wal"
    store.close()
    probe.remove()
    assert scratch_files(sqlite_path.parent) == []


def bench_process(url: str, folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "duly.cli.main", "bench", "--url", url, "--seconds", "60"]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def workers_of(place: Callable[[], list[str]]) -> list[int]:
    """The processes whose environment names a scratch file of the bench."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            told = path.read_bytes()
        except OSError:
            continue
        if any(name.encode() in told for name in place()):
            found.append(int(path.parent.name))
    return found


def test_sigterm_ends_the_bench_and_its_worker_and_removes_the_scratch_file(
    sqlite_path: Path, sqlite_url: str
) -> None:
    folder = sqlite_path.parent
    bench = bench_process(sqlite_url, folder)
    wait_until(lambda: workers_of(lambda: scratch_files(folder)), what="the bench's worker")

    bench.send_signal(signal.SIGTERM)
    _, told = bench.communicate(timeout=50)

    assert bench.returncode == 1
    assert "the scratch place is removed" in told
    assert scratch_files(folder) == []


def test_a_killed_bench_takes_its_worker_along(sqlite_path: Path, sqlite_url: str) -> None:
    folder = sqlite_path.parent
    bench = bench_process(sqlite_url, folder)
    names = wait_until(lambda: scratch_files(folder), what="the scratch file")
    # Two: the supervisor, and the process that runs the jobs and looks after the bench.
    wait_until(lambda: len(workers_of(lambda: names[:1])) >= 2, what="the bench's worker")
    pids = workers_of(lambda: names[:1])
    record = wait_until(lambda: _records(bench.pid), what="its first record")[0]

    os.kill(bench.pid, signal.SIGKILL)
    bench.communicate(timeout=50)

    wait_until(lambda: not any(command_line(pid) for pid in pids), timeout=60, what="the worker's end")
    # What it kept in its own temporary folder is all that stays.
    shutil.rmtree(record.parent)


def _records(pid: int) -> list[Path]:
    """The files that the worker of this bench writes to, by the environment of its processes."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            told = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if f"BENCH_OWNER={pid}".encode() in told:
            names = [part.partition(b"=")[2].decode() for part in told if part.startswith(b"BENCH_RECORDS=")]
            found += [Path(name) for name in names if Path(name).exists()]
    return found
