"""The ASGI application: all routes of one App, and problems for whatever goes wrong. Opens nothing when it is made."""

from __future__ import annotations

import importlib
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount

from duly.app import App
from duly.core.errors import DulyError, UsageError
from duly.integrations.asgi import Correlation
from duly.web import tickets
from duly.web.problems import Refused, problem, problem_for
from duly.web.site import Site, WebOptions

PARTS: Final = (
    "duly.web.api.routes",
    "duly.web.openapi",
    "duly.web.health",
    "duly.web.metrics",
    "duly.web.pages.routes",
)
"""Modules with `routes(site)`; imported when a server is made."""

log: Final = logging.getLogger("duly.web")


def build(app: App, options: WebOptions | None = None, *, prefix: str = "/") -> Starlette:
    """The application of one App. UsageError for options that cannot hold.

    It needs no lifespan: mounted in another application, it works as it is.
    """
    if not prefix.startswith("/"):
        raise UsageError(f"prefix={prefix!r:.80} begins with no slash; write '/{prefix}'")
    site = Site(app, options or WebOptions())
    routes: list[BaseRoute] = []
    for name in PARTS:
        part: Callable[[Site], list[BaseRoute]] = importlib.import_module(name).routes
        routes += part(site)
    routes += tickets.routes(app, site.watcher)
    if prefix.rstrip("/"):
        routes = [Mount(prefix.rstrip("/"), routes=routes)]

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await run_in_threadpool(site.close)

    made = Starlette(
        routes=routes,
        exception_handlers=_HANDLERS,
        lifespan=lifespan,
        middleware=[Middleware(Correlation)],
    )
    made.state.site = site
    # /v1/jobs/ is no other name of /v1/jobs: a redirected POST loses its body in many clients.
    made.router.redirect_slashes = False
    return made


async def _http(_: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    headers = dict((error.headers if isinstance(error, HTTPException) else None) or {})
    title, detail = _SAID.get(status, ("The request was refused", None))
    return problem(status, title, detail, headers=headers)


async def _refused(_: Request, error: Exception) -> Response:
    return error.answer() if isinstance(error, Refused) else await _broken(_, error)


async def _duly(_: Request, error: Exception) -> Response:
    return problem_for(error) if isinstance(error, DulyError) else await _broken(_, error)


async def _broken(request: Request, error: Exception) -> Response:
    log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return problem(500, "Something broke here", "it is not your request; the server's log has the reason")


_SAID: Final[dict[int, tuple[str, str | None]]] = {
    404: ("There is nothing at this address", "GET /openapi.json lists what there is"),
    405: ("This address takes other methods", "the header Allow names them"),
}
_HANDLERS: Final[dict[Any, Any]] = {
    HTTPException: _http,
    Refused: _refused,
    DulyError: _duly,
    Exception: _broken,
}
