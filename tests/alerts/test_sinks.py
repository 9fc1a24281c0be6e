"""Each sink against a real server or program: what arrives, what a refusal says, and that no secret is shown."""

from __future__ import annotations

import base64
import hashlib
import hmac
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from duly.alerts import Command, LogLine, Notification, Sentry, SinkFailed, Slack, Smtp, Webhook, read_sink
from duly.alerts.sinks import named
from duly.core.errors import UsageError
from duly.telemetry.events import AlertChanged, Happening
from tests.alerts.servers import Receiver, post_office, receiver

SECRET = base64.b64encode(b"a" * 32).decode()
NOTE = Notification(
    "alert-17-4c1f",
    "late",
    "queue:mail",
    "firing",
    datetime(2030, 5, 1, 9, tzinfo=UTC),
    "its oldest ready job has waited 41m <!channel>",
    "growth@shop",
    "postgresql://db/shop",
)


@pytest.fixture
def hook() -> Iterator[Receiver]:
    with receiver() as kept:
        yield kept


def test_a_webhook_is_signed_so_that_anybody_with_the_secret_can_tell(hook: Receiver) -> None:
    sink = read_sink(f"webhook+{hook.url}/in?team=a&secret=whsec_{SECRET}")

    sink.send(NOTE)

    (request,) = hook.requests
    assert request.path == "/in?team=a"
    assert request.headers["webhook-id"] == "alert-17-4c1f"
    signed = f"alert-17-4c1f.{request.headers['webhook-timestamp']}.".encode() + request.body
    mac = base64.b64encode(hmac.new(b"a" * 32, signed, hashlib.sha256).digest()).decode()
    assert request.headers["webhook-signature"] == f"v1,{mac}"
    assert request.json["type"] == "alert.firing"
    assert request.json["data"]["target"] == "queue:mail"
    assert SECRET not in repr(sink)


