"""`make bench` and `make bench-peers`: runs the rows in turn, several times, and prints medians, ratios and targets.

Knows rows, environments and servers; what is measured is harness.py's. `--once` is one tiny run of duly's own rows.
"""

import argparse
import json
import os
import platform
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from bench.peers import table
from bench.peers.environments import Missing, python_of
from bench.peers.machine import Others, description, end_with_parent, wait_for_quiet
from bench.peers.results import Result, Results
from bench.peers.rows import ROWS, WORKLOADS, Row, Workload
from bench.peers.servers import Servers

ROOT = Path(__file__).parents[2]
FACTS = ("version", "settings", "acknowledges")
GRACE = 120.0


class Session:
    """One run of the bench: what is missing is said once, what has failed twice is given up."""

    def __init__(self, servers: Servers, options: argparse.Namespace) -> None:
        self.servers, self.options = servers, options
        self.results: list[Result] = []
        self._failures: Counter[tuple[str, str]] = Counter()
        self.missing: dict[str, str] = {}

    def measure(self, row: Row, workload: Workload) -> None:
        """One run of one workload; its result, or its failure, is added."""
        if row.name in self.missing or self._failures[row.name, workload.name] > 1:
            return
        try:
            interpreter = python_of(row)
            with self.servers.place(row.server) as (url, folder):
                result = self._measured(row, workload, interpreter, url, folder)
        except Missing as missing:
            self.missing[row.name] = str(missing)
            say(f"{row.name} is left out: {missing}")
            return
        if result.error:
            self._failures[row.name, workload.name] += 1
            say(f"{row.name} {workload.name} FAILED: {result.error}")
        else:
            say(told(result))
        self.results.append(result)
        self.keep(asdict(result))

    def keep(self, line: dict[str, object]) -> None:
        """For --from."""
        with Path(self.options.results).open("a") as file:
            file.write(json.dumps(line) + "\n")

    def measure_all(self, pairs: Iterable[tuple[Row, Workload]]) -> None:
        for row, workload in pairs:
            self.measure(row, workload)

    def _measured(self, row: Row, workload: Workload, interpreter: Path, url: str, folder: Path) -> Result:
        options = self.options
        wait_for_quiet(self.servers.pids, table.DISTURBED, options.wait)
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "BENCH_URL": url,
            "BENCH_SERVER": row.server,
            "BENCH_FOLDER": str(folder),
            "BENCH_LOG": str(folder / "handlers.log"),
            "BENCH_KIND": workload.kind,
            "BENCH_PROCESSES": str(workload.processes),
            "BENCH_SERVER_PIDS": " ".join(map(str, self.servers.pids_of(row.server))),
        }
        environment.pop("DULY_URL", None)
        command = [str(interpreter), "-m", "bench.peers.harness", row.adapter, workload.does]
        command += ["--count", str(self.count(row, workload)), "--patience", str(options.patience)]
        command += ["--idle", "0.1" if options.once else "1.5"]
        others = Others(self.servers.pids)
        try:
            done = subprocess.run(
                command,
                cwd=ROOT,
                env=environment,
                capture_output=True,
                text=True,
                timeout=2 * options.patience + GRACE,
                preexec_fn=end_with_parent,  # the other threads only wait for their own runs
            )
        except subprocess.TimeoutExpired:
            return Result(row.name, workload.name, others=others.cores(), error="it did not end in time")
        lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
        if done.returncode != 0 or not lines:
            words = (done.stderr.strip() or done.stdout.strip() or f"exit {done.returncode}").splitlines()
            return Result(
                row.name,
                workload.name,
                others=others.cores(),
                error=" ".join(line.strip() for line in words[-4:]),
            )
        said = json.loads(lines[-1])
        facts = {name: said.pop(name) for name in FACTS}
        if (python := said.pop("python")) != platform.python_version():
            facts["settings"] += f"; Python {python}"
        return Result(row.name, workload.name, said, others=others.cores(), **facts)

    def count(self, row: Row, workload: Workload) -> int:
        options = self.options
        if options.once:
            return workload.once
        if workload.name == "late":
            return int(options.scheduled)
        return max(10, int(row.fewer.get(workload.name, workload.count) * options.scale))


def told(result: Result) -> str:
    figures, unit = result.figures, WORKLOADS[result.workload].unit
    used = ""
    if "client_us" in figures:
        who = "client" if result.workload in {"one", "bulk"} else "worker"
        used = f" ({who} {figures['client_us']:.0f}, server {figures['server_us']:.0f} µs a job)"
    return f"{result.row} {result.workload}: {table.number(figures['value'])} {unit}{used}"


def say(line: str) -> None:
    print(f"# {line}", file=sys.stderr, flush=True)


