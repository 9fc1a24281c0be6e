"""Loops of a producer that wait while the queue they fill is full. Stores nothing itself."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from typing import Any, Generic, TypeVar

from duly.client.job import current
from duly.client.task import Task
from duly.core.endings import Snooze
from duly.core.errors import UsageError

T = TypeVar("T")


class Paced(Generic[T]):
    """`for item in Paced(items, send): send.enqueue(item)`, or `async for`: goes on only while send's queue has room.

    Where a queue is full, whatever it does then, the loop waits as long as that takes: nothing in it is refused, and
    `when_full="slow"` slows it no further. Unbounded queues wait for nothing. Inside a handler the wait ends with
    Snooze when the job is asked to stop.

    Args:
        items: what the loop goes over; an async iterable only with `async for`.
        task: whose queue is meant, with `using(queue=…)` or `using(app=…)` if the loop has them.

    """

    def __init__(self, items: Iterable[T] | AsyncIterable[T], task: Task[..., Any]) -> None:
        if not isinstance(task, Task):
            raise UsageError(
                f"Paced(items, {task!r:.60}): write the task that the loop enqueues, as Paced(ids, send)"
            )
        draft = task.draft()
        self._items = items
        self._client = draft.client
        self._queue = draft.options.queue or draft.declaration.queue

    def __iter__(self) -> Iterator[T]:
        """Blocks while the queue is full."""
        if not isinstance(self._items, Iterable):
            raise UsageError(f"{type(self._items).__name__} is async; write async for … in Paced(…)")
        self._client.refuse_blocking("for … in Paced()", "async for … in Paced()")
        for item in self._items:
            while pause := self._client.call(self._client.pressing.admit, self._queue):
                _refuse_to_wait()
                time.sleep(pause)
            try:
                yield item
            finally:
                self._client.pressing.leave(self._queue)

    async def __aiter__(self) -> AsyncIterator[T]:
        """As `for`, without blocking the loop."""
        async for item in _each(self._items):
            while pause := await self._pause():
                _refuse_to_wait()
                await asyncio.sleep(pause)
            try:
                yield item
            finally:
                self._client.pressing.leave(self._queue)

    async def _pause(self) -> float:
        pressing = self._client.pressing
        if pressing.wants_look({self._queue: 1}):
            return await self._client.acall(pressing.admit, self._queue)
        return pressing.admit(self._queue)

    def __repr__(self) -> str:
        return f"<Paced into {self._queue}>"


def _refuse_to_wait() -> None:
    job = current.get()
    if job is not None and job.should_stop:
        raise Snooze("0s", "asked to stop while its queue was full")


async def _each(items: Iterable[T] | AsyncIterable[T]) -> AsyncIterator[T]:
    if isinstance(items, AsyncIterable):
        async for item in items:
            yield item
    else:
        for item in items:
            yield item
