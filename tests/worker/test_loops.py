"""Slots of one loop: handlers that never wait and handlers that do, side by side, each by itself."""

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from typing import Any

from duly import App
from duly.core.lifecycle import Event
from duly.worker.attempt import Attempt
from duly.worker.board import Board
from duly.worker.floor import Floor
from duly.worker.heartbeat import Fence
from duly.worker.loops import LoopGroup
from tests.worker.doubles import Clock, an_attempt, cards, end_of

LONGEST = 30.0

Handler = Callable[[], Coroutine[Any, Any, object]]


def events(attempts: list[Attempt]) -> list[Event]:
    return [end_of(attempt).event for attempt in attempts]


def run(handlers: list[Handler], slots: int) -> list[Attempt]:
    """All of them, handed over to idle slots at once while the clock stands still; in their order."""
    clock, board, app = Clock(), Board.create(20), App()
    board.renew(clock.now)
    for number, handler in enumerate(handlers):
        handler.__name__ = f"handler_{number}"
        app.task(handler)
    known = cards(app)
    attempts = [
        an_attempt(known[f"handler_{number}"], number + 1, now=clock.now) for number in range(len(handlers))
    ]

    async def together() -> None:
        done, ended = asyncio.Event(), []

        def end(attempt: Attempt) -> None:
            ended.append(attempt)
            if len(ended) == len(attempts):
                done.set()

        floor = Floor(board, Fence(30.0, 5.0, board, clock.now), (), clock)
        floor.on_end = end
        group = LoopGroup(floor, asyncio.get_running_loop(), slots)
        group.start()
        for _ in range(5):
            await asyncio.sleep(0)
        assert len(group._idle) == slots
        group.push(attempts)
        await asyncio.wait_for(done.wait(), LONGEST)
        group.close()
        await asyncio.gather(*group._tasks, return_exceptions=True)

    asyncio.run(together())
    board.close()
    return attempts


def test_a_handler_that_cancels_its_own_task_and_returns_does_not_cancel_the_next_one() -> None:
    async def careless() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()

    async def waiting() -> None:
        await asyncio.sleep(0)

    ended = run([careless, waiting], slots=1)

    assert events(ended) == [Event.complete, Event.complete]


def test_as_many_handlers_wait_at_once_as_there_are_slots() -> None:
    started: list[int] = []
    everyone = asyncio.Event()

    def one_of_eight() -> Handler:
        async def handler() -> None:
            started.append(1)
            if len(started) == 8:
                everyone.set()
            await everyone.wait()

        return handler

    ended = run([one_of_eight() for _ in range(8)], slots=8)

    assert events(ended) == [Event.complete] * 8


def test_handlers_that_never_wait_do_not_keep_those_behind_them_from_starting() -> None:
    last_began = asyncio.Event()

    def waiting() -> Handler:
        async def handler() -> None:
            await last_began.wait()

        return handler

    async def short() -> None: ...

    async def last() -> None:
        last_began.set()

    ended = run([waiting(), waiting(), short, last], slots=3)

    assert events(ended) == [Event.complete] * 4


def test_what_a_handler_sets_ends_with_it_before_and_after_its_first_wait() -> None:
    word: ContextVar[str] = ContextVar("word", default="nothing")
    heard: list[str] = []

    async def at_once() -> None:
        heard.append(word.get())
        word.set("at once")

    async def later() -> None:
        heard.append(word.get())
        await asyncio.sleep(0)
        word.set("later")
        await asyncio.sleep(0)
        heard.append(word.get())

    async def last() -> None:
        heard.append(word.get())

    run([at_once, later, last], slots=1)

    assert heard == ["nothing", "nothing", "later", "nothing"]
