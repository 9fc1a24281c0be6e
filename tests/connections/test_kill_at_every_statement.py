"""An order and its job in one transaction: whenever the process is killed, there are both or neither."""

import json
import subprocess
import sys
from typing import Any

import psycopg
import pytest

from duly import App, Filter
from tests.connections.victim import NAME
from tests.house.tree import ROOT
from tests.waiting import wait_until


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue("server_url" if request.param == "postgres" else "file_url"))


@pytest.mark.process
@pytest.mark.parametrize("way", ["driver", "session"])
def test_killed_at_any_statement_there_is_never_one_without_the_other(jobs: App, url: str, way: str) -> None:
    with jobs.transaction() as connection:
        connection.execute("delete from orders")
    known = len(ordered(jobs))

    done = subprocess.run(
        [sys.executable, "-m", "tests.connections.victim", url, way],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=55,
    )
    assert done.returncode == 0, done.stderr
    points = json.loads(done.stdout.splitlines()[-1])
    _wait_for_rollbacks(url)

    with jobs.transaction() as connection:
        orders = [row[0] for row in connection.execute("select id from orders order by id").fetchall()]
    shipped = sorted(ordered(jobs)[known:])
    assert orders == shipped
    # Of those killed before the commit none is there, and all after it, with the one that lived through all points.
    assert orders == list(range(orders[0], len(points) + 2))
    assert orders[0] > (10 if url.startswith("sqlite") else 5), points


def ordered(jobs: App) -> list[int]:
    """The orders that jobs are about, in the order of the jobs."""
    found = jobs.inspect.jobs(Filter(tag="order"), limit=1000).jobs
    return [json.loads(record.args)["order"] for record in reversed(found)]


def _wait_for_rollbacks(url: str) -> None:
    """The server notices a dead client when it next reads from it."""
    if url.startswith("sqlite"):
        return
    with psycopg.connect(url, autocommit=True) as connection:

        def left() -> Any:
            row = connection.execute(
                "select count(*) from pg_stat_activity where application_name = %s", (NAME,)
            ).fetchone()
            return row == (0,)

        wait_until(left, what="the end of the victims' sessions", timeout=30)
