"""Cases: the async twins, which write on an async connection in the caller's transaction."""

import asyncio

from duly.core.errors import ConnectionMismatch
from duly.core.lifecycle import Event, State

from .bench import Bench, ended, new_job
from .expect import raises


def an_async_enqueue_exists_only_after_the_commit(bench: Bench) -> None:
    async def act() -> list[int]:
        async with bench.store.atransaction() as connection:
            stored = await bench.store.aenqueue_on(connection, [new_job(), new_job()])
        return [answer.id for answer in stored]

    ids = asyncio.run(act())

    assert [job.id for job in bench.claim(bench.worker(), 10)] == ids


def an_async_enqueue_that_rolls_back_never_existed(bench: Bench) -> None:
    async def act() -> None:
        async with bench.store.atransaction() as connection:
            await bench.store.aenqueue_on(connection, [new_job()])
            raise ZeroDivisionError

    with raises(ZeroDivisionError):
        asyncio.run(act())

    assert bench.claim(bench.worker(), 10) == ()


def an_async_completion_is_fenced_like_any_other(bench: Bench) -> None:
    worker, stranger = bench.worker(), bench.worker()
    id = bench.put()
    claimed = bench.claim_one(worker)

    async def act() -> tuple[bool, bool]:
        async with bench.store.atransaction() as connection:
            first = await bench.store.acomplete_on(connection, worker, ended(claimed, Event.complete))
        async with bench.store.atransaction() as connection:
            stale = ended(claimed, Event.complete)
            other = await bench.store.acomplete_on(connection, stranger, stale)
        return first, other

    answers = asyncio.run(act())

    assert answers == (True, False)
    assert bench.state(id) is State.completed


def an_object_that_is_no_async_connection_is_refused(bench: Bench) -> None:
    async def act() -> None:
        await bench.store.aenqueue_on(object(), [new_job()])

    with raises(ConnectionMismatch):
        asyncio.run(act())

    assert bench.claim(bench.worker(), 10) == ()
