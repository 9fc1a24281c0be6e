"""Async handlers: long-lived slot coroutines on one event loop, fed by a deque.

A task per job would cost as much as the round trip. Each handler still has a context of its own, and a cancellation
that is meant for one never reaches the next.
"""

import asyncio
import math
import types
from collections import deque
from collections.abc import Coroutine, Generator, Sequence
from contextvars import Context, copy_context
from typing import Any, Final

from duly.client.job import current
from duly.core.job import Ended
from duly.worker.attempt import Attempt, Phase
from duly.worker.card import LOOP
from duly.worker.floor import Floor, Slot
from duly.worker.run import acall, handle_of, raised, read_arguments, returned

# One slot runs at most this long without letting the loop turn, however short its handlers are.
_BURST: Final = 0.005
_TICK: Final = 0.25

_Suspended = tuple[Context, Coroutine[Any, Any, Any], object]
"""A handler that waits: its context, itself, and what for."""


class LoopGroup:
    """The slots of one loop. `start` and `close` may be called from any thread."""

    kind = LOOP

    def __init__(self, floor: Floor, loop: asyncio.AbstractEventLoop, size: int) -> None:
        self.slots: list[Slot] = []
        self._floor = floor
        self._loop = loop
        self._size = size
        self._waiting: deque[Attempt] = deque()
        self._idle: deque[Slot] = deque()
        # The loop itself keeps only weak references to its tasks.
        self._tasks: set[asyncio.Task[None]] = set()
        self._ticks = 0
        self._closed = False
        self.failure: BaseException | None = None
        """What ended one of our own coroutines; the process must not go on without it."""

    def start(self) -> None:
        self._floor.board.tick(0, self._floor.clock())
        self._loop.call_soon_threadsafe(self._begin)

    def push(self, attempts: Sequence[Attempt]) -> None:
        self._waiting.extend(attempts)
        self._loop.call_soon_threadsafe(self._wake)

    def take_back(self, attempt: Attempt) -> bool:
        try:
            self._waiting.remove(attempt)
        except ValueError:
            return False
        return True

    def unstarted(self) -> list[Attempt]:
        return list(self._waiting)

    def stop(self, attempt: Attempt) -> None:
        self._loop.call_soon_threadsafe(self._cancel, attempt)

    def give_up(self, attempt: Attempt) -> None:
        slot = attempt.slot
        if isinstance(slot, Slot) and not slot.abandoned:
            slot.abandoned = True
            self._loop.call_soon_threadsafe(self._hire, slot.number)

    def close(self) -> None:
        self._closed = True
        self._loop.call_soon_threadsafe(self._dismiss)

    def running_now(self) -> Attempt | None:
        """Whose handler has the loop at this moment; asked from another thread, about a loop that does not turn."""
        task = asyncio.current_task(self._loop)
        for slot in self.slots:
            if slot.task is task and task is not None:
                return slot.attempt
        return None

    def _begin(self) -> None:
        self._tick()
        for number in range(self._size):
            self._hire(number)

    def _hire(self, number: int) -> None:
        slot = Slot(number)
        task = self._loop.create_task(self._serve(slot), name=f"duly-slot-{number}")
        slot.task = task
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        self.slots = [old for old in self.slots if not (old.abandoned and old.attempt is None)] + [slot]

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self.failure = task.exception()

    def _dismiss(self) -> None:
        for task in self._tasks:
            task.cancel()

    def _wake(self) -> None:
        """Two slots at most: handlers that never wait need no more, and one that waits wakes the next two."""
        idle, needed = self._idle, min(2, len(self._waiting))
        while idle and needed:
            waiter = idle.popleft().idle
            if isinstance(waiter, asyncio.Future) and not waiter.done():
                waiter.set_result(None)
                needed -= 1

    def _tick(self) -> None:
        self._ticks += 1
        self._floor.board.tick(self._ticks, self._floor.clock())
        if not self._closed:
            self._loop.call_later(_TICK, self._tick)

    def _cancel(self, attempt: Attempt) -> None:
        slot = attempt.slot
        # On the loop's own thread: the handler is suspended, or over, in which case nothing is cancelled.
        if attempt.phase == Phase.running and isinstance(slot, Slot) and slot.attempt is attempt:
            task = slot.task
            if isinstance(task, asyncio.Task):
                task.cancel()

    async def _serve(self, slot: Slot) -> None:
        waiting, floor = self._waiting, self._floor
        burst_ends = 0.0
        before: Attempt | None = None
        began: float | _Suspended
        while not (self._closed or slot.abandoned):
            try:
                follower = None if before is None or before.chain is None else floor.follower(before, slot)
                before = None
                if follower is None and not waiting:
                    waiter = slot.idle = self._loop.create_future()
                    self._idle.append(slot)
                    await waiter
                    burst_ends = floor.clock() + _BURST
                    continue
                attempt = follower or waiting.popleft()
            except IndexError:
                continue
            except asyncio.CancelledError:
                # Left over from a handler that cancelled its own task.
                continue
            if not floor.begin(attempt, slot):
                floor.on_end(attempt)
                continue
            before = attempt
            began = self._start(attempt, slot)
            if not isinstance(began, float):
                if waiting and self._idle:
                    # This slot is taken from now on.
                    self._wake()
                began = await self._go_on(attempt, slot, began)
                # The loop turned meanwhile.
                burst_ends = began + _BURST
            if began >= burst_ends and not slot.abandoned:
                await _turn()
                burst_ends = floor.clock() + _BURST

    def _start(self, attempt: Attempt, slot: Slot) -> float | _Suspended:
        """Up to the handler's first wait, which most short ones never come to; when it ended, if it did.

        Infinite where the loop must turn before the next handler.
        """
        floor, card = self._floor, attempt.card
        try:
            kwargs = read_arguments(attempt)
            if isinstance(kwargs, Ended):
                return self._finish(attempt, kwargs, slot, floor.clock())
            job = handle_of(attempt)
            current.set(job)
            if floor.arounds or card.guards:
                work = acall(attempt, job, kwargs, floor.arounds)
            else:
                work = card.fn(job, **kwargs) if card.takes_job else card.fn(**kwargs)
            context = copy_context()
            try:
                return context, work, context.run(work.send, None)
            except StopIteration as stop:
                now = floor.clock()
                ended = returned(attempt, stop.value, now)
        except BaseException as error:
            now = floor.clock()
            ended = raised(attempt, error, now)
        return self._finish(attempt, ended, slot, now)

    async def _go_on(self, attempt: Attempt, slot: Slot, began: _Suspended) -> float:
        """From the first wait to the end; when that was."""
        floor = self._floor
        try:
            result = await _inside(*began)
            now = floor.clock()
            ended = returned(attempt, result, now)
        except BaseException as error:
            now = floor.clock()
            ended = raised(attempt, error, now)
        return self._finish(attempt, ended, slot, now)

    def _finish(self, attempt: Attempt, ended: Ended, slot: Slot, now: float) -> float:
        task = slot.task
        if isinstance(task, asyncio.Task) and task.cancelling():
            while task.cancelling():
                task.uncancel()
            # What this handler did not come to feel waits for the next step of the task: a turn of the loop takes it.
            now = math.inf
        self._floor.finish(attempt, ended, slot)
        return now


async def _turn() -> None:
    try:
        await asyncio.sleep(0)
    except asyncio.CancelledError:
        # A handler cancelled its own task and returned before it noticed.
        pass


@types.coroutine
def _inside(context: Context, work: Coroutine[Any, Any, Any], waited: object) -> Generator[Any, Any, Any]:
    """Await the rest of `work`, which waits for `waited`; every step runs in `context`, with which its changes end."""
    run, send, throw = context.run, work.send, work.throw
    error: BaseException | None = None
    while True:
        try:
            yield waited
            error = None
        except GeneratorExit:
            run(work.close)
            raise
        except BaseException as thrown:
            error = thrown
        try:
            waited = run(send, None) if error is None else run(throw, error)
        except StopIteration as stop:
            return stop.value
