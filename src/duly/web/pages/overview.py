"""The first page: which queues need somebody, what is dead, what fires, and how much is going on. Changes nothing."""

from __future__ import annotations

from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from duly.client.alert_reads import firing
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
    return await visit.render(
        "overview.html",
        status=status,
        found=found,
        flow=flow,
        totals={name: _total(found, name) for name in ("ready", "running", "scheduled", "blocked", "dead")},
        ended=sum(one.total for one in flow.values()),
        firing=len(firing(await visit.inspect.aalerts())) if allowed is None else None,
    )


def _total(found: list[standings.Standing], name: str) -> tuple[int, bool]:
    """Of all queues together, and whether one of them is an estimate."""
    counts = [one.status.counts for one in found]
    return sum(getattr(one, name) for one in counts), any(name in one.estimated for one in counts)
