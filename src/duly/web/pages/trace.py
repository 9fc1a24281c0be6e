"""/ui/trace/CORRELATION: the whole work of one correlation id, as a tree with its times and as moments in order."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from duly.core.errors import NotFound, UsageError
from duly.core.names import check_name
from duly.web.pages.acts import Desk, Visit
from duly.web.pages.trace_view import WIDE, trace_view

FEW: Final = 100
"""Jobs of one page; each that did not complete at once costs a read of its attempts,"""
MANY: Final = 1_000
"""and so many when a visitor asks for more."""
MOMENTS: Final = 2_000


def routes(desk: Desk) -> list[BaseRoute]:
    return [
        Route("/ui/trace", desk.page(find), methods=["GET"]),
        Route("/ui/trace/{correlation:path}", desk.page(show), methods=["GET"]),
    ]


async def find(visit: Visit) -> Response:
    """By what was typed: a correlation id, whatever characters it has, or the number of a job."""
    asked = visit.param("id")
    return await _shown(visit, asked) if asked else await visit.render("trace_find.html")


async def show(visit: Visit) -> Response:
    return await _shown(visit, visit.path("correlation"))


async def _shown(visit: Visit, correlation: str) -> Response:
    many = visit.param("more") == "1"
    try:
        check_name("correlation id", correlation)
    except UsageError:
        raise _nothing(correlation) from None
    read = await visit.inspect.atrace(correlation, limit=MANY if many else FEW)
    view = trace_view(read, visit.now, allowed=visit.queues())
    if not view.rows:
        # As for one that is not there: nobody learns of work that is not theirs to see.
        raise _nothing(correlation)
    return await visit.render(
        "trace.html",
        view=view,
        wide=WIDE,
        moments=view.moments[:MOMENTS],
        cut=len(view.moments) > MOMENTS,
        many=many,
        asked=correlation,
    )


def _nothing(correlation: str) -> NotFound:
    return NotFound(
        f"nothing is kept of {correlation!r:.80}: give a correlation id or the number of a job",
        kind="trace",
        name=correlation[:200],
    )
