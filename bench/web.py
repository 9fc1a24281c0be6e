"""`make bench-web`: how long do the dashboard, and each look-up of the API, take with 5,000,000 jobs in the store?

A file and a database are filled with jobs in every state; then a real `duly serve` is asked for everything over HTTP,
by one client. Prints p50 and p99 beside the target. `--once` is tiny: its verdicts mean nothing.
"""

import argparse
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from bench.controlling.report import machine
from bench.dashboard import filling, questions, templates
from bench.dashboard.asking import ASKED, Client, Timing, ask, serving
from bench.dashboard.engines import engine_of
from bench.flatness.server import server
from bench.peers.machine import Others
from bench.peers.table import number, replaced
from duly import App
from duly.core.bearer import digest_of, make_text
from duly.core.durations import format_duration
from duly.core.filters import Filter
from duly.core.lifecycle import State
from tests.services import PostgresServer

TARGET = 300.0
"""Milliseconds, of a page and of a look-up, at p99."""
STORES = ("sqlite", "postgres")
NAMES = {"sqlite": "SQLite", "postgres": "PostgreSQL"}
BEGIN, END = "<!-- begin: make bench-web -->", "<!-- end: make bench-web -->"
HEAD = "| store | what | the first time, ms | p50, ms | p99, ms | kB | |\n|---|---|--:|--:|--:|--:|---|"


class Report:
    """Lines as they are found out."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.lines: list[str] = []
        self.missed: list[str] = []

    def note(self, text: str) -> None:
        print(text, flush=True)
        self.notes.append(text)

    def row(self, store: str, timing: Timing) -> None:
        good = timing.p99 <= TARGET
        cells = [number(timing.first), number(timing.p50), number(timing.p99), number(timing.size / 1_000)]
        verdict = "met" if good else "**missed**"
        line = f"| {store} | {timing.question.name} | {' | '.join(cells)} | {verdict} |"
        if not self.lines:
            print(HEAD)
        print(line, flush=True)
        self.lines.append(line)
        if not good:
            self.missed.append(f"{store}: {timing.question.name}")

    def block(self) -> str:
        """All of it, for a page."""
        told = "\n".join(f"- {note}" for note in self.notes)
        return f"{told}\n\n{HEAD}\n" + "\n".join(self.lines)


def main() -> int:
    """0 when every target is met; with --once, when everything ran."""
    options = _options()
    report = Report()
    report.note(machine(None))
    for store in options.stores.split(","):
        with _place(store, options) as (url, folder, started):
            _measure(NAMES[store], url, folder, started, report, options)
    missed = report.missed
    print(f"{len(missed)} target(s) of {TARGET:.0f} ms missed." if missed else "All targets met.", flush=True)
    if options.write:
        page = Path(options.write)
        page.write_text(replaced(page.read_text(), report.block(), (BEGIN, END)))
    return 1 if missed and not options.once else 0


def _measure(
    store: str,
    url: str,
    folder: Path,
    started: PostgresServer | None,
    report: Report,
    options: argparse.Namespace,
) -> None:
    filled = folder / "filled"
    if not filled.exists():
        took = _fill(url, options.size)
        filled.write_text(str(options.size))
        report.note(
            f"{store}: {options.size:,} jobs, filled in {format_duration(timedelta(seconds=round(took)))}"
        )
    token = _token(url)
    facts = _facts(url)
    others = Others([] if started is None or started.pid is None else [started.pid])
    with serving(url, folder) as port:
        client = Client(port, token)
        for question in [*questions.api(facts), *questions.pages(facts)]:
            if options.only in question.name:
                report.row(store, ask(client, question, options.times))
        client.close()
    report.note(f"{store}: others used {others.cores():.2f} cores meanwhile")


def _fill(url: str, size: int) -> float:
    app = App(url)
    app.store.schema.migrate()
    made = templates.make(app.store)
    app.close()
    return filling.fill(engine_of(url), made, size)


def _token(url: str) -> str:
    app = App(url)
    text = make_text(os.urandom(32))
    app.store.tokens.put(f"bench-{text[5:13]}", digest_of(text), ["admin"], None, "bench", "to measure")
    app.close()
    return text


def _facts(url: str) -> questions.Facts:
    app = App(url)

    def newest(state: State, before: int | None = None) -> int:
        return app.inspect.jobs(Filter(state=state), before=before, limit=1).jobs[0].id

    last = app.inspect.jobs(limit=1).jobs[0].id
    groups = app.inspect.dead_groups()
    completed = newest(State.completed, last // 2)
    found = questions.Facts(
        newest=last,
        completed=completed,
        dead=newest(State.dead),
        running=newest(State.running),
        blocked=newest(State.blocked),
        ready=newest(State.ready),
        fingerprint=groups[0].fingerprint,
        rare_fingerprint=groups[-1].fingerprint,
        correlation=f"order-{completed // 10}",
    )
    app.close()
    return found


@contextmanager
def _place(store: str, options: argparse.Namespace) -> Iterator[tuple[str, Path, PostgresServer | None]]:
    """An empty store, gone afterwards; with --folder a file that stays, and is filled once."""
    with tempfile.TemporaryDirectory(prefix="duly-web-", dir=None) as scratch:
        folder = Path(options.folder or scratch)
        if store == "sqlite":
            yield f"sqlite:///{folder.resolve()}/jobs.db", folder, None
            return
        with server(options.postgres) as started:
            yield started.url(started.create_database()), Path(scratch), started


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", type=int, default=5_000_000, help="jobs in each store")
    parser.add_argument("--stores", default=",".join(STORES), help="of " + ", ".join(STORES))
    parser.add_argument("--postgres", type=int, default=15, help="major version")
    parser.add_argument("--times", type=int, default=ASKED, help="how often each question is asked")
    parser.add_argument("--only", default="", metavar="WORDS", help="questions whose names have these words")
    parser.add_argument("--folder", help="keep SQLite's file in this folder, and use it again")
    parser.add_argument("--write", metavar="PAGE", help="put the table into the marked block of this page")
    parser.add_argument("--once", action="store_true", help="tiny sizes, no verdict in the exit code")
    options = parser.parse_args()
    if options.once:
        options.size, options.times = 5_000, 1
    return options


if __name__ == "__main__":
    raise SystemExit(main())
