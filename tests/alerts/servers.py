"""Real servers on this machine that take notifications: one of HTTP, one of mail."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import msgspec


@dataclass
class Request:
    """One POST as it came."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.body)


@dataclass
class Receiver:
    """A server that keeps what it was sent, and answers as it is told to."""

    url: str
    requests: list[Request] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)
    """Statuses for the next requests; 200 when there are none left."""
    location: str = ""
    hold: threading.Event | None = None
    """Requests are not answered before it is set."""

    def ids(self) -> list[str]:
        return [request.headers.get("webhook-id", "") for request in self.requests]


@contextmanager
def receiver() -> Iterator[Receiver]:
    """An HTTP server on a free port."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            headers = {name.lower(): value for name, value in self.headers.items()}
            kept.requests.append(Request(self.path, headers, body))
            if kept.hold is not None:
                kept.hold.wait(60)
            self.send_response(kept.answers.pop(0) if kept.answers else 200)
            if kept.location:
                self.send_header("Location", kept.location)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    kept = Receiver(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield kept
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


@dataclass
class PostOffice:
    """A mail server that keeps what it was sent."""

    port: int
    mails: list[str] = field(default_factory=list)
    receivers: list[str] = field(default_factory=list)
    refuses: bool = False


@contextmanager
def post_office() -> Iterator[PostOffice]:
    """As much of SMTP as a client needs, on a free port."""

    class Handler(socketserver.StreamRequestHandler):
        def say(self, line: str) -> None:
            self.wfile.write(f"{line}\r\n".encode())

        def handle(self) -> None:
            self.say("220 here")
            while line := self.rfile.readline().decode().strip():
                verb = line.partition(" ")[0].upper()
                if verb == "RCPT" and kept.refuses:
                    self.say("550 no such user")
                elif verb == "DATA":
                    self.say("354 go on")
                    lines = []
                    while (text := self.rfile.readline().decode().rstrip("\r\n")) != ".":
                        lines.append(text)
                    kept.mails.append("\n".join(lines))
                    self.say("250 kept")
                elif verb == "QUIT":
                    self.say("221 bye")
                    return
                else:
                    if verb == "RCPT":
                        kept.receivers.append(line)
                    self.say("250 here" if verb in {"EHLO", "HELO", "MAIL", "RCPT", "RSET"} else "502 no")

    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
    kept = PostOffice(int(server.server_address[1]))
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield kept
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)
