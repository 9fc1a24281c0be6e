"""The plain tasks of the drill, one of each kind of slot, each a few signs of life long."""

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
    return ticking(job, n)


def ticking(job: Job, n: int) -> int:
    never = threading.Event()
    for _ in range(TICKS):
        never.wait(PAUSE)
        ledger.write(ledger.TICK, n, int(job.id), job.attempt)
    ledger.write(ledger.ENDED, n, int(job.id), job.attempt)
    return n
