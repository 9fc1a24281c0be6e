"""`make soak`: 30 minutes at 4,000 jobs/s on PostgreSQL and at 1,500/s on SQLite, with nothing turned off.

Retries (2 %), unique and idempotency keys, retention and an event for each attempt are on; autovacuum is as shipped.
Producers do not wait for the store (an open loop), so that a stall shows as lateness. Prints a row a minute, then the
targets, then what became of every job. `--short` is a minute for both stores: does it run, and is nothing lost.
"""

import argparse
import contextlib
import itertools
import os
import platform
import sqlite3
import statistics
import tempfile
import time
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.flatness.report import Report, machine
from bench.flatness.server import children_of, cpu_of, server
from bench.peers.machine import Others
from bench.soaking.fleet import Producers, Worker
from bench.soaking.ledger import MINUTE, Account, Ledger, quantile
from bench.soaking.sizes import PostgresScales, Scales, Sizes, SQLiteScales
from duly import App

RATES = {"postgres": 4_000.0, "sqlite": 1_500.0}
SHORT_RATES = {"postgres": 400.0, "sqlite": 200.0}
PROCESSES = {"postgres": 2, "sqlite": 1}
EDGE = 5
"""Minutes at each end that are compared."""
PATIENCE = 900.0
HEAD = (
    "minute",
    "in/s",
    "done/s",
    "p50 ms",
    "p99 ms",
    "max ms",
    "ready",
    "tables MB",
    "keys MB",
    "WAL MB/min",
)
MORE = ("dead rows", "worker MB", "other cores")


@dataclass(frozen=True, slots=True)
class Minute:
    """What was seen at the end of one minute."""

    seconds: float
    """Since the start."""
    done: int
    """Since the start."""
    sizes: Sizes
    resident: list[float]
    others: float


def main() -> int:
    """0 when nothing was lost and, but for --short, every target is met."""
    options = _options()
    report = Report()
    wrong = 0
    for store in options.stores.split(","):
        with _place(store, options) as (url, scales, where):
            soak = Soak(store, url, scales, options, report)
            report.title(f"{store}: {soak.rate:,.0f} jobs/s for {options.seconds / 60:g} min")
            report.say(where)
            wrong += soak.run()
    report.say(f"{wrong:,} jobs are not accounted for." if wrong else "Every job is accounted for.")
    missed = 0 if options.short else report.end()
    return 1 if wrong or missed else 0


