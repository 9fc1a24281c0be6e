"""`duly dev`: worker, HTTP and dashboard for one's own machine, started again whenever the code changes.

Imports none of the user's code: a mistake in it ends a child, and this goes on to wait for the next change.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from duly.core.errors import UsageError
from duly.worker.signals import Signals

from .changes import Changes
from .loading import use_working_directory
from .options import common
from .session import session_of

_LOOK: Final = 0.25
_GRACE: Final = "3s"
_ENDS: Final = 15.0
"""Seconds for a child to end in order."""
_READY: Final = 60.0
_HOST: Final = "127.0.0.1"


@click.command()
@common
@click.argument("module", required=False, metavar="[APP]")
@click.option("--port", type=click.IntRange(1, 65535), default=8899, metavar="N", help="[8899]")
@click.option(
    "--watch",
    "folders",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    multiple=True,
    metavar="DIR",
    help="Restart when Python files below change; repeat for several. [the working directory]",
)
@click.option("--no-reload", is_flag=True, help="Do not look for changes.")
@click.pass_context
def dev(
    context: click.Context, module: str | None, port: int, folders: tuple[Path, ...], no_reload: bool
) -> None:
    """Run a worker and the dashboard for APP (MODULE[:NAME]) on this machine, and restart both when the code changes.

    It listens on 127.0.0.1 and asks nobody for a token there: for your own machine, never for a server. Ctrl-C ends
    it; running jobs have 3 s, and those that need longer are handed back and run again later, at no cost.

    \b
      duly dev shop.background
      duly dev shop.background:jobs --port 9000 --watch src --watch templates
    """
    session = session_of(context)
    reference = session.reference(module)
    use_working_directory()
    _refuse_taken(port)
    _refuse_missing()
    url = () if session.url is None else ("--url", session.url)
    watched = None if no_reload else Changes(folders or (Path.cwd(),))
    context.exit(Dev(reference, url, port, watched).run())


class Dev:
    """The two children, and what starts them again."""

    def __init__(self, reference: str, url: Sequence[str], port: int, watched: Changes | None) -> None:
        self._reference = reference
        self._url = url
        self._port = port
        self._watched = watched
        self._signals = Signals()
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._greeted = False
        self._environment = {
            "DULY_MIGRATE": "auto",
            **os.environ,
            "DULY_HOST": _HOST,
            "DULY_PORT": str(port),
            # The children's logs stand in one terminal with our own words.
            "DULY_LOG": os.environ.get("DULY_LOG", "text"),
        }

    def run(self) -> int:
        """Until Ctrl-C or SIGTERM; the exit code."""
        self._signals.install()
        try:
            self._start()
            greeter = threading.Thread(target=self._greet, name="duly-dev-greeter", daemon=True)
            greeter.start()
            while not self._signals.seen:
                self._signals.wait(_LOOK, [])
                self._look_at_children()
                self._look_at_files()
        finally:
            self._stop()
            self._signals.restore()
        _say("stopped")
        return 0

    def _start(self) -> None:
        self._children = {
            "worker": self._spawn("worker", self._reference, *self._url, "--grace", _GRACE),
            "server": self._spawn(
                "serve", self._reference, *self._url, "--open", "--host", _HOST, "--port", str(self._port)
            ),
        }

    def _spawn(self, *arguments: str) -> subprocess.Popen[bytes]:
        # A session of its own: Ctrl-C reaches this process alone, which then stops them in order.
        return subprocess.Popen(
            [sys.executable, "-m", "duly.demo.site.tied", str(os.getpid()), "0", *arguments],
            env=self._environment,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )

    def _look_at_children(self) -> None:
        for name, child in list(self._children.items()):
            code = child.poll()
            if code is None:
                continue
            del self._children[name]
            then = "the next change starts it again" if self._watched is not None else "start duly dev again"
            _say(f"the {name} ended with {code}; {then}")

    def _look_at_files(self) -> None:
        if self._watched is None:
            return
        changed = self._watched.look()
        if changed:
            more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
            _say(f"{_short(changed[0])}{more} changed: restarting")
            self._stop()
            if not self._signals.seen:
                self._start()

    def _stop(self) -> None:
        children, self._children = self._children, {}
        for child in children.values():
            if child.poll() is None:
                child.send_signal(signal.SIGTERM)
        end = time.monotonic() + _ENDS
        for name, child in children.items():
            while child.poll() is None:
                # A second Ctrl-C does not wait.
                if time.monotonic() > end or len(self._signals.seen) > 1:
                    _say(f"the {name} does not end: killed")
                    child.kill()
                    child.wait()
                    break
                self._signals.wait(0.05, [])

    def _greet(self) -> None:
        """Once the server answers, say where; in a thread of its own."""
        here = f"http://{_HOST}:{self._port}"
        end = time.monotonic() + _READY
        while not _answers(f"{here}/readyz"):
            if time.monotonic() > end:
                return
            time.sleep(_LOOK)
        lines = [f"dashboard {here}/ui (no sign-in is needed from this machine)"]
        link = self._login()
        if link is not None:
            lines.append(f"or sign in under your own name, once, within 10 minutes: {link}")
        for line in lines:
            _say(line)

    def _login(self) -> str | None:
        """A one-time link, made by a process of its own, as it reads the App."""
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "duly.cli.main",
                "token",
                "login",
                "-q",
                "-a",
                self._reference,
                *self._url,
            ],
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout.strip() if done.returncode == 0 and done.stdout.startswith("http") else None


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310 - the URL is our own
            return bool(answer.status == 200)
    except (OSError, urllib.error.URLError):
        return False


def _refuse_taken(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((_HOST, port))
        except OSError as error:
            raise UsageError(
                f"port {port} of {_HOST} is taken, perhaps by another duly dev; give --port {port + 1}"
            ) from error


def _refuse_missing() -> None:
    from importlib.util import find_spec

    missing = [name for name in ("uvicorn", "starlette", "jinja2") if find_spec(name) is None]
    if missing:
        raise UsageError(f"{', '.join(missing)} is not installed: pip install 'duly[web]'")


def _short(path: Path) -> str:
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def _say(text: str) -> None:
    click.echo(f"duly dev: {text}", err=True)
