"""Group commit: what comes while a transaction is under way shares the next one, and each is answered for itself."""

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from duly import App
from duly.client.intake import Answer, Ask, Intake
from duly.core.errors import LeaseLost, QueueFull, StoreUnreachable
from duly.core.job import Incarnation, JobId, NewJob, Stored, Token
from duly.stores.faults import Transient
from tests.waiting import await_until


def ask(number: int, count: int = 1) -> Ask:
    def reply(stored: Sequence[Stored]) -> Answer:
        return Answer(202, ",".join(str(one.id) for one in stored).encode())

    return Ask([NewJob("default", "send", b'{"n":%d}' % number)] * count, reply)


class Door:
    """Holds the writer at the store until it is opened, and counts what each transaction brings."""

    def __init__(self, app: App, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sizes: list[int] = []
        self.open = threading.Event()
        real = app.store.jobs.enqueue

        def enqueue(jobs: Sequence[NewJob]) -> list[Stored]:
            self.sizes.append(len(jobs))
            assert self.open.wait(30)
            return real(jobs)

        monkeypatch.setattr(app.store.jobs, "enqueue", enqueue)


@pytest.mark.asyncio
async def test_what_comes_meanwhile_shares_the_next_transaction(
    jobs: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    door, intake = Door(jobs, monkeypatch), Intake(jobs.client, most=10)
    asked = [asyncio.ensure_future(intake.store(ask(0)))]
    await await_until(lambda: door.sizes == [1])
    asked += [asyncio.ensure_future(intake.store(ask(number, 1 + (number == 5)))) for number in range(1, 15)]
    await await_until(lambda: intake._length == 15)

    door.open.set()
    answers = await asyncio.gather(*asked)

    assert door.sizes == [1, 10, 5]
    told = [id for answer in answers if isinstance(answer, Answer) for id in answer.body.split(b",")]
    assert len(set(told)) == 16
    assert {int(id) for id in told} == {job.id for job in (await jobs.inspect.ajobs()).jobs}


@pytest.mark.asyncio
async def test_the_line_before_the_writer_has_an_end(jobs: App, monkeypatch: pytest.MonkeyPatch) -> None:
    door, intake = Door(jobs, monkeypatch), Intake(jobs.client, longest=3)
    asked = [asyncio.ensure_future(intake.store(ask(0)))]
    await await_until(lambda: door.sizes == [1])
    asked += [asyncio.ensure_future(intake.store(ask(number))) for number in range(3)]
    await await_until(lambda: intake._length == 3)

    with pytest.raises(QueueFull) as caught:
        await intake.store(ask(9))
    door.open.set()
    await asyncio.gather(*asked)

    assert caught.value.retry_after.total_seconds() == 1
    assert len((await jobs.inspect.ajobs()).jobs) == 4


@pytest.mark.asyncio
async def test_an_answer_that_fails_takes_no_other_along_and_stores_nothing_twice(
    jobs: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    door, intake = Door(jobs, monkeypatch), Intake(jobs.client)

    def broken(_: Sequence[Stored]) -> Answer:
        raise RuntimeError("no answer")

    asked: list[asyncio.Future[Any]] = [asyncio.ensure_future(intake.store(ask(0)))]
    await await_until(lambda: door.sizes == [1])
    both = (ask(1), Ask(ask(2).jobs, broken), ask(3))
    asked += [asyncio.ensure_future(intake.store(one)) for one in both]
    await await_until(lambda: intake._length == 3)
    door.open.set()
    answers = await asyncio.gather(*asked, return_exceptions=True)

    assert [type(answer) for answer in answers] == [Answer, Answer, RuntimeError, Answer]
    # Its job is there all the same, once: it was committed before the answer was made.
    assert len((await jobs.inspect.ajobs()).jobs) == 4


@pytest.mark.asyncio
async def test_an_outage_is_told_to_everybody_who_waits(jobs: App, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(_: Sequence[NewJob]) -> list[Stored]:
        raise Transient("gone")

    monkeypatch.setattr(jobs.store.jobs, "enqueue", away)
    intake = Intake(jobs.client)

    answers = await asyncio.gather(*(intake.store(ask(n)) for n in range(5)), return_exceptions=True)

    assert [type(answer) for answer in answers] == [StoreUnreachable] * 5


@pytest.mark.asyncio
async def test_a_job_that_cannot_be_stored_takes_no_other_along(
    jobs: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    door, intake = Door(jobs, monkeypatch), Intake(jobs.client)
    lost = NewJob("default", "send", b"{}", holder=Token(Incarnation(9), JobId(9), 9))

    asked: list[asyncio.Future[Any]] = [asyncio.ensure_future(intake.store(ask(0)))]
    await await_until(lambda: door.sizes == [1])
    both = (ask(1), Ask([lost], ask(2).reply), ask(3))
    asked += [asyncio.ensure_future(intake.store(one)) for one in both]
    await await_until(lambda: intake._length == 3)
    door.open.set()
    answers = await asyncio.gather(*asked, return_exceptions=True)

    assert [type(answer) for answer in answers] == [Answer, Answer, LeaseLost, Answer]
    assert len((await jobs.inspect.ajobs()).jobs) == 3
