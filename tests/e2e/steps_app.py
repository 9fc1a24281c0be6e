"""The App of the tests of steps and loops; RELEASE=old leaves out what only its next release has.

Notes what handlers do in the ledger of the folder CHORES; a file called `release` there lets the waiting ones go.
"""

import asyncio
import json
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from duly import App, Backoff, Job, Snooze, UsageError

jobs = App()
STEP = 0.02
# Due at once: `until_idle` does not wait for what is due later.
SOON = Backoff("0s", jitter=False)
NEW = os.environ.get("RELEASE", "new") == "new"


def folder() -> Path:
    return Path(os.environ["CHORES"])


def note(what: str, job: Job) -> None:
    """One line, in one write, so that processes do not mix theirs."""
    line = json.dumps(
        {"what": what, "id": job.id, "attempt": job.attempt, "pid": os.getpid(), "at": time.monotonic()}
    )
    descriptor = os.open(folder() / "ledger", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(descriptor, f"{line}\n".encode())
    finally:
        os.close(descriptor)


def noted(what: str) -> int:
    path = folder() / "ledger"
    return path.read_text().count(f'"what": "{what}"') if path.exists() else 0


def released() -> bool:
    return (folder() / "release").exists()


async def release() -> None:
    while not released():  # noqa: ASYNC110 - no event of this loop can stand for a file
        await asyncio.sleep(STEP)


def until(done: Callable[[], bool]) -> None:
    while not done():
        time.sleep(STEP)


def act(job: Job, what: str, value: int) -> int:
    note(what, job)
    return value


async def aact(job: Job, what: str, value: int) -> int:
    await asyncio.sleep(0)
    return act(job, what, value)


# Two steps, and a wait before the end.


async def _asteps(job: Job) -> list[int]:
    first = await job.astep("first", lambda: act(job, "first", 1))
    second = await job.astep("second", partial(aact, job, "second", first + 1))
    note("started", job)
    await release()
    return [first, second]


def _steps(job: Job) -> list[int]:
    first = job.step("first", lambda: act(job, "first", 1))
    second = job.step("second", partial(act, job, "second", first + 1))
    note("started", job)
    until(released)
    return [first, second]


@jobs.task(backoff=SOON)
async def steps_on_loop(job: Job) -> list[int]:
    return await _asteps(job)


@jobs.task(backoff=SOON)
def steps_in_thread(job: Job) -> list[int]:
    return _steps(job)


@jobs.task(backoff=SOON, isolation="process")
def steps_isolated(job: Job) -> list[int]:
    return _steps(job)


@jobs.task(backoff=SOON, isolation="process")
async def steps_isolated_async(job: Job) -> list[int]:
    return await _asteps(job)


STEPS = (steps_on_loop, steps_in_thread, steps_isolated, steps_isolated_async)


# Loops of five items. The fourth waits: for the release, or politely for a stop.


def _item(job: Job, item: int, *, polite: bool) -> None:
    note(f"item {item}", job)
    if item == 3:
        note("started", job)
        until(lambda: released() or (polite and job.should_stop))


@jobs.task(backoff=SOON)
async def walk_on_loop(job: Job) -> str:
    for item in job.each("items", range(5)):
        note(f"item {item}", job)
        if item == 3:
            note("started", job)
            await release()
    return "walked"


@jobs.task(backoff=SOON)
def walk_in_thread(job: Job) -> str:
    for item in job.each("items", range(5)):
        _item(job, item, polite=False)
    return "walked"


@jobs.task(backoff=SOON, isolation="process")
def walk_isolated(job: Job) -> str:
    for item in job.each("items", range(5)):
        _item(job, item, polite=False)
    return "walked"


WALKS = (walk_on_loop, walk_in_thread, walk_isolated)


def _polite(job: Job) -> str:
    for item in job.each("items", range(5)):
        if job.should_stop:
            raise Snooze("0s", f"cut at {item}")
        _item(job, item, polite=True)
    return "walked"


@jobs.task(backoff=SOON)
def polite_in_thread(job: Job) -> str:
    return _polite(job)


@jobs.task(backoff=SOON, isolation="process")
def polite_isolated(job: Job) -> str:
    return _polite(job)


@jobs.task(backoff=SOON)
async def polite_on_loop(job: Job) -> str:
    for item in job.each("items", range(5)):
        if job.should_stop:
            raise Snooze("0s", f"cut at {item}")
        note(f"item {item}", job)
        if item == 3:
            note("started", job)
            while not (released() or job.should_stop):  # noqa: ASYNC110 - as above
                await asyncio.sleep(STEP)
    return "walked"


POLITE = (polite_on_loop, polite_in_thread, polite_isolated)


# One step that lasts until the release.


def _lasts(job: Job) -> str:
    note("started", job)
    until(released)
    note("left", job)
    return "done"


async def _alasts(job: Job) -> str:
    note("started", job)
    await release()
    note("left", job)
    return "done"


@jobs.task(backoff=SOON)
async def long_step_on_loop(job: Job) -> str:
    return await job.astep("long", partial(_alasts, job))


@jobs.task(backoff=SOON)
def long_step_in_thread(job: Job) -> str:
    return job.step("long", partial(_lasts, job))


@jobs.task(backoff=SOON, isolation="process")
def long_step_isolated(job: Job) -> str:
    return job.step("long", partial(_lasts, job))


LONG_STEPS = (long_step_on_loop, long_step_in_thread, long_step_isolated)


# Transactions of the handler's own, open until the release.


@jobs.task(attempts=1)
def walks_in_a_transaction(job: Job) -> None:
    with jobs.transaction() as connection:
        follow_up.using(connection=connection).enqueue(1)
        for item in job.each("items", range(3)):
            if item == 2:
                note("started", job)
                until(released)


@jobs.task(attempts=1)
def completes_slowly(job: Job) -> None:
    for _ in job.each("items", range(3)):
        job.progress(1)
    with jobs.transaction() as connection:
        job.complete(connection=connection)
        note("started", job)
        until(released)


@jobs.task(attempts=1, isolation="process")
def completes_slowly_isolated(job: Job) -> None:
    for _ in job.each("items", range(3)):
        job.progress(1)
    with jobs.transaction() as connection:
        job.complete(connection=connection)
        note("started", job)
        until(released)


# Steps where none can be.


@jobs.task(attempts=3, backoff=SOON)
def steps_inside(job: Job) -> None:
    with jobs.transaction():
        job.step("inside", lambda: act(job, "inside", 1))


@jobs.task(attempts=3, backoff=SOON)
async def steps_inside_on_loop(job: Job) -> None:
    async with jobs.atransaction():
        await job.astep("inside", partial(aact, job, "inside", 1))


@jobs.task
def steps_after(job: Job) -> str:
    job.complete("done")
    try:
        job.step("after", lambda: act(job, "after", 1))
    except UsageError as error:
        note("refused" if "nothing comes after job.complete()" in str(error) else "odd", job)
    return "too late"


# Acknowledged at the start.


@jobs.task(ack="start")
async def once_on_loop(job: Job) -> None:
    await job.astep("once", partial(aact, job, "once", 1))
    for _ in job.each("items", range(3)):
        note("once item", job)


def _once(job: Job) -> None:
    job.step("once", partial(act, job, "once", 1))
    for _ in job.each("items", range(3)):
        note("once item", job)


@jobs.task(ack="start")
def once_in_thread(job: Job) -> None:
    _once(job)


@jobs.task(ack="start", isolation="process")
def once_isolated(job: Job) -> None:
    _once(job)


ONCE = (once_on_loop, once_in_thread, once_isolated)


# The rest.


@jobs.task(backoff=SOON, attempts=2)
def five(job: Job) -> list[int]:
    """The fourth step fails twice."""
    values = [0]
    for number in range(1, 6):
        values.append(job.step(f"step {number}", partial(_numbered, job, number, values[-1])))
    return values


def _numbered(job: Job, number: int, before: int) -> int:
    note(f"step {number}", job)
    if number == 4 and noted("step 4") < 3:
        raise ConnectionError("no route")
    return before + number


@jobs.task(backoff=SOON)
def link(job: Job, lead: int, number: int) -> int:
    """One link of a chain whose next is stored with it."""
    note(f"lead {lead} link {number}", job)
    time.sleep(5 * STEP)
    return number


@jobs.task(backoff=SOON)
def follow_up(job: Job, of: int | None) -> int | None:
    note("followed", job)
    return of


class Undo(Exception):
    """Rolls back."""


async def _acompletes(job: Job, *, commit: bool) -> None:
    try:
        async with jobs.atransaction() as connection:
            await job.acomplete(7, connection=connection)
            if not commit:
                raise Undo
    except Undo:
        pass


def _completes(job: Job, *, commit: bool) -> None:
    try:
        with jobs.transaction() as connection:
            job.complete(7, connection=connection)
            if not commit:
                raise Undo
    except Undo:
        pass


@jobs.task(attempts=1)
async def completes_on_loop(job: Job, commit: bool) -> None:
    await _acompletes(job, commit=commit)


@jobs.task(attempts=1)
def completes_in_thread(job: Job, commit: bool) -> None:
    _completes(job, commit=commit)


@jobs.task(attempts=1, isolation="process")
def completes_isolated(job: Job, commit: bool) -> None:
    _completes(job, commit=commit)


COMPLETES = (completes_on_loop, completes_in_thread, completes_isolated)


@jobs.task(backoff=SOON)
async def changed(job: Job) -> list[int]:
    """The next release has one step more, in the middle."""
    values = [await job.astep("one", lambda: act(job, "one", 1))]
    if NEW:
        values.append(await job.astep("between", lambda: act(job, "between", 2)))
    values.append(await job.astep("last", lambda: act(job, "last", 3)))
    if not NEW:
        note("started", job)
        await release()
    return values


if NEW:

    @jobs.task
    async def added(job: Job) -> str:
        note("added", job)
        return "by the new release"
