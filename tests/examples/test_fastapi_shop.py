"""The shop: an order and its receipt are one transaction, on asyncpg through an AsyncSession."""

import os

import psycopg
import pytest
from starlette.testclient import TestClient

from duly.core.lifecycle import State
from tests.examples.programs import load, run, work

pytestmark = [pytest.mark.postgres, pytest.mark.process, pytest.mark.timeout(180)]

FOLDER, APP = "fastapi_shop", "shop:jobs"


@pytest.fixture
def url(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("DULY_URL", postgres_url)
    monkeypatch.setenv("DATABASE_URL", postgres_url.replace("postgresql://", "postgresql+asyncpg://"))
    with psycopg.connect(postgres_url) as connection:
        connection.execute(
            "create table orders (id int generated always as identity primary key, item text not null,"
            " receipted bool not null)"
        )
    run(FOLDER, "duly.cli.main", "migrate", "shop")
    return postgres_url


def orders(url: str) -> list[tuple[str, bool]]:
    with psycopg.connect(url) as connection:
        return connection.execute("select item, receipted from orders order by id").fetchall()


def test_every_order_has_its_receipt_and_nothing_else_has(url: str) -> None:
    shop = load(FOLDER, "shop")

    with TestClient(shop.web, raise_server_exceptions=False) as client:
        answers = [
            client.post("/orders", params={"item": item}) for item in ("tea", "a change of mind", "nothing")
        ]
    work(FOLDER, APP)

    assert [answer.status_code for answer in answers] == [202, 500, 202]
    assert orders(url) == [("tea", True), ("nothing", False)]
    records = {record.id: record for record in shop.jobs.inspect.jobs().jobs}
    first, last = (records[int(answers[number].json()["job_id"])] for number in (0, 2))
    assert len(records) == 2
    assert (first.state, first.result) == (State.completed, b'"sent"')
    assert (last.state, last.counters.failed) == (State.dead, 1)
    shop.jobs.close()


def test_a_completion_that_the_database_refuses_leaves_order_and_job_as_they_were(url: str) -> None:
    shop = load(FOLDER, "shop")
    with TestClient(shop.web) as client:
        client.post("/orders", params={"item": "tea"})
    with psycopg.connect(url) as connection:
        connection.execute("alter table orders add check (not receipted)")

    work(FOLDER, APP)

    (record,) = shop.jobs.inspect.jobs().jobs
    # It may have been due again before the worker saw that nothing else was.
    assert record.counters.failed >= 1
    assert record.state in {State.scheduled, State.ready}
    assert orders(url) == [("tea", False)]
    shop.jobs.close()
    assert os.environ["DULY_URL"] == url
