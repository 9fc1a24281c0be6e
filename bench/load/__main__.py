"""POST /v1/jobs under load: `python -m bench.load`, on SQLite and on PostgreSQL.

A real `duly serve` of --processes is asked by wrk, with tokens, rate limit and idempotency keys. Prints requests per
second and p99, kills all its processes three times under load and looks for every job that was answered with 202, then
fills a queue and prints how fast it says so. Exit 1 when a job is missing or a process took 200 MB.
"""

import argparse
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from duly import App
from duly.core.bearer import digest_of, make_text
from tests.services import PostgresServer

ROOT = Path(__file__).parents[2]
SCRIPT = Path(__file__).with_name("post.lua")
MOST_MEMORY = 200_000
"""kB of one process, as /proc counts."""
CONNECTIONS = 64


class Result(NamedTuple):
    requests: int
    per_s: float
    refused: int
    p50: float
    p99: float
    worst: float

    def __str__(self) -> str:
        return f"{self.per_s:,.0f} requests/s, p50 {self.p50:.1f} ms, p99 {self.p99:.1f} ms, max {self.worst:.0f} ms"


class Server:
    """One `duly serve`, which may be killed and started again."""

    def __init__(self, url: str, processes: int) -> None:
        self.url = url
        self.processes = processes
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        self.address = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[bytes] | None = None
        self.memory = 0
        """Of the largest process."""

    def start(self) -> None:
        command = [sys.executable, "-m", "duly.cli.main", "serve", "bench.load.app", "--port", str(self.port)]
        self.process = subprocess.Popen(
            [*command, "--rate", "100000/s", "--processes", str(self.processes)],
            cwd=ROOT,
            env={**os.environ, "DULY_URL": self.url, "DULY_LOG_LEVEL": "error"},
            stderr=subprocess.DEVNULL,
            # A group of its own, which is killed as a whole.
            start_new_session=True,
        )
        ends = time.monotonic() + 60
        while time.monotonic() < ends:
            try:
                with urllib.request.urlopen(self.address + "/readyz", timeout=5):
                    return
            except OSError:
                time.sleep(0.02)
        raise SystemExit("the server did not start within a minute")

    def stop(self) -> None:
        assert self.process is not None
        self._measure()
        self.process.terminate()
        self.process.wait(60)

    def kill(self) -> None:
        """All its processes at once; waits until nobody has the port any more."""
        assert self.process is not None
        self._measure()
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(60)
        ends = time.monotonic() + 60
        while time.monotonic() < ends:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)):
                    return
            time.sleep(0.02)
        raise SystemExit("a process of the server outlived its kill")

    def _measure(self) -> None:
        assert self.process is not None
        own = Path(f"/proc/{self.process.pid}")
        children = [pid for task in own.glob("task/*/children") for pid in task.read_text().split()]
        for folder in (own, *(own.with_name(pid) for pid in children)):
            status = (folder / "status").read_text()
            self.memory = max(self.memory, int(re.search(r"VmHWM:\s+(\d+)", status)[1]))  # type: ignore[index]


def ask(server: Server, token: str, task: str, word: str, folder: Path | None, seconds: float) -> Result:
    return told(begin(server, token, task, word, folder, seconds))


def begin(
    server: Server, token: str, task: str, word: str, folder: Path | None, seconds: float
) -> subprocess.Popen[str]:
    command = [
        "wrk",
        "-t1",
        f"-c{CONNECTIONS}",
        f"-d{max(1, round(seconds))}s",
        "-s",
        str(SCRIPT),
        server.address,
    ]
    return subprocess.Popen(
        [*command, "--", token, task, word, "" if folder is None else str(folder)],
        stdout=subprocess.PIPE,
        text=True,
    )


def told(asking: subprocess.Popen[str]) -> Result:
    said = asking.communicate(timeout=300)[0]
    found = re.search(r"RESULT (\d+) (\d+) (\d+) ([\d.]+) ([\d.]+) ([\d.]+)", said)
    if found is None:
        raise SystemExit(f"wrk said: {said}")
    requests, micros, refused = (int(found[n]) for n in (1, 2, 3))
    return Result(
        requests, requests / micros * 1e6, refused, float(found[4]), float(found[5]), float(found[6])
    )


def missing(url: str, folder: Path) -> tuple[int, int]:
    """(how many jobs were answered with 202, how many of them are not there)."""
    ids = [int(line) for path in folder.glob("*.ids") for line in path.read_text().splitlines() if line]
    app = App(url)
    absent = 0
    for start in range(0, len(ids), 500):
        absent += sum(record is None for record in app.inspect.lookup(ids[start : start + 500]))
    app.close()
    return len(ids), absent


def measure(name: str, url: str, seconds: float, processes: int) -> bool:
    os.environ["DULY_URL"] = url
    app = App(url)
    app.store.schema.migrate()
    token = make_text(os.urandom(32))
    app.store.tokens.put("load", digest_of(token), ["enqueue"], None, "bench", "load")
    app.close()
    server = Server(url, processes)
    server.start()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        print(f"{name}: {ask(server, token, 'send_receipt', 'steady', None, seconds)}", flush=True)
        kill_under_load(server, token, folder, seconds)
        answered, absent = missing(url, folder)
        print(
            f"{name}: killed three times, {answered:,} answered with 202, {absent} of them missing",
            flush=True,
        )
        full = ask(server, token, "report", "full", None, seconds / 2)
        print(f"{name}: full queue, {full.refused:,} of {full.requests:,} refused; {full}", flush=True)
    server.stop()
    print(f"{name}: the largest process took {server.memory / 1024:.0f} MiB at most", flush=True)
    return answered > 0 and absent == 0 and server.memory < MOST_MEMORY


def kill_under_load(server: Server, token: str, folder: Path, seconds: float) -> None:
    for round_ in range(3):
        asking = begin(server, token, "send_receipt", f"kill-{round_}", folder, seconds / 2)
        time.sleep(seconds / 4)
        server.kill()
        server.start()
        told(asking)


@contextmanager
def stores(only: str | None) -> Iterator[list[tuple[str, str]]]:
    with tempfile.TemporaryDirectory() as folder:
        found = [("sqlite", f"sqlite:///{folder}/load.db")] if only in {None, "sqlite"} else []
        if only == "sqlite":
            yield found
            return
        with PostgresServer(18, {"fsync": "on", "synchronous_commit": "on"}) as server:
            yield [*found, ("postgresql", server.url(server.create_database()))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0, help="of each steady load")
    parser.add_argument("--processes", type=int, default=2, help="of the server; 2 unless given")
    parser.add_argument("--store", choices=("sqlite", "postgresql"), help="only this one")
    parser.add_argument("--once", action="store_true", help="two seconds each, to see that it runs")
    given = parser.parse_args()
    if shutil.which("wrk") is None:
        raise SystemExit("wrk is not installed: apt-get install wrk")
    seconds = 2.0 if given.once else given.seconds
    with stores(given.store) as places:
        good = [measure(name, url, seconds, given.processes) for name, url in places]
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
