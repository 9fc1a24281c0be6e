"""Retention takes millions of finished jobs away: does anybody have to wait for it, and does the room come back?

By a real worker in its own paced chunks, once with and once without a session that keeps an old snapshot open.
"""

import contextlib
import json
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from bench.flatness.filling import fill
from bench.flatness.pinned import pinned
from bench.flatness.product import Product, product
from bench.flatness.report import Report
from tests.services import PostgresServer

_STALL_MS = 100.0
_GROWTH = 1.05
_TABLES = ("job", "finished")
_PATIENCE = 3 * 3600.0
_VACUUM = 120.0


@dataclass(slots=True)
class Probes:
    """An enqueuer and an exchanger beside it, each in a process of its own."""

    processes: dict[str, "subprocess.Popen[str]"]

    def end(self) -> dict[str, dict[str, Any]]:
        found = {}
        for name, process in self.processes.items():
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.close()
            found[name] = json.loads(process.stdout.readline())
            process.wait(60)
        return found


def _probes(made: Product) -> Probes:
    started = {}
    for name in ("enqueue", "exchange"):
        process = subprocess.Popen(
            [sys.executable, "-m", "bench.flatness.probe", name, made.url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        if process.stdout.readline() != "ready\n":
            raise SystemExit(f"the probe {name} did not start")
        started[name] = process
    return Probes(started)


def run(server: PostgresServer, report: Report, finished: int, calm: float, *, reader: bool = True) -> None:
    for kind in ("none", "reader") if reader else ("none",):
        beside = " with a long reader open" if kind == "reader" else ""
        report.title(f"Retention of {finished:,} finished jobs{beside}")
        with product(server) as made:
            fill(made, finished=finished, age=timedelta(days=3))
            # The worker of the filling kept its template, and nothing else has run: now everything is too old at once.
            made.stop_worker()
            _one(report, made, kind, finished, calm)


def _one(report: Report, made: Product, kind: str, finished: int, calm: float) -> None:
    full, rows = _sizes(made), _rows(made)
    probes = _probes(made)
    time.sleep(calm)
    before = probes.end()
    with contextlib.ExitStack() as stack:
        stack.enter_context(pinned(made, kind))
        probes = _probes(made)
        meter = made.meter()
        start = meter.read()
        made.start_worker("--queues", "default")
        _until_gone(made)
        used = meter.read() - start
        meter.close()
        during = probes.end()
    report.saw(used)
    report.say(
        f"removed in {used.wall:.0f} s, {finished / used.wall:,.0f} jobs/s,"
        f" PostgreSQL {used.server / finished * 1e6:.1f} us of CPU and {used.wal / finished:.0f} B of WAL per job;"
        f" others had {used.foreign:.0%} of the machine\n"
    )
    report.table(
        (
            "probe",
            "when",
            "calls",
            "p50 ms",
            "slowest call",
            "stall p99",
            "longest stall",
            "stalls over 100 ms",
        ),
        (
            (
                name,
                when,
                f"{told['calls']:,}",
                *(f"{told[key]:.1f}" for key in ("p50", "worst", "stall_p99", "stall")),
                str(told["over_100"]),
            )
            for name in during
            for when, told in (("before", before[name]), ("during", during[name]))
        ),
    )
    for name, told in during.items():
        report.target(f"longest stall of an {name} beside retention", told["stall"], _STALL_MS, " ms")
    made.stop_worker()
    if kind == "none":
        _refill(report, made, finished, full, rows)


def _refill(report: Report, made: Product, finished: int, full: dict[str, int], rows: dict[str, int]) -> None:
    """The same number again: it must find room where the others stood."""
    empty = _vacuumed(made)
    fill(made, finished=finished, age=timedelta(days=3))
    again, more = _sizes(made), _rows(made)
    report.table(
        ("table with its indexes, MB", "full", "after retention and vacuum", "full again"),
        ((name, *(f"{sizes[name] / 2**20:,.0f}" for sizes in (full, empty, again))) for name in _TABLES),
    )
    for name in _TABLES:
        # The probes have left some jobs of theirs.
        grown = again[name] / more[name] * rows[name] / full[name]
        report.target(f"{name}: full again / full, per row", grown, _GROWTH)


def _vacuumed(made: Product) -> dict[str, int]:
    """Sizes once autovacuum has been there, or after a vacuum by hand where it is slow, and after its next visit.

    The index pages that one vacuum finds empty may be used again from the next one on (nbtree's README). Where
    retention goes on day by day, that one does come.
    """
    give_up = time.monotonic() + _VACUUM
    done = "select bool_and(n_dead_tup < 10000) from pg_stat_user_tables where relname in ('job', 'finished')"
    while not made.execute(done)[0][0]:
        if time.monotonic() > give_up:
            break
        time.sleep(1)
    for _ in range(2):
        for name in _TABLES:
            made.execute(f"vacuum duly.{name}")
    return _sizes(made)


def _sizes(made: Product) -> dict[str, int]:
    return {
        name: int(str(made.execute(f"select pg_total_relation_size('duly.{name}')")[0][0]))
        for name in _TABLES
    }


def _rows(made: Product) -> dict[str, int]:
    return {name: int(str(made.execute(f"select count(*) from duly.{name}")[0][0])) for name in _TABLES}


def _until_gone(made: Product) -> None:
    give_up = time.monotonic() + _PATIENCE
    # The last to go: a probe that does not wade through what is gone already.
    last = (
        "select true from duly.finished where queue_key = duly.key_of_1('default')"
        " and finished_at < clock_timestamp() - interval '2 days' order by finished_at desc limit 1"
    )
    with made.connect() as connection:
        connection.execute("set enable_seqscan = off")
        while connection.execute(last).fetchone():
            if time.monotonic() > give_up:
                raise SystemExit("retention has not come to its end")
            time.sleep(1)
