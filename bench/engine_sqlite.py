"""What the SQLite store costs without a worker: process CPU and wall time per job in both journal modes, and waking.

`--against OTHER/src` measures another checkout in turns with this one, in processes of their own, and prints ratios:
on a busy machine only CPU figures and the ratios of one run say anything. `--once` shows that the script still works.
"""

import argparse
import json
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parents[1] / "src"
JOURNALS = ("truncate", "wal")
ARGS = b'{"user": %d, "text": "' + b"x" * 70 + b'"}'
Figures = dict[str, float]


def spent(work: Callable[[], int]) -> tuple[int, float, float]:
    """(what it did, CPU seconds of this process, wall seconds)."""
    cpu, wall = time.process_time(), time.perf_counter()
    done = work()
    return done, time.process_time() - cpu, time.perf_counter() - wall


def per_job(name: str, work: Callable[[], int]) -> Figures:
    done, cpu, wall = spent(work)
    return {f"{name} cpu us": cpu / done * 1e6, f"{name} per s": done / wall}


def open_store(folder: Path, journal: str) -> Any:
    from duly.stores.sqlite.store import SQLiteStore

    folder.mkdir(exist_ok=True)
    store = SQLiteStore(folder / f"{journal}.db", journal=journal)  # type: ignore[arg-type]
    store.schema.migrate()
    return store


def new_job(number: int = 0) -> Any:
    from duly.core.job import NewJob

    return NewJob("default", "ok", ARGS % number)


def register(store: Any) -> Any:
    from duly.core.job import WorkerInfo

    minute = timedelta(minutes=1)
    return store.leases.register(
        WorkerInfo("here", 1, "bench", ("default",), {"ok": minute}, minute, minute, 500, "bench")
    )


def fill_keyed(store: Any, jobs: int) -> None:
    """Jobs with a unique key of their own and two tags."""
    from duly.core.job import NewJob, UniqueKey

    tags = ("customer:7", "bench")
    for start in range(0, jobs, 1_000):
        few = range(start, min(start + 1_000, jobs))
        store.jobs.enqueue(
            [NewJob("default", "ok", ARGS % one, tags=tags, unique=UniqueKey(os.urandom(16))) for one in few]
        )


def rounds(store: Any, batch: int, jobs: int) -> int:
    """Claim and complete as a worker does with jobs that take no time: one exchange in flight."""
    from duly.core.job import ClaimRequest, Counters, Ended, QueueClaim
    from duly.core.lifecycle import Event, State

    incarnation = register(store)
    request = ClaimRequest((QueueClaim("default", batch),), batch)
    none, instant = Counters(), timedelta(microseconds=5)
    ended: list[Any] = []
    done = 0
    while done < jobs:
        answer = store.jobs.exchange(incarnation, ended, request)
        if len(answer.acked) != len(ended):
            raise SystemExit("an end was refused")
        done += len(ended)
        ended = [
            Ended(job.id, job.run, Event.complete, State.completed, none, elapsed=instant)
            for job in answer.claimed
        ]
        if not ended:
            break
    store.leases.retire(incarnation)
    return done


def bare(path: Path, journal: str, count: int) -> Callable[[], int]:
    """A commit of one small row each, as safe as the store's."""

    def work() -> int:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute(f"pragma journal_mode = {journal}").fetchall()
            connection.execute("pragma synchronous = full")
            connection.execute("create table if not exists bare (id integer primary key, args blob)")
            for _ in range(count):
                connection.execute("begin immediate")
                connection.execute("insert into bare (args) values (?)", (ARGS,))
                connection.execute("commit")
        return count

    return work


def measure(journal: str, folder: Path, scale: int) -> Figures:
    """One slice of everything but waking."""
    store, job = open_store(folder, journal), new_job()
    store.jobs.enqueue([job])
    figures: Figures = {}

    def single() -> int:
        for _ in range(40 * scale):
            store.jobs.enqueue([job])
        return 40 * scale

    limit = per_job("bare commit", bare(folder / f"bare-{journal}.db", journal, 40 * scale))
    figures |= limit
    figures |= per_job("enqueue one", single)
    figures["enqueue one / bare commit"] = figures["enqueue one per s"] / limit["bare commit per s"]
    thousand = [new_job(number) for number in range(1_000)]
    figures |= per_job(
        "enqueue 1000", lambda: len([store.jobs.enqueue(thousand) for _ in range(scale)]) * 1_000
    )
    figures |= per_job("exchange k=50", lambda: rounds(store, 50, 300 * scale))
    figures |= per_job("exchange k=500", lambda: rounds(store, 500, 700 * scale))
    # What is left of the jobs above would come first.
    rounds(store, 500, 2_000 * scale)
    fill_keyed(store, 600 * scale)
    figures |= per_job("exchange k=500, keyed", lambda: rounds(store, 500, 600 * scale))
    store.close()
    return figures


