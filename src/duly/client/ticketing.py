"""Tickets of this App: written for a job, and read into what its holder is told.

The one reader of tickets; the words are core.ticket_status's. Knows no page.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from duly.core.control import queue_limit
from duly.core.durations import Duration, parse_duration
from duly.core.errors import NotFound
from duly.core.job import JobId
from duly.core.lifecycle import State
from duly.core.ticket import (
    NO_WORDS,
    PURPOSE,
    Ticket,
    TicketError,
    Words,
    read_ticket,
    write_ticket,
)
from duly.core.ticket_status import SPOKEN, TicketStatus, status
from duly.stores.urls import parse_url

if TYPE_CHECKING:
    from duly.client.client import Client

EXPIRES: Final = "7d"
SKEW: Final = timedelta(minutes=5)
"""Between the clocks of a database server and of those that enqueue."""
RATES_KEPT: Final = 5.0
"""Seconds for which the pace of the queues is taken as known; counting them is no read of one row."""


def ticket_for(
    client: Client,
    id: JobId,
    expires: Duration | None = None,
    *,
    queue: str | None = None,
    words: Words = NO_WORDS,
    asked: datetime | None = None,
) -> str:
    """A ticket for a job; blocks for a round trip at the first use of a process without the setting `secret`.

    Valid for `expires` from now, 7 days unless said. `queue` tells how long the job's record is kept,
    `asked` when its enqueue had returned, if that is not just now.
    """
    life = parse_duration(EXPIRES if expires is None else expires, "expires", positive=True)
    now = clock_of(client)
    issued = asked or now
    policy = None if queue is None else client.registry.queues.get(queue)
    kept = client.settings.keep if policy is None or policy.keep is None else policy.keep
    # A ticket counts whole seconds, and never fewer than were asked for.
    whole = timedelta(seconds=-(-(max(now, issued) + life - issued) // timedelta(seconds=1)))
    ticket = Ticket(id, issued, issued + whole, kept, words)
    return write_ticket(client.signing.ring(PURPOSE), ticket)


def clock_of(client: Client) -> datetime:
    """This process's time; a test's where one is set."""
    return datetime.now(UTC) if client.clock is None else client.clock()


class TicketReader:
    """Reads tickets for their holders. Keeps the pace of the queues for seconds, so that many holders cost little."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._rates: dict[str, float | None] = {}
        self._rated = float("-inf")

    def open(self, text: str) -> Ticket:
        """What a text from outside says, expired or not. NotFound when it is no ticket of this App."""
        try:
            return read_ticket(self._client.signing.ring(PURPOSE), text)
        except TicketError as error:
            ring = self._client.signing.renewed(PURPOSE) if error.unknown_key else None
            if ring is None:
                raise _unknown() from None
        try:
            return read_ticket(ring, text)
        except TicketError:
            raise _unknown() from None

    def look(self, ticket: Ticket) -> TicketStatus:
        """What its holder is told now; blocks for a few reads."""
        return self._client.call(self._look, ticket)

    async def alook(self, ticket: Ticket) -> TicketStatus:
        """As `look`, without blocking the loop."""
        return await self._client.acall(self._look, ticket)

    async def aopen(self, text: str) -> Ticket:
        """As `open`, without blocking the loop."""
        if self._client.signing.known(PURPOSE) is None:
            return await self._client.acall(self.open, text)
        try:
            return read_ticket(self._client.signing.ring(PURPOSE), text)
        except TicketError as error:
            if not error.unknown_key:
                raise _unknown() from None
        return await self._client.acall(self.open, text)

    def _look(self, ticket: Ticket) -> TicketStatus:
        store = self._client.store
        now = store.inspection.now()
        if ticket.expired(now):
            return status(ticket, now, None)
        facts = store.inspection.facts(ticket.job)
        if facts is not None and facts.job.enqueued_at > ticket.issued + self._skew():
            # The number of a job that was rolled back, or lost with a database that was set back, is given again.
            return status(ticket, now, None)
        if facts is None:
            return status(ticket, now, None, answer=store.keys.answer(ticket.job))
        job = facts.job
        spoken = paused = False
        rate = None
        if job.state in {State.dead, State.skipped} and ticket.words.reasons:
            attempts = store.inspection.attempts(job.id)
            spoken = bool(attempts) and attempts[-1].event in SPOKEN
        elif job.state in {State.ready, State.blocked}:
            targets = {queue_limit(job.queue), f"task:{job.task}"}
            paused = any(pause.target in targets for pause in store.inspection.pauses())
            policy = self._client.registry.queues.get(job.queue)
            # Where tenants take turns, the pace of the queue is not that of one line.
            rate = None if policy is not None and policy.fair else self._rate(job.queue)
        return status(ticket, now, facts, out_per_s=rate, paused=paused, spoken=spoken)

    def _skew(self) -> timedelta:
        """How far the store's clock may be ahead of the one that issued a ticket."""
        shared = parse_url(self._client.settings.url).kind == "postgres"
        # Only SQLite gives the number of a rolled-back job again at once, and it has this machine's clock.
        return SKEW if shared else timedelta(0)

    def _rate(self, queue: str) -> float | None:
        if time.monotonic() - self._rated >= RATES_KEPT:
            counts = self._client.store.inspection.counts()
            self._rates = {count.queue: count.out_per_s for count in counts}
            self._rated = time.monotonic()
        return self._rates.get(queue)


def _unknown() -> NotFound:
    return NotFound("this is no ticket, or not one of this site", kind="ticket")
