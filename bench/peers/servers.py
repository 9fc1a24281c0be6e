"""The servers of one run: PostgreSQL, Redis, RabbitMQ and beanstalkd, as durable as they usually are, in a temp folder.

Only on 127.0.0.1, on free ports; started when first asked for, ended with this process however that one ends.
"""

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Self

from bench.peers.environments import Missing
from bench.peers.machine import end_with_parent
from tests.services import MissingService, PostgresServer

# What tests/services.py turns off because tests need no durability, and the sizes of a small dedicated server.
POSTGRES_SETTINGS = {
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
    "wal_level": "replica",
    "max_prepared_transactions": "0",
    "max_connections": "200",
    "jit": "on",
    "shared_buffers": "1GB",
    "max_wal_size": "4GB",
    "checkpoint_timeout": "15min",
}
RABBIT = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
PACKAGES = {"redis": "redis-server", "rabbit": "rabbitmq-server", "beanstalk": "beanstalkd"}
START_SECONDS = 90


class Servers:
    """All of them; use as a context manager. `url` gives an empty place on one of them."""

    def __init__(self, postgres_version: int) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="duly-peers-", dir=os.environ.get("BENCH_DATA")))
        self.folder.chmod(0o755)
        self._postgres = PostgresServer(postgres_version)
        self._children: list[subprocess.Popen[bytes]] = []
        self._urls: dict[str, str] = {}
        self._missing: dict[str, str] = {}
        self._numbers = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for child in reversed(self._children):
            child.terminate()
            try:
                child.wait(30)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
        self._postgres.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def pids(self) -> list[int]:
        """Those that are not below this process in the tree, PostgreSQL's; the others are its children."""
        return [pid] if self._postgres.running and (pid := self._postgres.pid) else []

    def pids_of(self, server: str) -> list[int]:
        """Whose processor time a drain on this server uses."""
        if server == "postgres":
            return self.pids
        return [] if server == "sqlite" else [child.pid for child in self._children]

    @contextlib.contextmanager
    def place(self, server: str) -> Iterator[tuple[str, Path]]:
        """The URL of an empty database, file or server, and a folder for the run. Missing when it is not installed."""
        self._numbers += 1
        folder = self.folder / f"run-{self._numbers}"
        folder.mkdir()
        try:
            if server == "sqlite":
                yield f"sqlite:///{folder}/bench.db", folder
            elif server == "postgres":
                self._start_postgres()
                with self._postgres.database() as url:
                    yield url, folder
            else:
                yield self._started(server), folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def version(self, server: str) -> str:
        """For the header; empty when it was not started."""
        if server == "postgres" and self._postgres.running:
            return f"PostgreSQL {self._postgres.execute('SHOW server_version')[0][0]}"
        if server not in self._urls:
            return ""
        command = ["dpkg-query", "-W", "-f", "${Package} ${Version}", PACKAGES[server]]
        return subprocess.run(command, capture_output=True, text=True).stdout or PACKAGES[server]

    def _start_postgres(self) -> None:
        if self._postgres.running:
            return
        try:
            self._postgres.start()
        except MissingService as missing:
            raise Missing(str(missing)) from missing
        for name, value in POSTGRES_SETTINGS.items():
            self._postgres.execute(f"ALTER SYSTEM SET {name} = '{value}'")
        self._postgres.restart()

    def _started(self, server: str) -> str:
        if server in self._missing:
            raise Missing(self._missing[server])
        if server not in self._urls:
            start: Callable[[Path, int], str] = getattr(self, f"_start_{server}")
            try:
                self._urls[server] = start(self._folder_of(server), _free_port())
            except (OSError, RuntimeError) as error:
                self._missing[server] = (
                    f"{PACKAGES[server]} does not start ({error}); install it by bench/peers/setup.sh"
                )
                raise Missing(self._missing[server]) from error
        return self._urls[server]

    def _folder_of(self, server: str) -> Path:
        folder = self.folder / server
        folder.mkdir()
        return folder

    def _start_redis(self, folder: Path, port: int) -> str:
        """Append-only file, synced each second: up to a second of jobs is lost with the power."""
        settings = ["--appendonly", "yes", "--appendfsync", "everysec", "--save", ""]
        self._spawn(
            ["redis-server", "--bind", "127.0.0.1", "--port", str(port), "--dir", str(folder), *settings],
            folder,
        )
        self._wait_for(port, folder)
        return f"redis://127.0.0.1:{port}/0"

    def _start_beanstalk(self, folder: Path, port: int) -> str:
        """Binlog, synced at most each 50 ms, as its manual has it."""
        self._spawn(["beanstalkd", "-l", "127.0.0.1", "-p", str(port), "-b", str(folder), "-f", "50"], folder)
        self._wait_for(port, folder)
        return f"beanstalk://127.0.0.1:{port}"

    def _start_rabbit(self, folder: Path, port: int) -> str:
        """One node with its own port mapper, which would outlive it otherwise."""
        mapper, distribution = _free_port(), _free_port()
        loopback = "[{kernel,[{inet_dist_use_interface,{127,0,0,1}}]}]."
        (folder / "advanced.config").write_text(loopback)
        (folder / "rabbitmq.conf").write_text(f"listeners.tcp.1 = 127.0.0.1:{port}\n")
        places = {
            "HOME": folder,
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "ERL_EPMD_PORT": mapper,
            "RABBITMQ_NODENAME": "bench@localhost",
            "RABBITMQ_DIST_PORT": distribution,
            "RABBITMQ_MNESIA_BASE": folder / "data",
            "RABBITMQ_LOG_BASE": folder / "log",
            "RABBITMQ_CONFIG_FILE": folder / "rabbitmq",
            "RABBITMQ_ADVANCED_CONFIG_FILE": folder / "advanced.config",
            "RABBITMQ_ENABLED_PLUGINS_FILE": folder / "plugins",
        }
        environment = {name: str(value) for name, value in places.items()}
        account = "rabbitmq" if os.geteuid() == 0 else None
        self._spawn(["epmd", "-port", str(mapper), "-address", "127.0.0.1"], folder, environment, account)
        self._spawn([str(RABBIT)], folder, environment, account)
        self._wait_for(port, folder)
        return f"amqp://guest:guest@127.0.0.1:{port}//"

    def _spawn(
        self,
        command: list[str],
        folder: Path,
        environment: Mapping[str, str] | None = None,
        account: str | None = None,
    ) -> None:
        if account is not None:
            owner = pwd.getpwnam(account)
            for path in (folder, *folder.iterdir()):
                os.chown(path, owner.pw_uid, owner.pw_gid)
        with (folder / "output.log").open("ab") as output:
            child = subprocess.Popen(
                command,
                cwd=folder,
                env={**os.environ, **(environment or {})},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                user=account,
                group=account,
                extra_groups=None if account is None else [],
                # The other threads of this process hold no lock that the child would need.
                preexec_fn=end_with_parent,  # noqa: PLW1509
            )
        self._children.append(child)

    def _wait_for(self, port: int, folder: Path) -> None:
        child, end = self._children[-1], time.monotonic() + START_SECONDS
        while time.monotonic() < end and child.poll() is None:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                return
            time.sleep(0.1)
        raise RuntimeError((folder / "output.log").read_text(errors="replace")[-300:].strip() or "no answer")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
