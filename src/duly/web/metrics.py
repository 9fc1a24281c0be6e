"""/metrics: what Prometheus scrapes, of the whole fleet, from one place. Needs a token that may read every queue."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from duly.integrations.prometheus import CONTENT_TYPE, Collector, collector, exposition
from duly.web.problems import problem
from duly.web.site import Site

_HEADERS: Final = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


def routes(site: Site) -> list[BaseRoute]:
    """One collector per server, made at the first question: it remembers what was counted."""
    kept: list[Collector] = []

    async def metrics(request: Request) -> Response:
        caller = await site.auth.caller(request)
        caller.check("read")
        try:
            if not kept:
                kept.append(collector(site.app))
            text = await site.app.client.acall(exposition, kept[0])
        except ImportError:
            return problem(501, "Metrics are not installed here", "pip install 'duly[metrics]'")
        return Response(text, 200, {**_HEADERS, "Content-Type": CONTENT_TYPE})

    return [Route("/metrics", metrics)]
