"""The page of a ticket over a real store: every state, both forms, and what strangers get."""

import asyncio
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from duly import App
from duly.client.notices import Notices
from duly.client.task import Task
from duly.client.ticketing import ticket_for
from duly.core.job import JobId, Progress
from duly.core.ticket_status import TicketStatus
from duly.web.tickets import routes
from duly.web.watcher import Watcher
from tests.client.conftest import Hands

SECRET = "the secret of the tests here"
HOSTILE = "<img src=x onerror=alert(1)>\"'</script>"


@pytest.fixture
def jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[App]:
    monkeypatch.setenv("DULY_SECRET", SECRET)
    app = App(f"sqlite:///{tmp_path}/shop.db")
    yield app
    app.close()


@pytest.fixture
def send(jobs: App) -> Task[[int], str]:
    @jobs.task(name="send")
    def send(order_id: int) -> str:
        return "/orders/7"

    return send


@pytest.fixture
def web(jobs: App) -> TestClient:
    return TestClient(Starlette(routes=routes(jobs, Watcher(jobs, 0.02))))


def seen(web: TestClient, ticket: str, accept: str = "application/json") -> dict[str, object]:
    answer = web.get(f"/t/{ticket}", headers={"Accept": accept})
    body = answer.json()
    assert isinstance(body, dict)
    return {"status": answer.status_code, **body}


def test_a_ticket_follows_its_job_to_the_end(jobs: App, send: Task[[int], str], web: TestClient) -> None:
    enqueued = send.enqueue(7)
    ticket = enqueued.ticket(title="Your receipt")

    waiting = seen(web, ticket)
    hands = Hands(jobs.store, "send")
    queued = seen(web, ticket)
    (job,) = hands.claim()
    jobs.store.jobs.report(hands.incarnation, [Progress(job.id, job.run, 2, 5, "page 2")])
    running = seen(web, ticket)
    hands.complete(job, b'"/orders/7"')
    done = seen(web, ticket)

    assert (waiting["status"], waiting["state"], waiting["title"]) == (200, "queued", "Your receipt")
    assert "Nobody works on this" in str(waiting["message"])
    assert (queued["state"], queued["position"]) == ("queued", 1)
    assert (running["state"], running["progress"]) == ("running", {"done": 2, "of": 5, "note": "page 2"})
    assert (done["state"], done["link"], done["ended"]) == ("done", "/orders/7", True)


def test_the_page_is_plain_html_that_works_without_scripts(send: Task[[int], str], web: TestClient) -> None:
    ticket = send.enqueue(7).ticket(title="Your receipt")

    answer = web.get(f"/t/{ticket}", headers={"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"})

    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert '<noscript><meta http-equiv="refresh" content="5"></noscript>' in answer.text
    assert '<h1 dir="auto">Your receipt</h1>' in answer.text
    assert "onclick" not in answer.text
    assert "style=" not in answer.text


def test_the_page_may_load_nothing_but_its_own_files_and_tells_its_address_to_nobody(
    send: Task[[int], str], web: TestClient
) -> None:
    ticket = send.enqueue(7).ticket()

    page = web.get(f"/t/{ticket}", headers={"Accept": "text/html"})
    style, script = web.get("/t/-/ticket.css"), web.get("/t/-/ticket.js")

    policy = page.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert page.headers["referrer-policy"] == "no-referrer"
    assert page.headers["cache-control"] == "no-store"
    assert page.headers["x-content-type-options"] == "nosniff"
    assert (style.headers["content-type"], script.headers["content-type"]) == (
        "text/css; charset=utf-8",
        "text/javascript; charset=utf-8",
    )
    assert web.get("/t/-/../tickets.py").status_code == 404
    assert web.get("/t/-/ticket.html").status_code == 404


