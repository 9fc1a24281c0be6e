"""One `duly serve` on a store, and one client with a token and a session, who asks it again and again over HTTP."""

import http.client
import os
import re
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

from bench.dashboard.questions import Question

ASKED = 100
LONGEST = 10.0
"""Seconds after which a question has been asked often enough, if it was asked LEAST times."""
LEAST = 10


@dataclass(frozen=True, slots=True)
class Timing:
    """Milliseconds until the last byte of the answer."""

    question: Question
    first: float
    """When it was asked for the first time."""
    times: tuple[float, ...]
    size: int
    """Bytes of the answer."""

    @property
    def p50(self) -> float:
        return statistics.median(self.times)

    @property
    def p99(self) -> float:
        ordered = sorted(self.times)
        return ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)]


@contextmanager
def serving(url: str, folder: Path) -> Iterator[int]:
    """The port of a server of its own process, without an App."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    with (folder / "server.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "duly.cli.main", "serve", "--port", str(port), "--rate", "none"],
            env={**os.environ, "DULY_URL": url, "DULY_LOG_LEVEL": "error"},
            stdout=log,
            stderr=log,
        )
    try:
        _until_ready(process, port, folder / "server.log")
        yield port
    finally:
        process.terminate()
        process.wait(60)


def _until_ready(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    ends = time.monotonic() + 120
    while time.monotonic() < ends:
        if process.poll() is not None:
            break
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=60):
                return
        except OSError:
            time.sleep(0.02)
    raise SystemExit(f"the server did not start:\n{log.read_text()[-2000:]}")


class Client:
    """One connection that is kept."""

    def __init__(self, port: int, token: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
        self._origin = f"http://127.0.0.1:{port}"
        self._headers = {
            "json": {"Authorization": f"Bearer {token}"},
            "text": {"Authorization": f"Bearer {token}"},
            "page": {"Cookie": self._signed_in(token), "Accept": "text/html"},
        }

    def get(self, question: Question) -> bytes:
        self._connection.request("GET", question.path, headers=self._headers[question.answer])
        answer = self._connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise SystemExit(f"{question.path} was answered with {answer.status}: {body[:500]!r}")
        return body

    def close(self) -> None:
        self._connection.close()

    def _signed_in(self, token: str) -> str:
        """As a browser does with the form."""
        self._connection.request(
            "POST",
            "/ui/login",
            urlencode({"token": token}),
            {"Content-Type": "application/x-www-form-urlencoded", "Origin": self._origin},
        )
        answer = self._connection.getresponse()
        answer.read()
        cookie = re.match(r"[^;]+", answer.headers.get("Set-Cookie", ""))
        if cookie is None:
            raise SystemExit(f"the sign-in was answered with {answer.status}")
        return cookie[0]


def ask(client: Client, question: Question, times: int = ASKED) -> Timing:
    """Ask it `times` times, or for as long as LONGEST."""
    first, size = _asked(client, question)
    taken: list[float] = []
    ends = time.monotonic() + LONGEST
    while len(taken) < times and (len(taken) < min(LEAST, times) or time.monotonic() < ends):
        taken.append(_asked(client, question)[0])
    return Timing(question, first, tuple(taken), size)


def _asked(client: Client, question: Question) -> tuple[float, int]:
    began = time.perf_counter()
    body = client.get(question)
    return (time.perf_counter() - began) * 1_000, len(body)