def test_a_webhook_may_keep_its_secret_in_the_environment(
    hook: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOK_SECRET", f"whsec_{SECRET}")

    Webhook(hook.url, "env:HOOK_SECRET").send(NOTE)

    assert hook.requests[0].headers["webhook-signature"].startswith("v1,")


@pytest.mark.parametrize("status", [302, 401, 500])
def test_what_is_no_success_is_a_failure_and_redirects_are_not_followed(hook: Receiver, status: int) -> None:
    hook.answers, hook.location = [status], f"{hook.url}/elsewhere"

    with pytest.raises(SinkFailed, match=f"127.0.0.1 answers {status}"):
        Webhook(f"{hook.url}/in").send(NOTE)
    assert [request.path for request in hook.requests] == ["/in"]


def test_a_server_that_is_not_there_is_a_failure_without_the_path() -> None:
    with pytest.raises(SinkFailed, match=r"127\.0\.0\.1 cannot be reached") as caught:
        Slack("http://127.0.0.1:9/services/T0/B0/hidden").send(NOTE)

    assert "hidden" not in str(caught.value)


def test_slack_gets_text_in_which_a_jobs_words_call_nobody(hook: Receiver) -> None:
    read_sink(f"slack+{hook.url}/services/x").send(NOTE)

    text = hook.requests[0].json["text"]
    assert text.startswith(":rotating_light: *FIRING late queue:mail*\n")
    assert "&lt;!channel&gt;" in text
    assert "<!" not in text


def test_sentry_gets_an_event_whose_id_is_the_same_when_it_is_sent_again(hook: Receiver) -> None:
    sink = Sentry(f"{hook.url.replace('http://', 'http://key@')}/7")

    sink.send(NOTE)
    sink.send(NOTE)

    first, second = hook.requests
    assert first.path == "/api/7/envelope/"
    assert "sentry_key=key" in first.headers["x-sentry-auth"]
    head, kind, event = (msgspec.json.decode(line) for line in first.body.split(b"\n"))
    assert kind == {"type": "event"}
    assert (
        head["event_id"] == event["event_id"] == msgspec.json.decode(second.body.split(b"\n")[0])["event_id"]
    )
    assert (event["level"], event["tags"]["rule"]) == ("error", "late")


def test_a_command_gets_the_notification_without_a_shell(tmp_path: Path) -> None:
    out = tmp_path / "out"
    script = "import os, sys; open(sys.argv[1], 'w').write(sys.stdin.read() + os.environ['ALERT_RULE'] + sys.argv[2])"

    Command((sys.executable, "-c", script, str(out), "; touch /tmp/x")).send(NOTE)

    text = out.read_text()
    assert text.endswith("}late; touch /tmp/x")
    assert '"target":"queue:mail"' in text


def test_a_command_that_fails_or_hangs_is_a_failure() -> None:
    failing = Command((sys.executable, "-c", "import sys; sys.exit('no pager')"))
    hanging = Command(
        (sys.executable, "-c", "import sys; sys.stdin.read(); import threading; threading.Event().wait()"),
        timedelta(seconds=0.3),
    )

    with pytest.raises(SinkFailed, match="ended with 1: no pager"):
        failing.send(NOTE)
    with pytest.raises(SinkFailed, match=r"did not end within 0\.3 s"):
        hanging.send(NOTE)
    with pytest.raises(SinkFailed, match="cannot be run"):
        read_sink("command:/no/such/program?arg=a").send(NOTE)


def test_mail_goes_to_everybody_with_a_subject_of_one_line() -> None:
    note = msgspec.structs.replace(NOTE, target="queue:a\nBcc: all@shop")
    with post_office() as office:
        url = f"smtp://127.0.0.1:{office.port}?from=duly@shop&to=a@shop&to=b@shop&tls=off"

        read_sink(url).send(note)

    assert office.receivers == ["rcpt TO:<a@shop>", "rcpt TO:<b@shop>"]
    head, _, body = office.mails[0].partition("\n\n")
    assert "Subject: [duly] FIRING late queue:a Bcc: all@shop" in head
    assert "Message-ID: <alert-17-4c1f@duly>" in head
    assert "\nBcc" not in head
    assert "owner: growth@shop" in body


def test_a_mail_server_that_refuses_or_cannot_encrypt_is_a_failure() -> None:
    with post_office() as office:
        office.refuses = True
        with pytest.raises(SinkFailed, match="SMTPRecipientsRefused"):
            Smtp("127.0.0.1", "duly@shop", ("a@shop",), "off", office.port).send(NOTE)
        office.refuses = False
        with pytest.raises(SinkFailed, match="STARTTLS"):
            Smtp("127.0.0.1", "duly@shop", ("a@shop",), "start", office.port).send(NOTE)

    assert office.mails == []


def test_a_line_of_the_log_names_title_text_and_owner() -> None:
    told: list[Happening] = []

    LogLine(told.append).send(NOTE)

    assert isinstance(told[0], AlertChanged)
    assert told[0].sentence() == (
        "alert FIRING late queue:mail: its oldest ready job has waited 41m <!channel> (owner: growth@shop)"
    )


@pytest.mark.parametrize(
    ("url", "error"),
    [
        ("oncall", "a sink is a URL"),
        ("gopher://x", "no sink is made of 'gopher'"),
        ("slack+https:", "needs the address of a server"),
        ("webhook+https://x/?secret=c2hvcnQ=", "is no secret of webhooks"),
        ("webhook+https://x/?secret=env:NOT_SET_HERE", "NOT_SET_HERE, which is not set"),
        ("sentry+https://host/7", "needs its DSN"),
        ("smtp://host?from=a@shop", "needs a server, a sender and receivers"),
        ("smtp://host:x?from=a@shop&to=b@shop", "no number"),
        ("smtp://host?from=a@shop&to=b@shop&tls=maybe", "write start, always or off"),
        ("command:", "needs a program"),
    ],
)
def test_what_is_no_sink_says_what_to_write(url: str, error: str) -> None:
    with pytest.raises(UsageError, match=error):
        read_sink(url)


def test_a_sink_without_a_name_is_named_by_its_kind() -> None:
    assert named("oncall=slack+https://x/y?a=b") == ("oncall", "slack+https://x/y?a=b")
    assert named("slack+https://x/y?a=b") == ("slack", "slack+https://x/y?a=b")
    assert named("log:") == ("log", "log:")