class Tags(HTMLParser):
    """The tags and attributes that a browser would see."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]


def test_texts_of_a_job_stay_texts(jobs: App, send: Task[[int], str], web: TestClient) -> None:
    ticket = send.enqueue(7).ticket(title=HOSTILE, failed=HOSTILE, reasons=True)
    hands = Hands(jobs.store, "send")
    (job,) = hands.claim()
    jobs.store.jobs.report(hands.incarnation, [Progress(job.id, job.run, 2, 5, HOSTILE)])

    answer = web.get(f"/t/{ticket}", headers={"Accept": "text/html"})

    tags = Tags(answer.text)
    assert "&lt;img src=x" in answer.text
    assert "img" not in tags.tags
    assert tags.tags.count("script") == 1
    assert not [name for name in tags.attributes if name.startswith("on")]


def test_a_text_that_turns_its_direction_turns_nothing_else(
    jobs: App, send: Task[[int], str], web: TestClient
) -> None:
    ticket = send.enqueue(7).ticket()
    hands = Hands(jobs.store, "send")
    (job,) = hands.claim()
    jobs.store.jobs.report(hands.incarnation, [Progress(job.id, job.run, 2, 5, "\u202egpj.exe")])

    answer = web.get(f"/t/{ticket}", headers={"Accept": "text/html"})

    assert "<bdi>\u202egpj.exe</bdi>" in answer.text


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("*/*", "application/json"),
        ("application/json", "application/json"),
        ("text/html", "text/html; charset=utf-8"),
        ("text/html;q=0.5, application/json", "application/json"),
        ("application/json;q=0.5, text/html", "text/html; charset=utf-8"),
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "text/html; charset=utf-8"),
        ("nonsense;q=x, \x7f", "text/html; charset=utf-8"),
    ],
)
def test_programs_get_json_and_browsers_a_page(
    send: Task[[int], str], web: TestClient, accept: str, kind: str
) -> None:
    answer = web.get(f"/t/{send.enqueue(7).ticket()}", headers={"Accept": accept})

    assert answer.headers["content-type"] == kind
    assert answer.headers["vary"] == "Accept"


def test_a_job_of_an_open_transaction_is_pending_and_then_there(
    jobs: App, send: Task[[int], str], web: TestClient
) -> None:
    with jobs.transaction() as connection:
        ticket = send.using(connection=connection).enqueue(7).ticket()
        before = seen(web, ticket)
    after = seen(web, ticket)

    assert (before["status"], before["state"]) == (200, "pending")
    assert after["state"] == "queued"


def test_the_ticket_of_a_job_that_was_rolled_back_does_not_show_the_next_one(
    jobs: App, send: Task[[int], str], web: TestClient
) -> None:
    with pytest.raises(ZeroDivisionError), jobs.transaction() as connection:
        lost = send.using(connection=connection).enqueue(7)
        raise ZeroDivisionError
    other = send.enqueue(8)
    ticket = lost.ticket()

    # SQLite gives the number again.
    assert other.id == lost.id
    assert seen(web, ticket)["state"] == "pending"
    assert seen(web, other.ticket())["state"] == "queued"


def test_a_ticket_outlives_the_record_of_its_job(jobs: App, web: TestClient) -> None:
    jobs.store.inspection.now()  # opened by its own clock
    jobs.client.clock = lambda: datetime.now(UTC) - timedelta(days=2)
    ticket = ticket_for(jobs.client, JobId(7))

    gone = seen(web, ticket)
    page = web.get(f"/t/{ticket}", headers={"Accept": "text/html"})

    assert (gone["status"], gone["state"]) == (410, "gone")
    assert "no longer kept" in str(gone["message"])
    assert page.status_code == 410
    assert "http-equiv" not in page.text


def test_a_purged_job_with_an_idempotency_key_still_has_its_end(
    jobs: App, send: Task[[int], str], web: TestClient
) -> None:
    ticket = send.using(idempotency_key="receipt:7").enqueue(7).ticket()
    hands = Hands(jobs.store, "send")
    hands.complete(hands.claim()[0], b'"/orders/7"')
    nothing = timedelta(0)
    assert jobs.store.upkeep.retain({}, {}, nothing, timedelta(days=30)) == 1

    gone = seen(web, ticket)

    assert (gone["status"], gone["state"]) == (410, "gone")
    assert "finished_at" in gone
    assert str(gone["message"]).startswith("It is done.")


def test_an_expired_ticket_says_so(jobs: App, send: Task[[int], str], web: TestClient) -> None:
    jobs.store.inspection.now()  # opened by its own clock
    jobs.client.clock = lambda: datetime.now(UTC) - timedelta(hours=2)

    expired = seen(web, send.enqueue(7).ticket(expires="1h"))

    assert (expired["status"], expired["state"]) == (410, "expired")
    assert "started_at" not in expired


@pytest.mark.parametrize("text", ["7", "x" * 55, "A" * 5_000, "%00", "..%2f..%2f", "-", "ä", "<script>"])
def test_what_is_no_ticket_is_not_found(web: TestClient, text: str) -> None:
    as_json = web.get(f"/t/{text}", headers={"Accept": "application/json"})
    as_page = web.get(f"/t/{text}", headers={"Accept": "text/html"})

    assert (as_json.status_code, as_page.status_code) == (404, 404)
    if text != "..%2f..%2f":
        assert as_json.headers["content-type"] == "application/problem+json"


def test_a_ticket_of_another_site_is_not_found(
    tmp_path: Path, send: Task[[int], str], web: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = send.enqueue(7)
    monkeypatch.setenv("DULY_SECRET", "a secret of quite another site")
    ticket = ticket_for(App(f"sqlite:///{tmp_path}/other.db").client, job.id)

    assert web.get(f"/t/{ticket}").status_code == 404


def test_tickets_change_nothing(send: Task[[int], str], web: TestClient) -> None:
    ticket = send.enqueue(7).ticket()

    assert {web.request(method, f"/t/{ticket}").status_code for method in ("POST", "PUT", "DELETE")} == {405}


@pytest.fixture
def notices(jobs: App) -> Notices:
    made = jobs.notifications()

    @made.channel("mail", label="Your <e-mail> address", kind="email")
    async def mail(to: str, status: TicketStatus) -> None: ...

    return made


def test_the_page_offers_to_tell_the_end_and_takes_one_address(
    jobs: App, notices: Notices, send: Task[[int], str], web: TestClient
) -> None:
    ticket = send.enqueue(7).ticket()
    ask = {"channel": "mail", "to": " ann@shop.example "}

    page = web.get(f"/t/{ticket}", headers={"Accept": "text/html"})
    taken = web.post(f"/t/{ticket}/notify", data=ask)
    again = web.post(f"/t/{ticket}/notify", data=ask, follow_redirects=False)
    other = web.post(f"/t/{ticket}/notify", data={"channel": "mail", "to": "eve@shop.example"})

    assert 'type="email"' in page.text
    assert "Your &lt;e-mail&gt; address" in page.text
    assert taken.status_code == 200
    assert (again.status_code, again.headers["location"]) == (303, f"../{ticket}?asked=1")
    assert other.status_code == 409
    (job,) = (one for one in jobs.inspect.jobs().jobs if one.task == "duly.notify")
    assert json.loads(job.args)["to"] == "ann@shop.example"


def test_being_told_is_shown_and_not_offered_again(
    notices: Notices, send: Task[[int], str], web: TestClient
) -> None:
    ticket = send.enqueue(7).ticket()

    page = web.get(f"/t/{ticket}?asked=1", headers={"Accept": "text/html"})

    assert "We will tell you" in page.text
    assert "<form" not in page.text


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"channel=mail&to=", 422),
        (b"channel=mail&to=%00", 422),
        (b"channel=mail&to=" + b"x" * 600, 422),
        (b"channel=url&to=https://shop.example/", 404),
        (b"channel=fax&to=7", 404),
        (b"", 404),
        (b"\xff\xfe", 404),
        (b"&".join(b"a=1" for _ in range(100)), 404),
        (b"channel=mail&to=" + b"x" * 100_000, 404),
    ],
)
def test_a_form_that_is_none_changes_nothing(
    jobs: App, notices: Notices, send: Task[[int], str], web: TestClient, body: bytes, status: int
) -> None:
    ticket = send.enqueue(7).ticket()

    assert web.post(f"/t/{ticket}/notify", content=body).status_code == status
    assert web.get(f"/t/{ticket}/notify").status_code == 405
    assert len(jobs.inspect.jobs().jobs) == 1


def test_without_the_ticket_nobody_can_ask_to_be_told(notices: Notices, web: TestClient) -> None:
    assert web.post("/t/7/notify", data={"channel": "mail", "to": "eve@shop.example"}).status_code == 404


@pytest.mark.asyncio
async def test_events_tell_each_change_and_end_with_the_job(jobs: App, send: Task[[int], str]) -> None:
    from duly.web import tickets

    enqueued = await send.aenqueue(7)
    hands = await asyncio.to_thread(Hands, jobs.store, "send")
    desk = tickets._Desk(jobs, Watcher(jobs, 0.02))
    stream = desk._stream(await desk._reader.aopen(enqueued.ticket()))

    first = await anext(stream)
    (job,) = await asyncio.to_thread(hands.claim)
    second = await anext(stream)
    await asyncio.to_thread(hands.complete, job, b'"/orders/7"')
    rest = [event async for event in stream]

    states = [json.loads(event.split(b"data: ")[1])["state"] for event in (first, second, *rest)]
    assert states == ["queued", "running", "done"]
    assert json.loads(rest[-1].split(b"data: ")[1])["ended"] is True
