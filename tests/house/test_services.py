"""The servers and waits that other tests stand on: they start, survive what is done to them, and leave nothing."""

import os
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from tests.children import command_line
from tests.conftest import without_service
from tests.house.tree import ROOT
from tests.services import MissingService, PostgresServer, find_binaries
from tests.waiting import await_until, wait_until

OWNER = """
import sys
from tests.services import PostgresServer

server = PostgresServer(15)
server.start()
print(server.pid, server.directory, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("postgres", [15, 18], indirect=True)
def test_the_server_is_of_the_version_asked_for(postgres: PostgresServer) -> None:
    ((version,),) = postgres.execute("SHOW server_version_num")

    assert int(version) // 10000 == postgres.version


def test_each_test_has_an_empty_database_of_its_own(postgres: PostgresServer) -> None:
    with postgres.database() as first, postgres.database() as second:
        with psycopg.connect(first, autocommit=True) as connection:
            connection.execute("CREATE TABLE mark (id int)")

        with psycopg.connect(second) as connection:
            seen = connection.execute("SELECT to_regclass('mark')").fetchone()

    assert first != second
    assert seen == (None,)


def test_a_database_copied_from_a_template_has_what_was_prepared_once(postgres: PostgresServer) -> None:
    prepared = []

    def prepare(url: str) -> None:
        prepared.append(url)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CREATE TABLE mark (id int)")

    for _ in range(2):
        with (
            postgres.database(postgres.template("house", prepare)) as url,
            psycopg.connect(url, autocommit=True) as connection,
        ):
            connection.execute("INSERT INTO mark VALUES (1)")
            assert connection.execute("SELECT count(*) FROM mark").fetchone() == (1,)

    assert len(prepared) == 1


def test_a_database_is_dropped_although_somebody_is_connected(postgres: PostgresServer) -> None:
    name = postgres.create_database()

    with closing(psycopg.connect(postgres.url(name))):
        postgres.drop_database(name)

    assert postgres.execute(f"SELECT 1 FROM pg_database WHERE datname = '{name}'") == []


@pytest.mark.parametrize("way", ["fast", "immediate", "kill"])
def test_committed_rows_survive_a_restart_at_the_same_address(postgres: PostgresServer, way: str) -> None:
    with postgres.database() as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CREATE TABLE mark AS SELECT 1 AS id")

        if way == "kill":
            postgres.kill()
            postgres.resume()
        else:
            postgres.restart("fast" if way == "fast" else "immediate")

        with psycopg.connect(url) as connection:
            assert connection.execute("SELECT id FROM mark").fetchall() == [(1,)]


@pytest.mark.process
@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGKILL])
def test_a_server_ends_with_the_process_that_started_it(
    postgres15: PostgresServer, ending: signal.Signals
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", OWNER], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout is not None
        pid, directory = owner.stdout.readline().split()
        assert command_line(int(pid))

        owner.send_signal(ending)

    wait_until(lambda: not command_line(int(pid)), what="the end of the server")
    wait_until(lambda: not Path(directory).exists(), what="the end of its folder")


def test_a_version_that_is_not_installed_says_how_to_get_it() -> None:
    with pytest.raises(MissingService, match=r"PostgreSQL 99 is not installed .* make setup"):
        find_binaries(99)


@pytest.mark.parametrize(("ci", "ending"), [("true", pytest.fail.Exception), ("", pytest.skip.Exception)])
def test_a_missing_service_skips_here_and_fails_in_ci(
    monkeypatch: pytest.MonkeyPatch, ci: str, ending: type[BaseException]
) -> None:
    monkeypatch.setenv("CI", ci)

    with pytest.raises(ending, match="MISSING SERVICE: no server"):
        without_service("no server")


def test_settings_of_whoever_runs_the_tests_do_not_reach_them() -> None:
    assert not [name for name in os.environ if name.startswith("DULY_")]


def test_waiting_returns_what_the_probe_saw() -> None:
    answers = iter([None, 0, "ready"])

    assert wait_until(lambda: next(answers)) == "ready"


def test_waiting_gives_up_and_says_for_what() -> None:
    with pytest.raises(AssertionError, match=r"still not so after 0.01 s: the moon \(last answer: 0\)"):
        wait_until(lambda: 0, timeout=0.01, what="the moon")


@pytest.mark.asyncio
async def test_waiting_on_a_loop_takes_probes_of_both_kinds() -> None:
    answers = iter([0, 0, 7])

    async def probe() -> int:
        return next(answers)

    assert await await_until(probe) == 7
    assert await await_until(lambda: "at once") == "at once"
