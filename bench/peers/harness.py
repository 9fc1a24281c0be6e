"""Measures one workload of one queue, in that queue's own Python, and prints one line of JSON.

python -m bench.peers.harness ADAPTER WORKLOAD --count N [--idle SECONDS] [--patience SECONDS]
python -m bench.peers.harness ADAPTER work        runs the adapter's own worker
"""

import argparse
import array
import asyncio
import contextlib
import importlib
import importlib.metadata
import inspect
import json
import os
import platform
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn, cast

from bench.peers.adapter import RECORD, Adapter
from bench.peers.machine import end_with_parent, processor_seconds

Figures = dict[str, float]

LATENCY_STEP = 0.02
DUE_STEP = 0.025
DUE_LEAD = 2.0
DUE_JOBS = 200
FAR_AWAY = 3600.0
WARM_UP = -1.0


class Meter:
    """Jobs a second since it was made, and what a process and the servers used for them."""

    def __init__(self, process: int, servers: list[int]) -> None:
        self._process, self._servers = process, servers
        self._used = processor_seconds([process]), processor_seconds(servers)
        self._began = time.perf_counter()

    def figures(self, jobs: int) -> Figures:
        """`client` is whoever is measured: the process that enqueues, or the worker."""
        elapsed = time.perf_counter() - self._began
        client = processor_seconds([self._process]) - self._used[0]
        server = processor_seconds(self._servers) - self._used[1]
        return {
            "value": jobs / elapsed,
            "client_cores": client / elapsed,
            "server_cores": server / elapsed,
            "client_us": client / jobs * 1e6,
            "server_us": server / jobs * 1e6,
        }


