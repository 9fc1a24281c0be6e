"""Whether the server lives, and whether it can work. Anybody may ask; nothing of the inside is told."""

from __future__ import annotations

import logging
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from duly.core.errors import DulyError
from duly.web.problems import problem
from duly.web.site import Site

log: Final = logging.getLogger("duly.web")

_HEADERS: Final = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


def routes(site: Site) -> list[BaseRoute]:
    """/livez: this process turns. /readyz: its store answers, in the version that this release needs."""

    async def alive(_: Request) -> Response:
        return Response(msgspec.json.encode({"alive": True}), 200, _HEADERS, "application/json")

    async def ready(_: Request) -> Response:
        try:
            await site.inspect.anow()
            await site.app.client.acall(site.asking.registered.read)
        except DulyError as error:
            log.warning("not ready: %s", error)
            return problem(
                503,
                "The job store does not answer",
                "the server's log says why; duly check says what to do",
                headers={**_HEADERS, "Retry-After": "5"},
            )
        return Response(msgspec.json.encode({"ready": True}), 200, _HEADERS, "application/json")

    return [Route("/livez", alive), Route("/readyz", ready)]
