"""The table: a line a figure, its target and whether it is met. Measures nothing but the noise."""

import os
import platform
import sqlite3
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import version

from bench.peers.machine import Others
from tests.services import PostgresServer

BEGIN, END = "<!-- begin: make bench-control -->", "<!-- end: make bench-control -->"
HEAD = "| store | what | without | with | figure | target | |\n|---|---|--:|--:|--:|--:|---|"
BUSY = 0.2
"""Above this many cores for others, processor time decides where wall time would."""


@dataclass(slots=True)
class Report:
    """Lines as they are found out, and the verdicts."""

    lines: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    foreign: list[float] = field(default_factory=list)

    def row(
        self,
        store: str,
        what: str,
        cells: Sequence[str],
        found: float,
        target: float | None,
        unit: str = "",
        *,
        at_least: bool = False,
    ) -> None:
        """One figure; `cells`: without and with what is measured."""
        good = target is None or (found >= target if at_least else found <= target)
        told = "" if target is None else f"{'≥' if at_least else '≤'} {number(target)}{unit}"
        verdict = "" if target is None else "met" if good else "**missed**"
        line = f"| {store} | {what} | {' | '.join(cells)} | {number(found)}{unit} | {told} | {verdict} |"
        if not self.lines:
            print(HEAD)
        print(line, flush=True)
        self.lines.append(line)
        if not good:
            self.missed.append(f"{store}: {what}")

    def watch(self, server: PostgresServer | None) -> Others:
        """Who else is busy from now on; handed back to `saw`."""
        return Others([] if server is None or server.pid is None else [server.pid])

    def saw(self, others: Others) -> bool:
        """Note how many cores others had; whether that was too many for wall times."""
        self.foreign.append(others.cores())
        return self.foreign[-1] > BUSY

    def block(self, header: Sequence[str]) -> str:
        """All of it, for a page."""
        told = [*header, self.noise()]
        return "\n".join(f"- {line}" for line in told) + "\n\n" + "\n".join([HEAD, *self.lines])

    def noise(self) -> str:
        if not self.foreign:
            return "nothing was measured"
        return (
            f"others used {statistics.median(self.foreign):.2f} cores in the median row,"
            f" {max(self.foreign):.2f} in the worst; above {BUSY} cores ratios are of processor time, else of wall time"
        )


def number(value: float) -> str:
    """1,234 or 12.3 or 1.23."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def milliseconds(seconds: float) -> str:
    return f"{number(seconds * 1e3)} ms"


def machine(server: PostgresServer | None) -> str:
    """Where all this was measured."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    told = [
        time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        f"{os.cpu_count()} cores, {memory:.0f} GiB",
        f"{platform.system()} {platform.release()}",
        f"Python {platform.python_version()}",
        f"SQLite {sqlite3.sqlite_version}",
    ]
    if server is not None:
        (row,) = server.execute("select current_setting('server_version'), current_setting('fsync')")
        told.append(f"PostgreSQL {row[0]} (fsync {row[1]}), psycopg {version('psycopg')}")
    return ", ".join(told)
