"""Group commit: many requests for jobs, each answered for itself, share one transaction of one writer.

What comes while a transaction is under way waits for the next one. Knows no HTTP; replies are bytes of the caller's.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any, Final, NamedTuple

from msgspec import Struct

from duly.client.client import Client
from duly.client.pressing import FREE, apress
from duly.core.errors import QueueFull, StoreUnreachable
from duly.core.job import NewJob, Stored
from duly.core.operating import AnswerAsk, FilledReply, KeptReply
from duly.stores.protocol import Store

MOST: Final = 256
"""Jobs in one transaction: beyond that it would keep workers waiting for the file."""
LONGEST_LINE: Final = 5_000
"""Jobs that wait for the writer; more are refused at once, since they would only wait longer."""
KEEP: Final = timedelta(hours=24)
"""How long the first answer to an idempotency key is kept."""


class Answer(NamedTuple):
    """What is sent back."""

    status: int
    body: bytes


class Ask(Struct, frozen=True):
    """One request: its jobs are stored together or not at all."""

    jobs: Sequence[NewJob]
    reply: Callable[[Sequence[Stored]], Answer]
    """Called in the writer's thread."""
    key: AnswerAsk | None = None


Outcome = Answer | KeptReply
"""The answer to a request, or what was kept of an earlier one under its key."""


class _Waiting(NamedTuple):
    ask: Ask
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Outcome]


_Told = tuple[asyncio.Future[Outcome], Outcome | BaseException]


class Intake:
    """The one writer of a process. `store` may be called on any event loop."""

    def __init__(self, client: Client, *, most: int = MOST, longest: int = LONGEST_LINE) -> None:
        self._client = client
        self._most = most
        self._longest = longest
        self._lock = threading.Lock()
        self._line: deque[_Waiting] = deque()
        self._length = 0
        self._busy = False

    async def store(self, ask: Ask) -> Outcome:
        """Answer once it is stored. QueueFull when a queue of it, or the line before the writer, is full.

        Cancelling the wait does not stop what is stored.
        """
        await self._press(ask.jobs)
        loop = asyncio.get_running_loop()
        waiting = _Waiting(ask, loop, loop.create_future())
        with self._lock:
            if self._length >= self._longest:
                raise QueueFull(
                    f"{self._length} jobs wait to be stored already; try again in a second",
                    retry_after=timedelta(seconds=1),
                )
            self._line.append(waiting)
            self._length += len(ask.jobs)
            begin, self._busy = not self._busy, True
        if begin:
            self._client.beside_caller(self._write_all)
        return await waiting.future

    async def _press(self, jobs: Sequence[NewJob]) -> None:
        pressing = self._client.pressing
        if pressing.idle or (len(jobs) == 1 and pressing.takes(jobs[0])):
            return
        verdict = await apress(self._client, jobs, frozenset(), joined=False)
        if verdict is not FREE and verdict.pause:
            await asyncio.sleep(verdict.pause)

    def _write_all(self) -> None:
        """Until nobody waits."""
        while group := self._next():
            outcomes = self._written([one.ask for one in group])
            by_loop: dict[asyncio.AbstractEventLoop, list[_Told]] = {}
            for one, outcome in zip(group, outcomes, strict=True):
                by_loop.setdefault(one.loop, []).append((one.future, outcome))
            for loop, told in by_loop.items():
                # A loop that was closed meanwhile has nobody who waits.
                if not loop.is_closed():
                    loop.call_soon_threadsafe(_tell, told)

    def _next(self) -> list[_Waiting]:
        with self._lock:
            group: list[_Waiting] = []
            jobs = 0
            while self._line and (not group or jobs + len(self._line[0].ask.jobs) <= self._most):
                one = self._line.popleft()
                group.append(one)
                jobs += len(one.ask.jobs)
            self._length -= jobs
            self._busy = bool(group)
            return group

    def _written(self, asks: Sequence[Ask]) -> list[Outcome | BaseException]:
        try:
            return [*self._client.call(_write, self._client.store, asks)]
        except StoreUnreachable as error:
            # One for each: a raised error carries the way of its raising.
            return [type(error)(str(error)) for _ in asks]
        except BaseException as error:
            if len(asks) == 1:
                return [error]
            # One of them cannot be stored: each by itself, so that it alone hears of it.
            return [self._written([ask])[0] for ask in asks]


def _write(store: Store, asks: Sequence[Ask]) -> list[Outcome | BaseException]:
    if all(ask.key is None for ask in asks):
        stored = store.jobs.enqueue([job for ask in asks for job in ask.jobs])
        # They are committed: a reply that fails must not have them stored again.
        return [_replied(ask, part) for ask, part in _parts(asks, stored)]
    with store.transaction(kept=True) as connection:
        return _write_keyed(store, connection, asks)


def _write_keyed(store: Store, connection: Any, asks: Sequence[Ask]) -> list[Outcome | BaseException]:
    """Keys are taken and answered in the transaction that stores the jobs: neither is there without the other."""
    keys = [ask.key for ask in asks if ask.key is not None]
    taken = iter(store.answers.take(keys, connection))
    kept = [None if ask.key is None else next(taken) for ask in asks]
    fresh = [ask for ask, found in zip(asks, kept, strict=True) if found is None]
    jobs = [job for ask in fresh for job in ask.jobs]
    stored = store.enqueue_on(connection, jobs) if jobs else []
    replies = [ask.reply(part) for ask, part in _parts(fresh, stored)]
    filled = [
        FilledReply(ask.key.key, reply.status, reply.body, KEEP)
        for ask, reply in zip(fresh, replies, strict=True)
        if ask.key is not None
    ]
    if filled:
        store.answers.fill(filled, connection)
    given = iter(replies)
    return [found if found is not None else next(given) for found in kept]


def _replied(ask: Ask, stored: Sequence[Stored]) -> Answer | BaseException:
    try:
        return ask.reply(stored)
    except Exception as error:
        return error


def _parts(asks: Sequence[Ask], stored: Sequence[Stored]) -> Iterator[tuple[Ask, Sequence[Stored]]]:
    at = 0
    for ask in asks:
        yield ask, stored[at : at + len(ask.jobs)]
        at += len(ask.jobs)


def _tell(told: Sequence[_Told]) -> None:
    for future, outcome in told:
        if future.done():
            continue
        if isinstance(outcome, BaseException):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)
