"""The tasks of the drill, imported by its workers and producers: one of each kind, each a few signs of life long."""

import asyncio
import threading

from duly import App, Job
from tests.drill import ledger

jobs = App()
TICKS = 10
PAUSE = 0.006


@jobs.task(timeout="60s")
async def on_the_loop(job: Job, n: int) -> int:
    ledger.write(ledger.STARTED, n, int(job.id), job.attempt)
    for _ in range(TICKS):
        await asyncio.sleep(PAUSE)
        ledger.write(ledger.TICK, n, int(job.id), job.attempt)
    ledger.write(ledger.ENDED, n, int(job.id), job.attempt)
    return n


@jobs.task(timeout="60s")
def in_a_thread(job: Job, n: int) -> int:
    return blocking(job, n)


@jobs.task(timeout="60s", isolation="process")
def in_a_process(job: Job, n: int) -> int:
    return blocking(job, n)


def blocking(job: Job, n: int) -> int:
    ledger.write(ledger.STARTED, n, int(job.id), job.attempt)
    never = threading.Event()
    for _ in range(TICKS):
        never.wait(PAUSE)
        ledger.write(ledger.TICK, n, int(job.id), job.attempt)
    ledger.write(ledger.ENDED, n, int(job.id), job.attempt)
    return n


def task_for(n: int):  # type: ignore[no-untyped-def]
    """Mostly on the loop; every tenth in a thread, every twentieth in a process of its own."""
    if n % 20 == 0:
        return in_a_process
    return in_a_thread if n % 10 == 5 else on_the_loop
