"""The glue for FastAPI and Starlette: the answer 202, and problems."""

from pathlib import Path

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from duly import App
from duly.core.errors import KeyReused, StoreUnreachable, UsageError
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


def shop(jobs: App, at: str) -> FastAPI:
    web = FastAPI()
    mount(web, jobs, at)

    @jobs.task
    async def send(order_id: int) -> None: ...

    @web.post("/orders", status_code=202)
    async def create() -> Accepted:
        return Accepted(await send.aenqueue(order_id=7), title="Your receipt")

    return web


@pytest.mark.parametrize("root", ["", "/shop"])
def test_an_accepted_job_comes_with_a_ticket_and_the_address_of_its_page(tmp_path: Path, root: str) -> None:
    jobs = App(f"sqlite:///{tmp_path}/shop.db")
    client = TestClient(shop(jobs, "/duly"), root_path=root)

    answer = client.post("/orders")
    told = answer.json()
    page = client.get(answer.headers["Location"], headers={"Accept": "text/html"})

    assert answer.status_code == 202
    assert answer.headers["Location"] == f"{root}/duly/t/{told['ticket']}" == told["ticket_url"]
    assert told["status_url"] == f"{root}/duly/v1/jobs/{told['job_id']}"
    assert answer.headers["Retry-After"] == "2"
    assert page.status_code == 200
    assert '<h1 dir="auto">Your receipt</h1>' in page.text
    assert client.get(told["status_url"]).status_code == 401
    jobs.close()


def test_the_address_is_the_public_one_where_that_is_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DULY_PUBLIC_URL", "https://shop.example/duly/")
    jobs = App(f"sqlite:///{tmp_path}/shop.db")

    told = TestClient(shop(jobs, "/duly")).post("/orders").json()

    assert told["ticket_url"] == f"https://shop.example/duly/t/{told['ticket']}"
    jobs.close()


@pytest.mark.parametrize("at", ["duly", "/duly/", "/"])
def test_a_path_to_mount_at_is_one(tmp_path: Path, at: str) -> None:
    with pytest.raises(UsageError, match="write '/duly'"):
        mount(FastAPI(), App(f"sqlite:///{tmp_path}/shop.db"), at)
