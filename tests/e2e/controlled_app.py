"""The App of the end-to-end tests of bounded jobs: handlers that kill their process while they hold something.

CHORES names the folder of the ledger, as for the chores.
"""

import os
import signal
import threading
from datetime import timedelta

from duly import App, Backoff, Job
from duly.core.job import JobId
from duly.core.lifecycle import State
from tests.e2e.chores_app import FOLDER, note, release
from tests.waiting import wait_until

jobs = App()
gpu = jobs.resource("gpu", max_running=1)
SOON = Backoff("0s", jitter=False)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@jobs.task(backoff=SOON)
def push(job: Job) -> None:
    """One of a line. The first that has the next one behind it in this process takes the process along."""
    note("ran", job)
    killed = FOLDER / "killed"
    if not killed.exists() and (follower := _running(int(job.id) + 1)) and follower == _running(int(job.id)):
        killed.write_text(str(job.id))
        die()


def _running(id: int) -> object:
    record = jobs.store.inspection.lookup([JobId(id)])[0]
    return record.incarnation if record is not None and record.state is State.running else None


@jobs.task(backoff=SOON, uses=[gpu], timeout=timedelta(minutes=2))
async def render(job: Job) -> None:
    async with job.lock("ledger"):
        note("started", job)
        await release()
        note("ended", job)


@jobs.task(backoff=SOON)
async def part(job: Job) -> None:
    """Of a batch."""
    note("started", job)
    await release()


@jobs.task(backoff=SOON)
async def last(job: Job) -> None:
    """Of a batch: its process dies as soon as its end is stored."""
    note("started", job)
    threading.Thread(target=_die_at_the_end, args=(int(job.id),), daemon=True).start()


def _die_at_the_end(id: int) -> None:
    def ended() -> bool:
        record = jobs.store.inspection.lookup([JobId(id)])[0]
        return record is not None and record.state is State.completed

    wait_until(ended, what="the stored end")
    die()


@jobs.task
async def done(job: Job) -> None:
    note("done", job)
