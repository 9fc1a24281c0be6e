"""What the holder of a ticket is told: one state, one sentence, and what is known of when.

Facts in, words out; shows nothing of a job but what its app says to people: the ticket's words, the notes of
`progress` and, where the ticket says so, the reasons of Dead and Skip. Knows no store, no clock and no page.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from duly.core.durations import LONGEST
from duly.core.job import JobRecord, KeptAnswer
from duly.core.lifecycle import Event, State
from duly.core.ticket import Ticket, is_link
from duly.core.why import MOST_AHEAD, JobFacts

LONG_PENDING: Final = timedelta(minutes=5)
"""After so long a transaction that has not committed is more likely gone than slow."""
_MAX_LINK_RESULT: Final = 4_000

_FAILED: Final = "It did not work out. The people in charge can see that it failed."
_LONG_PENDING: Final = (
    "It has not arrived yet. If that stays so, it was probably not saved: please ask again."
)
_GUARDED: Final = re.compile(r"\Aguard [^:]*: ")
_GONE: Final = "The details are no longer kept."


class TicketState(StrEnum):
    """Where the holder's work stands."""

    pending = "pending"
    """Not visible yet: the transaction that asked for it has not committed, or was rolled back."""
    queued = "queued"
    planned = "planned"
    """For a time to come."""
    running = "running"
    retrying = "retrying"
    """It failed and will be tried again."""
    done = "done"
    failed = "failed"
    skipped = "skipped"
    cancelled = "cancelled"
    refused = "refused"
    """Too much was waiting; it will not be done."""
    gone = "gone"
    """It has ended, and its record is no longer kept."""
    expired = "expired"
    """The ticket itself is no longer valid."""


ENDED: Final = frozenset(
    {
        TicketState.done,
        TicketState.failed,
        TicketState.skipped,
        TicketState.cancelled,
        TicketState.refused,
        TicketState.gone,
        TicketState.expired,
    }
)
_ENDINGS: Final = {
    State.completed: TicketState.done,
    State.dead: TicketState.failed,
    State.skipped: TicketState.skipped,
    State.cancelled: TicketState.cancelled,
    State.shed: TicketState.refused,
}
_PLAIN: Final = {
    TicketState.done: "It is done.",
    TicketState.failed: _FAILED,
    TicketState.skipped: "It was left out: it was no longer needed.",
    TicketState.cancelled: "It was cancelled.",
    TicketState.refused: "Too much was waiting, so that it was not taken. Please try again later.",
}


class TicketProgress(Struct, frozen=True):
    """The handler's latest word."""

    done: int
    of: int | None
    note: str | None


