"""How much of its speed duly keeps when the database is 1, 2 or 5 ms away each way: a drain, through our own proxy.

One worker process with the defaults; the distances take turns, and the medians are compared with no distance at all.
The jobs are enqueued without the proxy. `--once` is one tiny drain of each, to see that it runs.
"""

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from bench.flatness.product import Drained, Product, Worker, product
from bench.flatness.report import Report, machine
from bench.flatness.server import server

KEPT = 0.6
HEAD = (
    "ms each way",
    "round trip ms",
    "jobs/s",
    "of local",
    "worker µs/job",
    "PostgreSQL µs/job",
    "others' CPU",
)


def main() -> int:
    """0 when every target is met, or with --once when everything ran."""
    options = _options()
    report = Report()
    distances = [float(word) for word in options.ms.split(",")]
    found: dict[float, list[Drained]] = {distance: [] for distance in distances}
    trips: dict[float, float] = {}
    batches: dict[float, list[float]] = {distance: [] for distance in distances}
    with server(options.postgres) as started, product(started) as made:
        report.title(f"A database further away: {options.jobs:,} no-op jobs, one worker process")
        report.say(machine(started))
        for turn in range(options.runs):
            for distance in distances:
                with _place(made, distance) as url:
                    trips[distance] = round_trip(url)
                    before = _commits(made)
                    found[distance].append(_drain(made, url, options.jobs))
                    # The jobs were enqueued in transactions of 1,000.
                    commits = _commits(made) - before - options.jobs / 1_000
                    batches[distance].append(options.jobs / max(1.0, commits))
                drained = found[distance][-1]
                report.saw(drained.used)
                report.say(f"run {turn + 1}, {distance:g} ms: {drained.rate:,.0f} jobs/s")
    local = statistics.median(one.rate for one in found[distances[0]])
    report.table(
        HEAD,
        (
            _row(distance, trips[distance], statistics.median(batches[distance]), runs, local)
            for distance, runs in found.items()
        ),
    )
    for distance in distances[1:]:
        rate = statistics.median(one.rate for one in found[distance])
        report.target(f"drain at {distance:g} ms each way, of local", rate / local, KEPT, at_least=True)
    missed = report.end()
    return 1 if missed and not options.once else 0


def round_trip(url: str, times: int = 50) -> float:
    """The median in milliseconds."""
    with psycopg.connect(url, autocommit=True) as connection:
        spent = []
        for _ in range(times):
            began = time.perf_counter()
            connection.execute("select 1")
            spent.append((time.perf_counter() - began) * 1000)
    return statistics.median(spent)


@contextmanager
def proxied(port: int, ms: float) -> Iterator[int]:
    """The port of a proxy in a process of its own, so that it takes no time of the worker's."""
    command = [sys.executable, "-m", "bench.distance.proxy", "--to", f"127.0.0.1:{port}", "--ms", str(ms)]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            raise SystemExit(f"the proxy ended with {process.wait()}")
        yield int(line)
    finally:
        process.terminate()
        process.wait()


@contextmanager
def _place(made: Product, distance: float) -> Iterator[str]:
    """The URL of the database at this distance. None at all is without a proxy."""
    if not distance:
        yield made.url
        return
    with proxied(made.server.port, distance) as port:
        yield made.url.replace(f":{made.server.port}/", f":{port}/")


def _drain(made: Product, url: str, jobs: int) -> Drained:
    made.worker = Worker(url, made.folder)
    try:
        made.flow(1)
        return made.drain(jobs)
    finally:
        made.stop_worker()


def _commits(made: Product) -> int:
    """Of this database so far: the worker's exchanges, above all. A session's are counted when it ends."""
    row = made.execute("select xact_commit from pg_stat_database where datname = current_database()")[0]
    return int(str(row[0]))


def _row(distance: float, trip: float, batch: float, runs: list[Drained], local: float) -> tuple[str, ...]:
    rate = statistics.median(one.rate for one in runs)
    return (
        f"{distance:g}",
        f"{trip:.2f}",
        f"{rate:,.0f}",
        f"{rate / local:.0%}",
        f"{batch:.0f}",
        f"{statistics.median(one.worker_us for one in runs):.1f}",
        f"{statistics.median(one.server_us for one in runs):.1f}",
        f"{statistics.median(one.used.foreign for one in runs):.0%}",
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--ms", default="0,1,2,5", help="added each way; the first is what the others are compared with"
    )
    parser.add_argument("--jobs", type=int, default=60_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--postgres", type=int, default=15, help="major version")
    parser.add_argument("--once", action="store_true", help="tiny, no verdict in the exit code")
    options = parser.parse_args()
    if options.once:
        options.jobs, options.runs, options.ms = 500, 1, "0,2"
    return options


if __name__ == "__main__":
    raise SystemExit(main())
