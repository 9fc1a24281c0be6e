"""Who is answered: tokens and their scopes, the open mode, the rate of a token, and what a body may be."""

import sys
from collections.abc import Iterator

import httpx2
import pytest

from duly import App
from duly.core.errors import UsageError
from duly.web.limits import Limits
from duly.web.problems import Refused
from tests.web.conftest import Client, Place, Serving, declare, new_token

RECEIPT = {"task": "send_receipt", "args": {"order_id": 7}}
REPORT = {"task": "report", "args": {"day": "2030-01-01"}}


def test_nobody_is_answered_without_a_token_that_is_known(place: Place) -> None:
    client = place.client()
    unknown = {"Authorization": f"Bearer duly_{'x' * 43}"}

    answers = [
        client.get("/v1/queues"),
        client.get("/v1/queues", headers=unknown),
        client.get("/v1/queues", headers={"Authorization": "Basic YTpi"}),
        client.post("/v1/jobs", json=RECEIPT, headers={"Authorization": "Bearer x"}),
    ]

    assert {answer.status_code for answer in answers} == {401}
    assert all(answer.headers["WWW-Authenticate"].startswith("Bearer") for answer in answers)
    assert all(answer.headers["Content-Type"] == "application/problem+json" for answer in answers)
    assert place.app.inspect.jobs().jobs == ()


def test_a_token_may_what_its_scopes_say_and_nothing_else(place: Place) -> None:
    client = place.client("enqueue:mail", "read:mail")

    mail, report = client.post("/v1/jobs", json=RECEIPT), client.post("/v1/jobs", json=REPORT)
    listed = client.get("/v1/queues").json()["queues"]

    assert (mail.status_code, report.status_code) == (202, 403)
    assert "enqueue:reports" in report.json()["title"]
    assert [queue["queue"] for queue in listed] == ["mail"]
    assert client.get("/v1/jobs").status_code == 403
    assert client.get("/v1/jobs", params={"queue": "mail"}).status_code == 200
    assert client.post("/v1/queues/mail/pause").status_code == 403
    assert client.post("/v1/claim", json={"queues": ["mail"]}).status_code == 403
    assert client.post("/v1/dead/redrive", json={"filter": {"queue": "mail"}}).status_code == 403


def test_a_job_that_is_not_ones_own_is_as_one_that_never_was(place: Place) -> None:
    id = place.client("enqueue").post("/v1/jobs", json=REPORT).json()["job_id"]
    foreign = place.client("read:mail", "operate:mail", "dead:mail")

    there = [
        foreign.get(f"/v1/jobs/{id}"),
        foreign.get(f"/v1/jobs/{id}/events"),
        foreign.post(f"/v1/jobs/{id}/cancel"),
        foreign.post("/v1/dead/redrive", json={"ids": [id]}),
    ]
    missing = foreign.get("/v1/jobs/999999")

    assert {answer.status_code for answer in there} == {404}
    assert {answer.text.replace(id, "999999") for answer in there} == {missing.text}
    assert str(place.app.inspect.job(int(id)).job.state) == "ready"


def test_a_revoked_token_is_refused_as_soon_as_it_is_looked_at_again(small: Place) -> None:
    now = 0.0
    small.site.auth.bearers._clock = lambda: now
    client = small.client("read")
    before = client.get("/v1/queues").status_code
    record = small.app.store.tokens.all()[0]

    small.app.store.tokens.revoke(record.id, "tester", "a test")
    cached = client.get("/v1/queues").status_code
    now = 5.0
    after = client.get("/v1/queues").status_code

    assert (before, cached, after) == (200, 200, 401)


def test_nothing_changes_by_a_get(small: Place) -> None:
    client = small.client("admin")
    id = client.post("/v1/jobs", json=RECEIPT).json()["job_id"]

    answers = [
        client.get(path)
        for path in (f"/v1/jobs/{id}/cancel", "/v1/queues/mail/pause", "/v1/dead/purge", "/v1/claim")
    ]

    assert {(answer.status_code, answer.headers.get("Allow")) for answer in answers} == {(405, "POST")}
    assert client.get("/nowhere").json()["title"] == "There is nothing at this address"


def test_a_body_is_bounded_before_it_is_parsed(small: Place) -> None:
    client = small.client("enqueue")
    most = small.app.settings.max_payload + 64 * 1024
    long = b"{" + b" " * most

    told = client.post("/v1/jobs", content=long, headers={"Content-Type": "application/json"})
    chunked = client.post(
        "/v1/jobs", content=iter([long[:1000], long[1000:]]), headers={"Content-Type": "application/json"}
    )

    assert (told.status_code, chunked.status_code) == (413, 413)
    assert str(most) in told.json()["detail"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"\xff", 400),
        (b'{"task": "send_receipt", "args": {"a": ' + b"[" * 100_000, 400),
        (b"[]", 422),
        (b'{"task": 7}', 422),
        (b'{"task": "send_receipt", "arg": {}}', 422),
        (b'{"task": "send_receipt", "args": {"order_id": "x"}}', 422),
        (b'{"task": "send_receipt", "args": {"order_id": 7, "note": "\\ud800"}}', (400, 422)),
        (b'{"task": "send_receipt", "args": {"order_id": 7}, "delay": 30}', 422),
        (b'{"task": "send_receipt", "args": {"order_id": 7}, "delay": "30"}', 422),
        (
            b'{"task": "send_receipt", "args": {"order_id": 7}, "delay": "1s", "run_at": "2030-01-01T00:00:00Z"}',
            422,
        ),
        (b'{"task": "send_receipt", "args": {"order_id": 7}, "run_at": "2030-01-01T00:00:00"}', 422),
        (b'{"task": "send\\u0000", "queue": "mail"}', 422),
    ],
)
def test_what_does_not_fit_is_a_problem_and_stores_nothing(
    small: Place, body: bytes, status: int | tuple[int, ...]
) -> None:
    client = small.client("enqueue")

    answer = client.post("/v1/jobs", content=body, headers={"Content-Type": "application/json"})

    assert answer.status_code in (status if isinstance(status, tuple) else (status,)), answer.text
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert answer.json()["title"]
    assert small.app.inspect.jobs().jobs == ()


