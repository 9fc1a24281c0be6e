"""`make bench-flat`: does duly stay as fast as it was, whatever lies in the database?

A curve, a table and targets met or missed for each part, of the product (its App and `duly worker`) on a PostgreSQL
server of the bench's own under /tmp, which needs up to 25 GB, and of its store on SQLite files. `--once` is tiny: its
verdicts mean nothing.
"""

import argparse
import subprocess
import sys
from collections.abc import Callable

from bench.flatness import growing, pinned, retaining, sized, standing
from bench.flatness.report import Report, machine
from bench.flatness.server import server

PARTS = ("pinned", "sized", "retention", "growth", "standing", "sqlite")
SHORT = {
    "flow": 2_000,
    "probes": 10,
    "pins": "reader",
    "no_reader": True,
    "finished": 2_000,
    "scheduled": 1_000,
    "ready": 3_000,
    "slices": 50,
    "rounds": 1,
    "calm": 1.0,
    "most": 3_000,
    "jobs": 2_000,
    "idle": 2.0,
}


def main() -> int:
    """0 when every target is met; with --once, when everything ran."""
    options = _options()
    report = Report()
    parts: dict[str, Callable[[], None]] = {
        "pinned": lambda: _pinned(options, report),
        "sized": lambda: _sized(options, report),
        "retention": lambda: _retention(options, report),
        "growth": lambda: _growth(options, report),
        "standing": lambda: _standing(options, report),
        "sqlite": lambda: _sqlite(options, report),
    }
    for part in options.parts.split(","):
        parts[part]()
    missed = report.end()
    return 1 if missed and not options.once else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parts", default=",".join(PARTS), help="of " + ", ".join(PARTS))
    parser.add_argument("--postgres", type=int, default=15, help="major version")
    parser.add_argument("--flow", type=int, default=1_000_000, help="jobs that flow past an old snapshot")
    parser.add_argument("--pins", default=",".join(pinned.PINS), help="of " + ", ".join(pinned.PINS))
    parser.add_argument("--probes", type=int, default=200, help="single jobs per latency")
    parser.add_argument("--finished", type=int, default=5_000_000, help="finished jobs kept, then retained")
    parser.add_argument("--scheduled", type=int, default=1_000_000)
    parser.add_argument("--ready", type=int, default=1_000_000)
    parser.add_argument("--slices", type=int, default=1_000, help="jobs of a slice of W1")
    parser.add_argument("--rounds", type=int, default=5, help="of slices, empty and full in turn")
    parser.add_argument("--calm", type=float, default=30.0, help="seconds of probing before retention")
    parser.add_argument("--no-reader", action="store_true", help="retention without the long reader")
    parser.add_argument(
        "--most", type=int, default=1_000_000, help="jobs through one database; 10,000,000 in full"
    )
    parser.add_argument(
        "--jobs", type=int, default=1_000_000, help="jobs after which memory is looked at, twice"
    )
    parser.add_argument("--idle", type=float, default=30.0, help="seconds of looking at an idle worker")
    parser.add_argument("--once", action="store_true", help="tiny sizes, no verdict in the exit code")
    options = parser.parse_args()
    if options.once:
        vars(options).update(SHORT)
    return options


def _pinned(options: argparse.Namespace, report: Report) -> None:
    with server(options.postgres, wal_level="logical") as started:
        report.say(machine(started))
        pinned.run(started, report, options.flow, options.pins.split(","), options.probes)


def _sized(options: argparse.Namespace, report: Report) -> None:
    sizes = sized.Sizes(options.finished, options.scheduled, options.ready, options.slices, options.rounds)
    with server(options.postgres) as started:
        report.say(machine(started))
        sized.run(started, report, sizes)


def _retention(options: argparse.Namespace, report: Report) -> None:
    with server(options.postgres) as started:
        report.say(machine(started))
        retaining.run(started, report, options.finished, options.calm, reader=not options.no_reader)


def _growth(options: argparse.Namespace, report: Report) -> None:
    with server(options.postgres) as started:
        report.say(machine(started))
        growing.run(started, report, options.most, 300 if options.once else 10_000)


def _standing(options: argparse.Namespace, report: Report) -> None:
    with server(options.postgres, shared_preload_libraries="pg_stat_statements") as started:
        report.say(machine(started))
        standing.run(started, report, options.jobs, options.idle)


def _sqlite(options: argparse.Namespace, report: Report) -> None:
    report.title("SQLite, in each journal mode")
    command = [sys.executable, "-m", "bench.flat_sqlite", *(["--once"] if options.once else [])]
    if subprocess.run(command, check=False).returncode:
        report.missed.append("SQLite")


if __name__ == "__main__":
    raise SystemExit(main())
