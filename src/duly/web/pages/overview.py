"""The first page: which queues need somebody, what is dead, what fires, and how much is going on. Changes nothing."""

from __future__ import annotations

from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from duly.core.errors import StoreUnreachable
from duly.web.pages import standing as standings
from duly.web.pages.acts import Desk, Visit
from duly.web.pages.flow import Flow, flows


def routes(desk: Desk) -> list[BaseRoute]:
    show = desk.page(overview)
    return [Route("/ui", show, methods=["GET"]), Route("/ui/", show, methods=["GET"])]


async def overview(visit: Visit) -> Response:
    """Every queue that the visitor may see, those with problems first."""
    status = await visit.desk.standing()
    if status is None:
        raise StoreUnreachable("the job store does not answer")
    allowed = visit.queues("read")
    found = standings.in_order(one for one in status.queues if allowed is None or one.counts.queue in allowed)
    flow: dict[str, Flow] = await flows(visit, [one.name for one in found])
    return await visit.render("overview.html", status=status, found=found, flow=flow)
