"""The glue for FastAPI and Starlette: the answer 202, and problems."""

from pathlib import Path

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from duly import App
from duly.core.errors import KeyReused, StoreUnreachable
from duly.fastapi import Accepted, mount


@pytest.fixture
def client(tmp_path: Path) -> TestClient:
    jobs = App(f"sqlite:///{tmp_path}/shop.db")
    web = FastAPI()
    mount(web, jobs)

    @jobs.task
    async def send(order_id: int) -> None: ...

    @web.post("/orders", status_code=202)
    async def create() -> Accepted:
        return Accepted(await send.aenqueue(order_id=7))

    @web.get("/reused")
    async def reused() -> None:
        raise KeyReused("the key 'a' belongs to job 7, which was enqueued with other arguments", job_id=7)

    @web.get("/full")
    async def full() -> None:
        news = jobs.queue("news", max_depth=1)
        for _ in range(2):
            await send.using(queue=news).aenqueue(order_id=7)

    @web.get("/away")
    async def away() -> None:
        raise StoreUnreachable("postgresql://secret@db: connection refused")

    return TestClient(web)


def test_an_enqueued_job_is_accepted_with_its_id_as_text(client: TestClient) -> None:
    answer = client.post("/orders")

    assert answer.status_code == 202
    assert answer.json() == {"job_id": "1", "outcome": "created"}


def test_errors_that_concern_the_client_are_problems(client: TestClient) -> None:
    reused, away, full = (client.get(path) for path in ("/reused", "/away", "/full"))

    assert (reused.status_code, reused.headers["content-type"]) == (422, "application/problem+json")
    assert "belongs to job 7" in reused.json()["detail"]
    assert (away.status_code, away.headers["Retry-After"]) == (503, "5")
    assert "secret" not in away.text
    assert (full.status_code, full.json()["title"]) == (503, "Too much waits already; try again")
    assert 1 <= int(full.headers["Retry-After"]) <= 60
