"""The stories of script in job data and of acts by link or from elsewhere, on every route that the server has."""

import json
from collections.abc import Iterator

import httpx2
import pytest

from duly.web.api.routes import OPERATIONS
from tests.scenarios.hostile import (
    LONG,
    NAME,
    NUL,
    SCRIPT,
    TEXT,
    Address,
    Stage,
    addresses,
    faults,
    filled,
    forms,
    snapshot,
    staged,
)
from tests.web.pages.conftest import Browser, browser_of

PAGE = {"Accept": "text/html"}
WORDS = (
    *(
        "q",
        "queue",
        "task",
        "tenant",
        "state",
        "before",
        "after",
        "page",
        "next",
        "rule",
        "target",
        "since",
        "span",
    ),
    *("view", "sort", "code", "key", "by", "verb", "actor", "rate", "first", "who", "id", "tab", "form_mark"),
)
"""Parameters that pages may read; what one does not know it leaves alone."""
BODIES = {
    "nothing": b"",
    "no JSON": b"<script>alert(1)</script>",
    "deep": b"[" * 100_000,
    "deep object": b'{"args":' * 5_000 + b"1" + b"}" * 5_000,
    "half a character": b'{"task": "\\ud800", "queue": "\\ud800", "args": {"\\udfff": "\\ud800"}}',
    "no UTF-8": b'{"task": "\xff\xfe"}',
    "NUL": b'{"task": "a\\u0000", "queue": "\\u0000", "reason": "\\u0000", "args": {"a\\u0000": "\\u0000"}}',
    "numbers": b'{"limit": 1e999, "ids": [99999999999999999999999, -1, 1.5], "priority": 1e400, "seconds": -0}',
    "array": b"[" + b"null," * 10_000 + b"null]",
    "twice": b'{"task": "a", "task": "b", "reason": "x", "reason": "y"}',
}


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """On SQLite, for tests that change nothing of what the others look at."""
    with staged(f"sqlite:///{tmp_path_factory.mktemp('hostile')}/jobs.db") as found:
        yield found


def table(stage: Stage) -> list[Address]:
    found = list(addresses(stage.serving.server.config.app.routes))  # type: ignore[union-attr]
    assert len(found) > 40
    return found


def paths(stage: Stage, address: Address) -> list[str]:
    """Those that end: what is still going on is told for ever."""
    streamed = {**stage.parameters, "id": [stage.final, *stage.parameters["id"][-7:]]}
    return filled(address, streamed if address.path.endswith("/events") else stage.parameters)


def person(stage: Stage) -> Browser:
    return browser_of(stage, "admin")


def wanting(stage: Stage, address: Address) -> httpx2.Client:
    """Who asks: pages are asked by somebody who is signed in, all else by a program with a token."""
    if address.path.startswith("/ui") or address.path == "/":
        client = person(stage).client
        client.headers.update(PAGE)
        return client
    client = stage.client("admin")
    if address.path.startswith("/t/"):
        client.headers.update(PAGE)
    return client


def queries(address: Address) -> list[dict[str, str]]:
    operations = [op for op in OPERATIONS if op.path == address.path and op.method == "GET"]
    if operations:
        names = [name for op in operations for name in op.query.__struct_fields__]
        return [{}, *({name: text} for name in names for text in (TEXT, "\0", "9" * 40))]
    return [{}, dict.fromkeys(WORDS, TEXT), dict.fromkeys(WORDS, "\0" * 30), {"q": "(" * 3_000}, {"q": NAME}]


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_hostile_text_is_text_on_every_page_and_route_and_no_get_changes_anything(
    store: str, request: pytest.FixtureRequest, stage: Stage
) -> None:
    if store == "sqlite":
        wrong = asked(stage)
    else:
        with staged(request.getfixturevalue("postgres_url")) as other:
            wrong = asked(other)

    assert wrong == {}


def asked(stage: Stage) -> dict[str, list[str]]:
    """Everything that may be asked by GET, and what was wrong with the answers."""
    wrong: dict[str, list[str]] = {}
    clients = {"ui": person(stage).client, "v1": stage.client("admin"), "t": stage.client()}
    clients["ui"].headers.update(PAGE)
    clients["t"].headers.update(PAGE)
    before = snapshot(stage.app)
    count = 0
    for address in table(stage):
        if "GET" not in address.methods:
            continue
        kind = address.path.split("/")[1]
        client = clients.get(kind, clients["ui" if address.path == "/" else "v1"])
        for number, path in enumerate(paths(stage, address)):
            # All that may stand behind a path is asked where the path itself fits.
            for query in queries(address) if number == 0 else [{}]:
                answer = client.get(path, params=query)
                count += 1
                if found := faults(answer):
                    wrong[str(answer.url)[:200]] = found
    assert count > 300
    assert snapshot(stage.app) == before
    return wrong


def test_hostile_text_is_seen_by_somebody(stage: Stage) -> None:
    """So that the test above cannot pass because the pages are empty."""
    client = person(stage)
    shown = {
        page: client.get(page).text.count("&lt;script&gt;")
        for page in ("", "/jobs", "/tenants", "/limits", "/schedules", "/workers", "/alerts")
    }
    job = client.get(f"/jobs/{stage.parameters['id'][0]}").text

    assert {page for page, count in shown.items() if not count} == set()
    assert job.count("&lt;script&gt;") > 5
    assert "\\u202e" in job


