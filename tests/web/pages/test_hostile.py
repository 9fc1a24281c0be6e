"""Whatever a job carries, its pages show it as text: scripts, bidi, NUL, endless strings, deep JSON, on every store."""

import html
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import duly.web
from duly.stores.faults import DataFault
from duly.web.pages import text
from tests.web.conftest import Place
from tests.web.pages.conftest import Browser, browser_of
from tests.web.pages.populated import HOSTILE, SCRIPT, complete, kill, put

TEMPLATES = Path(duly.web.__file__).parent / "templates"
OURS = {"ui.js", "uPlot.iife.min.js"}


class Seen(HTMLParser):
    """What a browser would make of a page: every element and attribute, and what may run."""

    def __init__(self) -> None:
        super().__init__()
        self.faults: list[str] = []
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        given = dict(attrs)
        if tag == "script" and str(given.get("src", "")).rsplit("/", 1)[-1] not in OURS:
            self.faults.append(f"a script: {given}")
        if tag in {"img", "iframe", "object", "embed", "style", "base"}:
            self.faults.append(f"<{tag}>")
        for name, value in attrs:
            if name.startswith("on") or name == "style":
                self.faults.append(f"{tag} {name}={value}")
            if name in {"href", "src", "action"} and str(value).strip().lower().startswith("javascript:"):
                self.faults.append(f"{tag} {name}={value}")


def look(answer_text: str) -> Seen:
    seen = Seen()
    seen.feed(answer_text)
    return seen


def check(browser: Browser, path: str, **params: str) -> str:
    answer = browser.get(path, **params)
    assert answer.status_code < 500, path
    assert look(answer.text).faults == [], path
    assert SCRIPT not in answer.text, path
    # What turns text round, and what nobody sees, is written out instead, but where somebody types it.
    told = re.sub(r' value="[^"]*"', "", answer.text)
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff]", told), path
    assert not re.search(r"evil[^<]{0,40} 49 ", answer.text), path
    return answer.text


def test_scripts_and_bidi_in_all_that_a_job_carries_are_text(place: Place) -> None:
    name = HOSTILE[:80].replace("\u202e", "").replace("\u2066", "")
    more: dict[str, Any] = {
        "tenant": name,
        "tags": (name,),
        "correlation_id": name,
        "args": json.dumps({HOSTILE: HOSTILE}).encode(),
    }
    (dead,) = kill(place, message=HOSTILE, error=HOSTILE[:60], traceback=HOSTILE * 20, **more)
    done = complete(place, result=json.dumps([HOSTILE]).encode(), **more)
    (waiting,) = put(place, trigger=f"by {HOSTILE}"[:150], **more)
    (cancelled,) = put(place, ordering_key=name, **more)
    place.app.operate.cancel(cancelled, reason=HOSTILE)
    place.app.operate.pause("mail", reason=HOSTILE)
    admin = browser_of(place, "admin")

    for path in ("", "/jobs", "/queues/mail", *(f"/jobs/{id}" for id in (dead, done, waiting, cancelled))):
        shown = check(admin, path)
        if path.startswith("/jobs"):
            assert "&lt;script&gt;" in shown or path == "/jobs", path
    assert "\\u202e" in html.unescape(check(admin, f"/jobs/{dead}"))
    for verb in ("redrive", "cancel", "purge"):
        check(admin, f"/jobs/all/{verb}")


def test_a_filter_is_shown_as_it_was_typed_and_no_more(place: Place) -> None:
    admin = browser_of(place, "admin")

    for q in (
        HOSTILE,
        f'tag="{SCRIPT[:40]}"',
        '"><script>alert(1)</script>',
        "\x00",
        "x" * 5_000,
        "args.a = \ufffd",
    ):
        check(admin, "/jobs", q=q)
        check(admin, "/jobs/all/cancel", q=q)
        answer = admin.client.get("/ui/complete", params={"q": q})
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "application/json"
    for path in (f"/queues/{SCRIPT[:29]}", "/queues/%00", "/queues/%E2%80%AE", "/jobs/all/%3Cscript%3E"):
        check(admin, path)
    check(admin, "/login", code=HOSTILE, next=HOSTILE)


