"""`make bench-control`: what do keys, tenants, limits and depths cost those who use them, and those who do not?

One table with a target beside each figure, for PostgreSQL on a server of the bench's own and for SQLite. Figures are
ratios of medians of turns in one run. `--once` is tiny: its verdicts mean nothing.
"""

import argparse
import contextlib
from collections.abc import Iterator
from pathlib import Path

from bench.controlling import blocked, depth, ordered, plain, turns
from bench.controlling.place import Make, maker
from bench.controlling.report import BEGIN, END, Report, machine
from bench.flatness.server import server
from bench.peers.table import replaced
from tests.services import PostgresServer

PARTS = ("blocked", "plain", "depth", "turns", "ordered")
STORES = ("postgres", "sqlite")
NAMES = {"postgres": "PostgreSQL", "sqlite": "SQLite"}


def main() -> int:
    """0 when every target is met; with --once, when everything ran."""
    options = _options()
    report, headers = Report(), list[str]()
    for store in options.stores.split(","):
        with _server(store, options) as started:
            headers.append(machine(started))
            for part in options.parts.split(","):
                _run(part, NAMES[store], maker(started), started, report, options)
    print(f"\n{headers[0]}\n{report.noise()}")
    missed = report.missed
    print(f"{len(missed)} target(s) missed." if missed else "All targets met.", flush=True)
    if options.write:
        page = Path(options.write)
        page.write_text(replaced(page.read_text(), report.block(headers[:1]), (BEGIN, END)))
    return 1 if missed and not options.once else 0


def _run(
    part: str,
    store: str,
    make: Make,
    started: PostgresServer | None,
    report: Report,
    options: argparse.Namespace,
) -> None:
    once: bool = options.once
    if part == "blocked":
        blocked.run(store, make, started, report, options.jobs, 2 if once else options.turns * 2)
    elif part == "plain":
        plain.run(store, make, started, report, 0.03 if once else 1.0, 1 if once else options.turns)
    elif part == "turns":
        turns.run(store, make, started, report, options.jobs, turns.SHORT if once else turns.PHASES)
    elif part == "depth":
        depth.run(store, make, started, report, 0.02 if once else 1.0, 1 if once else options.turns)
    else:
        ordered.run(store, make, started, report, 300 if once else 50_000, 1 if once else 3)


@contextlib.contextmanager
def _server(store: str, options: argparse.Namespace) -> Iterator[PostgresServer | None]:
    if store == "sqlite":
        yield None
        return
    with server(options.postgres) as started:
        yield started


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parts", default=",".join(PARTS), help="of " + ", ".join(PARTS))
    parser.add_argument("--stores", default=",".join(STORES), help="of " + ", ".join(STORES))
    parser.add_argument("--postgres", type=int, default=15, help="major version")
    parser.add_argument("--jobs", type=int, default=1_000_000, help="jobs that wait")
    parser.add_argument("--turns", type=int, default=11, help="slices of each figure")
    parser.add_argument("--write", metavar="PAGE", help="put the table into the marked block of this page")
    parser.add_argument("--once", action="store_true", help="tiny sizes, no verdict in the exit code")
    options = parser.parse_args()
    if options.once:
        options.jobs = 500
    return options


if __name__ == "__main__":
    raise SystemExit(main())
