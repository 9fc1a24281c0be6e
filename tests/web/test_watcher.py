"""Following jobs: one look for all, each change once, an outage waited out, nothing left behind."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from duly import App
from duly.core.errors import StoreUnreachable
from duly.core.job import ClaimedJob, JobId, JobRecord
from duly.core.lifecycle import State
from duly.web.watcher import Stopping, Watcher
from tests.client.conftest import Hands


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[App]:
    app = App(f"sqlite:///{tmp_path}/shop.db")

    @app.task
    def send() -> None: ...

    yield app
    app.close()


@pytest.mark.asyncio
async def test_each_change_is_told_once_and_the_end_is_the_last(jobs: App) -> None:
    enqueued = await jobs.find_task("send").aenqueue()
    hands = await asyncio.to_thread(Hands, jobs.store, "send")
    watcher = Watcher(jobs, 0.01)
    states: list[State] = []
    claimed: tuple[ClaimedJob, ...] = ()

    async for record in watcher.follow(enqueued.id):
        assert record is not None
        states.append(record.state)
        if record.state is State.ready:
            claimed = await asyncio.to_thread(hands.claim)
        elif record.state is State.running:
            await asyncio.to_thread(hands.complete, claimed[0])

    assert states == [State.ready, State.running, State.completed]
    assert watcher.listeners == 0
    assert watcher._task is None


@pytest.mark.asyncio
async def test_a_job_that_is_not_there_yet_is_none_and_then_there(jobs: App) -> None:
    watcher = Watcher(jobs, 0.01)
    records = watcher.follow(JobId(1))

    first = await anext(records)
    await jobs.find_task("send").aenqueue()
    second = await anext(records)
    await records.aclose()

    assert first is None
    assert second is not None
    assert watcher.listeners == 0


@pytest.mark.asyncio
async def test_an_outage_is_waited_out(jobs: App, monkeypatch: pytest.MonkeyPatch) -> None:
    enqueued = await jobs.find_task("send").aenqueue()
    watcher = Watcher(jobs, 0.01)
    records = watcher.follow(enqueued.id)
    await anext(records)
    real, failed = type(jobs.inspect).alookup, 0

    async def broken(self: object, ids: list[JobId]) -> tuple[JobRecord | None, ...]:
        nonlocal failed
        failed += 1
        if failed < 3:
            raise StoreUnreachable("away")
        return await real(self, ids)  # type: ignore[arg-type]

    monkeypatch.setattr(type(jobs.inspect), "alookup", broken)
    await jobs.operate.acancel(enqueued.id, reason="a test")

    record = await anext(records)

    assert record is not None
    assert (record.state, failed >= 3) == (State.cancelled, True)
    await records.aclose()


@pytest.mark.asyncio
async def test_who_leaves_takes_nobody_else_along(jobs: App) -> None:
    enqueued = await jobs.find_task("send").aenqueue()
    watcher = Watcher(jobs, 0.01)
    stays, leaves = watcher.follow(enqueued.id), watcher.follow(enqueued.id)
    await anext(stays)
    await anext(leaves)
    waiting = asyncio.ensure_future(anext(leaves))
    await asyncio.sleep(0)

    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    await jobs.operate.acancel(enqueued.id, reason="a test")
    record = await anext(stays)

    assert record is not None
    assert record.state is State.cancelled
    await stays.aclose()
    assert watcher.listeners == 0


@pytest.mark.asyncio
async def test_a_server_that_ends_lets_go_of_all_who_listen(jobs: App) -> None:
    enqueued = await jobs.find_task("send").aenqueue()
    watcher = Watcher(jobs, 60.0)
    records = [watcher.follow(enqueued.id) for _ in range(3)]
    for one in records:
        await anext(one)
    waiting = [asyncio.ensure_future(anext(one)) for one in records]
    await asyncio.sleep(0)

    watcher.stop()
    ends = await asyncio.gather(*waiting, return_exceptions=True)

    assert [type(end) for end in ends] == [Stopping] * 3
    assert watcher.listeners == 0
