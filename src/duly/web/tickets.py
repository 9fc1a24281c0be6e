"""The routes of tickets: a page for its holder, JSON for programs, and events that keep the page up to date.

The ticket is all the proof that is asked for. Reads through client.ticketing; knows no token and no store.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from typing import Final
from urllib.parse import parse_qs

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from duly.app import App
from duly.client.ticketing import TicketReader
from duly.core.errors import KeyReused, MigrationNeeded, NotFound, QueueFull, StoreUnreachable, UsageError
from duly.core.job import JobId
from duly.core.ticket import Ticket
from duly.core.ticket_status import TicketState, TicketStatus
from duly.web.problems import problem
from duly.web.ticket_page import HEADINGS, fragment, page, plain_page, static
from duly.web.watcher import Stopping, Watcher

AGAIN: Final = 5.0
"""Seconds after which a place in the line is looked up again, though the job itself has not changed."""
LONGEST: Final = 600.0
"""Seconds of one stream; browsers come back by themselves."""
_MAX_FORM: Final = 4_096
_RETRY_AFTER: Final = {"Retry-After": "5"}

POLICY: Final = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "Cache-Control": "no-store",
    # The address is the ticket: nobody else may learn it.
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Robots-Tag": "noindex",
    "Vary": "Accept",
}
_GONE: Final = frozenset({TicketState.gone, TicketState.expired})
_FILES: Final = {"ticket.css": "text/css; charset=utf-8", "ticket.js": "text/javascript; charset=utf-8"}


def routes(jobs: App, watcher: Watcher | None = None) -> list[BaseRoute]:
    """Everything under /t. Links are relative, so that it may be mounted anywhere."""
    desk = _Desk(jobs, watcher or Watcher(jobs))
    return [
        Route("/t/-/{name}", _file),
        Route("/t/{ticket}", desk.told(desk.show)),
        Route("/t/{ticket}/events", desk.told(desk.events)),
        Route("/t/{ticket}/notify", desk.told(desk.notify), methods=["POST"]),
    ]


class _Desk:
    """Where tickets are shown."""

    def __init__(self, jobs: App, watcher: Watcher) -> None:
        self._jobs = jobs
        self._watcher = watcher
        self._reader = TicketReader(jobs.client)

    def told(
        self, answer: Callable[[Request, Ticket, str], Awaitable[Response]]
    ) -> Callable[[Request], Awaitable[Response]]:
        """The route: what is no ticket, and a store that does not answer, are told alike on all of them."""

        async def route(request: Request) -> Response:
            text = request.path_params["ticket"]
            try:
                return await answer(request, await self._reader.aopen(text), text)
            except NotFound:
                message = "This is no ticket of this site. Please look whether the whole address was copied."
                return _plain(request, 404, "Not found", message)
            except (StoreUnreachable, MigrationNeeded):
                message = "It cannot be looked up at the moment. Nothing is lost; please try again soon."
                return _plain(request, 503, "Please try again", message, _RETRY_AFTER)

        return route

    async def show(self, request: Request, ticket: Ticket, text: str) -> Response:
        """The page, or JSON where that is preferred. 410 once nothing more can be told."""
        status = await self._reader.alook(ticket)
        code = 410 if status.state in _GONE else 200
        headers = dict(HEADERS)
        if not status.ended:
            headers["Retry-After"] = "2"
        if _wants_json(request):
            return Response(msgspec.json.encode(status), code, headers, "application/json")
        notices = self._jobs.notices
        channels = () if notices is None else tuple(notices.channels.values())
        shown = page(
            text, status, datetime.now(UTC), channels=channels, asked="asked" in request.query_params
        )
        return Response(shown, code, headers, "text/html")

    async def events(self, request: Request, ticket: Ticket, text: str) -> Response:
        """A stream of what the page shows, whenever that changes, up to the end of the job."""
        if self._watcher.full:
            return _plain(request, 503, "Please try again", "Too many are listening.", {"Retry-After": "30"})
        headers = {**HEADERS, "X-Accel-Buffering": "no"}
        return StreamingResponse(self._stream(ticket), 200, headers, "text/event-stream")

    async def notify(self, request: Request, _: Ticket, text: str) -> Response:
        """Take the address that a page's form asks for: whoever has the ticket may say where to tell the end."""
        notices = self._jobs.notices
        said = await _form(request)
        channel = said.get("channel", "")
        if notices is None or channel not in notices.channels:
            return _plain(request, 404, "Not found", "Nobody can be told in this way.")
        try:
            await notices.aenqueue(text, said.get("to", "").strip(), channel=channel)
        except UsageError:
            return _plain(request, 422, "Please look again", "That is no address that can be told.")
        except KeyReused:
            message = "Another address was given before, and is told when it is finished."
            return _plain(request, 409, "Already given", message)
        except QueueFull as full:
            wait = {"Retry-After": str(max(1, int(full.retry_after.total_seconds())))}
            return _plain(request, 503, "Please try again", "Too much waits at the moment.", wait)
        return Response(status_code=303, headers={**HEADERS, "Location": f"../{text}?asked=1"})

    async def _stream(self, ticket: Ticket) -> AsyncIterator[bytes]:
        last: TicketStatus | None = None
        async for changed in _moments(self._watcher, ticket.job):
            # Only a place in the line moves while the job itself does not.
            if not changed and last is not None and last.state is not TicketState.queued:
                yield b": nothing new\n\n"
                continue
            try:
                status = await self._reader.alook(ticket)
            except StoreUnreachable:
                yield b": the store does not answer\n\n"
                continue
            if status == last:
                yield b": nothing new\n\n"
                continue
            last = status
            yield _event(status)
            if status.ended:
                return


