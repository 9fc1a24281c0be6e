"""The jobs beside the application: no-ops, and brief ones that wait, so that a worker's slots cap how many run."""

import asyncio

from bench.flatness.tasks import jobs, noop

BRIEF = 0.004
"""Seconds; a slot runs at most 250 a second."""

__all__ = ["BRIEF", "brief", "jobs", "noop"]

jobs.queue("brief")


@jobs.task(queue="brief")
async def brief(x: int) -> None:  # noqa: ARG001  # every job has an argument
    await asyncio.sleep(BRIEF)
