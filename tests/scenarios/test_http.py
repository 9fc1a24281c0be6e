"""The stories of HTTP: two servers over one store, repeats at the same moment, what is left after the end."""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass

import pytest

from duly import App
from tests.web.conftest import Client, Serving, declare, new_token

RECEIPT = {"task": "send_receipt", "args": {"order_id": 7}}


@dataclass
class Site:
    """Two servers of one store, each with its own App, and a client of each."""

    app: App
    first: Client
    second: Client


@pytest.fixture(params=["sqlite", "postgres"])
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    url = request.getfixturevalue("sqlite_url" if request.param == "sqlite" else "postgres_url")
    apps = [App(url), App(url)]
    with ExitStack() as stack:
        clients = []
        for app in apps:
            declare(app)
            app.store.schema.migrate()
            stack.callback(app.close)
        headers = {"Authorization": f"Bearer {new_token(apps[0], 'admin')}"}
        for app in apps:
            serving = stack.enter_context(Serving(app.asgi()))
            client = Client(base_url=serving.url, headers=headers, timeout=60)
            clients.append(stack.enter_context(client))
        yield Site(apps[0], *clients)


def test_every_accepted_job_is_there_for_another_server_at_once(site: Site) -> None:
    states = Counter[tuple[int, str]]()

    for number in range(60):
        accepted = site.first.post("/v1/jobs", json={"task": "send_receipt", "args": {"order_id": number}})
        seen = site.second.get(f"/v1/jobs/{accepted.json()['job_id']}")
        states[seen.status_code, seen.json().get("state", "")] += 1

    assert states == {(200, "ready"): 60}


def test_one_key_at_the_same_moment_on_two_servers_makes_one_job(site: Site) -> None:
    key = {"Idempotency-Key": "order-7"}

    def ask(number: int) -> tuple[int, str | None]:
        client = site.first if number % 2 else site.second
        answer = client.post("/v1/jobs", json=RECEIPT, headers=key)
        return answer.status_code, answer.json().get("job_id")

    with ThreadPoolExecutor(10) as threads:
        answers = list(threads.map(ask, range(50)))
    after = ask(0)

    assert {status for status, _ in answers} <= {202, 409}
    assert {id for _, id in answers if id} == {after[1]}
    assert len(site.app.inspect.jobs().jobs) == 1


def test_two_callers_with_one_key_have_a_job_each(site: Site) -> None:
    key = {"Idempotency-Key": "order-7"}
    other = {"Authorization": f"Bearer {new_token(site.app, 'enqueue')}"}

    mine = site.first.post("/v1/jobs", json=RECEIPT, headers=key)
    theirs = site.second.post("/v1/jobs", json=RECEIPT, headers=key | other)

    assert mine.json()["job_id"] != theirs.json()["job_id"]


def test_each_end_of_a_job_is_told_and_what_is_gone_never_looks_as_if_it_waited(site: Site) -> None:
    ids = [site.first.post("/v1/jobs", json=RECEIPT).json()["job_id"] for _ in range(4)]
    waiting, done, dead, cancelled = ids
    site.first.post(f"/v1/jobs/{cancelled}/cancel")
    claimed = site.second.post("/v1/claim", json={"queues": ["mail"], "limit": 3}).json()["jobs"]
    token = {job["id"]: job["token"] for job in claimed}
    site.first.post("/v1/ack", json={"acks": [{"token": token[done], "result": "sent"}]})
    site.first.post(
        "/v1/fail", json={"fails": [{"token": token[dead], "error": "no such account", "permanent": True}]}
    )

    told = [site.second.get(f"/v1/jobs/{id}").json() for id in ids]
    site.first.post("/v1/dead/purge", json={"ids": [dead]})
    gone, never = site.second.get(f"/v1/jobs/{dead}"), site.second.get("/v1/jobs/4711")

    assert [job["state"] for job in told] == ["running", "completed", "dead", "cancelled"]
    assert (told[1]["result"], told[2]["reason"]) == ("sent", "no such account")
    assert (gone.status_code, never.status_code) == (404, 404)
    assert site.second.get(f"/v1/jobs/{waiting}").json()["final"] is False


def test_a_refused_batch_leaves_nothing_and_its_repeat_makes_each_job_once(site: Site) -> None:
    good = [{"task": "send_receipt", "args": {"order_id": number}} for number in (1, 2, 4)]
    bad = {"task": "send_receipt", "args": {"order_id": "three"}}
    key = {"Idempotency-Key": "batch-1"}

    refused = [
        site.first.post("/v1/jobs/batch", json={"jobs": [good[0], good[1], bad, good[2]]}, headers=key)
        for _ in range(3)
    ]
    nothing = site.app.inspect.jobs().jobs
    fixed = [site.second.post("/v1/jobs/batch", json={"jobs": good}, headers=key) for _ in range(2)]

    assert {(answer.status_code, answer.json()["position"]) for answer in refused} == {(422, 2)}
    assert nothing == ()
    assert fixed[0].status_code == 202
    assert fixed[0].content == fixed[1].content
    assert len(site.app.inspect.jobs().jobs) == 3


def test_a_batch_for_a_store_that_is_away_is_not_accepted() -> None:
    app = App("postgresql://nobody@127.0.0.1:1/none")
    declare(app)

    with (
        Serving(app.asgi(without_tokens=True)) as serving,
        Client(base_url=serving.url, timeout=60) as client,
    ):
        answer = client.post("/v1/jobs/batch", json={"jobs": [RECEIPT]})

    app.close()
    assert answer.status_code == 503
    assert answer.headers["Retry-After"]
