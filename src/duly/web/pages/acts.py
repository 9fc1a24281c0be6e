"""What every page and every act has in common: the visitor, the form, refusals as pages, and the way back with a word.

A GET changes nothing; a POST is checked for its origin and its session's mark before anything else is read of it.
"""

from __future__ import annotations

import asyncio
import re
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Final, Literal
from urllib.parse import parse_qs, urlencode

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response

from duly.client.authorship import reason_given
from duly.client.inspect import Inspect, Status
from duly.client.operate import Operate
from duly.core.errors import DulyError, UsageError
from duly.core.scopes import Verb
from duly.web.operation import read_body
from duly.web.pages import render
from duly.web.pages.session import Holder, Sessions, check_mark, check_origin
from duly.web.problems import Refused, problem, problem_for
from duly.web.site import Site

Tone = Literal["good", "bad", "note"]
Handler = Callable[["Visit"], Awaitable[Response]]
Endpoint = Callable[[Request], Awaitable[Response]]

FLASH: Final = "duly_flash"
LARGEST_FORM: Final = 2 * 1024 * 1024
"""Bytes; arguments are edited in a form, too."""
MOST_FIELDS: Final = 2_000
STANDING_FRESH: Final = 2.0
"""Seconds for which all pages share one look at how things stand."""


class Form:
    """The fields that were sent."""

    def __init__(self, fields: dict[str, list[str]]) -> None:
        self._fields = fields

    def text(self, name: str, default: str = "") -> str:
        """One field without blanks around it."""
        values = self._fields.get(name)
        return values[0].strip() if values else default

    def all(self, name: str) -> list[str]:
        """Every value of a field that may be there several times, as boxes of a list are."""
        return self._fields.get(name, [])

    def number(self, name: str) -> int:
        """A whole number. UsageError for anything else."""
        text = self.text(name)
        if not (text.isascii() and text.isdecimal() and len(text) < 20):
            raise UsageError(f"{name}={text!r:.40} is no whole number")
        return int(text)

    def signed(self, name: str) -> int:
        """As `number`, also below 0."""
        text = self.text(name)
        if not re.fullmatch(r"-?[0-9]{1,10}", text):
            raise UsageError(f"{name}={text!r:.40} is no whole number")
        return int(text)

    def reason(self, *, needed: bool = True) -> str:
        """Why. UsageError where none was given."""
        said = reason_given(self.text("reason"))
        if needed and not said:
            raise UsageError("say why: whoever finds this act later will read it")
        return said


class Visit:
    """One look at a page, or one act, of somebody who is let in."""

    def __init__(self, desk: Desk, request: Request, holder: Holder, form: Form | None = None) -> None:
        self.desk = desk
        self.site: Site = desk.site
        self.request = request
        self.holder = holder
        self.caller = holder.caller
        self.form = form or Form({})

    @property
    def inspect(self) -> Inspect:
        return self.site.inspect

    @property
    def operate(self) -> Operate:
        """The verbs, under the visitor's name."""
        return self.site.operate(self.caller)

    @property
    def now(self) -> datetime:
        """About the database's clock."""
        return self.desk.now

    def may(self, verb: Verb, queue: str | None = None) -> bool:
        return self.caller.may(verb, queue)

    def check(self, verb: Verb, queue: str | None = None) -> None:
        """Refused, 403, with the scope that is missing: becomes a page that says so."""
        self.caller.check(verb, queue)

    def queues(self, verb: Verb = "read") -> frozenset[str] | None:
        """In which queues the visitor may do this; None: in every one."""
        return self.caller.scopes.queues(verb)

    def param(self, name: str, default: str = "") -> str:
        """One parameter of the address."""
        return self.request.query_params.get(name, default).strip()

    def path(self, name: str) -> str:
        """One part of the path."""
        return str(self.request.path_params[name])

    def url(self, path: str = "", **query: object) -> str:
        """The address of a page, as "/jobs"; parameters that are None or "" are left out."""
        return page_url(self.request, path, query)

    async def render(self, template: str, status: int = 200, /, **context: object) -> Response:
        """A page of `templates/ui/`, with all that `ui/base.html` needs."""
        standing = await self.desk.standing()
        return render.page(self, standing, template, status, context)

    def back(self, path: str, said: str, tone: Tone = "good", **query: object) -> Response:
        """After an act: to a page that shows this sentence once, and how things stand since."""
        self.desk.forget()
        response = RedirectResponse(self.url(path, **query), 303, render.HEADERS)
        text = urlsafe_b64encode(msgspec.json.encode([tone, said[:1000].encode("utf-8", "replace").decode()]))
        response.set_cookie(
            FLASH,
            text.decode(),
            max_age=60,
            path=self.desk.sessions.path(self.request),
            secure=self.desk.sessions.secure(self.request),
            httponly=True,
            samesite="strict",
        )
        return response

    def flash(self) -> tuple[str, str] | None:
        """What `back` left for this page."""
        text = self.request.cookies.get(FLASH)
        if not text:
            return None
        try:
            tone, said = msgspec.json.decode(urlsafe_b64decode(text), type=tuple[Tone, str])
        except (ValueError, msgspec.MsgspecError):
            return None
        return tone, said


