"""Watching something until it ends: one job's states, several jobs, a stored operation.

Asks the store again and again, at most once in a fifth of a second; ends with Failed when the end is not a good one.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

import click

from duly.app import App
from duly.core.job import JobId, JobRecord
from duly.core.lifecycle import FINAL, State

from .errors import Failed
from .output import clock, counted, elapsed, plain
from .progress import progress
from .session import Session

_LOOK: Final = 0.2


def follow_job(session: Session, app: App, id: int) -> JobRecord:
    """Print each state of a job as it comes; return the record of its end. Failed when that is not a success."""
    out = session.out
    seen: tuple[State, int] | None = None
    while True:
        job = app.inspect.job(id).job
        if (job.state, job.run) != seen:
            seen = (job.state, job.run)
            out.item(plain(job), _state_line(job))
        if job.state in FINAL:
            break
        time.sleep(_LOOK)
    if job.state not in {State.completed, State.skipped}:
        raise Failed(f"job {job.id} is {job.state}: {job.reason or 'no reason given'}")
    return job


def follow_many(session: Session, app: App, ids: Sequence[JobId]) -> None:
    """Show how many of the jobs have ended, until all have. Failed when some ended dead or cancelled."""
    states: dict[JobId, State] = {}
    with progress("ended", shown=session.out.for_people and not session.quiet) as advance:
        while len(states) < len(ids):
            for id in ids:
                if id not in states and (state := app.inspect.job(id).job.state) in FINAL:
                    states[id] = state
            advance(len(states), len(ids), "")
            if len(states) < len(ids):
                time.sleep(_LOOK)
    bad = [id for id, state in states.items() if state in {State.dead, State.cancelled}]
    if bad:
        raise Failed(
            f"{counted(len(bad), 'job')} of {len(ids)} ended dead or cancelled: {', '.join(map(str, bad[:10]))}"
        )


def follow_operation(session: Session, app: App, number: int) -> None:
    """Show an operation's progress until it ends, or until nobody waits for it any longer (Ctrl-C stops only this)."""
    shown = session.out.for_people and not session.quiet
    with progress(f"operation {number}", shown=shown) as advance:
        while True:
            record = app.inspect.operation(number)
            advance(record.done + record.skipped, record.total, record.state)
            if record.state not in {"running", "paused"}:
                break
            time.sleep(_LOOK)
    if shown:
        click.echo(f"operation {number} is {record.state}: {counted(record.done, 'job')} moved")


def _state_line(job: JobRecord) -> str:
    line = f"job {job.id}  {job.state}"
    match job.state:
        case State.running if job.started_at is not None:
            line += f"  {clock(job.started_at)}  run {job.run}"
        case State.scheduled if job.run_at is not None:
            line += f"  due {clock(job.run_at)}" + (f"  ({job.reason})" if job.reason else "")
        case state if state in FINAL and job.finished_at is not None:
            line += f"  {clock(job.finished_at)}"
            if job.started_at is not None:
                line += f"  ({elapsed(job.finished_at - job.started_at)})"
        case _:
            pass
    return line
