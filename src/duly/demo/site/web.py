"""The site's pages: send a picture, see its thumbnails. Tickets and the HTTP API are mounted beside them.

Decides what a request may ask and how it is answered; knows no process and decodes no picture.
"""

from __future__ import annotations

import re
from asyncio import Semaphore, gather
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Final

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined
from msgspec import Struct
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from duly.app import App
from duly.client.enqueued import Enqueued
from duly.demo.pictures import FORMATS, file_of
from duly.integrations.asgi import Correlation
from duly.integrations.fastapi import Accepted, mount
from duly.integrations.problems import ERRORS, MEDIA_TYPE, problem_of

from .app import MADE, UPLOADED, make_thumbnails
from .uploads import FIELD, KINDS, MOST_BYTES, NotTaken, Taken, is_photo, settle, take

JOBS_AT: Final = "/duly"
AT_ONCE: Final = 16
"""Uploads; the others are asked to come again."""
LATEST: Final = 24
FAILED: Final = "This picture could not be decoded. Please send another one."
SECURITY: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
}
_FOR_EVER: Final = "public, max-age=31536000, immutable"
_OWN: Final = {"site.css": "text/css; charset=utf-8", "site.js": "text/javascript; charset=utf-8"}
_TYPES: Final = {"jpg": "image/jpeg", "png": "image/png", "webp": "image/webp"}
_MADE: Final = re.compile(
    rf"[0-9a-f]{{64}}\.(?:{'|'.join(f'{form.name}[.]{form.extension}' for form in FORMATS)})"
)


class Place(Struct, frozen=True):
    """Where one site keeps its pictures, and what its pages say."""

    folder: Path
    pace: float = 0.0
    """Seconds that a job waits after each thumbnail."""
    dashboard: str | None = None


def build(jobs: App, place: Place) -> Starlette:
    """The application. Its folders must be there."""
    desk = _Desk(place)
    web = Starlette(
        routes=[
            Route("/", desk.start),
            Route("/photos", desk.upload, methods=["POST"]),
            Route("/photos/{photo}", desk.photo),
            Route("/files/{name}", desk.file),
            Route("/-/{name}", _own),
        ],
        middleware=[Middleware(Correlation, trust=False)],
        exception_handlers={404: _nothing},
    )
    mount(web, jobs, at=JOBS_AT)
    web.router.redirect_slashes = False
    # A full queue or a store that is away, told as a page to those who asked for one.
    for kind in ERRORS:
        web.add_exception_handler(kind, _not_now)
    web.add_exception_handler(NotTaken, _not_taken)
    return web


class _Desk:
    """What the routes of one site share."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._uploaded = place.folder / UPLOADED
        self._made = place.folder / MADE
        self._free = Semaphore(AT_ONCE)

    async def start(self, request: Request) -> Response:
        """The form, and what was made last."""
        latest = await run_in_threadpool(self._latest)
        return _page(
            "start.html",
            latest=latest,
            field=FIELD,
            kinds=",".join(f"image/{kind.lower()}" for kind in KINDS),
            most_bytes=MOST_BYTES,
            pace=self._place.pace,
            dashboard=self._place.dashboard,
        )

    async def upload(self, request: Request) -> Response:
        """Keep a picture and enqueue its job: 202 with a ticket once both are stored. None of the work is done here."""
        if _is_foreign(request):
            raise NotTaken(
                403, "This comes from another site's page", "open this site, and send it from there"
            )
        if self._free.locked():
            raise NotTaken(503, "Many pictures are arriving just now", "please send it again in a moment")
        async with self._free:
            try:
                taken = await take(request, self._uploaded)
            except ClientDisconnect:
                return Response(status_code=400)
        wanted = make_thumbnails.aenqueue(taken.photo, folder=str(self._place.folder), pace=self._place.pace)
        # Both writes at once, and the promise after both.
        enqueued, _ = await gather(wanted, settle(taken, self._uploaded))
        return await _accepted(request, enqueued, taken)

    async def photo(self, request: Request) -> Response:
        """A picture's thumbnails, as far as they are made."""
        photo = request.path_params["photo"]
        if not is_photo(photo) or not await run_in_threadpool((self._uploaded / photo).exists):
            return await _nothing(request, None)
        made = await run_in_threadpool(self._thumbnails, photo)
        return _page("photo.html", photo=photo, made=made, all=len(FORMATS), waits=len(made) < len(FORMATS))

    async def file(self, request: Request) -> Response:
        """One thumbnail; its name follows from its content, so that it never changes."""
        name = request.path_params["name"]
        path = self._made / name
        if _MADE.fullmatch(name) is None or not await run_in_threadpool(path.is_file):
            return await _nothing(request, None)
        headers = {**SECURITY, "Content-Security-Policy": "default-src 'none'", "Cache-Control": _FOR_EVER}
        return FileResponse(path, 200, headers, _TYPES[path.suffix[1:]])

    def _thumbnails(self, photo: str) -> list[dict[str, object]]:
        found = [(form, file_of(self._made, photo, form)) for form in FORMATS]
        return [
            {"name": form.name, "box": form.box, "file": path.name, "bytes": path.stat().st_size}
            for form, path in found
            if path.is_file()
        ]

    def _latest(self) -> list[dict[str, str]]:
        thumbnail = FORMATS[0]
        ending = f".{thumbnail.name}.{thumbnail.extension}"
        found = [(path.stat().st_mtime, path.name) for path in self._made.glob(f"*{ending}")]
        names = [name for _, name in sorted(found, reverse=True)[:LATEST] if _MADE.fullmatch(name)]
        return [{"file": name, "photo": name.removesuffix(ending)} for name in names]