def chosen(options: argparse.Namespace) -> list[Row]:
    """duly's rows and the limits; the peers that were asked for by row or adapter; or exactly the rows of --rows."""
    if options.rows:
        return [ROWS[name] for name in options.rows.split(",")]
    names = set(options.peers.split(","))
    known = {row.name for row in ROWS.values()} | {row.adapter for row in ROWS.values()} | {"all", "none", ""}
    if unknown := names - known:
        raise SystemExit(f"no such peer: {', '.join(unknown)}; there are {', '.join(sorted(known - {''}))}")
    return [
        row
        for row in ROWS.values()
        if not row.is_peer or "all" in names or row.name in names or row.adapter in names
    ]


def work_of(rows: Iterable[Row], options: argparse.Namespace) -> list[tuple[Row, Workload]]:
    """Each workload through all rows, so that what is compared is measured close together."""
    wanted = options.workloads.split(",") if options.workloads else list(WORKLOADS)
    if options.once:
        wanted = [name for name in wanted if WORKLOADS[name].once]
    rows = list(rows)
    return [(row, WORKLOADS[name]) for name in wanted for row in rows if name in row.workloads]


def header(servers: Servers, session: Session, options: argparse.Namespace) -> list[str]:
    versions = [servers.version(name) for name in ("postgres", "redis", "rabbit", "beanstalk")]
    versions.append(f"SQLite {sqlite3.sqlite_version}")
    runs = "one run each" if options.runs == 1 else f"medians of {options.runs} interleaved runs"
    left_out = [f"{row} ({why})" for row, why in session.missing.items()]
    return [
        f"machine: {description()}",
        f"servers: {', '.join(version for version in versions if version)}",
        f"date: {datetime.now(UTC):%Y-%m-%d}, {runs}"
        + ("" if options.scale == 1 and not options.once else "; NOT with the full numbers of jobs"),
        *([f"left out: {'; '.join(left_out)}"] if left_out else []),
    ]


def main() -> int:
    """1 when a row of duly's own has failed, or is missing where CI=true."""
    options = parsed()
    if options.read:
        lines, results = read(Path(options.read))
        show(Results(results), lines, options)
        return 0
    # A stop must still end the servers.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    Path(options.results).parent.mkdir(parents=True, exist_ok=True)
    Path(options.results).write_text("")
    began = time.monotonic()
    with Servers(options.postgres) as servers:
        session = Session(servers, options)
        measure(session, chosen(options), options)
        lines = header(servers, session, options)
    session.keep({"header": lines})
    show(Results(session.results), lines, options)
    say(f"{time.monotonic() - began:.0f} s")
    failed = any(not ROWS[result.row].is_peer for result in session.results if result.error)
    missing = any(not ROWS[row].is_peer for row in session.missing) and os.environ.get("CI") == "true"
    return 1 if failed or missing else 0


def measure(session: Session, rows: list[Row], options: argparse.Namespace) -> None:
    """Turn by turn; with --once the servers side by side, since nobody looks at the figures."""
    work = work_of(rows, options)
    if options.once:
        servers = {row.server for row in rows}
        with ThreadPoolExecutor() as pool:
            list(
                pool.map(
                    session.measure_all,
                    ([one for one in work if one[0].server == server] for server in servers),
                )
            )
        return
    for turn in range(options.runs):
        say(f"turn {turn + 1} of {options.runs}")
        session.measure_all(work)


def read(path: Path) -> tuple[list[str], list[Result]]:
    """(The header, the results) of an earlier run; one that was stopped has no header."""
    found = [json.loads(line) for line in path.read_text().splitlines()]
    headers = [line["header"] for line in found if "header" in line]
    results = [Result(**line) for line in found if "header" not in line]
    return headers[-1] if headers else [f"machine: {description()}", "a run that was stopped"], results


def show(results: Results, lines: list[str], options: argparse.Namespace) -> None:
    text = table.report(results, lines)
    print(text)
    if options.write:
        page = Path(options.write)
        page.write_text(table.replaced(page.read_text(), text))


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peers", default="none", help="all, none, or names of rows or peers, by comma")
    parser.add_argument("--rows", help="exactly these rows, by comma")
    parser.add_argument("--workloads", help=f"some of {','.join(WORKLOADS)}")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="times the usual numbers of jobs")
    parser.add_argument(
        "--scheduled", type=int, default=WORKLOADS["late"].count, help="jobs beside the due ones"
    )
    parser.add_argument("--patience", type=float, default=300.0, help="seconds for the jobs of one run")
    parser.add_argument(
        "--wait", type=float, default=20.0, help="seconds to wait for a quiet machine before a run"
    )
    parser.add_argument("--postgres", type=int, default=15, help="the major version")
    parser.add_argument(
        "--results", default="var/bench/peers.jsonl", help="where each run is kept, a line each"
    )
    parser.add_argument("--write", metavar="PAGE", help="put the tables into the marked block of this page")
    parser.add_argument(
        "--from", dest="read", metavar="FILE", help="measure nothing: the tables of that --results"
    )
    parser.add_argument(
        "--once", action="store_true", help="one tiny run of duly's own rows, to see that they run"
    )
    options = parser.parse_args()
    if options.once:
        options.runs, options.wait, options.peers = 1, 0.0, "none"
    return options


if __name__ == "__main__":
    sys.exit(main())
