"""Two releases of a program on one store: what the older one stored runs in the newer one, or says why it cannot."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from duly import App, JobDead, JobRecord, State, UsageError
from tests.waiting import await_until

pytestmark = pytest.mark.asyncio


@pytest.fixture
def older(sqlite_url: str) -> Iterator[App]:
    app = App(sqlite_url)
    yield app
    app.close()


@pytest.fixture
def newer(sqlite_url: str) -> Iterator[App]:
    app = App(sqlite_url)
    yield app
    app.close()


async def record(app: App, id: int) -> JobRecord:
    return (await app.inspect.ajob(id)).job


async def test_a_new_parameter_with_a_default_takes_what_an_older_release_stored(
    older: App, newer: App
) -> None:
    @older.task(name="send")
    async def send_before(order_id: int) -> str:
        return f"{order_id}"

    @newer.task(name="send")
    async def send_after(order_id: int, language: str = "en") -> str:
        return f"{order_id} {language}"

    enqueued = await send_before.aenqueue(7)

    async with newer.working():
        result = await enqueued.aresult(timeout="30s")

    assert result == "7 en"


async def test_a_parameter_that_an_older_release_does_not_take_buries_the_job_with_the_reason(
    older: App, newer: App
) -> None:
    @older.task(name="send")
    async def send_before(order_id: int) -> str:
        return f"{order_id}"

    @newer.task(name="send")
    async def send_after(order_id: int, language: str = "en") -> str:
        return f"{order_id} {language}"

    enqueued = await send_after.aenqueue(7, language="de")

    async with older.working():
        with pytest.raises(JobDead) as caught:
            await enqueued.aresult(timeout="30s")
    await older.operate.aredrive(enqueued, reason="deployed")
    async with newer.working():
        result = await enqueued.aresult(timeout="30s")

    assert "'language' is not among what" in str(caught.value)
    assert "(order_id): another release enqueued this job" in str(caught.value)
    assert result == "7 de"


async def test_a_new_parameter_without_a_default_buries_older_jobs_with_the_reason(
    older: App, newer: App
) -> None:
    @older.task(name="send")
    async def send_before(order_id: int) -> None: ...

    @newer.task(name="send")
    async def send_after(order_id: int, language: str) -> None: ...

    enqueued = await send_before.aenqueue(7)

    async with newer.working():
        with pytest.raises(JobDead) as caught:
            await enqueued.aresult(timeout="30s")

    assert "'language', which" in str(caught.value)
    assert "give 'language' a default" in str(caught.value)


async def test_a_renamed_task_runs_what_was_stored_under_its_former_name(older: App, newer: App) -> None:
    @older.task
    async def send(order_id: int) -> str:
        return "before"

    @newer.task(aliases=["send"])
    async def send_receipt(order_id: int) -> str:
        return "after"

    enqueued = await send.aenqueue(7)

    async with newer.working():
        result = await enqueued.aresult(timeout="30s")

    assert result == "after"


async def test_a_task_that_an_older_release_does_not_know_waits_for_one_that_does(
    older: App, newer: App
) -> None:
    @older.task
    async def send(order_id: int) -> None: ...

    @newer.task(aliases=["send"])
    async def send_receipt(order_id: int) -> str:
        return "after"

    enqueued = await send_receipt.aenqueue(7)

    async def parked() -> bool:
        return (await record(older, enqueued.id)).state is State.blocked

    async with older.working():
        await await_until(parked, timeout=30, what="the older release has set the job aside")
    async with newer.working():
        result = await enqueued.aresult(timeout="30s")

    assert result == "after"


async def test_a_changed_type_buries_the_job_and_names_the_argument(older: App, newer: App) -> None:
    @older.task(name="send")
    async def send_before(order: int) -> None: ...

    @newer.task(name="send")
    async def send_after(order: list[int]) -> None: ...

    enqueued = await send_before.aenqueue(7)

    async with newer.working():
        with pytest.raises(JobDead, match="argument 'order' does not fit its annotation"):
            await enqueued.aresult(timeout="30s")


async def test_a_name_that_stands_for_two_functions_is_refused_within_one_release(newer: App) -> None:
    @newer.task
    async def send(order_id: int) -> None: ...

    with pytest.raises(UsageError, match="two tasks are named 'send'"):

        @newer.task(aliases=["send"])
        async def send_receipt(order_id: int) -> None: ...
