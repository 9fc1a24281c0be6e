"""`duly drill` as a person types it, and which stores it leaves alone."""

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import psycopg
import pytest
from click.testing import CliRunner

from duly import App
from duly.cli.main import cli
from tests.drills import shop
from tests.drills.conftest import line_of

pytestmark = [pytest.mark.process, pytest.mark.timeout(240)]

_FAR = datetime(2099, 1, 1, tzinfo=UTC)
DULY = [sys.executable, "-m", "duly.cli.main"]


class Answer(NamedTuple):
    out: str
    err: str
    code: int

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


def run(*args: str) -> Answer:
    """In this process, for what starts no worker."""
    done = CliRunner().invoke(cli, list(args))
    return Answer(done.stdout, done.stderr, done.exit_code)


def drill(*args: str) -> Answer:
    """In a process of its own, as its App is imported once in each."""
    done = subprocess.run([*DULY, "drill", *args], capture_output=True, text=True, timeout=200)
    return Answer(done.stdout, done.stderr, done.returncode)


@pytest.mark.slow
def test_what_did_not_hold_is_told_with_file_and_line_and_an_exit_code() -> None:
    answer = drill("duplicate", "tests.drills.shop:twice", "--jobs", "2")

    line = line_of("CHARGED")
    assert answer.code == 1, answer.err
    assert answer.lines[0].startswith("duplicate: careless, ")
    assert any(
        text.startswith(f"BROKEN: effect charge happened twice in careless, line {line}: ")
        and f"(tests/drills/shop.py:{line})" in text
        for text in answer.lines
    )
    assert answer.lines[-1] == "2 things did not hold."


@pytest.mark.slow
def test_a_task_and_its_arguments_are_enough_and_programs_get_json() -> None:
    answer = drill(
        "duplicate", "tests.drills.shop:careful", "--args", '{"order_id": 7}', "--jobs", "1", "-o", "json"
    )

    document = json.loads(answer.out)
    assert (answer.code, document["held"], document["of"]) == (0, True, "careful"), answer.err
    assert answer.err == ""


@pytest.mark.slow
def test_on_postgresql_a_schema_of_its_own_comes_and_goes(postgres_url: str) -> None:
    answer = drill(
        "reorder", "tests.drills.shop:turns", "--jobs", "2", "--orders", "2", "--url", postgres_url
    )

    with psycopg.connect(postgres_url) as connection:
        schemas = connection.execute(
            "select nspname from pg_namespace where nspname like 'duly%drill%'"
        ).fetchall()
    assert answer.code == 0, answer.out + answer.err
    assert "schema duly_drill_test" in answer.out
    assert schemas == []


def test_a_store_with_jobs_of_others_is_left_alone(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/own.db"
    app = App(url)

    @app.task
    def own() -> None: ...

    id = own.enqueue().id
    refused = drill("duplicate", "tests.drills.shop:once", "--url", url)
    record = app.inspect.lookup([id])[0]
    app.close()

    assert refused.code == 4
    assert "has jobs already" in refused.err
    assert "--yes-really" in refused.err
    assert record is not None
    assert record.state == "ready"


@pytest.mark.slow
def test_whoever_says_so_may_drill_beside_them(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/own.db"
    with App(url) as app:
        made = shop.jobs.at(url)
        shop.careful.using(app=made, run_at=_FAR).enqueue(1)
        made.close()
        answer = drill("duplicate", "tests.drills.shop:once", "--jobs", "1", "--url", url, "--yes-really")
        states = [job.state for job in app.inspect.jobs().jobs]

    assert answer.code == 0, answer.out + answer.err
    assert sorted(states) == ["completed", "scheduled"]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("kill", "tests.drills.nowhere"), "there is no module"),
        (("kill", "tests.drills.shop:careless", "--args", "7"), "no JSON object"),
        (("kill", "tests.drills.shop:once", "--url", "memory://"), "lives in one process"),
        (("load", "tests.drills.shop:once", "--duplicates", "some"), "write 1%"),
        (("load", "tests.drills.shop:once", "--rate", "5"), "is no rate"),
    ],
)
def test_what_cannot_be_is_one_line(args: tuple[str, ...], said: str) -> None:
    answer = run("drill", *args)

    assert answer.code == 2
    assert said in answer.err
    assert "Traceback" not in answer.err