@pytest.mark.parametrize("name", list(BODIES))
def test_whatever_is_sent_to_the_api_is_answered_with_what_is_wrong_with_it(stage: Stage, name: str) -> None:
    client = stage.client("admin")
    wrong: dict[str, list[str]] = {}

    for op in OPERATIONS:
        if op.method != "POST":
            continue
        path = filled(Address(op.path, frozenset({"POST"}), None), stage.parameters)[-1]
        answer = client.post(path, content=BODIES[name], headers={"Content-Type": "application/json"})
        found = faults(answer)
        if answer.status_code >= 400 and answer.headers["Content-Type"] != "application/problem+json":
            found.append(answer.headers["Content-Type"])
        if found:
            wrong[op.path] = found

    assert wrong == {}


@pytest.mark.parametrize("text", [SCRIPT, TEXT, NUL, LONG], ids=["script", "bidi", "nul", "200 kB"])
def test_hostile_text_in_each_field_of_the_api_is_stored_as_it_is_or_refused(stage: Stage, text: str) -> None:
    client = stage.client("admin")
    wrong: dict[str, list[str]] = {}

    for op in OPERATIONS:
        if op.method != "POST" or op.body is None:
            continue
        path = filled(Address(op.path, frozenset({"POST"}), None), stage.parameters)[0]
        own = op.body.__struct_fields__
        for body in [*({name: text} for name in own), dict.fromkeys(own, text)]:
            answer = client.post(path, json=body)
            if found := faults(answer):
                wrong[f"{op.path} {sorted(body)}"] = found
    note = [text, {text: 1}] if len(text) < 1_000 else text
    taken = client.post("/v1/jobs", json={"task": NAME, "args": {"note": note}})

    assert wrong == {}
    assert taken.status_code == 202, taken.text
    seen = client.get(f"/v1/jobs/{taken.json()['job_id']}")
    assert seen.json()["args"] == {"note": note}


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_whatever_is_sent_with_the_forms_of_the_pages_is_answered(sqlite_url: str) -> None:
    with staged(sqlite_url) as stage:
        visitor = person(stage)
        own = {"Origin": visitor.url}
        wrong: dict[str, list[str]] = {}
        sent: set[str] = set()
        seen = [one for one in table(stage) if "GET" in one.methods and one.path.startswith("/ui")]
        pages = [visitor.client.get(filled(one, stage.parameters)[0], headers=PAGE) for one in seen]
        for page in pages:
            for action, fields in forms(page.text):
                where = page.url.join(action).path
                if where in sent or where.endswith(("/login", "/logout")):
                    continue
                sent.add(where)
                free = [name for name in fields if name != "form_mark"]
                for text in (TEXT, NUL, "9" * 40):
                    data = {"form_mark": visitor.mark("/limits"), **dict.fromkeys(free, text), "reason": text}
                    answer = visitor.client.post(where, data=data, headers=own | PAGE)
                    if found := faults(answer):
                        wrong[where] = found
        after = [visitor.client.get(filled(one, stage.parameters)[0], headers=PAGE) for one in seen]

    assert wrong == {}
    assert len(sent) >= 8
    assert {str(page.url): faults(page) for page in after if faults(page)} == {}


def test_nothing_is_changed_by_whoever_did_not_mean_to(stage: Stage) -> None:
    """No credentials, no mark of a form, a page of another site, JSON that comes as a form: nobody gets in by these."""
    stranger, visitor, program = stage.client(), person(stage), stage.client("admin")
    mark = visitor.mark("/limits")
    before = snapshot(stage.app)
    answers: dict[str, set[int]] = {}

    for address in table(stage):
        if "POST" not in address.methods or address.path.startswith("/t/") or address.path.endswith("login"):
            continue
        path = filled(address, stage.parameters)[0]
        form, evil = {"form_mark": mark, "reason": "x"}, {"Origin": "https://evil.test"}
        if address.path.startswith("/ui"):
            if address.path == "/ui/{rest:path}":
                continue
            tried = [
                stranger.post(path, data=form),
                visitor.client.post(path, data={"reason": "x"}, headers={"Origin": visitor.url}),
                visitor.client.post(
                    path, data=form | {"form_mark": "0" * 64}, headers={"Origin": visitor.url}
                ),
                visitor.client.post(path, data=form, headers=evil),
                visitor.client.post(path, data=form, headers={"Origin": "null"}),
                visitor.client.post(path, data=form, headers={"Sec-Fetch-Site": "cross-site"}),
            ]
        else:
            if not any(op.path == address.path and op.method == "POST" for op in OPERATIONS):
                continue
            smuggled = {"Content-Type": "text/plain"}
            tried = [
                stranger.post(path, json={}),
                # The session of a browser opens the dashboard, and nothing else.
                visitor.client.post(path, json={}),
                program.post(path, content=json.dumps({"reason": "x"}), headers=smuggled),
            ]
        answers[address.path] = {answer.status_code for answer in tried}

    assert {path: codes for path, codes in answers.items() if not codes <= {401, 403, 415}} == {}
    assert snapshot(stage.app) == before
