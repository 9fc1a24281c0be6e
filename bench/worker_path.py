"""What the worker and the client cost in Python by themselves: CPU microseconds per job against a store double.

The double answers exchanges at once from prepared jobs and keeps nothing: what is left is duly's own, from claim to
acknowledgement. `python -m bench.worker_path`; `--parts async,wake` some; `--profile async` where the time goes;
`--trip 0.002` an exchange that takes as long, GIL free; the double's own time is taken off.
"""

import argparse
import asyncio
import cProfile
import gc
import importlib.util
import pstats
import statistics
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from duly import App
from duly.client.settings import resolve
from duly.core.job import (
    ClaimedJob,
    ClaimRequest,
    Counters,
    Ended,
    Exchange,
    Incarnation,
    JobId,
    NewJob,
    Stored,
)
from duly.core.lifecycle import Outcome
from duly.stores.open import open_store
from duly.worker.embedded import Embedded
from duly.worker.options import WorkerOptions
from duly.worker.process import resident

NOW = datetime(2030, 1, 1, tzinfo=UTC)
ARGS = {
    "noop": b'{"x":1.5}',
    "plain": b'{"x":1.5}',
    "typed": b'{"order":7,"name":"Ada","amounts":[1.5,2.5,3.5],"when":"2030-01-01T00:00:00Z"}',
    "pause": b"{}",
    "told": b"{}",
}

jobs = App("memory://")
started_at: deque[float] = deque()


@jobs.task
async def noop(x: float) -> None:
    """The shortest async handler."""


@jobs.task
def plain(x: float) -> None:
    """The shortest `def` handler, in a thread."""


@jobs.task
async def typed(order: int, name: str, amounts: list[float], when: datetime) -> dict[str, object]:
    return {"order": order, "name": name, "amounts": amounts, "when": when}


@jobs.task
async def pause() -> None:
    await asyncio.sleep(0.001)


@jobs.task
async def told() -> None:
    started_at.append(time.perf_counter())


class Jobs:
    """The JobStore part of the double. `own` is the CPU time that it took itself."""

    def __init__(self, trip: float) -> None:
        self.trip = trip
        self.waiting: deque[ClaimedJob] = deque()
        self.left = 0
        self.own = 0.0
        self.exchanges = 0
        self.done = threading.Event()

    def enqueue(self, new: Sequence[NewJob]) -> list[Stored]:
        return [Stored(JobId(1), Outcome.created) for _ in new]

    def exchange(
        self, incarnation: Incarnation, ended: Sequence[Ended], request: ClaimRequest | None
    ) -> Exchange:
        if self.trip:
            time.sleep(self.trip)
        began = time.thread_time()
        waiting = self.waiting
        most = min(request.most if request is not None and not request.suspects else 0, len(waiting))
        answer = Exchange(
            frozenset([(end.id, end.run) for end in ended]), tuple([waiting.popleft() for _ in range(most)])
        )
        self.left -= len(ended)
        self.exchanges += 1
        if self.left <= 0 and ended:
            self.done.set()
        self.own += time.thread_time() - began
        return answer

    def report(self, *_: object) -> tuple[list[tuple[JobId, int]], list[JobId]]:
        return [], []


class Double:
    """A store of which only the jobs are double; everything else is a store in memory."""

    def __init__(self, trip: float) -> None:
        self.jobs = Jobs(trip)
        self.ring: Callable[[], None] = lambda: None
        self._real = open_store("memory://")

    def listen(self, on_work: Callable[[], None]) -> Any:
        self.ring = on_work
        return self._real.listen(lambda: None)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


@contextmanager
def standing(trip: float) -> Iterator[Double]:
    double = Double(trip)
    settings = resolve({"url": "memory://"})
    with jobs.client.standing_on(settings, lambda: datetime.now(UTC), lambda: double):  # type: ignore[arg-type, return-value]
        _ = jobs.store
        yield double


