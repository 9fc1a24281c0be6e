"""What a queue must answer to be measured, and what its handlers call. Standard library only: peers import it.

The environment tells an adapter where it is: BENCH_URL, BENCH_SERVER, BENCH_FOLDER, BENCH_KIND, BENCH_PROCESSES.
"""

import abc
import os
import struct
import subprocess
import sys
import time
from collections.abc import Awaitable, Iterator, Sequence
from functools import cache
from typing import TypeVar

T = TypeVar("T")
RECORD = struct.Struct("dd")
CHUNK = 1000


def record(number: float) -> None:
    """The first act of every handler, and the only one: one write of 16 bytes (now, number), about 2 µs."""
    now = time.time()
    os.write(_log(), RECORD.pack(now, number))


@cache
def _log() -> int:
    return os.open(os.environ["BENCH_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)


def url() -> str:
    """Of the server, or the file's path for SQLite; empty where a module is only looked at."""
    return os.environ.get("BENCH_URL", "")


def server() -> str:
    """postgres, sqlite, redis, rabbit or beanstalk."""
    return os.environ.get("BENCH_SERVER", "")


def kind() -> str:
    """Which handler is measured: plain, or for duly threads, short, keys, everything; idle where a worker waits."""
    return os.environ.get("BENCH_KIND", "plain")


def chunks(numbers: Sequence[T], size: int = CHUNK) -> Iterator[Sequence[T]]:
    return (numbers[start : start + size] for start in range(0, len(numbers), size))


def run_program(*arguments: str, program: str = sys.executable) -> None:
    """For a queue whose tables its own command makes."""
    done = subprocess.run([program, *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(arguments)} failed: {done.stderr[-500:]}")


class Adapter(abc.ABC):
    """One queue, empty after `open`. Each method may be a coroutine function instead."""

    package: str
    settings: str
    bulk = True
    # False: the queue gives a job away before its handler has run.
    acknowledges = True
    # False: the queue cannot be asked while it works, so that a drain ends with the last handler's start.
    countable = True

    @abc.abstractmethod
    def open(self) -> Awaitable[None] | None: ...

    @abc.abstractmethod
    def enqueue(self, number: float) -> Awaitable[None] | None: ...

    def enqueue_many(self, numbers: Sequence[float]) -> Awaitable[None] | None:
        """By the bulk interface, 1,000 a call unless its own advice is another number."""
        raise LookupError(f"{self.package} has no bulk interface")

    def schedule(self, numbers: Sequence[float], due: Sequence[float]) -> None:
        """Each at its time, in seconds since 1970."""
        raise LookupError(f"{self.package} is not asked to schedule")

    def unfinished(self) -> Awaitable[int] | int:
        """Ready and running jobs, as the queue itself counts them."""
        return 0

    def worker(self) -> list[str]:
        """The command of one worker process; by default the module's `work`."""
        return [sys.executable, "-m", "bench.peers.harness", type(self).__module__.rpartition(".")[2], "work"]
