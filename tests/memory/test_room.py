"""The bound of memory://: who waits, for how long, in which order, and who never does."""

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from duly import App, Enqueued, Outcome, UsageError
from duly.core.job import NewJob, Token
from duly.stores import room as rooms
from duly.stores.room import Room, room_of
from tests.client.conftest import Hands
from tests.waiting import await_until, wait_until


@pytest.fixture
def jobs() -> Iterator[App]:
    app = App("memory://?max=4")

    @app.task
    def work(number: int) -> int:
        return number

    yield app
    app.close()


def room(app: App) -> Room:
    found = room_of(app.store)
    assert found is not None
    return found


def fill(app: App) -> None:
    app.enqueue_many(app.tasks["work"].draft(number) for number in range(4))


def waiting(app: App) -> int:
    return app.inspect.queue("default").counts.ready


def test_an_enqueue_waits_while_the_store_is_full_and_goes_on_when_a_job_is_claimed(jobs: App) -> None:
    fill(jobs)
    thread = threading.Thread(target=jobs.tasks["work"].enqueue, args=(4,))

    thread.start()
    wait_until(lambda: room(jobs).waits.waiting == 1, what="the fifth enqueue in the line")
    assert waiting(jobs) == 4
    Hands(jobs.store, "work").claim(1)
    thread.join(30)

    assert waiting(jobs) == 4
    waits = room(jobs).waits
    assert (waits.waited, waits.waiting) == (1, 0)
    assert waits.longest > 0


def test_a_task_that_waits_leaves_its_loop_to_others(jobs: App) -> None:
    fill(jobs)
    hands = Hands(jobs.store, "work")

    async def main() -> int:
        turns = 0
        put = asyncio.create_task(jobs.tasks["work"].aenqueue(4))
        await await_until(lambda: room(jobs).waits.waiting == 1)
        for _ in range(100):
            await asyncio.sleep(0)
            turns += 1
        assert not put.done()
        await asyncio.to_thread(hands.claim, 1)
        await asyncio.wait_for(put, 30)
        return turns

    assert asyncio.run(main()) == 100
    assert waiting(jobs) == 4


def test_many_tasks_that_wait_take_no_thread_from_the_others(jobs: App) -> None:
    fill(jobs)
    hands = Hands(jobs.store, "work")

    async def main() -> None:
        puts = [asyncio.create_task(jobs.tasks["work"].aenqueue(number)) for number in range(20)]
        await await_until(lambda: room(jobs).waits.waiting == 20)
        # More wait than the client has threads, and it still answers.
        assert (await jobs.inspect.aqueue("default")).counts.ready == 4
        for _ in range(20):
            claimed = await await_until(lambda: asyncio.to_thread(hands.claim, 1))
            assert len(claimed) == 1
        await asyncio.wait_for(asyncio.gather(*puts), 30)

    asyncio.run(main())

    assert waiting(jobs) == 4


def test_whoever_came_first_goes_in_first(jobs: App) -> None:
    fill(jobs)
    hands, order = Hands(jobs.store, "work"), []

    async def put(number: int) -> None:
        order.append((await jobs.tasks["work"].aenqueue(number)).id)

    def are(waiting: int, stored: int) -> Callable[[], bool]:
        return lambda: (room(jobs).waits.waiting, len(order)) == (waiting, stored)

    async def main() -> None:
        puts = []
        for number in range(6):
            puts.append(asyncio.create_task(put(number)))
            await await_until(are(number + 1, 0))
        for number in range(6):
            await asyncio.to_thread(hands.claim, 1)
            await await_until(are(5 - number, number + 1))
        await asyncio.gather(*puts)

    asyncio.run(main())

    assert order == sorted(order)


def test_what_left_unnoticed_is_seen_at_the_next_look(jobs: App) -> None:
    fill(jobs)
    thread = threading.Thread(target=jobs.tasks["work"].enqueue, args=(4,))
    thread.start()
    wait_until(lambda: room(jobs).waits.waiting == 1, what="the fifth enqueue in the line")

    jobs.operate.cancel([jobs.inspect.jobs().jobs[0].id], reason="not needed")
    thread.join(30)

    assert waiting(jobs) == 4


