"""What an App says about alerts: read from people's words, merged queue over App over defaults, and what is missing."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from duly import App
from duly.alerts import Alert, Notification
from duly.alerts.watch import sinks_of
from duly.core.alerting import Thresholds
from duly.core.errors import UsageError

MINUTE = timedelta(minutes=1)


def test_a_queue_goes_before_the_app_and_the_app_before_the_defaults(jobs: App) -> None:
    jobs.alert(Alert("oncall", late_for="2m", off="hot-key"))
    jobs.queue("mail", alert=Alert(late_for="5m", off=["late"]))
    jobs.queue("news", alert="desk")
    jobs.queue("rest")
    registry = jobs.client.registry

    mail, news, rest = (registry.thresholds(name) for name in ("mail", "news", "rest"))

    assert (mail.late_for, mail.sinks, mail.off) == (
        5 * MINUTE,
        ("oncall",),
        frozenset({"hot-key", "late"}),
    )
    assert (news.late_for, news.sinks, news.off) == (2 * MINUTE, ("desk",), frozenset({"hot-key"}))
    assert rest == registry.thresholds(None)
    assert rest.rising_for == Thresholds().rising_for


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ({"late_for": 30}, "write '30s'"),
        ({"off": "tardy"}, "off='tardy' is no rule; they are dead-letter"),
        ({"hot_share": "20"}, "is no share"),
        ({"hot_jobs": 0}, "hot_jobs=0 must be a whole number from 1"),
        ({"lost": True}, "lost=True must be"),
        ({"to": []}, "names nothing"),
    ],
)
def test_what_is_no_threshold_says_what_to_write(said: dict[str, Any], error: str) -> None:
    with pytest.raises(UsageError, match=error):
        Alert(**said)


@pytest.mark.parametrize("said", [3, False, {"late": "5m"}, [3]])
def test_alert_takes_names_or_an_alert(jobs: App, said: Any) -> None:
    with pytest.raises(UsageError, match="write the name of a sink"):
        jobs.queue("mail", alert=said)


def test_sinks_are_those_of_code_and_settings_else_the_log(
    jobs: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = list(sinks_of(jobs.client))
    monkeypatch.setenv("DULY_ALERTS", "page=command:/bin/true,log:")
    both = App("sqlite:///never-opened.db")

    class Own:
        def send(self, note: Notification) -> None: ...

    both.sink("own", Own())
    both.sink("chat", "slack+https://hooks.slack.com/services/x")

    assert alone == ["log"]
    assert list(sinks_of(both.client)) == ["own", "chat", "page", "log"]


def test_two_sinks_of_one_name_are_refused(jobs: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DULY_ALERTS", "slack+https://x.example/a,slack+https://x.example/b")

    with pytest.raises(UsageError, match="two sinks for alerts are named 'slack'"):
        sinks_of(jobs.client)
    with pytest.raises(UsageError, match="up to 40 letters"):
        jobs.sink("a b", "log:")


def test_queues_without_owner_and_alert_are_named_where_there_are_several(jobs: App) -> None:
    jobs.queue("mail", owner="growth@shop")
    alone = jobs.client.registry.unwatched(watched=False)
    jobs.queue("news")
    jobs.queue("reports", alert="desk")

    findings = [finding.text for finding in jobs.check().findings if finding.level == "warning"]

    assert alone == ()
    assert jobs.client.registry.unwatched(watched=True) == ()
    assert [text for text in findings if "no alert goes anywhere" in text] == [
        (
            "nobody owns news, and no alert goes anywhere but into a worker's log; "
            "jobs.queue(…, owner='…', alert='…'), or DULY_ALERTS for all"
        )
    ]