class Desk:
    """Where the pages of one server are handed out."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.sessions = Sessions(site)
        self._standing: Status | None = None
        self._read_at = float("-inf")
        self._reading = asyncio.Lock()
        self._ahead = timedelta(0)

    @property
    def now(self) -> datetime:
        return datetime.now(UTC) + self._ahead

    async def standing(self, *, fresh: bool = False) -> Status | None:
        """How all queues stand, of the last two seconds; None while the store does not answer."""
        if fresh or time.monotonic() - self._read_at >= STANDING_FRESH:
            async with self._reading:
                if fresh or time.monotonic() - self._read_at >= STANDING_FRESH:
                    await self._read()
        return self._standing

    def forget(self) -> None:
        """Look anew for the next page."""
        self._read_at = float("-inf")

    async def _read(self) -> None:
        try:
            self._standing = await self.site.inspect.astatus()
            self._ahead = self._standing.now - datetime.now(UTC)
        except DulyError:
            self._standing = None
        self._read_at = time.monotonic()

    def page(self, handler: Handler) -> Endpoint:
        """The route of a page: whoever is not signed in is sent to sign in; refusals and faults become pages."""

        async def endpoint(request: Request) -> Response:
            visit: Visit | None = None
            try:
                holder = await self.sessions.holder(request)
                if holder is None:
                    return self._sign_in(request)
                visit = Visit(self, request, holder)
                self._check_any(visit)
                response = await handler(visit)
            except (Refused, DulyError) as error:
                return self._told(request, visit, error)
            if FLASH in request.cookies and response.status_code == 200:
                response.delete_cookie(FLASH, path=self.sessions.path(request))
            return response

        return endpoint

    def act(self, handler: Handler) -> Endpoint:
        """The route of an act, a POST: `visit.form` holds what was sent."""

        async def endpoint(request: Request) -> Response:
            if request.method != "POST":
                return problem(405, "This is an act", "it takes a POST", headers={"Allow": "POST"})
            visit: Visit | None = None
            try:
                check_origin(self.site, request)
                holder = await self.sessions.holder(request)
                if holder is None:
                    raise Refused(401, "You are signed out", "sign in and do it again: nothing was changed")
                visit = Visit(self, request, holder)
                visit.form = await read_form(request)
                check_mark(holder, visit.form.text("form_mark"))
                return await handler(visit)
            except ClientDisconnect:
                return Response(status_code=400)
            except (Refused, DulyError) as error:
                return self._told(request, visit, error)

        return endpoint

    def _check_any(self, visit: Visit) -> None:
        """Whoever may look at nothing at all is told so at once."""
        reads = visit.queues("read")
        if reads is not None and not reads:
            visit.check("read")

    def _sign_in(self, request: Request) -> Response:
        inside = request.url.path.removeprefix(self.sessions.path(request))
        query = f"?{request.url.query}" if request.url.query else ""
        where = page_url(request, "/login", {"next": (inside + query)[:2000] or None})
        return RedirectResponse(where, 303, render.HEADERS)

    def _told(self, request: Request, visit: Visit | None, error: Refused | DulyError) -> Response:
        if isinstance(error, Refused):
            status, title, detail, headers = error.status, error.title, error.detail, error.headers
        else:
            answer = problem_for(error)
            said = msgspec.json.decode(answer.body)
            status, title, detail = answer.status_code, said["title"], said.get("detail")
            headers = {name: answer.headers[name] for name in ("retry-after",) if name in answer.headers}
        template = "forbidden.html" if status == 403 else "problem.html"
        root = request.scope.get("root_path", "")
        context = {"status": status, "title": title, "detail": detail}
        if visit is None:
            shown = render.bare(f"{root}/ui", template, status, context, theme_of(request))
        else:
            shown = render.page(visit, self._standing, template, status, context)
        shown.headers.update(headers)
        return shown


async def read_form(request: Request) -> Form:
    """The fields of a form. Refused for what is none, or is too long."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise Refused(415, "This is no form", "send it from the page")
    body = await read_body(request, LARGEST_FORM)
    try:
        return Form(parse_qs(body.decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS))
    except ValueError:
        raise Refused(400, "The form cannot be read", "send it from the page") from None


def page_url(request: Request, path: str, query: dict[str, object]) -> str:
    """The address of a page as the browser must ask for it."""
    given = {name: value for name, value in query.items() if value is not None and value != ""}
    text = urlencode(given, doseq=True, errors="replace")
    return f"{request.scope.get('root_path', '')}/ui{path}{'?' if text else ''}{text}"


def theme_of(request: Request) -> str:
    """What the visitor has chosen; "" leaves it to the system."""
    chosen = request.cookies.get("duly_theme", "")
    return chosen if chosen in {"light", "dark"} else ""