def test_a_batch_goes_in_as_a_whole(jobs: App) -> None:
    work = jobs.tasks["work"]
    jobs.enqueue_many([work.draft(0), work.draft(1)])
    thread = threading.Thread(target=jobs.enqueue_many, args=([work.draft(2), work.draft(3), work.draft(4)],))

    thread.start()
    wait_until(lambda: room(jobs).waits.waiting == 1, what="the batch in the line")
    assert waiting(jobs) == 2
    Hands(jobs.store, "work").claim(1)
    thread.join(30)

    assert waiting(jobs) == 4


def test_a_batch_that_never_fits_is_refused_at_once(jobs: App) -> None:
    with pytest.raises(UsageError, match="portions of 4"):
        jobs.enqueue_many(jobs.tasks["work"].draft(number) for number in range(5))

    assert waiting(jobs) == 0


def test_what_a_handler_enqueues_never_waits_for_its_own_worker(jobs: App) -> None:
    fill(jobs)
    hands = Hands(jobs.store, "work")
    (mother,) = hands.claim(1)
    fill_up = NewJob("default", "work", b'{"number":9}')
    jobs.store.jobs.enqueue([fill_up])

    token = Token(hands.incarnation, mother.id, mother.run)
    jobs.store.jobs.enqueue([NewJob("default", "work", b'{"number":9}', holder=token)])

    assert waiting(jobs) == 5
    assert room(jobs).waits.waited == 0


def test_an_enqueue_in_a_transaction_does_not_wait(jobs: App) -> None:
    fill(jobs)

    with jobs.transaction() as connection:
        jobs.tasks["work"].using(connection=connection).enqueue(4)

    assert waiting(jobs) == 5


def test_a_task_that_gives_up_leaves_the_line_to_the_next(jobs: App) -> None:
    fill(jobs)
    hands = Hands(jobs.store, "work")

    async def main() -> None:
        first = asyncio.create_task(jobs.tasks["work"].aenqueue(4))
        second = asyncio.create_task(jobs.tasks["work"].aenqueue(5))
        await await_until(lambda: room(jobs).waits.waiting == 2)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        assert room(jobs).waits.waiting == 1
        await asyncio.to_thread(hands.claim, 1)
        await asyncio.wait_for(second, 30)

    asyncio.run(main())

    assert waiting(jobs) == 4


def test_the_wait_is_told_in_the_facts_of_the_store(jobs: App) -> None:
    fill(jobs)
    thread = threading.Thread(target=jobs.tasks["work"].enqueue, args=(4,))
    thread.start()
    wait_until(lambda: room(jobs).waits.waiting == 1, what="the fifth enqueue in the line")

    told = jobs.store.inspection.describe()["room"]
    Hands(jobs.store, "work").claim(1)
    thread.join(30)

    assert told.endswith("1 wait now")
    assert jobs.store.inspection.describe()["room"].startswith("1 enqueues waited, ")


def test_a_wait_without_any_worker_is_worth_a_line(
    jobs: App, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(rooms, "_WORTH_A_WORD", 0.0)
    fill(jobs)
    thread = threading.Thread(target=jobs.tasks["work"].enqueue, args=(4,))

    with caplog.at_level(logging.WARNING, logger="duly.store"):
        thread.start()
        wait_until(lambda: caplog.messages, what="the line")
    Hands(jobs.store, "work").claim(1)
    thread.join(30)

    assert "jobs.working()" in caplog.messages[0]


def test_forty_messages_of_which_ten_are_copies_settle_thirty_through_a_queue_of_four() -> None:
    app = App("memory://?max=4")
    settled: list[str] = []

    @app.task
    async def settle(transfer: str) -> None:
        await asyncio.sleep(0)
        settled.append(transfer)

    async def main() -> list[Enqueued[Any]]:
        async with app, app.working(concurrency=2):
            sent = [
                await settle.using(idempotency_key=f"tx{number % 30}:0").aenqueue(f"tx{number % 30}:0")
                for number in range(40)
            ]
            for one in sent:
                await one.aresult(timeout="50s")
        return sent

    sent = asyncio.run(main())

    assert sorted(settled) == sorted(f"tx{number}:0" for number in range(30))
    assert [one.outcome for one in sent] == [Outcome.created] * 30 + [Outcome.duplicate] * 10