def claimed(task: str, count: int, first: int) -> list[ClaimedJob]:
    counters = Counters()
    return [
        ClaimedJob(
            JobId(id), 1, "default", task, ARGS[task], 100, "", (), str(id), counters, None, None, NOW, NOW
        )
        for id in range(first, first + count)
    ]


@contextmanager
def working(loop: str) -> Iterator[Embedded]:
    """As bench and `duly worker` run it: the loop in its own thread, the child's switch interval and collector."""
    sys.setswitchinterval(0.001)
    worker = Embedded(jobs, WorkerOptions(concurrency=50))
    policy = asyncio.get_event_loop_policy()
    if loop == "uvloop" and importlib.util.find_spec("uvloop") is not None:
        import uvloop

        asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    try:
        with worker:
            gc.collect()
            gc.freeze()
            gc.set_threshold(20_000, 20, 20)
            yield worker
    finally:
        asyncio.set_event_loop_policy(policy)
        gc.unfreeze()


class Line:
    """One line of the table."""

    def __init__(self, cpu: float, wall: float, note: str = "") -> None:
        self.cpu, self.wall, self.note = cpu, wall, note


def drain(task: str) -> Callable[[argparse.Namespace], Line]:
    """CPU and wall time of one job of `task`, from its claim to its stored end."""

    def measure(options: argparse.Namespace) -> Line:
        with standing(options.trip) as double, working(options.loop) as worker:
            store, cpu, wall = double.jobs, [], []
            batch = 0
            for round_ in range(options.rounds + 1):
                feed(store, claimed(task, options.jobs, 1 + round_ * options.jobs))
                own, exchanges = store.own, store.exchanges
                began, ticking = time.process_time(), time.perf_counter()
                double.ring()
                if not store.done.wait(300):
                    raise SystemExit(f"{task}: the worker stands still")
                took = time.process_time() - began - (store.own - own)
                batch = options.jobs // (store.exchanges - exchanges)
                if round_:
                    cpu.append(took / options.jobs * 1e6)
                    wall.append((time.perf_counter() - ticking) / options.jobs * 1e6)
            worker.engine.pump.ring()
        median = statistics.median(wall)
        return Line(statistics.median(cpu), median, f"{1e6 / median:,.0f}/s, {batch} an exchange")

    return measure


def feed(store: Jobs, prepared: list[ClaimedJob]) -> None:
    store.done.clear()
    store.left = len(prepared)
    store.waiting.extend(prepared)


