"""The site's processes: the site itself in this one, a worker, and `duly serve` with the dashboard, until a signal.

Starts them, starts anew what ends by itself, and ends all of them. Prints nothing; knows no page.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Final

import uvicorn
from msgspec import Struct
from starlette.applications import Starlette
from starlette.routing import Mount

from duly.client.logins import make_login
from duly.core.errors import DulyError, UsageError
from duly.web.site import Site

from .app import MADE, UPLOADED, jobs, photos
from .uploads import clear_unfinished
from .web import Place, build

FOLDER: Final = Path("duly-demo-site")
PORT: Final = 8800
DASHBOARD_PORT: Final = 8899
PACE: Final = 0.4
HOST: Final = "127.0.0.1"
_MARK: Final = ".duly-demo-site"
_LOOK: Final = 0.2
_STOP: Final = 40.0
_SHORT_LIFE: Final = 5.0
"""Seconds; what ends so soon, three times in a row, cannot start at all."""
_MOST_STARTS: Final = 3
_APP: Final = "duly.demo.site.app"
# Work yields to answers: whoever sends a picture does not wait behind the pictures of others.
_NICENESS: Final = {"worker": 10, "serve": 0}


class Wishes(Struct, frozen=True):
    """What the caller wants."""

    folder: Path = FOLDER
    url: str | None = None
    """None is a SQLite file in `folder`."""
    port: int | None = None
    """None: 8800, or any when that is taken."""
    pace: float = PACE


class Opened(Struct, frozen=True):
    """Where everything is."""

    site: str
    dashboard: str
    login: str
    """The dashboard's address that logs in, once."""
    worker: int
    """The process id of the worker's supervisor."""
    folder: str
    url: str


class PartEnded(DulyError):
    """A process of the site cannot run: its log says why."""