class Soak:
    """One store, from the first job to the last."""

    def __init__(
        self, store: str, url: str, scales: Scales, options: argparse.Namespace, report: Report
    ) -> None:
        self.store, self.url, self.scales, self.options, self.report = store, url, scales, options, report
        self.rate = options.rate or (SHORT_RATES if options.short else RATES)[store]
        self.rows: list[Minute] = []

    def run(self) -> int:
        """How many jobs were lost, or are not where they belong."""
        app = App(self.url)
        app.store.schema.migrate()
        app.close()
        with tempfile.TemporaryDirectory(prefix="duly-soak-") as folder:
            processes = self.options.processes or PROCESSES[self.store]
            worker = Worker(self.url, Path(folder), self.options.keep, processes)
            began = time.monotonic() + 2.0
            ledger = Ledger(Path(folder), began)
            producers = Producers(self.url, self.rate, self.options.seconds, self.options.producers, began)
            try:
                self._watch(worker, producers, ledger, began)
                told = producers.told()
                self._settle(worker, ledger, sum(int(one["created"]) for one in told))
                self._say_cpu(told, worker, ledger.done)
            finally:
                producers.stop()
                worker.stop()
            ledger.read()
            self._table(ledger, told)
            account = ledger.account([int(one["k"]) for one in told])
            if not self.options.short:
                self._targets(ledger)
            return self._account(account, told, worker)

    def _watch(self, worker: Worker, producers: Producers, ledger: Ledger, began: float) -> None:
        """A row a minute until the producers have ended."""
        before = self.scales.weigh()
        while producers.running:
            others, end = Others(self.options.servers), began + MINUTE * (len(self.rows) + 1)
            while time.monotonic() < end and producers.running:
                time.sleep(0.5)
                worker.check()
                ledger.read()
            seconds = time.monotonic() - began
            if self.rows and seconds - self.rows[-1].seconds < MINUTE / 6:
                return  # the producers' last moments are no minute
            row = Minute(seconds, ledger.done, self.scales.weigh(), worker.resident, others.cores())
            self.rows.append(row)
            self._say(ledger, before)

    def _say(self, ledger: Ledger, before: Sizes) -> None:
        """One line as it happens; the table comes at the end."""
        place, row = len(self.rows) - 1, self.rows[-1]
        found = ledger.minutes[place] if place < len(ledger.minutes) else array("f")
        since = self.rows[-2].sizes if place else before
        seconds = row.seconds - (self.rows[-2].seconds if place else 0.0)
        self.report.say(
            f"minute {place + 1}: {len(found) / seconds:,.0f}/s began, p50 {quantile(found, 0.5):.0f} ms, "
            f"p99 {quantile(found, 0.99):.0f} ms; {row.sizes.ready:,} ready, tables {row.sizes.tables:.0f} MB, "
            f"WAL {row.sizes.wal - since.wal:.0f} MB, {row.sizes.dead:,} dead rows, "
            f"workers {'+'.join(f'{one:.0f}' for one in row.resident)} MB; others {row.others:.1f} cores"
        )

    def _settle(self, worker: Worker, ledger: Ledger, created: int) -> None:
        """Until every job has ended, or nothing has moved for a long time."""
        last, until = -1, time.monotonic() + PATIENCE
        while time.monotonic() < until:
            ledger.read()
            if ledger.done >= created and not self.scales.weigh().unfinished:
                return
            if ledger.done != last:
                last, until = ledger.done, time.monotonic() + PATIENCE / 10
            worker.check()
            time.sleep(0.5)

    def _say_cpu(self, told: list[dict[str, float]], worker: Worker, done: int) -> None:
        """What a job has cost, starts of processes included, and how many cores that makes at this rate."""
        spent = {"producers": sum(one["cpu"] for one in told), "workers": worker.cpu}
        for pid in self.options.servers:
            spent["PostgreSQL"] = cpu_of(pid, children=True) + sum(
                cpu_of(child) for child in children_of(pid)
            )
        each = {name: seconds / max(1, done) * 1e6 for name, seconds in spent.items()}
        self.report.say(
            "CPU of a job: "
            + ", ".join(f"{name} {one:.0f} µs" for name, one in each.items())
            + f"; at {self.rate:,.0f} jobs/s that is {sum(each.values()) * self.rate / 1e6:.2f} cores."
        )
        for line in self.scales.dearest(done):
            self.report.say(line)

    def _table(self, ledger: Ledger, told: list[dict[str, float]]) -> None:
        rows, before = [], Minute(0.0, 0, self.rows[0].sizes, [], 0.0)
        for place, row in enumerate(self.rows):
            found = ledger.minutes[place] if place < len(ledger.minutes) else array("f")
            sizes = row.sizes
            wal = sizes.wal - before.sizes.wal if place else 0.0
            rows.append(
                (
                    str(place + 1),
                    f"{self.rate:,.0f}",
                    f"{(row.done - before.done) / (row.seconds - before.seconds):,.0f}",
                    f"{quantile(found, 0.5):.1f}",
                    f"{quantile(found, 0.99):.1f}",
                    f"{max(found, default=0.0) * 1000:.0f}",
                    f"{sizes.ready:,}",
                    f"{sizes.tables:.0f}",
                    f"{sizes.kept_keys:.0f}",
                    f"{wal:.0f}" if place else "-",
                    f"{sizes.dead:,}",
                    "+".join(f"{one:.0f}" for one in row.resident),
                    f"{row.others:.2f}",
                )
            )
            before = row
        self.report.table((*HEAD, *MORE), rows)
        latest = max(one["latest"] for one in told) * 1000
        self.report.say(
            f"Producers: {sum(one['calls'] for one in told):,.0f} calls, at most {latest:,.0f} ms late."
        )

    def _targets(self, ledger: Ledger) -> None:
        minutes, rows = ledger.minutes, self.rows
        if len(rows) < 2 * EDGE + 2:
            self.report.say(f"Shorter than {2 * EDGE + 2} minutes: too short to say what is level.")
            return
        first, last = (_p99(minutes[place : place + EDGE]) for place in (0, len(rows) - EDGE))
        name = self.store
        self.report.target(f"{name}: pickup p99, last {EDGE} min", last, 250, " ms")
        # Below that, the difference is the machine's.
        self.report.target(f"{name}: pickup p99, last / first {EDGE} min", last / max(first, 20.0), 1.25)
        done = (rows[-1].done - rows[0].done) / (rows[-1].seconds - rows[0].seconds)
        self.report.target(f"{name}: done/s, all but the first min", done, 0.98 * self.rate, at_least=True)
        # The second five minutes have retention at work; the first fill the tables.
        sizes = [row.sizes for row in rows]
        steps = [after.wal - before.wal for before, after in itertools.pairwise(sizes)]
        for what, values in (
            ("tables", [one.tables for one in sizes]),
            (
                "WAL a minute" if name == "postgres" else "WAL file",
                steps if name == "postgres" else [one.wal for one in sizes],
            ),
            ("resident memory of the largest worker", [max(row.resident) for row in rows]),
        ):
            early, late = statistics.median(values[EDGE : 2 * EDGE]), statistics.median(values[-EDGE:])
            if early:
                self.report.target(f"{name}: {what}, last / second {EDGE} min", late / early, 1.2)

    def _account(self, account: Account, told: list[dict[str, float]], worker: Worker) -> int:
        """Every job by what became of it; how many did not end as they should."""
        left = self.scales.weigh()
        created = sum(int(one["created"]) for one in told)
        duplicates = sum(int(one["duplicates"]) for one in told)
        wrong = {
            "lost": len(account.lost),
            "repeated requests stored": abs(account.repeats - duplicates),
            "stored twice or not at all": abs(account.created - created),
            "strangers": account.strangers,
            "dead letters": left.dead_letters,
            "not finished": left.unfinished - left.dead_letters,
        }
        self.report.say(
            f"Account: {created:,} jobs stored, {duplicates:,} repeated requests refused, "
            f"{worker.events:,} events read; {account.again:,} ran to their end again, "
            f"{account.refused_wrongly:,} did not fail exactly as often as meant; "
            + ", ".join(f"{many:,} {what}" for what, many in wrong.items())
            + "."
        )
        for line in worker.grave:
            self.report.say(f"  log: {line}")
        return sum(wrong.values())


