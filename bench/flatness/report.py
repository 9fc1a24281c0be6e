"""What a measurement has found: a table, and one line per target with met or missed. Measures nothing but the noise."""

import os
import platform
import statistics
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version

from bench.flatness.server import Used
from tests.services import PostgresServer

BUSY = 0.10
"""Above this share of the machine for others, wall times say little: then CPU time decides where it can."""


@dataclass(slots=True)
class Report:
    """Lines as they are found out, and the verdicts."""

    missed: list[str] = field(default_factory=list)
    foreign: list[float] = field(default_factory=list)

    def title(self, text: str) -> None:
        print(f"\n## {text}\n", flush=True)

    def say(self, text: str) -> None:
        print(text, flush=True)

    def table(self, head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        print("| " + " | ".join(head) + " |\n|" + "---|" * len(head))
        for row in rows:
            print("| " + " | ".join(row) + " |")
        print(flush=True)

    def saw(self, *used: Used) -> None:
        """Note how busy the machine was with other things."""
        self.foreign += [one.foreign for one in used]

    def busy(self, *used: Used) -> bool:
        return any(one.foreign > BUSY for one in used)

    def target(self, what: str, found: float, most: float, unit: str = "", *, at_least: bool = False) -> None:
        """One target with its verdict."""
        good = found >= most if at_least else found <= most
        sign = ">=" if at_least else "<="
        print(
            f"{'met   ' if good else 'MISSED'}  {what}: {found:.3g}{unit} (target {sign} {most:g}{unit})",
            flush=True,
        )
        if not good:
            self.missed.append(what)

    def end(self) -> int:
        """The noise and what was missed; how many."""
        if self.foreign:
            worst, middle = max(self.foreign), statistics.median(self.foreign)
            print(
                f"\nNoise: other processes took {middle:.0%} of this machine's CPU time in the median slice,"
                f" {worst:.0%} in the worst."
            )
        print(f"{len(self.missed)} target(s) missed." if self.missed else "All targets met.", flush=True)
        return len(self.missed)


def ratio(part: float, whole: float) -> float:
    """1 where too little was measured to tell."""
    return part / whole if part and whole else 1.0


def machine(server: PostgresServer) -> str:
    """Where all this was measured."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    shown = server.execute(
        "select string_agg(name || '=' || current_setting(name), ' ') from unnest(array['server_version',"
        " 'shared_buffers', 'max_wal_size', 'synchronous_commit', 'fsync', 'autovacuum', 'wal_level']) name"
    )
    return (
        f"{time.strftime('%Y-%m-%d %H:%M UTC', time.gmtime())} · {os.cpu_count()} cores, {memory:.0f} GiB,"
        f" {platform.system()} {platform.release()} · Python {platform.python_version()}, psycopg {version('psycopg')}"
        f" · PostgreSQL {shown[0][0]}"
    )