class _Part:
    """One process, started anew when it ends by itself."""

    def __init__(self, name: str, arguments: list[str], folder: Path) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        self._arguments = arguments
        self._starts = 0
        self.start()

    def start(self) -> None:
        tied = [sys.executable, "-m", "duly.demo.site.tied", str(os.getpid()), str(_NICENESS[self.name])]
        self._began = time.monotonic()
        with self.log.open("ab") as log:
            # In a session of its own: Ctrl-C is this process's to obey, which then ends the others in order.
            self.process = subprocess.Popen(
                [*tied, self.name, *self._arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def keep(self) -> None:
        """Start it again if it has ended. PartEnded when it cannot run at all."""
        if self.process.poll() is None:
            return
        lived = time.monotonic() - self._began
        self._starts = self._starts + 1 if lived < _SHORT_LIFE else 0
        if self._starts >= _MOST_STARTS:
            raise PartEnded(f"duly {self.name} ended with exit code {self.process.returncode}: {self.last()}")
        self.start()

    def last(self) -> str:
        lines = self.log.read_text(errors="replace").strip().splitlines()[-1:]
        return f"{lines[0] if lines else 'it said nothing'} (all of it is in {self.log})"


def run(wishes: Wishes, opened: Callable[[Opened], None]) -> None:
    """Open the site, tell `opened` where it is once it answers, and come back after SIGINT, SIGTERM or SIGHUP.

    UsageError for a folder or a port that cannot be had; PartEnded when a part gives up.
    """
    folder = prepare(wishes.folder)
    url = wishes.url or f"sqlite:///{folder / 'site.db'}"
    jobs.client.override(url=url)
    try:
        jobs.client.call(jobs.store.schema.migrate)
        _run(wishes, folder, url, opened)
    finally:
        jobs.close()


def _run(wishes: Wishes, folder: Path, url: str, opened: Callable[[Opened], None]) -> None:
    with _asked_to_end() as ended, _listening(wishes.port) as door, _login() as code:
        port = _free_port()
        dashboard = f"http://{HOST}:{port}/ui"
        parts = [
            _Part("worker", [_APP, "--url", url, "--queues", photos.name], folder),
            _Part("serve", [_APP, "--url", url, "--host", HOST, "--port", str(port)], folder),
        ]
        try:
            site = f"http://{HOST}:{door.getsockname()[1]}/"
            with _serving(build(jobs, Place(folder, wishes.pace, dashboard)), door):
                _wait_for(port, ended, parts)
                login = f"{dashboard}/login?code={code}"
                opened(Opened(site, dashboard, login, parts[0].process.pid, str(folder), url))
                while not ended.wait(_LOOK):
                    for part in parts:
                        part.keep()
        finally:
            _end(parts)


def prepare(folder: Path) -> Path:
    """The site's folder; pictures of an earlier run stay. UsageError for a folder that someone else made."""
    folder = folder.resolve()
    mark = folder / _MARK
    if folder.exists() and not mark.exists() and any(folder.iterdir()):
        raise UsageError(
            f"{folder} is not the photo site's; start it in another folder, or move that one away"
        )
    for part in (UPLOADED, MADE):
        (folder / part).mkdir(parents=True, exist_ok=True)
    mark.touch()
    # Started in a repository, it must not end up in a commit.
    (folder / ".gitignore").write_text("*\n")
    clear_unfinished(folder / UPLOADED)
    return folder


@contextmanager
def _asked_to_end() -> Iterator[threading.Event]:
    """Set by a signal; the handlers that were there come back at the end."""
    ended = threading.Event()

    def end(_: int, __: FrameType | None) -> None:
        ended.set()

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield ended
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _listening(wanted: int | None) -> Iterator[socket.socket]:
    """A socket at the port asked for, else at the usual one, else at any that is free."""
    door = socket.socket()
    try:
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            door.bind((HOST, PORT if wanted is None else wanted))
        except OSError as error:
            if wanted is not None:
                raise UsageError(
                    f"port {wanted} cannot be had ({error.strerror}); give another --port"
                ) from None
            door.bind((HOST, 0))
        yield door
    finally:
        door.close()


def _free_port() -> int:
    """The usual port of `duly serve`, or any that is free just now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, DASHBOARD_PORT))
        except OSError:
            probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def _login() -> Iterator[str]:
    """A code that opens the dashboard once. It and the session that it opens end with the site."""
    login = make_login(jobs.operate, jobs.client)
    try:
        yield login.code
    finally:
        jobs.operate.revoke_token(login.record.id, reason="the photo site ends")


def _wait_for(port: int, ended: threading.Event, parts: list[_Part]) -> None:
    """Until the dashboard can be reached, or somebody has enough of it."""
    while not ended.wait(0.05):
        for part in parts:
            part.keep()
        with suppress(OSError), socket.create_connection((HOST, port), timeout=1):
            return


@contextmanager
def _serving(web: Starlette, door: socket.socket) -> Iterator[None]:
    """uvicorn in a thread: signals are the main thread's."""
    config = uvicorn.Config(
        web, access_log=False, server_header=False, log_level="error", timeout_graceful_shutdown=5
    )
    server = _Server(config)
    thread = threading.Thread(target=server.run, args=([door],), name="photo-site", daemon=True)
    thread.start()
    try:
        while not server.started:
            if not thread.is_alive():
                raise PartEnded("the site did not start; what it said stands above")
            time.sleep(0.01)
        yield
    finally:
        server.should_exit = True
        thread.join(_STOP)


class _Server(uvicorn.Server):
    """Lets go of those who listen to a ticket before it waits for them; signals are not its own."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for route in getattr(self.config.app, "routes", ()):
            if isinstance(route, Mount) and isinstance(route.app, Starlette):
                site: Site = route.app.state.site
                site.watcher.stop()
        await super().shutdown(sockets)


def _end(parts: list[_Part]) -> None:
    """Ask all to end, and see that they have."""
    for part in parts:
        with suppress(ProcessLookupError):
            part.process.send_signal(signal.SIGTERM)
    until = time.monotonic() + _STOP
    for part in parts:
        try:
            part.process.wait(max(0.1, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            part.process.kill()
            part.process.wait()
