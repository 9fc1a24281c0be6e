"""Notifications as mail."""

from __future__ import annotations

import smtplib
import ssl
from dataclasses import dataclass, field
from datetime import timedelta
from email.message import EmailMessage
from email.utils import format_datetime
from typing import Final, Literal
from urllib.parse import parse_qsl, unquote, urlsplit

from duly.core.errors import UsageError
from duly.core.notification import Notification, SinkFailed

Tls = Literal["start", "always", "off"]
_TIMEOUT: Final = timedelta(seconds=10)
_PORTS: Final = {"start": 587, "always": 465, "off": 25}


@dataclass(frozen=True, slots=True)
class Smtp:
    """Mail through a server.

    Args:
        host: the server.
        sender: the address in From.
        to: whom; the owner of a queue is not added by itself.
        tls: "start" upgrades the connection and refuses a server that cannot; "always" begins with it; "off" sends
            in the clear, for a server on this machine.
        port: 587, 465 or 25 by `tls` unless given.
        user: for the server, with the password.
        password: never shown.
        timeout: for each step.

    """

    host: str
    sender: str
    to: tuple[str, ...]
    tls: Tls = "start"
    port: int | None = None
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    timeout: timedelta = _TIMEOUT

    def __post_init__(self) -> None:
        if not self.host or not self.sender or not self.to:
            raise UsageError("mail needs a server, a sender and receivers: smtp://HOST?from=…&to=…")
        if self.tls not in _PORTS:
            raise UsageError(f"tls={self.tls!r:.20}: write start, always or off")
        if any(character in address for address in (self.sender, *self.to) for character in "\r\n"):
            raise UsageError("an address of a mail has a line break; remove it")

    @classmethod
    def from_url(cls, url: str) -> Smtp:
        """`smtp://user:password@host:587?from=duly@shop&to=a@shop&to=b@shop`; smtps is TLS from the start."""
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            raise UsageError("the port of a mail server is no number; write smtp://HOST:587?…") from None
        query = parse_qsl(parts.query)
        said = dict(query)
        tls = "always" if parts.scheme == "smtps" else said.get("tls", "start")
        if tls not in ("start", "always", "off"):
            raise UsageError(f"tls={tls!r:.20}: write start, always or off")
        return cls(
            parts.hostname or "",
            said.get("from", ""),
            tuple(value for name, value in query if name == "to"),
            "start" if tls == "start" else "always" if tls == "always" else "off",
            port,
            None if parts.username is None else unquote(parts.username),
            None if parts.password is None else unquote(parts.password),
        )

    def send(self, note: Notification) -> None:
        """SinkFailed when the server does not take it for every receiver."""
        try:
            with self._connected() as server:
                if self.user is not None:
                    server.login(self.user, self.password or "")
                refused = server.send_message(self._mail(note))
        except (OSError, smtplib.SMTPException, ssl.SSLError) as error:
            raise SinkFailed(f"{self.host}: {type(error).__name__}: {_shown(error)}") from None
        if refused:
            raise SinkFailed(f"{self.host} refuses {', '.join(refused)}")

    def _connected(self) -> smtplib.SMTP:
        port, seconds = self.port or _PORTS[self.tls], self.timeout.total_seconds()
        if self.tls == "always":
            return smtplib.SMTP_SSL(self.host, port, timeout=seconds, context=ssl.create_default_context())
        server = smtplib.SMTP(self.host, port, timeout=seconds)
        if self.tls == "start":
            try:
                server.starttls(context=ssl.create_default_context())
            except BaseException:
                server.close()
                raise
        return server

    def _mail(self, note: Notification) -> EmailMessage:
        mail = EmailMessage()
        # A queue's or a key's name may hold what no header may.
        mail["Subject"] = " ".join(f"[duly] {note.title()}".split())[:200]
        mail["From"] = self.sender
        mail["To"] = ", ".join(self.to)
        mail["Date"] = format_datetime(note.at)
        mail["Message-ID"] = f"<{note.id}@duly>"
        mail["Auto-Submitted"] = "auto-generated"
        mail.set_content("\n".join(note.lines()) + "\n")
        return mail


def _shown(error: Exception) -> str:
    """What the server said, without what we said."""
    if isinstance(error, smtplib.SMTPResponseException):
        said = error.smtp_error
        return f"{error.smtp_code} {said.decode(errors='replace') if isinstance(said, bytes) else said}"[:300]
    return str(error)[:300]
