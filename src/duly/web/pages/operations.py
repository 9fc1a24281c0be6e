"""Stored bulk acts: how far each is, at which rate, by whom and why; held, let go on, or ended."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from msgspec import Struct
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from duly.core.errors import NotFound, UsageError
from duly.core.filter_text import write_filter
from duly.core.scopes import Verb
from duly.stores.protocol import OperationRecord
from duly.web.pages.acts import Desk, Visit
from duly.web.problems import Refused

SHOWN: Final = 200
TONES: Final = {"running": "note", "paused": "warn", "done": "good", "cancelled": "warn"}
SAID: Final = {"pause": "is held", "resume": "goes on", "cancel": "is over; what it did stays"}


class Row(Struct, frozen=True):
    """One operation of the list."""

    record: OperationRecord
    q: str
    tone: str
    handled: int
    left: timedelta | None
    """At its rate; None where that says nothing."""
    scope: Verb
    acts: tuple[str, ...]


def routes(desk: Desk) -> list[BaseRoute]:
    return [
        Route("/ui/operations", desk.page(show), methods=["GET"]),
        Route("/ui/operations/act/{verb:str}", desk.act(act), methods=["POST"]),
    ]


async def show(visit: Visit) -> Response:
    """The newest first, those that the visitor may see."""
    found = [one for one in await visit.inspect.aoperations() if _sees(visit, one)]
    return await visit.render("operations.html", rows=[_row(one) for one in found[:SHOWN]], all=len(found))


async def act(visit: Visit) -> Response:
    """Hold one, let it go on or end it, if it still stands as the page showed it."""
    verb, id = visit.path("verb"), visit.form.number("id")
    try:
        record = await visit.inspect.aoperation(id)
    except NotFound:
        record = None
    if record is None or not _sees(visit, record):
        raise Refused(404, f"There is no operation {id} here", "it never was, or you may not see it")
    visit.check(_scope(record), record.filter.queue)
    if record.state != visit.form.text("state"):
        raise Refused(
            409,
            f"Operation {id} is {record.state} by now",
            f"{record.done:,} of {record.total:,} are done. Nothing was changed",
        )
    reason = visit.form.reason()
    operate = visit.operate
    match verb:
        case "pause":
            await operate.apause_operation(id, reason=reason)
        case "resume":
            await operate.aresume_operation(id, reason=reason)
        case "cancel":
            await operate.acancel_operation(id, reason=reason)
        case _:
            raise UsageError(f"{verb[:40]!r} is nothing that can be done with an operation")
    return visit.back("/operations", f"Operation {id} {SAID[verb]}.")


def _row(record: OperationRecord) -> Row:
    handled = min(record.total, record.done + record.skipped)
    over = record.ended_at is not None
    left = None
    if record.state == "running" and record.rate:
        left = timedelta(seconds=(record.total - handled) / record.rate)
    acts = () if over else ("resume", "cancel") if record.state == "paused" else ("pause", "cancel")
    return Row(
        record,
        write_filter(record.filter),
        TONES.get(record.state, "note"),
        handled,
        left,
        _scope(record),
        acts,
    )


def _scope(record: OperationRecord) -> Verb:
    return "operate" if record.verb == "cancel" else "dead"


def _sees(visit: Visit, record: OperationRecord) -> bool:
    """Whoever may do what it does may see it, too."""
    queue = record.filter.queue
    return visit.may("read", queue) or visit.may(_scope(record), queue)