def _p99(minutes: "list[array[float]]") -> float:
    together = array("f")
    for one in minutes:
        together.extend(one)
    return quantile(together, 0.99)


@contextlib.contextmanager
def _place(store: str, options: argparse.Namespace) -> Iterator[tuple[str, Scales, str]]:
    """An empty database, its scales, and one line about it."""
    if store == "sqlite":
        with tempfile.TemporaryDirectory(prefix="duly-soak-", dir=options.folder) as folder:
            path = Path(folder) / "soak.db"
            where = f"{os.cpu_count()} cores · Python {platform.python_version()} · SQLite {sqlite3.sqlite_version}"
            options.servers = []
            yield f"sqlite:///{path}", SQLiteScales(path), where
        return
    more = {"shared_preload_libraries": "pg_stat_statements"} if options.statements else {}
    if options.statements:
        more["pg_stat_statements.track"] = options.statements
    with server(options.postgres, **more) as started, started.database() as url:
        options.servers = [started.pid]
        scales = PostgresScales(url, statements=bool(options.statements))
        try:
            yield url, scales, machine(started)
        finally:
            scales.close()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--stores", default="postgres,sqlite")
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--rate", type=float, help="jobs/s; 4,000 on PostgreSQL, 1,500 on SQLite")
    parser.add_argument("--keep", default="60s", help="retention of finished jobs")
    parser.add_argument("--processes", type=int, help="worker processes; 2 on PostgreSQL, 1 on SQLite")
    parser.add_argument("--producers", type=int, default=2, help="producer processes")
    parser.add_argument("--postgres", type=int, default=15, help="major version")
    parser.add_argument(
        "--statements", choices=["top", "all"], help="the dearest statements, or those inside functions, too"
    )
    parser.add_argument("--folder", help="where the SQLite file lies")
    parser.add_argument("--short", action="store_true", help="30 s a store at a low rate; only losses count")
    options = parser.parse_args()
    options.seconds = 30.0 if options.short else options.minutes * MINUTE
    if options.short:
        options.keep = "5s"
    return options


if __name__ == "__main__":
    raise SystemExit(main())
