"""The page of a ticket as text: templates, its times in words, its files. Knows no request and no store."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from duly.client.notices import Channel
from duly.core.durations import format_duration
from duly.core.ticket_status import TicketState, TicketStatus

REFRESH: Final = 5
"""Seconds after which a browser without scripts looks again."""

HEADINGS: Final = {
    TicketState.pending: "On its way",
    TicketState.queued: "Waiting",
    TicketState.planned: "Planned",
    TicketState.running: "In progress",
    TicketState.retrying: "Trying again",
    TicketState.done: "Done",
    TicketState.failed: "Failed",
    TicketState.skipped: "Left out",
    TicketState.cancelled: "Cancelled",
    TicketState.refused: "Not taken",
    TicketState.gone: "No longer kept",
    TicketState.expired: "Ticket expired",
}
UNTITLED: Final = "Your request"


def page(
    text: str,
    status: TicketStatus,
    now: datetime,
    *,
    channels: Sequence[Channel] = (),
    asked: bool = False,
) -> str:
    """The whole page of a ticket, whose text is the last part of its address."""
    return _render(
        "ticket.html",
        now,
        status=status,
        title=status.title or UNTITLED,
        heading=HEADINGS[status.state],
        message=None,
        root="",
        version=_version(),
        refresh=None if status.ended else REFRESH,
        events=None if status.ended else f"{text}/events",
        notify=f"{text}/notify",
        channels=() if status.ended else channels,
        asked=asked and not status.ended,
    )


def plain_page(heading: str, message: str, *, root: str = "") -> str:
    """A page without a ticket: for what is none, and while nothing can be read."""
    return _render(
        "ticket.html",
        datetime.now(UTC),
        status=None,
        title=UNTITLED,
        heading=heading,
        message=message,
        root=root,
        version=_version(),
        refresh=None,
        events=None,
        notify=None,
        channels=(),
        asked=False,
    )


def fragment(status: TicketStatus, now: datetime) -> str:
    """The part of the page that changes."""
    return _render("ticket_status.html", now, status=status, heading=HEADINGS[status.state])


@cache
def static(name: str) -> bytes:
    """One of the page's own files."""
    return (files("duly.web") / "static" / name).read_bytes()


@cache
def _version() -> str:
    """Another address for other content, so that browsers may keep it."""
    return sha256(static("ticket.css") + static("ticket.js")).hexdigest()[:12]


@cache
def _templates() -> Environment:
    environment = Environment(
        loader=PackageLoader("duly.web"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.filters["moment"] = _moment
    environment.filters["from_now"] = _from_now
    return environment


def _render(template: str, now: datetime, **values: object) -> str:
    return _templates().get_template(template).render(now=now, **values)


def _moment(at: datetime) -> Markup:
    utc = at.astimezone(UTC)
    shown = f"{utc.day} {utc:%B %Y, %H:%M} UTC"
    return Markup('<time datetime="{}">{}</time>').format(f"{utc:%Y-%m-%dT%H:%M:%SZ}", shown)


def _from_now(at: datetime, now: datetime) -> str:
    """Such as "in about 3m 20s", or "any moment" for what is due."""
    left = at - now
    if left.total_seconds() < 1:
        return "any moment"
    return f"in about {format_duration(left)}"
