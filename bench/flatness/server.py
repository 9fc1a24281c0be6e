"""A PostgreSQL server of the measurement's own, and what it and other processes have used so far.

Durable as in production: fsync, synchronous_commit, full-page writes and autovacuum as PostgreSQL ships them. Knows
nothing of jobs.
"""

import contextlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg

from tests.services import PostgresServer

SETTINGS = {
    "fsync": "on",
    "full_page_writes": "on",
    "wal_level": "replica",
    "shared_buffers": "512MB",
    "max_wal_size": "2GB",
    "jit": "on",
}
_TICK = os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def server(version: int, **settings: str) -> Iterator[PostgresServer]:
    """A running server that is gone, with its data, afterwards."""
    with PostgresServer(version, {**SETTINGS, **settings}) as started:
        yield started


def cpu_of(pid: int, *, children: bool = False) -> float:
    """CPU seconds that a process has used; with those of its ended children. 0 when it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(int(field) for field in fields[11 : 15 if children else 13]) / _TICK


def children_of(pid: int) -> list[int]:
    """The processes that a process has started and that live."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        found += [int(word) for word in task.read_text().split()]
    return found


@dataclass(frozen=True, slots=True)
class Used:
    """What was used at one moment, or between two."""

    wall: float
    server: float
    """CPU seconds of all PostgreSQL processes: backends, autovacuum, checkpointer, WAL writer."""
    others: float
    """CPU seconds that anything on this machine has used."""
    wal: int
    worker: float = 0.0

    def __sub__(self, other: "Used") -> "Used":
        return Used(
            self.wall - other.wall,
            self.server - other.server,
            self.others - other.others,
            self.wal - other.wal,
            self.worker - other.worker,
        )

    @property
    def foreign(self) -> float:
        """The share of this machine's CPU time that went to what is not measured here, 0 to 1."""
        whole = self.wall * (os.cpu_count() or 1)
        return max(0.0, min(1.0, (self.others - self.server - self.worker) / whole)) if whole else 0.0


class Meter:
    """Reads what a server, and one worker process beside it, have used."""

    def __init__(self, measured: PostgresServer, worker: int | None = None) -> None:
        self._server = measured
        self._worker = worker
        self._connection = psycopg.connect(measured.url(host="socket"), autocommit=True)

    def read(self) -> Used:
        wal = self._connection.execute("select pg_current_wal_insert_lsn() - '0/0'::pg_lsn").fetchone()
        pid = self._server.pid
        assert pid is not None
        assert wal is not None
        spent = cpu_of(pid, children=True) + sum(cpu_of(child) for child in children_of(pid))
        worker = 0.0
        if self._worker is not None:
            worker = cpu_of(self._worker) + sum(cpu_of(child) for child in children_of(self._worker))
        return Used(time.monotonic(), spent, _machine(), int(wal[0]), worker)

    def close(self) -> None:
        self._connection.close()


def _machine() -> float:
    fields = Path("/proc/stat").read_text().split(maxsplit=9)
    # user, nice, system, then without idle and iowait: irq, softirq.
    return sum(int(fields[place]) for place in (1, 2, 3, 6, 7)) / _TICK


def resident(pid: int) -> float:
    """Resident memory of a process in MB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return 0.0
