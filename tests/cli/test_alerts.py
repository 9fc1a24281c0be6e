"""`duly alerts` and `duly check --alerts`: what a person reads at night, and what cron runs."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from duly.testing.conformance.bench import Bench
from tests.alerts.servers import Receiver, receiver
from tests.cli.conftest import Terminal


@pytest.fixture
def hook() -> Iterator[Receiver]:
    with receiver() as kept:
        yield kept


def test_check_looks_once_and_tells_the_sinks_of_the_settings(
    bench: Bench, duly: Terminal, hook: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DULY_ALERTS", f"page=webhook+{hook.url}")
    bench.put(queue="mail")

    first = duly("check", "--alerts")
    bench.clock.advance(timedelta(minutes=1))
    second = duly("check", "--alerts")
    third = duly("check", "--alerts")

    text = (
        "no-worker queue:mail: no worker serves it: 1 job waits, the oldest for {}; start one with "
        "`duly worker --queues mail`"
    )
    assert first.lines == [text.format("0s"), "0 notifications sent"]
    assert second.lines == [text.format("1m"), "1 notification sent"]
    assert third.lines == [text.format("1m"), "0 notifications sent"]
    assert [request.json["data"]["rule"] for request in hook.requests] == ["no-worker"]


def test_check_fails_where_a_sink_does_not_take_it(
    bench: Bench, duly: Terminal, hook: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DULY_ALERTS", f"page=webhook+{hook.url}")
    hook.answers = [500]
    bench.put(queue="mail")
    duly("check", "--alerts")
    bench.clock.advance(timedelta(minutes=1))

    answer = duly("check", "--alerts")

    assert answer.code == 1
    assert "not taken: page: 127.0.0.1 answers 500" in answer.err


def test_list_shows_what_fires_and_what_is_about_to(bench: Bench, duly: Terminal) -> None:
    empty = duly("alerts", "list")
    bench.put(queue="mail")
    duly("check", "--alerts")
    pending = duly("alerts", "list")
    bench.clock.advance(timedelta(minutes=1))
    duly("check", "--alerts")
    firing = duly("alerts", "list", "-q")

    assert empty.lines == ["nothing fires"]
    assert pending.lines[1].startswith("pending  no-worker  queue:mail  now")
    assert firing.lines[0].startswith("firing  no-worker  queue:mail  now")
    assert [line.split()[:3] for line in duly("alerts", "history", "-q").lines] == [
        ["firing", "no-worker", "queue:mail"]
    ]


def test_status_names_what_fires(bench: Bench, duly: Terminal) -> None:
    bench.put(queue="mail")
    before = duly("status").lines
    duly("check", "--alerts")
    bench.clock.advance(timedelta(minutes=1))
    duly("check", "--alerts")

    assert not [line for line in before if "alert fires" in line]
    assert duly("status").lines[-1] == "1 alert fires: no-worker queue:mail; see duly alerts list"


def test_check_finds_a_sink_that_cannot_be_read(duly: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DULY_ALERTS", "page=gopher://hole")

    answer = duly("check")

    assert answer.code == 1
    assert "error: alerts: no sink is made of 'gopher'" in answer.out


def test_silences_are_made_shown_and_ended(bench: Bench, duly: Terminal) -> None:
    made = duly("alerts", "silence", "queue:mail", "--for", "1h", "--rule", "late", "--reason", "INC-311")
    shown = duly("alerts", "list")
    ended = duly("alerts", "unsilence", "1")

    assert made.lines == [
        "silence 1: late for queue:mail, over in 60m, by ada@ops (INC-311). Undo: duly alerts unsilence 1"
    ]
    assert shown.lines == ["nothing fires", made.lines[0].partition(". Undo")[0]]
    assert ended.lines == ["silence 1 is over"]
    assert duly("alerts", "unsilence", "1").code == 3
    assert duly("alerts", "silence", "mail", "--for", "1h").code == 2


def test_a_test_notification_says_whether_it_arrives(
    duly: Terminal, hook: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DULY_ALERTS", f"page=webhook+{hook.url}/a,chat=slack+{hook.url}/b")
    hook.answers = [200, 404]

    answer = duly("alerts", "test")
    one = duly("alerts", "test", "chat")

    assert answer.lines == ["page: taken", "chat: 127.0.0.1 answers 404 Not Found"]
    assert answer.code == 1
    assert (one.lines, one.code) == (["chat: taken"], 0)
    assert hook.requests[0].json["data"]["test"] is True
    assert duly("alerts", "test", "mail").code == 3


def test_settings_show_no_address_of_a_sink(duly: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DULY_ALERTS", "slack+https://hooks.slack.com/services/T0/B0/hidden")

    answer = duly("check", "-o", "json")

    assert "hidden" not in answer.out
    assert '"alerts"' in answer.out
