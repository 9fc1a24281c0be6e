"""Cases: the async twins, which write on an async connection in the caller's transaction."""

import asyncio

from duly.core.errors import ConnectionMismatch
from duly.core.job import RESULT_MARK, Stored
from duly.core.keys import once_digest
from duly.core.lifecycle import Event, Outcome, State

from .bench import DAY, Bench, ended, new_job, request_key, unique
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


def an_async_cancel_lookup_and_once_belong_to_the_transaction(bench: Bench) -> None:
    id = bench.put()
    key = once_digest("event 7")

    async def act(*, commit: bool) -> tuple[object, object, bool]:
        async with bench.store.atransaction() as connection:
            answer = await bench.store.acancel_on(connection, [id], "ann", "no")
            rows = await bench.store.alookup_on(connection, [id])
            first = await bench.store.aonce_on(connection, key, DAY)
            if not commit:
                raise ZeroDivisionError
        return answer, [row and row.state for row in rows], first

    with raises(ZeroDivisionError):
        asyncio.run(act(commit=False))
    assert bench.state(id) is State.ready

    told = asyncio.run(act(commit=True))

    assert told == ({id: State.cancelled}, [State.cancelled], True)
    assert bench.state(id) is State.cancelled
    assert not bench.store.keys.once(key, DAY)


def an_async_completion_enqueues_what_follows(bench: Bench) -> None:
    worker = bench.worker()
    bench.put(then=(new_job(trigger="t", queue="after", args=RESULT_MARK),))
    claimed = bench.claim_one(worker)

    async def act() -> bool:
        async with bench.store.atransaction() as connection:
            return await bench.store.acomplete_on(
                connection, worker, ended(claimed, Event.complete, result=b"[1]")
            )

    assert asyncio.run(act())

    assert [row.args for row in bench.followers("t")] == [b"[1]"]


def an_async_enqueue_heeds_its_keys(bench: Bench) -> None:
    jobs = [
        new_job(unique=unique()),
        new_job(unique=unique()),
        new_job(idempotency=request_key()),
        new_job(idempotency=request_key()),
    ]

    async def act() -> list[Stored]:
        async with bench.store.atransaction() as connection:
            return await bench.store.aenqueue_on(connection, jobs)

    first, second, third, fourth = asyncio.run(act())

    assert (second.id, fourth.id) == (first.id, third.id)
    assert (first.outcome, second.outcome) == (Outcome.created, Outcome.duplicate)
    bench.must_hold(first.id, unique())
