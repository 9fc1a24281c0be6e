"""What one job costs on PostgreSQL per kind of call: CPU of backend and client, WAL and rate, beside a bare INSERT.

Goes through the store's own protocol, on a server of its own with fsync on. `--against ../other` measures two trees in
turns. CPU is the scheduler's account (/proc/PID/schedstat, Linux), which a busy machine disturbs far less than rates.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAYLOAD = b'{"text":"' + b"x" * 89 + b'"}'
SETTINGS = {
    "fsync": "on",
    "full_page_writes": "on",
    "wal_level": "replica",
    "shared_buffers": "512MB",
    "max_wal_size": "4GB",
}
WORKLOADS = {
    # name: (calls in a slice, jobs in a call)
    "bare insert": (300, 1),
    "enqueue one": (300, 1),
    "enqueue_many 1000": (10, 1000),
    "exchange 1": (200, 1),
    "exchange 50": (60, 50),
    "exchange 500": (12, 500),
    "exchange 50, keyed": (60, 50),
    "exchange 500, keyed": (12, 500),
}


class Side:
    """One source tree in a process of its own, driven slice by slice."""

    def __init__(self, tree: Path, url: str) -> None:
        environment = dict(os.environ, PYTHONPATH=os.pathsep.join([str(tree / "src"), str(ROOT)]))
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--child", url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
        )
        self.version = self._answer()

    def run(self, workload: str, scale: float) -> dict[str, float]:
        assert self._process.stdin is not None
        print(json.dumps([workload, scale]), file=self._process.stdin, flush=True)
        return dict(self._answer())

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit("a side has ended: see its error above")
        return json.loads(line)


def serve(url: str) -> None:
    """The child: runs what it is told on one store."""
    import psycopg

    from duly.core.job import ClaimRequest, Counters, Ended, NewJob, QueueClaim, UniqueKey
    from duly.core.lifecycle import Event, State
    from duly.stores.postgres.store import PostgresStore
    from tests.stores.postgres.acts import worker

    store = PostgresStore(url)
    store.schema.migrate()
    watch = psycopg.connect(url, autocommit=True, application_name="watch")
    bare = psycopg.connect(url, autocommit=True, application_name="duly", prepare_threshold=0)
    bare.execute(
        "create table if not exists bare (id bigint generated always as identity primary key, at timestamptz"
        " default now(), queue text, payload bytea)"
    )
    me = worker(store, "ok")
    job = NewJob("default", "ok", PAYLOAD)

    def keyed() -> NewJob:
        """With a unique key of its own and two tags."""
        return NewJob(
            "default", "ok", PAYLOAD, tags=("customer:7", "bench"), unique=UniqueKey(os.urandom(16))
        )

    def backends() -> int:
        pids = watch.execute(
            "select pid from pg_stat_activity where application_name = 'duly' and datname = current_database()"
        ).fetchall()
        return sum(int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) for (pid,) in pids)

    def wal() -> int:
        told = watch.execute("select pg_current_wal_insert_lsn() - '0/0'").fetchone()
        return int(told[0]) if told else 0

    def cost(act: Callable[[], object], calls: int, size: int) -> dict[str, float]:
        before = wal(), backends(), time.process_time_ns(), time.perf_counter_ns()
        for _ in range(calls):
            act()
        wall, client = time.perf_counter_ns() - before[3], time.process_time_ns() - before[2]
        jobs = calls * size
        return {
            "backend": (backends() - before[1]) / jobs / 1e3,
            "client": client / jobs / 1e3,
            "wal": (wal() - before[0]) / jobs,
            "rate": jobs / wall * 1e9,
        }

    def bare_insert() -> None:
        bare.execute(
            "insert into bare (queue, payload) values (%s, %s) returning id", ("default", PAYLOAD)
        ).fetchone()

    held: list[Any] = []

    def exchange(size: int) -> None:
        ends = [
            Ended(one.id, one.run, Event.complete, State.completed, Counters(), elapsed=elapsed)
            for one in held
        ]
        answer = store.jobs.exchange(me, ends, ClaimRequest((QueueClaim("default", size),), size))
        assert len(answer.claimed) == size
        assert len(answer.acked) == len(ends)
        held[:] = answer.claimed

    def settle() -> None:
        """Nothing waits and nothing is held when a slice begins."""
        while True:
            ends = [Ended(one.id, one.run, Event.complete, State.completed, Counters()) for one in held]
            held[:] = store.jobs.exchange(
                me, ends, ClaimRequest((QueueClaim("default", 1000),), 1000)
            ).claimed
            if not held:
                return

    from datetime import timedelta

    elapsed = timedelta(milliseconds=1)

    def slice_of(workload: str, scale: float) -> dict[str, float]:
        calls, size = WORKLOADS[workload]
        calls = max(1, int(calls * scale))
        if workload == "bare insert":
            return cost(bare_insert, calls, size)
        if workload == "enqueue one":
            return cost(lambda: store.jobs.enqueue([job]), calls, size)
        if workload.startswith("enqueue_many"):
            return cost(lambda: store.jobs.enqueue([job] * size), calls, size)
        settle()
        left = (calls + 2) * size
        while left > 0:
            few = min(left, 1000)
            store.jobs.enqueue([keyed() for _ in range(few)] if "keyed" in workload else [job] * few)
            left -= few
        exchange(size)
        return cost(lambda: exchange(size), calls, size)

    for _ in range(8):
        bare_insert()
        store.jobs.enqueue([job])
        settle()
    print(json.dumps([url]), flush=True)
    for line in sys.stdin:
        print(json.dumps(slice_of(*json.loads(line))), flush=True)
    store.close()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--against", type=Path, help="another checkout, measured in turns with this one")
    parser.add_argument("--only", default="", help="workloads whose name holds this")
    parser.add_argument("--slices", type=int, default=9)
    parser.add_argument("--postgres", type=int, default=15)
    parser.add_argument("--once", action="store_true", help="one short slice, to see that it runs")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        serve(options.child)
        return 0
    sys.path.insert(0, str(ROOT))
    from tests.services import PostgresServer

    slices, scale = (1, 0.02) if options.once else (options.slices, 1.0)
    trees = {"this": ROOT, **({"that": options.against.resolve()} if options.against else {})}
    found: dict[tuple[str, str], list[dict[str, float]]] = {}
    with PostgresServer(options.postgres) as server:
        for name, value in SETTINGS.items():
            server.execute(f"alter system set {name} = '{value}'")
        server.restart()
        sides = {
            name: Side(tree, server.url(server.create_database(), host="socket"))
            for name, tree in trees.items()
        }
        workloads = [name for name in WORKLOADS if options.only in name]
        for turn in range(slices):
            for workload in workloads:
                for name, side in sorted(sides.items(), reverse=bool(turn % 2)):
                    found.setdefault((workload, name), []).append(side.run(workload, scale))
        for side in sides.values():
            side.close()
    print("Medians of the slices (the lowest in brackets).")
    print("| call | tree | backend us/job | client us/job | WAL B/job | jobs/s |\n|---|---|---|---|---|---|")
    for (workload, name), costs in found.items():
        cells = [
            f"{statistics.median(cost[key] for cost in costs):.2f} ({min(cost[key] for cost in costs):.2f})"
            for key in ("backend", "client")
        ]
        wal, rate = (statistics.median(cost[key] for cost in costs) for key in ("wal", "rate"))
        print(f"| {workload} | {name} | {' | '.join(cells)} | {wal:.0f} | {rate:,.0f} |")
    for workload in workloads if "that" in trees else ():
        ratios = {
            key: statistics.median(
                mine[key] / theirs[key]
                for mine, theirs in zip(found[workload, "this"], found[workload, "that"], strict=True)
                if theirs[key]
            )
            for key in ("backend", "client", "wal")
        }
        lowest = {
            key: min(cost[key] for cost in found[workload, "this"])
            / min(cost[key] for cost in found[workload, "that"])
            for key in ("backend", "client")
        }
        print(
            f"{workload}: this / that = "
            + ", ".join(f"{key} {ratio:.2f}" for key, ratio in ratios.items())
            + "; of the lowest "
            + ", ".join(f"{key} {ratio:.2f}" for key, ratio in lowest.items())
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
