"""pgbench as the application: its four connections, and how late their transactions are. Knows no jobs."""

import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.services import MissingService, PostgresServer, find_binaries


@dataclass(frozen=True, slots=True)
class Felt:
    """What the application's users felt, in milliseconds from when a transaction was due."""

    per_s: float
    p50: float
    p99: float
    worst: float


class Application:
    """pgbench on one database of the server."""

    def __init__(self, server: PostgresServer, url: str) -> None:
        self._program = find_binaries(server.version) / "pgbench"
        if not self._program.exists():
            raise MissingService(
                f"pgbench is not in {self._program.parent}; run: apt-get install postgresql-contrib"
            )
        self._url = url

    def fill(self, scale: int) -> None:
        """Its tables: 100,000 accounts for each unit of scale."""
        self._run("--initialize", "--quiet", "--scale", str(scale))

    def run(self, seconds: float, *, clients: int = 4, rate: float = 0.0, script: Path | None = None) -> Felt:
        """Its own mix of five statements, or a script; at a rate, else as fast as its connections go."""
        # A machine that is busy may need longer than a tiny run lasts before the first transaction is through.
        for longer in (1, 4, 16):
            if late := self._latencies_of(seconds * longer, clients, rate, script):
                return Felt(
                    len(late) / (seconds * longer),
                    _at(late, 0.5) / 1000,
                    _at(late, 0.99) / 1000,
                    late[-1] / 1000,
                )
        raise SystemExit("pgbench did nothing")

    def _latencies_of(self, seconds: float, clients: int, rate: float, script: Path | None) -> list[int]:
        with tempfile.TemporaryDirectory(prefix="duly-pgbench-") as folder:
            prefix = Path(folder) / "log"
            more = ["--rate", str(rate)] if rate else []
            if script is not None:
                more += ["--file", str(script), "--protocol", "prepared"]
            self._run(
                *("--client", str(clients), "--jobs", "1", "--time", str(max(1, round(seconds)))),
                *("--no-vacuum", "--log", "--log-prefix", str(prefix), *more),
            )
            return sorted(_latencies(folder))

    def _run(self, *options: str) -> None:
        done = subprocess.run([self._program, *options, self._url], capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"pgbench failed:\n{done.stderr[-1000:]}")


def _latencies(folder: str) -> list[int]:
    """Microseconds of each transaction; behind a rate those from when it was due."""
    found = []
    for path in Path(folder).iterdir():
        for line in path.read_text().splitlines():
            # client, number, time, script, epoch, its microseconds, and with a rate the lag of the schedule
            fields = line.split()
            if fields[2].isdecimal():
                found.append(int(fields[2]))
    return found


def _at(ordered: Sequence[int], share: float) -> int:
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]