async def _moments(watcher: Watcher, id: JobId) -> AsyncIterator[bool]:
    """True at each change of a job, False every few seconds without one, for as long as a stream lasts."""
    records = watcher.follow(id)
    waiting = asyncio.ensure_future(anext(records))
    try:
        async with asyncio.timeout(LONGEST):
            while True:
                done, _ = await asyncio.wait({waiting}, timeout=AGAIN)
                if done:
                    try:
                        waiting.result()
                    except (StopAsyncIteration, Stopping):
                        return
                    waiting = asyncio.ensure_future(anext(records))
                yield bool(done)
    except TimeoutError:
        return
    finally:
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await records.aclose()


def _event(status: TicketStatus) -> bytes:
    told = {
        "state": status.state,
        "heading": HEADINGS[status.state],
        "ended": status.ended,
        "html": fragment(status, datetime.now(UTC)),
    }
    # JSON has no line ends of its own, which would end the event's data.
    return b"event: status\ndata: " + msgspec.json.encode(told) + b"\n\n"


async def _form(request: Request) -> dict[str, str]:
    """The fields of a small form; nothing of one that is larger or no form."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > _MAX_FORM:
            return {}
    try:
        fields = parse_qs(body.decode(), max_num_fields=10)
    except ValueError:
        return {}
    return {name: values[0] for name, values in fields.items()}


async def _file(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in _FILES:
        return problem(404, "There is no such file")
    headers = {
        "Cache-Control": "public, max-age=31536000, immutable",
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "default-src 'none'",
    }
    return Response(static(name), 200, headers, _FILES[name])


def _plain(
    request: Request, code: int, heading: str, message: str, headers: dict[str, str] | None = None
) -> Response:
    more = {**HEADERS, **(headers or {})}
    if _wants_json(request):
        return problem(code, heading, message, headers=more)
    # From /t/TICKET/notify the files are a step further up.
    root = "../" if request.url.path.endswith(("/events", "/notify")) else ""
    return Response(plain_page(heading, message, root=root), code, more, "text/html")


def _wants_json(request: Request) -> bool:
    """Whether a client prefers JSON to a page; one that takes anything, as curl does, gets JSON."""
    weights = {"json": 0.0, "html": 0.0, "any": 0.0}
    kinds = {
        "application/json": "json",
        "application/*": "json",
        "text/html": "html",
        "application/xhtml+xml": "html",
        "text/*": "html",
        "*/*": "any",
    }
    for part in request.headers.get("accept", "*/*").lower().split(","):
        name, _, parameters = part.partition(";")
        kind = kinds.get(name.strip())
        if kind is not None:
            weights[kind] = max(weights[kind], _quality(parameters))
    return max(weights["json"], weights["any"] if not weights["html"] else 0.0) > weights["html"]


def _quality(parameters: str) -> float:
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                return min(1.0, max(0.0, float(value)))
            except ValueError:
                return 0.0
    return 1.0
