"""Handlers at work in this process: what they inherit, enqueue, complete and wait for, through the real worker."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from duly import (
    App,
    BlockingCallWarning,
    Dead,
    Enqueued,
    Job,
    JobDead,
    Retry,
    Skip,
    Snooze,
    State,
    UsageError,
)

pytestmark = pytest.mark.asyncio


async def test_a_program_enqueues_works_and_waits(both: App) -> None:
    @both.task
    async def greet(name: str) -> str:
        return f"hello {name}"

    @both.task
    def count(names: list[str]) -> int:
        return len(names)

    async with both, both.working():
        first, second = await greet.aenqueue("ada"), await count.aenqueue(["a", "b"])
        results = await first.aresult(timeout="20s"), await second.aresult(timeout="20s")

    assert results == ("hello ada", 2)


async def test_a_handlers_enqueues_carry_its_correlation_id(both: App) -> None:
    children: list[Enqueued[Any]] = []

    @both.task
    async def leaf(number: int) -> int:
        return number

    @both.task
    def in_a_thread(job: Job) -> str:
        children.append(leaf.enqueue(1))
        children.extend(both.enqueue_many([leaf.draft(2)]))
        return job.correlation_id

    @both.task
    async def on_the_loop(job: Job) -> str:
        children.append(await leaf.aenqueue(3))
        return job.correlation_id

    async with both.working():
        ids = [
            await (await in_a_thread.using(correlation_id="order-7").aenqueue()).aresult(timeout="20s"),
            await (await on_the_loop.using(correlation_id="order-7").aenqueue()).aresult(timeout="20s"),
        ]

    records = [(await both.inspect.ajob(child.id)).job for child in children]
    assert ids == ["order-7", "order-7"]
    assert [record.correlation_id for record in records] == ["order-7"] * 3


async def test_completing_in_the_stores_transaction_commits_with_what_else_it_writes(both: App) -> None:
    @both.task
    def follow_up() -> None: ...

    @both.task
    def pay(job: Job, fail: bool) -> str:
        with both.transaction() as connection:
            follow_up.using(connection=connection, delay="1h").enqueue()
            job.complete("paid", connection=connection)
            if fail:
                raise Dead("declined")
        return "ignored"

    async with both.working():
        paid, declined = await pay.aenqueue(False), await pay.aenqueue(True)
        result: object = await paid.aresult(timeout="20s")
        with pytest.raises(JobDead, match="declined"):
            await declined.aresult(timeout="20s")

    assert result == "paid"
    assert (await both.inspect.aqueue("default")).counts.scheduled == 1


async def test_completing_without_a_connection_and_from_async_code(both: App) -> None:
    @both.task
    async def alone(job: Job) -> int:
        await job.acomplete(1)
        return 2

    @both.task
    async def together(job: Job) -> int:
        async with both.atransaction() as connection:
            await job.acomplete(1, connection=connection)
        return 2

    async with both.working():
        results = [
            await (await alone.aenqueue()).aresult(timeout="20s"),
            await (await together.aenqueue()).aresult(timeout="20s"),
        ]

    assert results == [1, 1]


async def test_endings_decide_what_a_waiter_sees(jobs: App) -> None:
    @jobs.task(attempts=2)
    async def end(job: Job, how: str) -> str:
        if how == "skip":
            raise Skip("not needed")
        if how == "snooze" and (await jobs.inspect.ajob(job)).job.counters.snoozed == 0:
            raise Snooze("0s")
        if how == "retry" and job.attempt == 1:
            raise Retry("0s")
        return f"{how} {job.attempt}"

    async with jobs.working():
        snoozed, retried = await end.aenqueue("snooze"), await end.aenqueue("retry")
        skipped = await end.aenqueue("skip")
        results = [await snoozed.aresult(timeout="20s"), await retried.aresult(timeout="20s")]
        with pytest.raises(Exception, match="not needed"):
            await skipped.aresult(timeout="20s")

    assert results == ["snooze 1", "retry 2"]
    assert (await jobs.inspect.ajob(skipped.id)).job.state is State.skipped


async def test_a_handler_may_not_wait_for_its_own_queue(jobs: App) -> None:
    @jobs.task
    async def leaf() -> int:
        return 1

    @jobs.task(attempts=1)
    async def root() -> str:
        try:
            return str(await (await leaf.aenqueue()).aresult(timeout="10s"))
        except UsageError as error:
            return str(error)

    async with jobs.working():
        told: str = await (await root.aenqueue()).aresult(timeout="20s")

    assert "own queue 'default'" in told


async def test_arounds_and_lifespans_surround_the_handlers(jobs: App) -> None:
    seen: list[str] = []

    @jobs.lifespan
    async def lifespan() -> AsyncIterator[None]:
        seen.append("up")
        yield
        seen.append("down")

    @jobs.around
    def around(job: Job) -> Iterator[None]:
        seen.append(f"before {job.task}")
        yield
        seen.append("after")

    @jobs.task
    async def work() -> None:
        seen.append("work")

    async with jobs.working():
        await (await work.aenqueue()).aresult(timeout="20s")

    assert seen == ["up", "before work", "work", "after", "down"]


async def test_an_unknown_queue_is_refused_before_anything_runs(jobs: App) -> None:
    @jobs.task(queue="mial")
    def send() -> None: ...

    with pytest.raises(UsageError, match="not declared"):
        async with jobs.working():
            raise AssertionError


async def test_many_waiters_share_the_threads_of_the_client(jobs: App) -> None:
    @jobs.task
    async def double(number: int) -> int:
        return 2 * number

    async with jobs.working():
        answers = await jobs.aenqueue_many(double.draft(number) for number in range(40))
        results = await asyncio.gather(*(answer.aresult(timeout="30s") for answer in answers))

    assert results == [2 * number for number in range(40)]


@pytest.mark.process
async def test_a_script_runs_its_own_worker(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(
        "from duly import App\n"
        "jobs = App('sqlite:///shop.db')\n"
        "@jobs.task\n"
        "def send(order_id: int) -> int:\n"
        "    return order_id\n"
        "if __name__ == '__main__':\n"
        "    enqueued = send.enqueue(7)\n"
        "    code = jobs.run_worker(until_idle=True, concurrency=2)\n"
        "    print(code, enqueued.result(timeout='5s'))\n"
    )

    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "shop.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=50,
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "0 7"


async def test_a_worker_that_would_stop_the_running_loop_warns() -> None:
    with (
        pytest.warns(BlockingCallWarning, match="write `async with jobs.working"),
        pytest.raises(UsageError, match="leave processes= out"),
    ):
        App("memory://").run_worker(processes=2)