def wakes(journal: str, folder: Path, scale: int) -> Figures:
    """Milliseconds from just before an enqueue in another process to a call of an idle listener in this one."""
    store = open_store(folder, journal)
    rung: list[int] = []
    listener = store.listen(lambda: rung.append(time.monotonic_ns()))
    idle = time.process_time()
    time.sleep(0.5)
    share = (time.process_time() - idle) / 0.5
    command = [sys.executable, __file__, "--ring", str(folder), "--journal", journal, "--scale", str(scale)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ)
    time.sleep(0.1)
    listener.close()
    store.close()
    delays = []
    for sent in map(int, done.stdout.split()):
        delays += [
            (at - sent) / 1e6 for at in [next((at for at in rung if at >= sent), None)] if at is not None
        ]
    delays.sort()
    return {
        "wake p50 ms": delays[len(delays) // 2],
        "wake p99 ms": delays[int(len(delays) * 0.99)],
        "idle listener % of a core": share * 100,
    }


def ring(journal: str, folder: Path, scale: int) -> None:
    """The other process: an enqueue now and then, and when each began."""
    store, job = open_store(folder, journal), new_job()
    store.jobs.enqueue([job])
    for number in range(10 * scale):
        time.sleep(0.05 + (number % 7) * 0.003)
        print(time.monotonic_ns())
        store.jobs.enqueue([job])
    store.close()


def slices(source: Path, journal: str, options: argparse.Namespace) -> Iterator[Figures]:
    """A process of its own for each, so that two checkouts can take turns."""
    environment = dict(os.environ, PYTHONPATH=str(source))
    for kind in ("--slice", "--wakes"):
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            command = [
                sys.executable,
                __file__,
                kind,
                folder,
                "--journal",
                journal,
                "--scale",
                str(options.scale),
            ]
            done = subprocess.run(command, capture_output=True, text=True, env=environment)
        if done.returncode:
            raise SystemExit(done.stderr)
        yield json.loads(done.stdout)


def table(journal: str, sources: list[Path], options: argparse.Namespace) -> None:
    seen: dict[Path, dict[str, list[float]]] = {source: {} for source in sources}
    for _ in range(options.runs):
        for source in sources:
            for figures in slices(source, journal, options):
                for name, value in figures.items():
                    seen[source].setdefault(name, []).append(value)
    print(
        f"\n{journal}, SQLite {sqlite3.sqlite_version}, Python {sys.version.split()[0]}, medians of {options.runs}"
    )
    heads = ["here"] if len(sources) == 1 else ["other", "here", "here / other"]
    print("| | " + " | ".join(heads) + " |")
    print("|---" * (len(heads) + 1) + "|")
    for name in seen[sources[-1]]:
        medians = [statistics.median(seen[source][name]) for source in sources]
        cells = [f"{value:,.2f}" if value < 100 else f"{value:,.0f}" for value in medians]
        if len(medians) == 2:
            cells.append(f"{medians[1] / medians[0]:.2f}" if medians[0] else "-")
        print(f"| {name} | " + " | ".join(cells) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--against", type=Path, help="the src folder of another checkout")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--scale", type=int, default=20)
    parser.add_argument("--folder", type=Path, help="where the files are made; default: the temporary folder")
    parser.add_argument("--journal", choices=JOURNALS)
    parser.add_argument("--once", action="store_true")
    for hidden in ("--slice", "--wakes", "--ring"):
        parser.add_argument(hidden, type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.slice or options.wakes:
        work = measure if options.slice else wakes
        print(json.dumps(work(options.journal, options.slice or options.wakes, options.scale)))
        return
    if options.ring:
        ring(options.journal, options.ring, options.scale)
        return
    if options.once:
        options.runs, options.scale = 1, 1
    sources = [SOURCE] if options.against is None else [options.against, SOURCE]
    for journal in [options.journal] if options.journal else JOURNALS:
        table(journal, sources, options)


if __name__ == "__main__":
    main()
