"""A process of its own that does one small thing again and again, and says how long it took at worst.

`python -m bench.flatness.probe enqueue|exchange URL`: until its standard input ends. Says one JSON object. A stall is
the time of a call less what it, and its backend, spent waiting for a free CPU: that is the machine's doing, not duly's.
"""

import json
import select
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg

from bench.flatness import tasks
from duly.core.job import ClaimRequest, Counters, Ended, QueueClaim, WorkerInfo
from duly.core.lifecycle import Event, State

_PAUSE = 0.002


def main() -> None:
    what, url = sys.argv[1], sys.argv[2]
    app = tasks.jobs.at(url)
    probed = tasks.probed.using(app=app)
    probed.enqueue(0)
    act = (lambda: probed.enqueue(1)) if what == "enqueue" else _exchange(app)
    act()
    waits = [Path("/proc/self/schedstat"), *_backends(url)]
    stalls, calls = [], []
    print("ready", flush=True)
    while not select.select([sys.stdin], [], [], 0)[0]:
        queued = _queued(waits)
        began = time.perf_counter()
        act()
        took = (time.perf_counter() - began) * 1e3
        calls.append(took)
        stalls.append(max(0.0, took - (_queued(waits) - queued) / 1e6))
        time.sleep(_PAUSE)
    calls.sort()
    stalls.sort()
    print(
        json.dumps({
            "calls": len(calls),
            "p50": calls[len(calls) // 2],
            "worst": calls[-1],
            "stall_p99": stalls[len(stalls) * 99 // 100],
            "stall": stalls[-1],
            "over_100": sum(1 for stall in stalls if stall > 100),
        })
    )  # fmt: skip
    app.close()


def _exchange(app: Any) -> Callable[[], object]:
    """What a worker does with its one job: end it and claim the next."""
    store = app.store
    names = {"probed": timedelta(minutes=15)}
    me = store.leases.register(
        WorkerInfo("probe", 1, "probe:1", ("probe",), names, timedelta(hours=9), timedelta(seconds=5), 1, "0")
    )
    request = ClaimRequest((QueueClaim("probe", 1),), 1)
    ends: list[Ended] = []

    def act() -> None:
        claimed = store.jobs.exchange(me, ends, request).claimed
        ends[:] = [
            Ended(job.id, job.run, Event.complete, State.completed, Counters(), elapsed=timedelta(0))
            for job in claimed
        ]

    return act


def _backends(url: str) -> list[Path]:
    """The run-queue statistics of the backends that serve this process, which by now has connected."""
    with psycopg.connect(url) as connection:
        ports = _own_ports()
        rows = connection.execute(
            "select pid, client_port from pg_stat_activity where client_port > 0"
        ).fetchall()
    return [Path(f"/proc/{pid}/schedstat") for pid, port in rows if port in ports]


def _own_ports() -> set[int]:
    inodes = set()
    for link in Path("/proc/self/fd").iterdir():
        try:
            name = str(link.readlink())
        except OSError:
            continue
        if name.startswith("socket:["):
            inodes.add(name[8:-1])
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return {int(fields[1].rpartition(":")[2], 16) for fields in lines if fields[9] in inodes}


def _queued(paths: list[Path]) -> int:
    """Nanoseconds that these processes have waited for a CPU."""
    found = 0
    for path in paths:
        try:
            found += int(path.read_text().split()[1])
        except OSError:
            continue
    return found


if __name__ == "__main__":
    main()
