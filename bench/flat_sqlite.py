"""Is SQLite as fast with a million jobs in the file as when empty, does the file stay bounded, do processes get along?

For each journal mode: process CPU per job with 1,000,000 ready and 1,000,000 finished jobs, beside an empty file; the
file's size while jobs are run and forgotten; and three producers beside two consumers in processes of their own.
"""

import argparse
import json
import os
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

from bench import engine_sqlite as engine

sys.path.insert(0, str(engine.SOURCE))

CHUNK = 1_000
ALLOWED = 1.25
LONGEST_MS = 150.0
Row = dict[str, float]


def fill(store: Any, jobs: int) -> None:
    for start in range(0, jobs, CHUNK):
        store.jobs.enqueue([engine.new_job(start + number) for number in range(min(CHUNK, jobs - start))])


def measured(store: Any, scale: int) -> Row:
    """What it costs now. Leaves as many ready jobs as it found."""
    row: Row = {}
    job, waits, calls = engine.new_job(), [], 10 * scale
    before = time.process_time()
    for _ in range(calls):
        began = time.perf_counter()
        store.jobs.enqueue([job])
        waits.append((time.perf_counter() - began) * 1_000)
    row["enqueue one cpu us"] = (time.process_time() - before) / calls * 1e6
    row["enqueue one p50 ms"] = statistics.median(waits)
    for name, batch, jobs in (("k=50", 50, 100 * scale), ("k=500", 500, 500 * scale)):
        before = time.process_time()
        fill(store, jobs)
        filled = time.process_time()
        done = engine.rounds(store, batch, jobs)
        row["enqueue 1000 cpu us"] = (filled - before) / jobs * 1e6
        row[f"exchange {name} cpu us"] = (time.process_time() - filled) / done * 1e6
    engine.rounds(store, 500, calls)
    return row


def flat(journal: str, folder: Path, options: argparse.Namespace) -> bool:
    """Print the table; True when nothing costs over a quarter more than in an empty file."""
    stores = {name: engine.open_store(folder / name, journal) for name in ("empty", "ready", "finished")}
    fill(stores["ready"], options.jobs)
    fill(stores["finished"], options.jobs)
    engine.rounds(stores["finished"], 1_000, options.jobs)
    seen: dict[str, list[Row]] = {name: [] for name in stores}
    for _ in range(options.runs):
        for name, store in stores.items():
            seen[name].append(measured(store, options.scale))
    print(
        f"\n| {journal} | empty | {options.jobs:,} ready | {options.jobs:,} finished kept |\n|---|--:|--:|--:|"
    )
    level = True
    for figure in seen["empty"][0]:
        medians = {name: statistics.median(row[figure] for row in rows) for name, rows in seen.items()}
        cells = [f"{medians['empty']:.2f}"]
        for name in ("ready", "finished"):
            ratio = medians[name] / medians["empty"]
            level = level and (ratio <= ALLOWED or "cpu" not in figure)
            cells.append(f"{medians[name]:.2f} ({ratio:.2f})")
        print(f"| {figure} | " + " | ".join(cells) + " |")
    sizes = [size(folder / name / f"{journal}.db") for name in stores]
    print("| file MB | " + " | ".join(f"{megabytes:.0f}" for megabytes in sizes) + " |")
    for store in stores.values():
        store.close()
    return level


def size(path: Path) -> float:
    files = [Path(f"{path}{suffix}") for suffix in ("", "-wal", "-journal")]
    return sum(file.stat().st_size for file in files if file.exists()) / 1e6


