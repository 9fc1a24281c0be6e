"""The App of the end-to-end tests: handlers that note what they do in a ledger, and handlers that misbehave.

CHORES names the folder of the ledger; a file called `release` there lets the waiting handlers go.
"""

import asyncio
import ctypes
import json
import os
import signal
import sys
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path

from duly import App, Backoff, Job, Retry, Skip, Snooze

jobs = App()
mail = jobs.queue("mail")
reports = jobs.queue("reports")

FOLDER = Path(os.environ.get("CHORES", "."))
STEP = 0.02
# Due at once: `until_idle` does not wait for what is due later.
SOON = Backoff("0s", jitter=False)


def note(what: str, job: Job) -> None:
    """One line, in one write, so that processes do not mix theirs."""
    line = json.dumps(
        {"what": what, "id": job.id, "attempt": job.attempt, "pid": os.getpid(), "at": time.monotonic()}
    )
    descriptor = os.open(FOLDER / "ledger", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(descriptor, f"{line}\n".encode())
    finally:
        os.close(descriptor)


def released() -> bool:
    return (FOLDER / "release").exists()


async def release() -> None:
    while not released():  # noqa: ASYNC110 - no event of this loop can stand for a file
        await asyncio.sleep(STEP)


@jobs.lifespan
async def lifespan() -> AsyncIterator[None]:
    (FOLDER / f"entered-{os.getpid()}").touch()
    yield
    (FOLDER / f"left-{os.getpid()}").touch()


@jobs.task
async def quick(job: Job, n: int = 0) -> int:
    note("ran", job)
    return n


@jobs.task(queue=mail)
async def letter(job: Job) -> None:
    note("ran", job)


@jobs.task(backoff=SOON)
async def hold(job: Job) -> str:
    """Waits on the loop until it is released."""
    note("started", job)
    await release()
    note("ended", job)
    return "held"


@jobs.task(backoff=SOON, max_running=1)
async def hold_alone(job: Job) -> str:
    """One in the whole fleet."""
    return await hold.fn(job)


@jobs.task(backoff=SOON)
def hold_thread(job: Job) -> str:
    note("started", job)
    while not released() and not job.should_stop:
        time.sleep(STEP)
    note("ended", job)
    return "held"


@jobs.task(isolation="process", backoff=SOON)
def hold_isolated(job: Job) -> str:
    note("started", job)
    while not released():
        time.sleep(STEP)
    note("ended", job)
    return "held"


@jobs.task(queue=reports)
async def report(job: Job) -> None:
    note("started", job)
    await release()


@jobs.task(backoff=SOON)
async def deaf(job: Job) -> None:
    """Swallows every cancellation until it is released."""
    note("started", job)
    while not released():
        try:
            await asyncio.sleep(STEP)
        except asyncio.CancelledError:
            note("cancelled", job)


@jobs.task(backoff=SOON)
def deaf_thread(job: Job) -> None:
    """Looks at nothing until it is released."""
    note("started", job)
    while not released():
        time.sleep(STEP)


@jobs.task(isolation="process", backoff=SOON)
def deaf_isolated(job: Job) -> None:
    note("started", job)
    while not released():
        time.sleep(STEP)


@jobs.task(backoff=SOON)
async def block_loop(job: Job, seconds: float) -> None:
    """Never yields."""
    note("started", job)
    time.sleep(seconds)  # noqa: ASYNC251
    note("ended", job)


@jobs.task(backoff=SOON)
def spin(job: Job, seconds: float) -> None:
    """Pure Python, without a pause."""
    note("started", job)
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        pass
    note("ended", job)


@jobs.task(backoff=SOON)
def hold_the_gil(job: Job, seconds: int) -> None:
    """C code that never lets another thread run."""
    note("started", job)
    ctypes.PyDLL(None).sleep(seconds)
    note("ended", job)


@jobs.task
async def boom(job: Job) -> None:
    note("started", job)
    os.kill(os.getpid(), signal.SIGKILL)


@jobs.task
async def segfault(job: Job) -> None:
    note("started", job)
    ctypes.string_at(0)


@jobs.task(isolation="process")
def boom_isolated(job: Job) -> None:
    note("started", job)
    os.kill(os.getpid(), signal.SIGKILL)


@jobs.task(backoff=SOON)
async def raising(kind: str) -> None:
    _raise(kind)


@jobs.task(backoff=SOON)
def raising_thread(kind: str) -> None:
    _raise(kind)


@jobs.task(isolation="process", backoff=SOON)
def raising_isolated(kind: str) -> None:
    _raise(kind)


class Stranger(BaseException):
    """Of no known family."""


class Unpicklable(Exception):
    def __init__(self, first: int, second: int) -> None:
        super().__init__(first)
        self.second = second
        self.lock = threading.Lock()


def _raise(kind: str) -> None:
    match kind:
        case "SystemExit(0)":
            sys.exit(0)
        case "SystemExit(1)":
            sys.exit(1)
        case "KeyboardInterrupt":
            raise KeyboardInterrupt
        case "GeneratorExit":
            raise GeneratorExit
        case "CancelledError":
            raise asyncio.CancelledError
        case "Stranger":
            raise Stranger("hello")
        case "RecursionError":
            _raise(kind)
        case "MemoryError":
            raise MemoryError
        case "Unpicklable":
            raise Unpicklable(1, 2) from Unpicklable(3, 4)
        case "fork":
            if os.fork() == 0:
                return
        case "close stdout":
            sys.stdout.close()
            os.close(1)
        case "Skip in a group":
            raise BaseExceptionGroup("tasks", [Skip("not needed")])
        case "Retry":
            raise Retry("0s", "once more")
        case "Snooze":
            raise Snooze("0s", "later")


@jobs.task
async def unstorable(job: Job) -> object:
    return object()


@jobs.task(attempts=1)
async def cancels_itself() -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(0)


@jobs.task(attempts=1)
async def cancels_itself_and_returns() -> str:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    return "returned"


@jobs.task(attempts=1)
async def awaits_a_cancelled_child() -> None:
    child = asyncio.create_task(asyncio.sleep(60))
    child.cancel()
    await child


@jobs.task(ack="start")
async def once(job: Job) -> None:
    note("started", job)
    os.kill(os.getpid(), signal.SIGKILL)


@jobs.task
async def grows(job: Job) -> None:
    """Leaves 64 MiB behind."""
    note("ran", job)
    _kept.append(bytearray(64 * 2**20))


_kept: list[bytearray] = []


@jobs.task
async def sabotage(part: str) -> None:
    """Breaks a part of the worker itself, as a fault of ours would."""
    import duly.worker.duties
    import duly.worker.loops
    import duly.worker.pump

    def broken(*_: object) -> None:
        raise RuntimeError("sabotage")

    match part:
        case "pump":
            duly.worker.pump.Pump.round = broken  # type: ignore[method-assign,assignment]
        case "duties":
            duly.worker.duties.Duties.round = broken  # type: ignore[method-assign,assignment]
        case "event loop slots":
            duly.worker.loops.LoopGroup._start = broken  # type: ignore[method-assign,assignment]