def wake(options: argparse.Namespace) -> Line:
    """From the bell to the first line of the handler, with a worker that is idle."""
    took: list[float] = []
    with standing(options.trip) as double, working(options.loop):
        store = double.jobs
        time.sleep(0.3)
        began = time.process_time()
        for number in range(options.wakes):
            started_at.clear()
            feed(store, claimed("told", 1, 1 + number))
            rang = time.perf_counter()
            double.ring()
            if not store.done.wait(10):
                raise SystemExit("wake: the worker stands still")
            took.append((started_at[0] - rang) * 1e6)
            time.sleep(0.005)
        cpu = (time.process_time() - began) / options.wakes * 1e6
    took.sort()
    p99 = took[int(len(took) * 0.99)]
    return Line(
        cpu, took[len(took) // 2], f"p50 {took[len(took) // 2]:.0f}, p99 {p99:.0f} us to the first line"
    )


def memory(options: argparse.Namespace) -> Line:
    """Resident memory of this process, idle and after each of two rounds of `--many` jobs."""
    sizes = []
    with standing(options.trip) as double, working(options.loop):
        time.sleep(0.5)
        sizes.append(resident(0))
        began = time.process_time()
        for round_ in range(2):
            for first in range(0, options.many, 5000):
                feed(double.jobs, claimed("noop", 5000, 1 + round_ * options.many + first))
                double.ring()
                if not double.jobs.done.wait(300):
                    raise SystemExit("memory: the worker stands still")
            sizes.append(resident(0))
        cpu = (time.process_time() - began) / options.many / 2 * 1e6
    words = ", ".join(f"{size / 2**20:.1f}" for size in sizes)
    return Line(cpu, cpu, f"{words} MiB resident: idle, after {options.many:,}, after as many again")


def enqueues(call: Callable[[], object], most: int, each: int = 1) -> Callable[[argparse.Namespace], Line]:
    def measure(options: argparse.Namespace) -> Line:
        cpu = []
        with standing(0):
            for _ in range(options.rounds + 1):
                began = time.thread_time()
                for _ in range(most):
                    call()
                cpu.append((time.thread_time() - began) / most / each * 1e6)
        found = statistics.median(cpu[1:])
        return Line(found, found)

    return measure


def asynchronous(options: argparse.Namespace) -> Line:
    async def run() -> float:
        began = time.process_time()
        for _ in range(2000):
            await noop.aenqueue(1.5)
        return (time.process_time() - began) / 2000 * 1e6

    with standing(0):
        found = statistics.median([asyncio.run(run()) for _ in range(options.rounds)])
    return Line(found, found)


WHEN = datetime(2030, 1, 1, tzinfo=UTC)
PARTS: dict[str, Callable[[argparse.Namespace], Line]] = {
    "async": drain("noop"),
    "typed": drain("typed"),
    "threads": drain("plain"),
    "1ms": drain("pause"),
    "wake": wake,
    "memory": memory,
    "enqueue": enqueues(lambda: noop.enqueue(1.5), 20_000),
    "enqueue-typed": enqueues(lambda: typed.enqueue(7, "Ada", [1.5, 2.5, 3.5], WHEN), 20_000),
    "enqueue-using": enqueues(
        lambda: noop.using(delay=timedelta(seconds=30), tags=["a"]).enqueue(1.5), 10_000
    ),
    "enqueue-many": enqueues(lambda: jobs.enqueue_many([noop.draft(1.5) for _ in range(1000)]), 20, 1000),
    "aenqueue": asynchronous,
}


@contextmanager
def profiled(wanted: bool) -> Iterator[None]:
    """cProfile of every thread that starts meanwhile."""
    if not wanted:
        yield
        return
    profiles: list[cProfile.Profile] = []
    run = threading.Thread.run

    def watched(thread: threading.Thread) -> None:
        profile = cProfile.Profile(time.thread_time)
        profiles.append(profile)
        try:
            profile.runcall(run, thread)
        finally:
            profile.disable()

    threading.Thread.run = watched  # type: ignore[method-assign]
    here = cProfile.Profile(time.thread_time)
    here.enable()
    try:
        yield
    finally:
        here.disable()
        threading.Thread.run = run  # type: ignore[method-assign]
    stats = pstats.Stats(here)
    for profile in profiles:
        stats.add(profile)
    stats.sort_stats("tottime").print_stats(45)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--parts", default=",".join(part for part in PARTS if part != "memory"), help="of " + ", ".join(PARTS)
    )
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--many", type=int, default=1_000_000, help="jobs in a round of the part memory")
    parser.add_argument("--wakes", type=int, default=300)
    parser.add_argument("--trip", type=float, default=0.002, help="seconds that one exchange takes")
    parser.add_argument("--loop", choices=("uvloop", "asyncio"), default="uvloop")
    parser.add_argument("--profile", metavar="PART")
    parser.add_argument("--once", action="store_true", help="a little of each part, to see that it runs")
    options = parser.parse_args()
    if options.once:
        options.rounds, options.jobs, options.wakes, options.many = 1, 500, 5, 5000
        options.parts = ",".join(PARTS)
    if options.profile:
        with profiled(True):
            PARTS[options.profile](options)
        return
    print("| part | CPU us a job | wall us a job | |\n|---|---|---|---|")
    for part in options.parts.split(","):
        line = PARTS[part](options)
        print(f"| {part} | {line.cpu:.1f} | {line.wall:.1f} | {line.note} |", flush=True)


if __name__ == "__main__":
    main()
