"""`duly why`: one line for each reason, for people and for programs."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from duly.core.lifecycle import Event
from duly.testing.conformance.bench import Bench
from tests.cli.conftest import Terminal, run

CODE = """
from duly import App

jobs = App("{url}")

@jobs.task
def ok(n: int = 0) -> None: ...

@ok.guard
def wanted(n: int) -> str | None:
    return "nobody wants it"
"""


def test_each_reason_is_a_line_with_what_changes_it(bench: Bench, duly: Terminal) -> None:
    id = bench.put()
    duly("pause", "default", "--reason", "INC-311")

    answer = duly("why", str(id))

    assert answer.lines == [
        f"job {id} (ok in default) is ready",
        "  - the queue default is paused by ada@ops until it is resumed (INC-311)  -> duly resume default",
        "  - no worker serves the queue default  -> duly worker --queues default",
    ]
    assert duly("why", str(id), "-q").lines[2] == "  - no worker serves the queue default"


def test_programs_get_each_reason_as_an_object(bench: Bench, duly: Terminal) -> None:
    id = bench.put()

    whole = duly("why", str(id), "-o", "json").json
    lines = duly("why", str(id), "-o", "ndjson").lines

    reason = {
        "kind": "no worker",
        "text": "no worker serves the queue default",
        "change": "duly worker --queues default",
        "at": None,
    }
    assert whole == {"about": f"job {id}", "text": f"job {id} (ok in default) is ready", "reasons": [reason]}
    assert [msgspec.json.decode(line) for line in lines] == [reason]


def test_a_queue_a_tenant_and_nothing_at_all(bench: Bench, duly: Terminal) -> None:
    bench.put()

    assert duly("why", "default").lines[-1].startswith("  - no worker serves it: 1 job waits")
    assert duly("why", "tenant:acme").code == 0
    assert duly("why", "4711").code == 3
    assert duly("why", "nowhere").code == 3
    assert duly("why", "lock:x").code == 2


def test_guards_are_asked_with_the_app(
    bench: Bench, duly: Terminal, sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shop_of_guards.py").write_text(CODE.format(url=sqlite_url), encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    id = bench.put(args=b'{"n":1}')

    asked = run("why", str(id), "-a", "shop_of_guards")

    assert asked.lines[-1] == "  - guard wanted would stop it: nobody wants it"
    assert "guard" not in duly("why", str(id)).out


def test_a_stuck_key_is_told_of_its_queue_and_in_status(bench: Bench, duly: Terminal) -> None:
    worker = bench.worker()
    head, _ = bench.put_many(2, ordering_key="k")
    bench.work(worker, Event.bury)
    bench.claim(worker)

    text = f"key k of default is stuck: 1 job waits behind job {head}, which is dead. duly dead redrive {head}, or on "
    assert text in duly("why", "default").out
    assert f"Ordering {text}" in duly("status").out
    assert "stuck" not in duly("status", "-q").out
