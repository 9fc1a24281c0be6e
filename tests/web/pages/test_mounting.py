"""Where the dashboard may stand: on one's own machine without tokens, below a prefix, behind TLS, over no store."""

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx2
import pytest

from duly import App
from duly.web.server import build
from duly.web.site import WebOptions
from tests.web.conftest import Serving, declare, new_token


@contextmanager
def served(
    url: str, options: WebOptions, prefix: str = "/", *, migrate: bool = True
) -> Iterator[tuple[App, httpx2.Client]]:
    app = App(url)
    declare(app)
    if migrate:
        app.store.schema.migrate()
    with ExitStack() as stack:
        stack.callback(app.close)
        serving = stack.enter_context(Serving(build(app, options, prefix=prefix)))
        yield app, stack.enter_context(httpx2.Client(base_url=serving.url, timeout=60))


def test_ones_own_machine_needs_no_token_and_no_other_page_may_use_that(sqlite_url: str) -> None:
    with served(sqlite_url, WebOptions(open=True)) as (app, client):
        page = client.get("/ui/queues/mail")
        found = re.search(r'name="form_mark" value="([0-9a-f]+)"', page.text)
        assert found is not None
        form = {"form_mark": found[1], "reason": "INC-311"}

        foreign = client.post("/ui/queues/mail/act/pause", data=form, headers={"Origin": "https://evil.test"})
        rebound = client.get("/ui", headers={"Host": "evil.test"})
        own = client.post(
            "/ui/queues/mail/act/pause", data=form, headers={"Origin": str(client.base_url).rstrip("/")}
        )

        assert (foreign.status_code, rebound.status_code, own.status_code) == (403, 403, 303)
        assert [pause.reason for pause in app.inspect.pauses()] == ["INC-311"]


def test_every_address_of_a_page_stays_below_the_prefix(sqlite_url: str) -> None:
    with served(sqlite_url, WebOptions(), "/duly") as (app, client):
        origin = {"Origin": str(client.base_url).rstrip("/")}
        sent = client.get("/duly/ui/jobs")
        opened = client.post(
            "/duly/ui/login", data={"token": new_token(app, "admin"), "next": "/jobs"}, headers=origin
        )
        pages = [client.get(f"/duly/ui{path}") for path in ("", "/jobs", "/queues/mail")]

        assert sent.headers["location"] == "/duly/ui/login?next=%2Fjobs"
        assert opened.headers["location"] == "/duly/ui/jobs"
        assert "path=/duly/ui" in opened.headers["set-cookie"].lower()
        for page in pages:
            assert page.status_code == 200
            found = re.findall(r'(?:href|src|action)="([^"#][^"]*)"', page.text)
            assert {link for link in found if not link.startswith(("/duly/ui", "data:,"))} == set()
            assert client.get(next(link for link in found if link.endswith("ui.css"))).status_code == 200


def test_the_cookie_is_for_tls_alone_where_clients_use_it(sqlite_url: str) -> None:
    with served(sqlite_url, WebOptions(public_url="https://shop.example")) as (app, client):
        answer = client.post(
            "/ui/login",
            data={"token": new_token(app, "read")},
            headers={"Origin": "https://shop.example"},
        )

        assert answer.status_code == 303
        assert "secure" in answer.headers["set-cookie"].lower()


def test_a_token_in_the_header_shows_pages_to_programs(sqlite_url: str) -> None:
    with served(sqlite_url, WebOptions()) as (app, client):
        headers = {"Authorization": f"Bearer {new_token(app, 'read:mail')}"}

        assert client.get("/ui/queues/mail", headers=headers).status_code == 200
        assert client.get("/ui", headers={"Authorization": "Bearer duly_x"}).status_code == 401


def test_a_store_that_cannot_be_read_is_a_page_that_says_so(tmp_path: Path) -> None:
    with served(f"sqlite:///{tmp_path}/none/none.db", WebOptions(open=True), migrate=False) as (_, client):
        answers = [client.get(f"/ui{path}") for path in ("", "/jobs", "/queues/mail", "/jobs/1")]

        assert {answer.status_code for answer in answers} == {503}
        assert all("job store does not answer" in answer.text for answer in answers)


@pytest.mark.parametrize("path", ["/ui/login", "/ui/-/x/ui.css"])
def test_signing_in_needs_no_store(tmp_path: Path, path: str) -> None:
    with served(f"sqlite:///{tmp_path}/none/none.db", WebOptions(), migrate=False) as (_, client):
        assert client.get(path).status_code == 200
