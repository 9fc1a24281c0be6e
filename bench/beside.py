"""What a queue costs the application that shares its database, what NOTIFY costs, and what a pooler costs the queue.

The application is pgbench on four connections at a steady rate. `--once` is every part at a tiny size.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.flatness.product import Drained, Product, Worker, product
from bench.flatness.report import Report, machine
from bench.flatness.server import server
from bench.nearby import bell, tasks
from bench.nearby.application import Application, Felt
from bench.nearby.pooler import pooler
from tests.services import PostgresServer

PARTS = ("application", "bell", "pooler")
WORSE = 1.5
POOLED = 0.7
CAP = 2
"""Slots of the capped worker: at most 500 brief jobs a second."""


def main() -> int:
    """0 when every target is met, or with --once when everything ran."""
    options = _options()
    report = Report()
    parts = {"application": _application, "bell": _bell, "pooler": _pooler}
    with server(options.postgres) as started:
        report.say(machine(started))
        for name in options.parts.split(","):
            with product(started) as made:
                parts[name](started, made, report, options)
    missed = report.end()
    return 1 if missed and not options.once else 0


def _application(started: PostgresServer, made: Product, report: Report, options: argparse.Namespace) -> None:
    application = Application(started, made.url)
    application.fill(options.scale)
    felt: dict[str, list[Felt]] = {}

    def feel(what: str) -> None:
        for _ in range(options.runs):
            felt.setdefault(what, []).append(application.run(options.seconds, rate=options.tps))

    report.title(
        f"The application beside it: pgbench, 4 connections at {options.tps:,.0f} transactions/s; "
        f"{options.ready:,} jobs ready"
    )
    feel("alone")
    made.enqueue(options.ready)
    _settle(made)
    feel("jobs ready, no worker")
    with _worker(made.url):
        feel("jobs ready, a busy worker")
        if not made.execute("select exists (select from duly.ready)")[0][0]:
            report.say("The worker ran out of jobs: its share is too small here; say --ready with more.")
    made.app.enqueue_many(
        tasks.brief.using(app=made.app).draft(number) for number in range(options.ready // 10)
    )
    _settle(made)
    with _worker(made.url, "--queues", "brief", "--concurrency", str(CAP)):
        feel(f"jobs ready, a worker capped at {CAP / tasks.BRIEF:.0f} jobs/s")
    made.execute("drop schema duly cascade")
    feel("alone again")
    made.app.store.schema.migrate()
    alone = statistics.median(one.p99 for what in ("alone", "alone again") for one in felt[what])
    report.table(
        ("when", "transactions/s", "p50 ms", "p99 ms", "max ms", "p99 of alone"),
        (_felt_row(what, runs, alone) for what, runs in felt.items()),
    )
    busy, capped = (statistics.median(one.p99 for one in felt[what]) / alone for what in list(felt)[2:4])
    report.target("p99 beside a busy worker, of alone", busy, WORSE)
    if busy > WORSE:
        report.target("p99 beside a capped worker, of alone", capped, WORSE)


def _settle(made: Product) -> None:
    """Let what comes after a million jobs at once be over: what they cost is asked for here, not their arrival."""
    made.execute("vacuum analyze")
    made.execute("checkpoint")


def _felt_row(what: str, runs: list[Felt], alone: float) -> tuple[str, ...]:
    middle = [
        statistics.median(values) for values in zip(*((f.per_s, f.p50, f.p99) for f in runs), strict=True)
    ]
    return (
        what,
        f"{middle[0]:,.0f}",
        f"{middle[1]:.1f}",
        f"{middle[2]:.1f}",
        f"{max(one.worst for one in runs):.0f}",
        f"{middle[2] / alone:.2f}",
    )


def _bell(started: PostgresServer, made: Product, report: Report, options: argparse.Namespace) -> None:
    application = Application(started, made.url)
    fleet = ("--queues", "brief", "--processes", "2")
    for jobs, words in ((options.ready // 5, "a busy fleet with a backlog"), (0, "a fleet that keeps up")):
        made.app.enqueue_many(tasks.brief.using(app=made.app).draft(number) for number in range(jobs))
        with _worker(made.url, *fleet):
            cost = bell.run(made, application, report, options.turns, options.slice, fleet=words)
            report.target(f"cost of NOTIFY beside {words}", cost, bell.LOSS)
            if jobs:
                if not made.execute("select exists (select from duly.ready)")[0][0]:
                    report.say("The fleet ran out of jobs: say --ready with more.")
                made.execute("truncate duly.ready")


def _pooler(started: PostgresServer, made: Product, report: Report, options: argparse.Namespace) -> None:
    report.title(f"Through PgBouncer in transaction mode: {options.jobs:,} no-op jobs, one worker process")
    found: dict[str, list[Drained]] = {"direct": [], "pooled": []}
    with pooler(started) as port:
        places = {"direct": made.url, "pooled": made.url.replace(f":{started.port}/", f":{port}/")}
        for _ in range(options.turns):
            for name, url in places.items():
                made.worker = Worker(url, made.folder)
                made.flow(1)
                found[name].append(made.drain(options.jobs))
                made.stop_worker()
    rates = {name: statistics.median(one.rate for one in runs) for name, runs in found.items()}
    report.saw(*(one.used for runs in found.values() for one in runs))
    report.table(
        ("worker's URL", "jobs/s", "of direct", "worker µs/job", "PostgreSQL µs/job"),
        (
            (
                name,
                f"{rates[name]:,.0f}",
                f"{rates[name] / rates['direct']:.0%}",
                f"{statistics.median(one.worker_us for one in runs):.1f}",
                f"{statistics.median(one.server_us for one in runs):.1f}",
            )
            for name, runs in found.items()
        ),
    )
    report.target(
        "drain through PgBouncer, of direct", rates["pooled"] / rates["direct"], POOLED, at_least=True
    )


@contextmanager
def _worker(url: str, *options: str) -> Iterator[None]:
    """`duly worker` on the tasks beside the application, until the block ends."""
    command = [sys.executable, "-m", "duly.cli.main", "worker", "bench.nearby.tasks:jobs", *options]
    with tempfile.TemporaryDirectory(prefix="duly-beside-") as folder:
        path = Path(folder) / "worker.log"
        with path.open("wb") as log:
            process = subprocess.Popen(
                command,
                env=dict(os.environ, FLAT_URL=url),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        try:
            yield
            if process.poll() is not None:
                raise SystemExit(f"the worker ended with {process.returncode}:\n{path.read_text()[-1000:]}")
        finally:
            process.terminate()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parts", default=",".join(PARTS), help="of " + ", ".join(PARTS))
    parser.add_argument("--postgres", type=int, default=15, help="major version")
    parser.add_argument("--ready", type=int, default=1_000_000, help="jobs that wait")
    parser.add_argument(
        "--tps", type=float, default=300.0, help="the application's rate; 0: as fast as it goes"
    )
    parser.add_argument("--scale", type=int, default=10, help="pgbench's, in 100,000 accounts")
    parser.add_argument("--seconds", type=float, default=15.0, help="of one run of the application")
    parser.add_argument("--runs", type=int, default=2, help="of the application, each time")
    parser.add_argument("--turns", type=int, default=3, help="of each bell, of each drain")
    parser.add_argument("--slice", type=float, default=5.0, help="seconds of one turn of a bell")
    parser.add_argument("--jobs", type=int, default=60_000, help="of one drain")
    parser.add_argument("--once", action="store_true", help="tiny, no verdict in the exit code")
    options = parser.parse_args()
    if options.once:
        options.ready, options.scale, options.seconds, options.runs = 2_000, 1, 2.0, 1
        options.turns, options.slice, options.jobs, options.tps = 1, 1.0, 500, 50.0
    return options


if __name__ == "__main__":
    raise SystemExit(main())