class Measurement:
    """One adapter, its worker process and the log that its handlers write."""

    def __init__(self, adapter: Adapter, count: int, idle: float, patience: float) -> None:
        self.adapter, self.count, self.idle, self.patience = adapter, count, idle, patience
        self.log = Path(os.environ["BENCH_LOG"])
        self.servers = [int(pid) for pid in os.environ.get("BENCH_SERVER_PIDS", "").split()]
        self._loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self._loop)

    def settle(self, answer: object) -> object:
        """The answer of a method that may be a coroutine function."""
        if not inspect.isawaitable(answer):
            return answer

        async def settled() -> object:
            return await answer

        return self._loop.run_until_complete(settled())

    # Enqueueing.

    def one(self) -> Figures:
        """One call per job, from one process, nothing else going on."""
        numbers = [float(number) for number in range(self.count)]
        self._send(numbers[:1])
        meter = Meter(os.getpid(), self.servers)
        self._send(numbers[1:])
        return meter.figures(self.count - 1)

    def bulk(self) -> Figures:
        numbers = [float(number) for number in range(self.count)]
        meter = Meter(os.getpid(), self.servers)
        self.settle(self.adapter.enqueue_many(numbers))
        return meter.figures(self.count)

    def _send(self, numbers: Sequence[float], pause: float = 0.0, stamp: bool = False) -> None:
        """One by one; with a pause each at its time; with a stamp each carries the time of its call."""
        enqueue, begin = self.adapter.enqueue, time.time()
        if not inspect.iscoroutinefunction(enqueue):
            for place, number in enumerate(numbers):
                if (early := begin + place * pause - time.time()) > 0:
                    time.sleep(early)
                enqueue(time.time() if stamp else number)
            return

        async def send() -> None:
            for place, number in enumerate(numbers):
                if (early := begin + place * pause - time.time()) > 0:
                    await asyncio.sleep(early)
                await enqueue(time.time() if stamp else number)

        self.settle(send())

    def _fill(self) -> None:
        numbers = [float(number) for number in range(self.count)]
        if self.adapter.bulk:
            self.settle(self.adapter.enqueue_many(numbers))
        else:
            self._send(numbers)

    def _unfinished(self) -> int:
        return cast("int", self.settle(self.adapter.unfinished()))

    # Working.

    def drain(self) -> Figures:
        """From the first handler's first line until the queue itself says that nothing is left."""
        self._fill()
        with self._worker() as worker:
            self._await(worker, 1)
            meter, began = Meter(worker.pid, self.servers), time.monotonic()
            self._await(worker, self.count)
            while (left := self._unfinished()) and time.monotonic() - began < self.patience:
                time.sleep(0.002)
            ended, figures = time.time(), meter.figures(self.count)
        times, numbers = self._recorded()
        if not self.adapter.countable:
            ended = max(times)
        return {
            **figures,
            "value": self.count / (ended - min(times)),
            "again": len(numbers) - len(set(numbers)),
            "left": left,
        }

    def latency(self) -> Figures:
        """Of an idle and warm worker: from the enqueue call to the handler's first line, one job each 20 ms."""
        with self._warm_worker() as worker:
            self._send([0.0] * self.count, pause=LATENCY_STEP, stamp=True)
            self._await(worker, self.count + 1)
        return self._delays()

    def lateness(self) -> Figures:
        """Of jobs that come due beside `count` scheduled ones: from the due time to the handler's first line."""
        schedule = self.adapter.schedule
        far = time.time() + FAR_AWAY
        step = 30 * 86_400 / self.count
        began = time.perf_counter()
        schedule([0.0] * self.count, [far + place * step for place in range(self.count)])
        filled = time.perf_counter() - began
        due_jobs = min(DUE_JOBS, max(10, self.count // 100))
        with self._warm_worker() as worker:
            first = time.time() + DUE_LEAD
            due = [first + place * DUE_STEP for place in range(due_jobs)]
            schedule(due, due)
            self._await(worker, due_jobs + 1)
        return {**self._delays(), "scheduled_per_second": self.count / filled}

    @contextlib.contextmanager
    def _warm_worker(self) -> Iterator[subprocess.Popen[bytes]]:
        """It has started, has run one job and has been idle for a while."""
        with self._worker() as worker:
            time.sleep(min(self.idle, 1.0))
            self._send([WARM_UP])
            self._await(worker, 1)
            time.sleep(self.idle)
            yield worker

    @contextlib.contextmanager
    def _worker(self) -> Iterator[subprocess.Popen[bytes]]:
        self.log.write_bytes(b"")
        output = Path(os.environ["BENCH_FOLDER"], "worker.log")
        with output.open("wb") as stream:
            worker = subprocess.Popen(
                self.adapter.worker(),
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                start_new_session=True,
                preexec_fn=end_with_parent,  # noqa: PLW1509  # there are no other threads that hold a lock here
            )
        try:
            yield worker
        except (TimeoutError, RuntimeError) as error:
            tail = output.read_text(errors="replace")[-1500:]
            raise RuntimeError(f"{error}; its worker said: {tail}") from error
        finally:
            _end(worker)

    def _await(self, worker: subprocess.Popen[bytes], runs: int) -> None:
        """Until handlers were begun so often."""
        end = time.monotonic() + self.patience
        while (seen := self.log.stat().st_size // RECORD.size) < runs:
            if worker.poll() is not None:
                raise RuntimeError(f"the worker ended with {worker.returncode} after {seen} jobs")
            if time.monotonic() > end:
                raise TimeoutError(f"{seen} of {runs} jobs ran within {self.patience:.0f} s")
            time.sleep(0.003)

    def _recorded(self) -> tuple[list[float], list[float]]:
        values = array.array("d", self.log.read_bytes())
        return list(values[0::2]), list(values[1::2])

    def _delays(self) -> Figures:
        """Milliseconds between what a job carries and its handler's first line."""
        times, numbers = self._recorded()
        delays = sorted(
            (time_ - number) * 1000 for time_, number in zip(times, numbers, strict=True) if number > 0
        )
        shares = {"value": 0.5, "p95": 0.95, "p99": 0.99}
        found = {
            name: delays[min(len(delays) - 1, int(share * len(delays)))] for name, share in shares.items()
        }
        return {**found, "max": delays[-1]}


def _end(worker: subprocess.Popen[bytes]) -> None:
    """The worker and all of its own process group."""
    if worker.poll() is None:
        worker.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            worker.wait(6)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(worker.pid, signal.SIGKILL)
    worker.wait()


def _stop(_signal: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit("stopped")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("adapter")
    parser.add_argument("workload", choices=["one", "bulk", "drain", "latency", "lateness", "work"])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--idle", type=float, default=1.5, help="seconds that a worker is left alone first")
    parser.add_argument("--patience", type=float, default=300.0, help="seconds for the jobs to run")
    options = parser.parse_args()
    module = importlib.import_module(f"bench.peers.adapters.{options.adapter}")
    if options.workload == "work":
        cast("Callable[[], None]", module.work)()
        return
    # A stop from outside must still end the worker.
    signal.signal(signal.SIGTERM, _stop)
    adapter: Adapter = module.QUEUE()
    measurement = Measurement(adapter, options.count, options.idle, options.patience)
    measurement.settle(adapter.open())
    figures = getattr(measurement, options.workload)()
    facts = {
        "version": importlib.metadata.version(adapter.package),
        "settings": adapter.settings,
        "acknowledges": adapter.acknowledges,
        "python": platform.python_version(),
    }
    print(json.dumps({**figures, **facts}), flush=True)
    # Some peers leave threads behind that would keep the process.
    os._exit(0)


if __name__ == "__main__":
    main()
