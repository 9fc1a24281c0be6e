"""The App of the embedded worker's tests: one task for each thing a handler can do."""

import asyncio
import contextvars
import gc
import itertools
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

from duly import App, Backoff, Breaker, Dead, Job, Retry, Skip, Snooze
from tests.waiting import wait_until

jobs = App()
# Due at once: `until_idle` does not wait for what is due later.
SOON = Backoff("0s", jitter=False)

seen: list[Any] = []
gate = threading.Event()
_count = itertools.count()
mark: contextvars.ContextVar[str] = contextvars.ContextVar("mark", default="clean")


@jobs.around
def around(job: Job) -> Iterator[None]:
    seen.append(("before", job.task))
    try:
        yield
    finally:
        seen.append(("after", job.task))


@jobs.lifespan
async def lifespan() -> AsyncIterator[None]:
    seen.append("entered")
    yield
    seen.append("left")


@jobs.task
async def double(n: int) -> int:
    return 2 * n


@jobs.task
def double_in_thread(n: int) -> int:
    return 2 * n


@jobs.task(isolation="process")
def double_isolated(n: int) -> int:
    return 2 * n


@jobs.task(isolation="process")
async def double_isolated_async(n: int) -> int:
    await asyncio.sleep(0)
    return 2 * n


@jobs.task(backoff=SOON)
async def flaky(job: Job) -> int:
    if job.attempt < 3:
        raise ConnectionError("no route")
    return job.attempt


@jobs.task(permanent=(KeyError,))
async def never() -> None:
    raise KeyError("account")


@jobs.task(attempts=3, backoff=Backoff("1s", factor=4, jitter=False))
async def always_failing() -> None:
    raise ValueError("no")


@jobs.task
async def ends(how: str) -> None:
    match how:
        case "skip":
            raise Skip("not needed")
        case "dead":
            raise Dead("unknown account")
        case "snooze":
            raise Snooze("1h", "too early")
        case "retry":
            raise Retry("1h", "not yet")
        case "group":
            async with asyncio.TaskGroup() as group:
                group.create_task(_skip())


async def _skip() -> None:
    raise Skip("from a group")


@jobs.task
async def parent() -> int:
    return int((await double.aenqueue(4)).id)


@jobs.task
def parent_in_thread() -> int:
    return int(double.enqueue(4).id)


@jobs.task
async def reports_progress(job: Job) -> None:
    job.progress(3, 10, "reading")
    await asyncio.to_thread(gate.wait, 10)


@jobs.task
async def completes(job: Job) -> str:
    async with jobs.atransaction() as connection:
        await job.acomplete("in the transaction", connection=connection)
    return "too late"


@jobs.task
def completes_in_thread(job: Job) -> str:
    with jobs.transaction() as connection:
        job.complete("in the transaction", connection=connection)
    return "too late"


@jobs.task
async def completes_alone(job: Job) -> str:
    await job.acomplete("on its own")
    return "too late"


@jobs.task(isolation="process")
def completes_isolated(job: Job) -> str:
    with jobs.transaction() as connection:
        job.complete("in the transaction", connection=connection)
    return "too late"


@jobs.task
def completes_and_fails(job: Job) -> None:
    with jobs.transaction() as connection:
        job.complete("in the transaction", connection=connection)
    raise ValueError("after the end")


@jobs.task(isolation="process")
def completes_and_goes_on(job: Job, folder: str, own: bool) -> None:
    if own:
        job.complete()
    else:
        with jobs.transaction() as connection:
            job.complete(connection=connection)
    wait_until((Path(folder) / "go on").exists, timeout=60, what="the word to go on")
    (Path(folder) / "finished").touch()


@jobs.task(attempts=1)
def completes_and_rolls_back(job: Job) -> None:
    class Undo(Exception):
        pass

    try:
        with jobs.transaction() as connection:
            job.complete("never", connection=connection)
            raise Undo
    except Undo:
        pass


@jobs.task
async def large(text: str) -> int:
    return len(text)


@jobs.task
async def leaves_a_mark() -> str:
    before = mark.get()
    mark.set("dirty")
    await asyncio.sleep(0)
    return before + "," + mark.get()


@jobs.task
async def awaits_a_timer() -> None:
    """Nothing but the loop's timer holds on to what this waits for."""
    due = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_later(0.02, due.set_result, None)
    if next(_count) % 10 == 0:
        gc.collect()
    await due


@jobs.task(ack="start")
async def at_most_once() -> None:
    seen.append("ran")
    raise ValueError("nobody will know")


@jobs.task
async def waits_for_the_gate(job: Job) -> str:
    await asyncio.to_thread(gate.wait, 10)
    return "through"


@jobs.task
def extends(job: Job) -> float:
    job.extend("1h")
    return job.time_left().total_seconds()


@jobs.task
async def knows_itself(job: Job) -> dict[str, Any]:
    return {"task": job.task, "attempt": job.attempt, "queue": job.queue, "key": job.effect_key("x")}


async def never_awaited() -> int:
    return 1


def hands_back(kind: str) -> Any:
    """Plain functions that only make what should have been run."""
    return never_awaited() if kind == "coroutine" else (number for number in range(3))


@jobs.task
def hand_back(kind: str) -> Any:
    return hands_back(kind)


@jobs.task(isolation="process")
def hand_back_isolated(kind: str) -> Any:
    return hands_back(kind)


@jobs.task
async def guarded(n: int) -> int:
    return n


@guarded.guard
async def even(n: int) -> str | None:
    await asyncio.sleep(0)
    return f"{n} is odd" if n % 2 else None


@jobs.task
def guarded_in_thread(n: int) -> int:
    return n


@jobs.task(isolation="process")
def guarded_isolated(n: int) -> int:
    return n


@guarded_in_thread.guard
@guarded_isolated.guard
def even_too(n: int) -> str | None:
    return f"{n} is odd" if n % 2 else None


api = jobs.resource("api", max_running=2, breaker=Breaker(min_calls=2, cool_down="1h"))


@jobs.task(isolation="process", attempts=1)
def calls_isolated(job: Job) -> None:
    with job.lock("ledger"), api:
        raise ConnectionError("away")


@jobs.task(isolation="process")
def lock_isolated(job: Job) -> int:
    with job.lock("ledger"):
        return sum(record.running for record in jobs.store.control.limits(["lock:ledger"]))
