"""The ledger: one append-only file that every process of the drill writes whole lines to, and what is read from it.

A line is `KIND n job attempt pid parent monotonic_ns`. CLOCK_MONOTONIC is one clock for all processes of the machine.
"""

import os
import time
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

PATH = "DRILL_LEDGER"

STARTED, TICK, ENDED, STEPPED = "S", "T", "E", "F"
ENQUEUED, COMMITTED, ROLLED_BACK = "P", "C", "R"
# `n` is the number of the lock, or of the batch, whose id then stands in the place of the job.
LOCKED, UNLOCKED, BATCHED = "L", "U", "B"


class Line(NamedTuple):
    """One thing that some process saw itself do."""

    kind: str
    n: int
    job: int
    attempt: int
    pid: int
    parent: int
    at: int


class Run(NamedTuple):
    """One run of a handler: from its first line to the last sign of life."""

    n: int
    job: int
    attempt: int
    pid: int
    parent: int
    start: int
    last: int
    ended: bool


_file: dict[int, int] = {}


def write(kind: str, n: int, job: int = 0, attempt: int = 0) -> None:
    """Append one line; a single write to an O_APPEND file, so that lines of many processes never mix."""
    pid = os.getpid()
    if pid not in _file:
        _file[pid] = os.open(os.environ[PATH], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(_file[pid], f"{kind} {n} {job} {attempt} {pid} {os.getppid()} {time.monotonic_ns()}\n".encode())


def read(path: Path) -> list[Line]:
    """Every whole line."""
    lines = []
    for text in path.read_text().splitlines():
        kind, *numbers = text.split()
        if len(numbers) == 6:
            lines.append(Line(kind, *map(int, numbers)))
    return lines


def runs(lines: Iterable[Line]) -> dict[int, list[Run]]:
    """The runs of each job, by its id, in the order of their starts."""
    open_runs: dict[tuple[int, int], Run] = {}
    done: dict[int, list[Run]] = defaultdict(list)
    for line in lines:
        key = (line.job, line.pid)
        if line.kind == STARTED:
            if key in open_runs:
                done[line.job].append(open_runs.pop(key))
            open_runs[key] = Run(
                line.n, line.job, line.attempt, line.pid, line.parent, line.at, line.at, False
            )
        elif line.kind in (TICK, ENDED, STEPPED) and key in open_runs:
            open_runs[key] = open_runs[key]._replace(last=line.at, ended=line.kind == ENDED)
            if line.kind == ENDED:
                done[line.job].append(open_runs.pop(key))
    for run in open_runs.values():
        done[run.job].append(run)
    return {job: sorted(found, key=lambda run: run.start) for job, found in done.items()}


def overlaps(found: list[Run]) -> list[tuple[Run, Run]]:
    """Pairs of runs of one job that were seen alive at the same time."""
    return [
        (a, b) for i, a in enumerate(found) for b in found[i + 1 :] if b.start < a.last and a.start < b.last
    ]
