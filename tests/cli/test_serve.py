"""`duly serve`: it refuses to listen where nobody, or everybody, could ask, and ends in order."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from duly import App
from duly.cli.serve import is_loopback
from duly.core.bearer import digest_of, make_text
from tests.cli.conftest import run
from tests.waiting import wait_until

pytestmark = pytest.mark.process

DULY = [sys.executable, "-m", "duly.cli.main"]


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    where = f"sqlite:///{tmp_path}/duly.db"
    app = App(where)
    app.store.schema.migrate()
    yield where
    app.close()


def token(url: str, *scopes: str) -> str:
    text = make_text(os.urandom(32))
    app = App(url)
    app.store.tokens.put("shop", digest_of(text), scopes, None, "tester", "a test")
    app.close()
    return text


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_it_does_not_listen_where_nobody_could_ask(url: str) -> None:
    here = run("serve", "--url", url)
    elsewhere = run("serve", "--url", url, "--host", "0.0.0.0")

    assert (here.code, elsewhere.code) == (2, 2)
    assert "duly token create" in here.err
    assert "--open" in here.err
    assert "--open" not in elsewhere.err


def test_it_does_not_listen_where_everybody_could_do_everything(url: str) -> None:
    token(url, "read")

    answer = run("serve", "--url", url, "--host", "0.0.0.0", "--open")
    half = run("serve", "--url", url, "--tls-cert", __file__)

    assert (answer.code, half.code) == (2, 2)
    assert "everybody" in answer.err
    assert "--tls-key" in half.err


@pytest.mark.parametrize(
    ("host", "known"),
    [
        ("127.0.0.1", True),
        ("127.8.9.1", True),
        ("::1", True),
        ("[::1]", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.1", False),
        ("shop.example", False),
    ],
)
def test_loopback_is_what_only_this_machine_reaches(host: str, known: bool) -> None:
    assert is_loopback(host) is known


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_answers_with_a_token_until_it_is_told_to_stop(url: str, tmp_path: Path, number: int) -> None:
    bearer, port = {"Authorization": f"Bearer {token(url, 'read')}"}, free_port()
    log = tmp_path / "serve.log"
    with log.open("w") as errors:
        server = subprocess.Popen([*DULY, "serve", "--url", url, "--port", str(port)], stderr=errors)

        def answered() -> httpx2.Response | None:
            try:
                return httpx2.get(f"http://127.0.0.1:{port}/v1/queues", headers=bearer)
            except httpx2.TransportError:
                return None

        try:
            seen = wait_until(answered, timeout=60)
            server.send_signal(number)
            code = server.wait(60)
        finally:
            server.kill()
            server.wait()

    assert seen is not None
    assert seen.status_code == 200
    assert code == 0, log.read_text()
    assert f"http://127.0.0.1:{port}/" in log.read_text()


def test_a_page_that_listens_does_not_hold_up_the_end(url: str, tmp_path: Path) -> None:
    app = App(url)

    @app.task
    def send() -> None: ...

    token(url, "read")
    ticket, port = send.using(delay="1h").enqueue().ticket(), free_port()
    app.close()
    log = tmp_path / "serve.log"
    with log.open("w") as errors:
        server = subprocess.Popen([*DULY, "serve", "--url", url, "--port", str(port)], stderr=errors)
        try:
            wait_until(lambda: log.read_text().count("Uvicorn running"), timeout=60)
            with httpx2.stream("GET", f"http://127.0.0.1:{port}/t/{ticket}/events", timeout=60) as events:
                lines = events.iter_lines()
                first = next(lines)
                server.send_signal(signal.SIGTERM)
                rest = list(lines)
            code = server.wait(60)
        finally:
            server.kill()
            server.wait()

    assert first == "event: status"
    assert '"ended":true' not in "".join(rest)
    assert code == 0
    # What uvicorn says when it waits in vain, ten seconds long.
    assert "timeout graceful shutdown exceeded" not in log.read_text()
