"""All routes of the dashboard: sign-in and sign-out, its files, the pages, and what is none of them."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Match, Route

from duly.core.errors import DulyError
from duly.web.pages import render
from duly.web.pages.acts import Desk, Endpoint, Visit, page_url, read_form, theme_of
from duly.web.pages.session import check_origin
from duly.web.problems import Refused, problem
from duly.web.site import Site

PAGES: Final[tuple[str, ...]] = (
    "duly.web.pages.overview",
    "duly.web.pages.queue",
    "duly.web.pages.many",
    "duly.web.pages.jobs",
    "duly.web.pages.job",
    "duly.web.pages.dead",
    "duly.web.pages.tenants",
    "duly.web.pages.limits",
    "duly.web.pages.schedules",
    "duly.web.pages.workers",
    "duly.web.pages.operations",
    "duly.web.pages.alerts",
    "duly.web.pages.audit",
    "duly.web.pages.trace",
)
"""Modules with `routes(desk)`, one per page; imported when a server is made."""


def routes(site: Site) -> list[BaseRoute]:
    """Everything under /ui, and the way there."""
    desk = Desk(site)
    door = _Door(desk)
    found: list[BaseRoute] = [
        Route("/", door.root),
        Route("/ui/-/{version}/{name:path}", render.static),
        Route("/ui/login", door.sign_in, methods=["GET"]),
        Route("/ui/login", door.signed_in, methods=["POST"]),
        Route("/ui/logout", desk.act(door.sign_out), methods=["POST"]),
    ]
    for name in PAGES:
        part: Callable[[Desk], list[BaseRoute]] = importlib.import_module(name).routes
        found += part(desk)
    pages = tuple(found)
    return [*found, Route("/ui/{rest:path}", _nothing(desk, pages), methods=_METHODS)]


class _Door:
    """Where visitors come in."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def root(self, request: Request) -> Response:
        """Browsers are shown the dashboard; programs are told what there is."""
        if "text/html" in request.headers.get("accept", ""):
            return RedirectResponse(page_url(request, "", {}), 303, render.HEADERS)
        return problem(404, "There is nothing at this address", "GET /openapi.json lists what there is")

    async def sign_in(self, request: Request) -> Response:
        """The form; a one-time code in the address is used by its button, since no GET may change anything."""
        return self._form(request, code=request.query_params.get("code", "")[:200])

    async def signed_in(self, request: Request) -> Response:
        sessions = self._desk.sessions
        try:
            check_origin(self._desk.site, request)
            form = await read_form(request)
            code, token = form.text("code")[:200], form.text("token")[:200]
            by = sessions.by_code(request, code) if code else sessions.by_token(request, token)
            proof = await by
        except Refused as refused:
            return self._form(request, status=refused.status, said=f"{refused.title}: {refused.detail}")
        except DulyError:
            return self._form(request, status=503, said="The job store does not answer; try again soon.")
        if proof is None:
            said = (
                "This link was used before, or is older than ten minutes: duly token login makes another one."
                if code
                else "This token is not known, has expired or was revoked: duly token list shows which are live."
            )
            return self._form(request, status=403, said=said, after=form.text("next"))
        response = RedirectResponse(page_url(request, _inside(form.text("next")), {}), 303, render.HEADERS)
        sessions.keep(request, response, proof)
        return response

    async def sign_out(self, visit: Visit) -> Response:
        response = RedirectResponse(visit.url("/login"), 303, render.HEADERS)
        self._desk.sessions.end(visit.request, response)
        return response

    def _form(
        self, request: Request, *, status: int = 200, said: str = "", code: str = "", after: str | None = None
    ) -> Response:
        context = {
            "said": said,
            "code": code,
            "next": _inside(request.query_params.get("next", "") if after is None else after),
        }
        base = self._desk.sessions.path(request)
        return render.bare(base, "login.html", status, context, theme_of(request))


def _inside(where: str) -> str:
    """A path below /ui, or "": nobody is sent elsewhere by what an address says."""
    fine = where.startswith("/") and not where.startswith(("//", "/\\")) and where.isprintable()
    return where[:2000] if fine and "\\" not in where else ""


_METHODS: Final = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]


def _nothing(desk: Desk, pages: tuple[BaseRoute, ...]) -> Endpoint:
    """The answer where no page is; 405 where one is that takes other methods."""

    async def tell(_: Visit) -> Response:
        raise Refused(404, "There is no such page", "the navigation lists those that there are")

    page = desk.page(tell)

    async def endpoint(request: Request) -> Response:
        allowed = {
            method
            for route in pages
            if isinstance(route, Route) and route.matches(request.scope)[0] is Match.PARTIAL
            for method in route.methods or ()
        }
        if allowed:
            names = ", ".join(sorted(allowed))
            return problem(
                405, "This address takes other methods", f"it takes {names}", headers={"Allow": names}
            )
        return await page(request)

    return endpoint