class TicketStatus(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One answer to a ticket, for the page and, as JSON, for programs."""

    state: TicketState
    message: str
    """For people, in one or two sentences."""
    title: str = ""
    reference: str
    """The job's number, to quote to whoever runs the site."""
    ended: bool = False
    """Whether another look can tell anything new; not so after an end, unless somebody redrives the job."""
    position: int | None = None
    """In the line, from 1; at least that much where `position_at_least`."""
    position_at_least: bool = False
    starts_at: datetime | None = None
    """An estimate from the present pace while queued; the planned time otherwise."""
    retry_at: datetime | None = None
    attempt: int | None = None
    """Which try the next one is, while retrying."""
    attempts: int | None = None
    progress: TicketProgress | None = None
    link: str | None = None
    """Where the result is."""
    asked_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    valid_until: datetime


def status(
    ticket: Ticket,
    now: datetime,
    facts: JobFacts | None,
    *,
    answer: KeptAnswer | None = None,
    out_per_s: float | None = None,
    paused: bool = False,
    spoken: bool = False,
) -> TicketStatus:
    """The answer to a ticket.

    Args:
        ticket: which one.
        now: by the store's clock.
        facts: the job and what stands around it; None when the store shows none.
        answer: what is still known of a job without a record.
        out_per_s: how fast its queue moves; None: nobody measured.
        paused: whether its queue or task is paused.
        spoken: whether the reason of its end was raised by the app: Dead("…"), Skip("…").

    """
    if ticket.expired(now):
        return _told(ticket, TicketState.expired, "This ticket is no longer valid.")
    if facts is None:
        return _missing(ticket, now, answer)
    job = facts.job
    if job.state in _ENDINGS:
        return _ended(ticket, job, spoken=spoken)
    if job.state is State.running:
        return _running(ticket, job)
    if job.state is State.scheduled:
        return _scheduled(ticket, job, now)
    return _waiting(ticket, facts, now, out_per_s, paused=paused)


def _told(ticket: Ticket, state: TicketState, message: str, **more: object) -> TicketStatus:
    plain = TicketStatus(
        state=state,
        message=message,
        title=ticket.words.title,
        reference=str(ticket.job),
        ended=state in ENDED,
        asked_at=ticket.issued,
        valid_until=ticket.expires,
    )
    return replace(plain, **more) if more else plain


def _missing(ticket: Ticket, now: datetime, answer: KeptAnswer | None) -> TicketStatus:
    if answer is not None:
        how = _PLAIN[_ENDINGS[answer.state]]
        return _told(ticket, TicketState.gone, f"{how} {_GONE}", finished_at=answer.ended_at)
    if ticket.may_be_gone(now):
        return _told(ticket, TicketState.gone, f"If it was taken, it has ended by now. {_GONE}")
    message = "It is on its way in."
    if now - ticket.issued > LONG_PENDING:
        message = _LONG_PENDING
    return _told(ticket, TicketState.pending, message)


def _ended(ticket: Ticket, job: JobRecord, *, spoken: bool) -> TicketStatus:
    state = _ENDINGS[job.state]
    message = _PLAIN[state]
    if state is TicketState.skipped and job.reason == "expired":
        message = "It could not be started in time and was left out."
    elif spoken and job.reason:
        message = _GUARDED.sub("", job.reason)
    elif state is TicketState.failed and ticket.words.failed:
        message = ticket.words.failed
    link = (ticket.words.link or result_link(job.result)) if state is TicketState.done else None
    return _told(
        ticket,
        state,
        message,
        link=link or None,
        started_at=job.started_at,
        finished_at=job.finished_at,
    )


def result_link(result: bytes | None) -> str | None:
    """Where a result says that it is: a text that is a link, or an object whose "url" is one."""
    if result is None or len(result) > _MAX_LINK_RESULT:
        return None
    value = msgspec.json.decode(result)
    found = value.get("url") if isinstance(value, dict) else value
    return found if isinstance(found, str) and is_link(found) else None


def _running(ticket: Ticket, job: JobRecord) -> TicketStatus:
    message = "It is being stopped." if job.cancel_wished else "It is being worked on."
    told = job.progress
    progress = None if told is None else TicketProgress(told.done, told.of, told.note)
    return _told(ticket, TicketState.running, message, progress=progress, started_at=job.started_at)


def _scheduled(ticket: Ticket, job: JobRecord, now: datetime) -> TicketStatus:
    due = None if job.run_at is None else max(job.run_at, now)
    if job.counters.failed:
        message = "It did not work at once and will be tried again."
        return _told(
            ticket,
            TicketState.retrying,
            message,
            retry_at=due,
            attempt=job.counters.failed + 1,
            attempts=job.attempts,
        )
    if job.counters.snoozed:
        return _told(ticket, TicketState.planned, "It waits for something and goes on later.", starts_at=due)
    return _told(ticket, TicketState.planned, "It is planned for later.", starts_at=due)


def _waiting(
    ticket: Ticket, facts: JobFacts, now: datetime, out_per_s: float | None, *, paused: bool
) -> TicketStatus:
    job = facts.job
    if job.cancel_wished:
        return _told(ticket, TicketState.queued, "It is being cancelled.")
    if paused:
        return _told(
            ticket, TicketState.queued, "Work of this kind is paused at the moment. It keeps its place."
        )
    if not facts.serving or not facts.knowing:
        message = (
            "Nobody works on this at the moment. It keeps its place and starts as soon as somebody does."
        )
        return _told(ticket, TicketState.queued, message)
    if job.state is State.blocked:
        if job.waits_for == "key":
            message = "It waits until an earlier request that it belongs with is finished."
        else:
            message = (
                "As much of this is being worked on as may be at once. It is next when something is finished."
            )
        return _told(ticket, TicketState.queued, message)
    if not facts.ahead:
        return _told(ticket, TicketState.queued, "It is next in line.", position=1, starts_at=now)
    starts = None
    if out_per_s and facts.ahead / out_per_s < LONGEST.total_seconds():
        starts = now + timedelta(seconds=facts.ahead / out_per_s)
    return _told(
        ticket,
        TicketState.queued,
        "It waits for its turn.",
        position=facts.ahead + 1,
        position_at_least=facts.ahead >= MOST_AHEAD,
        starts_at=starts,
    )


SPOKEN: Final = frozenset({Event.bury, Event.skip})
"""Ends of an attempt whose reason the app has raised for people to read."""