def test_a_form_is_no_json(small: Place) -> None:
    client = small.client("enqueue")

    answers = [
        client.post("/v1/jobs", content=b'{"task": "send_receipt"}', headers={"Content-Type": media})
        for media in ("text/plain", "application/x-www-form-urlencoded", "")
    ]

    assert {answer.status_code for answer in answers} == {415}


def test_a_token_that_asks_too_often_is_told_when_to_come_again(sqlite_url: str) -> None:
    app = App(sqlite_url)
    declare(app)
    with Serving(app.asgi(rate="1/h burst 3")) as serving, Client(base_url=serving.url, timeout=60) as client:
        own = {"Authorization": f"Bearer {new_token(app, 'read')}"}
        other = {"Authorization": f"Bearer {new_token(app, 'read')}"}

        answers = [client.get("/v1/queues", headers=own) for _ in range(4)]
        beside = client.get("/v1/queues", headers=other)

    app.close()
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    assert [answer.headers["RateLimit"].split(";")[1] for answer in answers] == ["r=2", "r=1", "r=0", "r=0"]
    assert 3500 < int(answers[-1].headers["Retry-After"]) <= 3600
    assert answers[0].headers["RateLimit-Policy"] == '"token";q=3;w=10800'
    assert beside.status_code == 200


def test_a_rate_lets_through_what_it_says() -> None:
    now = 100.0
    limits = Limits("10/s burst 5", clock=lambda: now, kept=2)

    burst = [limits.take("a").allowed for _ in range(7)]
    now = 100.25
    later = [limits.take("a").allowed for _ in range(3)]
    others = [limits.take(key).allowed for key in ("b", "c", "d")]

    assert burst == [True] * 5 + [False] * 2
    assert later == [True, True, False]
    assert others == [True] * 3
    with pytest.raises(Refused) as caught:
        for _ in range(6):
            limits.check("e")
    assert caught.value.headers["Retry-After"] == "1"


@pytest.fixture
def opened(sqlite_url: str) -> Iterator[tuple[App, Client]]:
    app = App(sqlite_url)
    declare(app)
    with (
        Serving(app.asgi(without_tokens=True)) as serving,
        Client(base_url=serving.url, timeout=60) as client,
    ):
        yield app, client
    app.close()


def test_without_tokens_only_this_machine_is_answered(opened: tuple[App, Client]) -> None:
    app, client = opened
    own = str(client.base_url).rstrip("/")

    answers = [
        client.post("/v1/jobs", json=RECEIPT),
        client.post("/v1/jobs", json=RECEIPT, headers={"Origin": own}),
        client.post("/v1/jobs", json=RECEIPT, headers={"Origin": "https://evil.test"}),
        client.post("/v1/jobs", json=RECEIPT, headers={"Origin": "null"}),
        client.post("/v1/jobs", json=RECEIPT, headers={"Host": "rebound.evil.test"}),
    ]

    assert [answer.status_code for answer in answers] == [202, 202, 403, 403, 403]
    assert len(app.inspect.jobs().jobs) == 2


def test_health_is_told_to_anybody_and_says_nothing_else(small: Place) -> None:
    client = small.client()

    alive, ready = client.get("/livez"), client.get("/readyz")

    assert (alive.status_code, alive.json()) == (200, {"alive": True})
    assert (ready.status_code, ready.json()) == (200, {"ready": True})


def test_a_server_is_not_ready_while_its_store_is_away(tmp_path: object) -> None:
    app = App("postgresql://nobody:secret@127.0.0.1:1/none")
    with (
        Serving(app.asgi(without_tokens=True)) as serving,
        Client(base_url=serving.url, timeout=60) as client,
    ):
        ready, alive = client.get("/readyz"), client.get("/livez")
        asked = client.get("/v1/queues")

    app.close()
    assert (ready.status_code, alive.status_code, asked.status_code) == (503, 200, 503)
    assert "Retry-After" in asked.headers
    assert "secret" not in ready.text + asked.text


def test_a_mount_brings_its_own_path(sqlite_url: str) -> None:
    from starlette.applications import Starlette
    from starlette.routing import Mount

    app = App(sqlite_url)
    declare(app)
    web = Starlette(routes=[Mount("/jobs", app.asgi(without_tokens=True, prefix="/duly"))])
    with Serving(web) as serving, Client(base_url=serving.url, timeout=60) as client:
        accepted = client.post("/jobs/duly/v1/jobs", json=RECEIPT)
        seen = httpx2.get(accepted.headers["Location"])

    app.close()
    assert accepted.headers["Location"].startswith(f"{serving.url}/jobs/duly/v1/jobs/")
    assert seen.status_code == 200


def test_without_the_extra_it_is_said_what_to_install(
    monkeypatch: pytest.MonkeyPatch, sqlite_url: str
) -> None:
    for name in [name for name in sys.modules if name.startswith("duly.web")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "starlette.applications", None)
    app = App(sqlite_url)

    with pytest.raises(UsageError, match=r"pip install 'duly\[web\]'"):
        app.asgi()