def test_long_strings_are_cut(place: Place) -> None:
    long = "ж" * 200_000
    id = complete(place, result=json.dumps(long).encode(), args=json.dumps({"text": long}).encode())
    (dead,) = kill(place, message=long, traceback=long)
    admin = browser_of(place, "admin")

    for path in ("/jobs", f"/jobs/{id}", f"/jobs/{dead}", "/queues/mail"):
        assert len(check(admin, path)) < 120_000, path


@pytest.mark.parametrize("depth", [60, 900, 30_000])
def test_deep_json_breaks_no_page(place: Place, depth: int) -> None:
    deep = b'{"a": ' + b"[" * depth + b"]" * depth + b"}"
    id = complete(place, result=deep, args=deep)
    admin = browser_of(place, "admin")

    for path in (f"/jobs/{id}", f"/jobs/{id}/args", f"/jobs/{id}/result", "/jobs"):
        check(admin, path)
    assert check(admin, "/jobs", q="args.a[0] = 1")


def test_what_is_no_json_is_said_and_not_shown(place: Place) -> None:
    for data in (b"\xff\xfe\x00", b"<script>alert(1)</script>", b"NaN"):
        try:
            (id,) = put(place, args=data)
        except DataFault:
            continue  # a store may refuse what is none
        admin = browser_of(place, "admin")
        assert "no JSON that can be shown" in check(admin, f"/jobs/{id}")


def test_a_word_of_an_act_is_shown_as_text(small: Place) -> None:
    admin = browser_of(small, "admin")
    (id,) = put(small)

    answer = admin.post("/queues/mail/act/pause", page="/queues/mail", lasting=SCRIPT[:20], reason="x")
    told = admin.post(
        f"/jobs/{id}/act/reprioritise",
        page=f"/jobs/{id}",
        state="ready",
        run="0",
        reason=HOSTILE,
        priority="5",
    )

    assert answer.status_code == 422
    assert look(answer.text).faults == []
    assert look(admin.followed(told)).faults == []


def test_no_template_takes_escaping_back() -> None:
    for path in TEMPLATES.rglob("*.html"):
        source = path.read_text()
        assert not re.search(r"\|\s*safe\b|autoescape|Markup", source), path
        assert not re.search(r"<script(?![^>]*\bsrc=)|\sstyle=|\son[a-z]+=", source), path


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("a\nb", "<bdi>a⏎b</bdi>"),
        ("<b>", "<bdi>&lt;b&gt;</bdi>"),
        ("x\u202ey", '<bdi>x<span class="control">\\u202e</span>y</bdi>'),
        ("\x00", '<bdi><span class="control">\\u0000</span></bdi>'),
        ("\ud800", '<bdi><span class="control">\\ud800</span></bdi>'),
        ("👩\u200d👧", "<bdi>👩\u200d👧</bdi>"),
    ],
)
def test_text_of_others_is_isolated_and_shows_what_hides(given: str, shown: str) -> None:
    assert text.shown(given) == shown


def test_text_is_cut_where_it_gets_long() -> None:
    assert text.shown("x" * 20, 5) == '<bdi>xxxxx<span class="cut" title="cut here">…</span></bdi>'
    assert text.shown("x" * 5, 5) == "<bdi>xxxxx</bdi>"
    assert text.plain("a\u202e" + "b" * 300, 10) == "a\\u202ebbbbbbbb…"
    assert (
        text.prose("start `duly <x>`") == "<bdi><bdi>start </bdi><code><bdi>duly &lt;x&gt;</bdi></code></bdi>"
    )
    assert "<code>" not in text.prose("a ` b")