def grow(journal: str, folder: Path, options: argparse.Namespace) -> bool:
    """Let jobs flow through and be forgotten, round by round; True when the file has stopped growing."""
    store, sizes = engine.open_store(folder, journal), []
    now = timedelta(0)
    for _ in range(8):
        fill(store, options.jobs // 20)
        engine.rounds(store, 500, options.jobs // 20)
        while store.upkeep.retain({}, {}, now, now):
            pass
        sizes.append(size(folder / f"{journal}.db"))
    store.close()
    print(
        f"\n{journal}: file and journal after each {options.jobs // 20:,} jobs that were run and forgotten, MB: ",
        end="",
    )
    print(", ".join(f"{megabytes:.0f}" for megabytes in sizes))
    return sizes[-1] <= sizes[2] * 1.05


def produce(folder: Path, journal: str, seconds: float) -> None:
    """Enqueue one a call, with short pauses; prints every call's milliseconds and every error."""
    store, waits, errors = engine.open_store(folder, journal), list[float](), list[str]()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        began = time.perf_counter()
        try:
            store.jobs.enqueue([engine.new_job(len(waits))])
        except Exception as error:
            errors.append(f"{type(error).__name__}: {error}")
        waits.append((time.perf_counter() - began) * 1_000)
        time.sleep(0.002)
    store.close()
    print(json.dumps({"waits": waits, "errors": errors}))


def consume(folder: Path, journal: str, seconds: float) -> None:
    """Claim and complete whatever is there; prints how many and every error."""
    store, errors, done = engine.open_store(folder, journal), [], 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            done += engine.rounds(store, 100, 10_000)
        except Exception as error:
            errors.append(f"{type(error).__name__}: {error}")
        time.sleep(0.001)
    store.close()
    print(json.dumps({"done": done, "errors": errors}))


def many(journal: str, folder: Path, options: argparse.Namespace) -> bool:
    """Three producers and two consumers; True when nobody saw an error or waited too long."""
    engine.open_store(folder, journal).close()
    words = ["--folder", str(folder), "--journal", journal, "--seconds", str(options.seconds)]
    commands = [
        [sys.executable, "-m", "bench.flat_sqlite", "--act", act, *words]
        for act in ["produce"] * 3 + ["consume"] * 2
    ]
    started = [
        subprocess.Popen(command, cwd=engine.SOURCE.parent, stdout=subprocess.PIPE, text=True)
        for command in commands
    ]
    answers = [json.loads(process.communicate()[0]) for process in started]
    waits = sorted(wait for answer in answers for wait in answer.get("waits", ()))
    errors = [error for answer in answers for error in answer["errors"]]
    done = sum(answer.get("done", 0) for answer in answers)
    p50, p99 = waits[len(waits) // 2], waits[int(len(waits) * 0.99)]
    print(
        f"\n{journal}: 3 producers, 2 consumers, {options.seconds:.0f} s: {len(waits):,} enqueued, {done:,} run"
    )
    print(
        f"enqueue p50 {p50:.1f} ms, p99 {p99:.1f} ms, max {waits[-1]:.0f} ms; {len(errors)} errors {errors[:3]}"
    )
    limit = engine.per_job("commit", engine.bare(folder / "bare.db", journal, 200))["commit per s"]
    print(f"a bare commit alone takes {1_000 / limit:.1f} ms on this disk now")
    return not errors and waits[-1] <= LONGEST_MS


def main() -> int:
    """0 when all is as flat as it should be, or with --once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--scale", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--folder", type=Path, help="where the files are made; default: the temporary folder")
    parser.add_argument("--journal", choices=engine.JOURNALS)
    parser.add_argument("--only", choices=("flat", "grow", "many"))
    parser.add_argument("--act", choices=("produce", "consume"), help=argparse.SUPPRESS)
    parser.add_argument("--once", action="store_true")
    options = parser.parse_args()
    if options.act:
        {"produce": produce, "consume": consume}[options.act](
            options.folder, options.journal, options.seconds
        )
        return 0
    if options.once:
        options.jobs, options.runs, options.scale, options.seconds = 2_000, 1, 1, 1.0
    print(f"SQLite {sqlite3.sqlite_version}, Python {sys.version.split()[0]}, load {os.getloadavg()[0]:.1f}")
    parts = {"flat": flat, "grow": grow, "many": many}
    kept = True
    for journal in [options.journal] if options.journal else engine.JOURNALS:
        for name, part in parts.items():
            if options.only in {None, name}:
                folder = Path(tempfile.mkdtemp(dir=options.folder))
                kept = part(journal, folder, options) and kept
                shutil.rmtree(folder)
    print("as flat as it should be" if kept else "not as flat as it should be")
    return 0 if kept or options.once else 1


if __name__ == "__main__":
    sys.exit(main())
