"""Notifications as signed Standard Webhooks."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import msgspec

from duly.alerts.sinks import http
from duly.core.errors import UsageError
from duly.core.notification import Notification
from duly.core.webhook_signing import ID, read_secret, signed_headers


@dataclass(frozen=True, slots=True)
class Webhook:
    """POST a JSON document, signed so that the receiver can tell whose it is.

    Args:
        url: where to, http or https.
        secret: "whsec_…" in base64, as Standard Webhooks has it, or "env:NAME"; None: not signed.
        timeout: for the whole of one try.

    """

    url: str = field(repr=False)
    secret: str | None = field(default=None, repr=False)
    timeout: timedelta = http.TIMEOUT

    def __post_init__(self) -> None:
        http.checked_url(self.url, "a webhook")
        if self.secret is not None:
            _key(self.secret)

    @classmethod
    def from_url(cls, url: str) -> Webhook:
        """`https://host/path?secret=whsec_…`; the secret is not sent."""
        parts = urlsplit(url)
        query = parse_qsl(parts.query, keep_blank_values=True)
        secret = next((value for name, value in query if name == "secret"), None)
        rest = urlencode([(name, value) for name, value in query if name != "secret"])
        return cls(urlunsplit(parts._replace(query=rest)), secret)

    def send(self, note: Notification) -> None:
        """SinkFailed unless the receiver answers with 2xx. The header webhook-id is the notification's id."""
        body = msgspec.json.encode({"type": f"alert.{note.state}", "timestamp": note.at, "data": note})
        headers = {"Content-Type": "application/json", ID: note.id}
        if self.secret is not None:
            headers |= signed_headers([_key(self.secret)], note.id, datetime.now(UTC), body)
        http.send(self.url, body, headers, self.timeout)


def _key(secret: str) -> bytes:
    if secret.startswith("env:"):
        name = secret.removeprefix("env:")
        secret = os.environ.get(name, "")
        if not secret:
            raise UsageError(f"the secret of a webhook is in the variable {name}, which is not set")
    return read_secret(secret, "secret=")
