"""Notifications as events of Sentry, and of what takes the same (GlitchTip)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import timedelta
from urllib.parse import urlsplit

import msgspec

from duly.alerts.sinks import http
from duly.core.errors import UsageError
from duly.core.notification import Notification


@dataclass(frozen=True, slots=True)
class Sentry:
    """An event in a project, grouped by rule and target; a repeated delivery has the same event id.

    Args:
        dsn: as Sentry gives it, https://KEY@HOST/PROJECT.
        timeout: for the whole of one try.

    """

    dsn: str = field(repr=False)
    timeout: timedelta = http.TIMEOUT

    def __post_init__(self) -> None:
        parts = urlsplit(http.checked_url(self.dsn, "Sentry"))
        if not parts.username or not parts.path.strip("/"):
            raise UsageError("Sentry needs its DSN, as https://KEY@HOST/PROJECT")

    def send(self, note: Notification) -> None:
        """SinkFailed unless the answer is 2xx."""
        parts = urlsplit(self.dsn)
        before, _, project = parts.path.rstrip("/").rpartition("/")
        host = parts.netloc.rpartition("@")[2]
        event_id = hashlib.sha256(note.id.encode()).hexdigest()[:32]
        event = {
            "event_id": event_id,
            "timestamp": note.at,
            "platform": "python",
            "logger": "duly.alerts",
            "level": "error" if note.state == "firing" and not note.test else "info",
            "message": {"formatted": "\n".join(note.lines()[:2])},
            "fingerprint": ["duly", note.rule, note.target],
            "tags": {"rule": note.rule, "target": note.target[:200], "state": note.state},
            "extra": {"owner": note.owner, "store": note.store, "id": note.id},
        }
        body = b"\n".join(
            msgspec.json.encode(part) for part in ({"event_id": event_id}, {"type": "event"}, event)
        )
        http.send(
            f"{parts.scheme}://{host}{before}/api/{project}/envelope/",
            body,
            {
                "Content-Type": "application/x-sentry-envelope",
                "X-Sentry-Auth": f"Sentry sentry_version=7, sentry_client=duly/1, sentry_key={parts.username}",
            },
            self.timeout,
        )
