"""What `enqueue` returned: the stored job's id, its ticket, and waiting for its result.

Reads the store only in `result` and `aresult`, and once a process for the key of tickets; knows no worker.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from datetime import datetime, timedelta
from typing import Any, Final, Generic, TypeVar, overload

from duly.client.client import Client
from duly.client.ended import ResultTimeout, ended
from duly.client.handler import Handler
from duly.client.job import current
from duly.client.ticketing import EXPIRES, clock_of, ticket_for
from duly.core.defaults import KEPT_RESULT
from duly.core.durations import Duration, compact_duration, format_size, parse_duration
from duly.core.errors import NotFound, StoreUnreachable, UsageError
from duly.core.job import JobId, JobRecord, KeptAnswer, Stored
from duly.core.lifecycle import FINAL, Outcome, State
from duly.core.ticket import PURPOSE, check_words

T_co = TypeVar("T_co", covariant=True)
R = TypeVar("R")

FIRST_PAUSE: Final = 0.01
LONGEST_PAUSE: Final = 0.5


class Enqueued(Generic[T_co]):
    """A stored job of a task that returns T_co (for an async task, the coroutine it returns)."""

    __slots__ = (
        "_client",
        "_handler",
        "_made",
        "_pending",
        "id",
        "outcome",
        "over_limit",
        "queue",
        "run_at",
        "task",
    )

    def __init__(
        self,
        client: Client,
        handler: Handler,
        stored: Stored,
        *,
        queue: str,
        task: str,
        over_limit: bool = False,
    ) -> None:
        self._client = client
        self._handler = handler
        # For a ticket: a job that is stored later under this number, after a rollback, is another one.
        self._made = clock_of(client)
        self._pending = stored.pending
        self.id: JobId = stored.id
        self.outcome: Outcome = stored.outcome
        self.run_at: datetime | None = stored.run_at
        """When it is due; None: at once."""
        self.queue = queue
        self.task = task
        self.over_limit = over_limit
        """Whether its queue was full, and the job was stored nevertheless: in a transaction of yours, after a wait, or
        because the queue sheds others."""

    @property
    def pending(self) -> bool:
        """Whether the job hangs on your own commit: in a transaction it does, on a connection that autocommits not.

        False once `result` has seen the job. A rolled-back one stays pending for ever.
        """
        return self._pending

    def __repr__(self) -> str:
        return f"<Enqueued {self.id} {self.task} in {self.queue}: {self.outcome}>"

    def ticket(
        self,
        *,
        expires: Duration = EXPIRES,
        title: str | None = None,
        link: str | None = None,
        failed: str | None = None,
        reasons: bool = False,
    ) -> str:
        """The text with which its holder follows this job, and nothing else, at /t/TICKET of `duly serve`.

        Signed, not encrypted. Blocks for a round trip at the first use of a process without the setting `secret`.

        Args:
            expires: for how long it is valid.
            title: what was asked for, in your words: "Your receipt".
            link: where the result will be, as "/orders/7" or "https://…"; else a result that is a link, or whose
                "url" is one, is taken.
            failed: what the holder reads when it did not work out, instead of a general sentence.
            reasons: whether the reason of a Dead("…") or Skip("…") is fit for the holder, and shown.

        """
        words = check_words(title, link, failed, reasons=reasons)
        if self._client.signing.known(PURPOSE) is None:
            self._client.refuse_blocking("ticket()", "await ….aticket()")
        return ticket_for(self._client, self.id, expires, queue=self.queue, words=words, asked=self._made)

    async def aticket(
        self,
        *,
        expires: Duration = EXPIRES,
        title: str | None = None,
        link: str | None = None,
        failed: str | None = None,
        reasons: bool = False,
    ) -> str:
        """As `ticket`, without blocking the loop."""
        words = check_words(title, link, failed, reasons=reasons)
        if self._client.signing.known(PURPOSE) is None:
            await self._client.acall(self._client.signing.ring, PURPOSE)
        return ticket_for(self._client, self.id, expires, queue=self.queue, words=words, asked=self._made)

    @overload
    def result(self: Enqueued[Coroutine[Any, Any, R]], *, timeout: Duration) -> R: ...
    @overload
    def result(self: Enqueued[R], *, timeout: Duration) -> R: ...
    def result(self: Enqueued[Any], *, timeout: Duration) -> Any:
        """Wait until the job completed and return what it returned; blocks, asking the store from time to time.

        JobDead, JobSkipped or JobCancelled when it ended otherwise; ResultTimeout when the time is over; NotFound
        when it was never stored or is no longer kept; one with an idempotency key is answered for 30 days, with a
        result of up to 8 KiB. Refused inside a handler for a job of the same queue: it would wait for the slot that it
        occupies.
        """
        self._client.refuse_blocking("result()", "await ….aresult()")
        wait = _Wait(self, timeout)
        while True:
            try:
                record = self._client.call(self._look)
            except StoreUnreachable as error:
                wait.failed(error)
            else:
                if wait.saw(record):
                    return self._outcome(record)
            time.sleep(wait.pause())

    @overload
    async def aresult(self: Enqueued[Coroutine[Any, Any, R]], *, timeout: Duration) -> R: ...
    @overload
    async def aresult(self: Enqueued[R], *, timeout: Duration) -> R: ...
    async def aresult(self: Enqueued[Any], *, timeout: Duration) -> Any:
        """As `result`, without blocking the loop."""
        wait = _Wait(self, timeout)
        while True:
            try:
                record = await self._client.acall(self._look)
            except StoreUnreachable as error:
                wait.failed(error)
            else:
                if wait.saw(record):
                    return self._outcome(record)
            await asyncio.sleep(wait.pause())

    def _look(self) -> JobRecord | KeptAnswer | None:
        store = self._client.store
        # Retention may have removed the job, and its idempotency key still know how it ended.
        return store.inspection.lookup([self.id])[0] or store.keys.answer(self.id)

    def _outcome(self, record: JobRecord | KeptAnswer | None) -> object:
        if record is None:
            raise _gone(self.id)
        if record.state is not State.completed:
            raise ended(record, self.task)
        if record.result is None and isinstance(record, KeptAnswer) and not self._handler.may_return_nothing:
            raise NotFound(
                f"job {self.id} ({self.task}) completed at {record.ended_at:%Y-%m-%d %H:%M:%S} UTC; its result was "
                f"larger than the {format_size(KEPT_RESULT)} that outlive the job",
                kind="result",
                name=str(self.id),
            )
        return self._handler.decode_result(self._client.sealing.open_result(self.id, record.result))


class _Wait:
    """One wait: how long to pause next, and what to say when the time is over."""

    def __init__(self, enqueued: Enqueued[Any], timeout: Duration) -> None:
        allowed = parse_duration(timeout, "timeout")
        _refuse_own_queue(enqueued)
        self._enqueued = enqueued
        self._allowed: timedelta = allowed
        self._until = time.monotonic() + allowed.total_seconds()
        self._pause = FIRST_PAUSE
        self._state = "not stored yet"
        self._error: StoreUnreachable | None = None

    def failed(self, error: StoreUnreachable) -> None:
        """An outage shorter than the wait is none."""
        self._error = error

    def saw(self, record: JobRecord | KeptAnswer | None) -> bool:
        """Whether the wait is over."""
        self._error = None
        if record is None:
            # In the caller's transaction the job is not visible before the commit.
            return not self._enqueued._pending
        self._enqueued._pending = False
        self._state = str(record.state)
        return record.state in FINAL

    def pause(self) -> float:
        """Seconds to wait before the next look. Raises when the time is over."""
        left = self._until - time.monotonic()
        if left <= 0:
            if self._error is not None:
                raise self._error
            if self._enqueued._pending:
                raise _gone(self._enqueued.id)
            waited = compact_duration(self._allowed)
            raise ResultTimeout(
                self._enqueued.id,
                f"job {self._enqueued.id} ({self._enqueued.task}) has not ended within {waited}: it is {self._state}",
            )
        pause, self._pause = self._pause, min(self._pause * 1.5, LONGEST_PAUSE)
        return min(pause, left)


def _refuse_own_queue(enqueued: Enqueued[Any]) -> None:
    job = current.get()
    # Of another store's queue no slot waits here.
    here = enqueued._client.main
    if here and job is not None and job.token is not None and job.queue == enqueued.queue:
        raise UsageError(
            f"{job.task} waits for a job of its own queue {job.queue!r}: with all slots waiting, none would run. "
            "Put the awaited task in another queue, or raise Snooze and look again later"
        )


def _gone(id: JobId) -> NotFound:
    return NotFound(
        f"no job {id}: its transaction was rolled back or has not committed, or it ended and is no longer kept",
        kind="job",
        name=str(id),
    )