async def _accepted(request: Request, enqueued: Enqueued[str], taken: Taken) -> Response:
    title = f"Thumbnails of {taken.title or 'your picture'}"
    link = f"/photos/{taken.photo}"
    if not _wants_page(request):
        return Accepted(enqueued, title=title, link=link, failed=FAILED)
    ticket = await enqueued.aticket(title=title, link=link, failed=FAILED)
    # A 202 leads nowhere by itself: with or without scripts, the browser goes on to the ticket.
    at = f"{JOBS_AT}/t/{ticket}"
    return _page("taken.html", 202, {"Location": at, "Refresh": f"0;url={at}"}, ticket=at)


def _is_foreign(request: Request) -> bool:
    """Whether a browser sends this on behalf of another site's page; programs send neither header."""
    origin = request.headers.get("origin")
    own = f"{request.url.scheme}://{request.headers.get('host', '')}"
    fetched = request.headers.get("sec-fetch-site", "same-origin")
    return fetched not in {"same-origin", "none"} or (origin is not None and origin != own)


def _wants_page(request: Request) -> bool:
    return "text/html" in request.headers.get("accept", "")


async def _not_taken(request: Request, error: Exception) -> Response:
    if not isinstance(error, NotTaken):
        raise error
    headers = {"Retry-After": "2"} if error.status == 503 else {}
    if _wants_page(request):
        return _page("told.html", error.status, headers, title=error.title, detail=error.detail)
    body = {"type": "about:blank", "title": error.title, "status": error.status, "detail": error.detail}
    return Response(msgspec.json.encode(body), error.status, {**SECURITY, **headers}, MEDIA_TYPE)


async def _not_now(request: Request, error: Exception) -> Response:
    problem = problem_of(error)
    if _wants_page(request):
        title, detail = "Please try again in a moment", "Your picture was not taken; nothing is lost."
        return _page("told.html", problem.status, problem.headers, title=title, detail=detail)
    return Response(problem.body, problem.status, {**SECURITY, **problem.headers}, MEDIA_TYPE)


async def _nothing(request: Request, _: Exception | None) -> Response:
    return await _not_taken(request, NotTaken(404, "There is nothing here", "perhaps the address was cut"))


async def _own(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in _OWN:
        return await _nothing(request, None)
    headers = {**SECURITY, "Content-Security-Policy": "default-src 'none'", "Cache-Control": _FOR_EVER}
    return Response(_static(name), 200, headers, _OWN[name])


def _page(
    template: str, status: int = 200, headers: dict[str, str] | None = None, /, **values: object
) -> Response:
    shown = _templates().get_template(template).render(version=_version(), **values)
    return Response(shown, status, {**SECURITY, "Cache-Control": "no-store", **(headers or {})}, "text/html")


@cache
def _static(name: str) -> bytes:
    return (files("duly.demo.site") / "static" / name).read_bytes()


@cache
def _version() -> str:
    """Another address for other content, so that browsers may keep it."""
    return sha256(b"".join(map(_static, _OWN))).hexdigest()[:12]


@cache
def _templates() -> Environment:
    loader = PackageLoader("duly.demo.site")
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
