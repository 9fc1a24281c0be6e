"""Notifications for Slack, and for what takes the same: Mattermost, Rocket.Chat, Discord's /slack address."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

import msgspec

from duly.alerts.sinks import http
from duly.core.notification import Notification


@dataclass(frozen=True, slots=True)
class Slack:
    """An incoming webhook.

    Args:
        url: as Slack gives it, https://hooks.slack.com/services/…; whoever has it can post.
        timeout: for the whole of one try.

    """

    url: str = field(repr=False)
    timeout: timedelta = http.TIMEOUT

    def __post_init__(self) -> None:
        http.checked_url(self.url, "Slack")

    def send(self, note: Notification) -> None:
        """SinkFailed unless the answer is 2xx."""
        title, *rest = (_escaped(line) for line in note.lines())
        mark = ":white_check_mark:" if note.state == "clear" else ":rotating_light:"
        text = "\n".join([f"{mark} *{title}*", *rest])
        http.send(
            self.url, msgspec.json.encode({"text": text}), {"Content-Type": "application/json"}, self.timeout
        )


def _escaped(text: str) -> str:
    """A job's words make neither links nor mentions."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
