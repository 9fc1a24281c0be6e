"""Ten slots, 10,000 reports of 30 s waiting and running: how long until a password reset on another queue starts.

`python -m bench.latency`: one worker process with default queue settings; prints p50, p99 and the maximum for handlers
on the loop, in threads and in processes, on SQLite and, with --url, on PostgreSQL. Target: p99 within 100 ms.
"""

import argparse
import importlib
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from duly import App

ROOT = Path(__file__).parents[1]
APP = "bench.latency_app"
KINDS = {"on_the_loop": "--concurrency", "in_a_thread": "--threads", "in_a_process": "--isolated"}


def wait_for(ready: Callable[[], bool], seconds: float, what: str) -> None:
    end = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > end:
            raise SystemExit(f"gave up waiting for {what}")
        time.sleep(0.02)


def _long_enough(log: Path, size: int) -> bool:
    return log.stat().st_size >= size


def _running(jobs: App) -> int:
    return sum(count.running for count in jobs.store.inspection.counts() if count.queue == "reports")


def measure(kind: str, url: str, folder: Path, reports: int, resets: int) -> list[float]:
    """Latencies in milliseconds, sorted."""
    os.environ.update(DULY_URL=url, LATENCY_LOG=str(folder / f"{kind}.log"))
    sys.modules.pop(APP, None)
    app = importlib.import_module(APP)
    app.jobs.store.schema.migrate()
    report, reset = getattr(app, f"report_{kind}"), getattr(app, f"reset_{kind}")
    app.jobs.enqueue_many(report.draft(30.0) for _ in range(reports))
    log = Path(os.environ["LATENCY_LOG"])
    log.touch()
    command = [
        sys.executable,
        "-m",
        "duly.cli.main",
        "worker",
        f"{APP}:jobs",
        KINDS[kind],
        "10",
        "--grace",
        "1s",
    ]
    worker = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, start_new_session=True)
    try:
        running = partial(_running, app.jobs)
        wait_for(lambda: running() >= 9, 60, "nine running reports")
        reset.enqueue(0.0)
        wait_for(lambda: log.stat().st_size >= 16, 30, "the first reset")
        for number in range(resets):
            reset.enqueue(time.time())
            wanted = 16 * (number + 2)
            wait_for(partial(_long_enough, log, wanted), 30, "a reset")
            time.sleep(0.05)
    finally:
        worker.send_signal(signal.SIGTERM)
        worker.wait(30)
    rows = struct.iter_unpack("dd", log.read_bytes())
    return sorted((started - sent) * 1000 for started, sent in rows if sent)


def main() -> int:
    """0 when p99 is within 100 ms for every kind, and with --once however late it was."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", help="a fresh PostgreSQL database; default: a new SQLite file")
    parser.add_argument("--reports", type=int, default=10_000)
    parser.add_argument("--resets", type=int, default=200)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--once", action="store_true", help="a few of each, to see that it runs")
    options = parser.parse_args()
    if options.once:
        options.reports, options.resets = 20, 2
    late = False
    print("| handlers | p50 ms | p99 ms | max ms |\n|---|---|---|---|")
    for kind in options.kinds.split(","):
        with tempfile.TemporaryDirectory() as folder:
            url = options.url or f"sqlite:///{folder}/latency.db"
            found = measure(kind, url, Path(folder), options.reports, options.resets)
        p99 = found[min(len(found) - 1, int(len(found) * 0.99))]
        late |= p99 > 100
        print(f"| {kind} | {found[len(found) // 2]:.1f} | {p99:.1f} | {found[-1]:.1f} |", flush=True)
    return 1 if late and not options.once else 0


if __name__ == "__main__":
    raise SystemExit(main())
