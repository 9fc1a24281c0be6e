"""Pages as text: the templates, what all of them can say, their files, and the headers that keep hostile text harmless.

Escaping is on everywhere and never taken back. Knows no store.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING, Final, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import Response

from duly.client.inspect import Status
from duly.core.scopes import Verb
from duly.web.pages import standing as standings
from duly.web.pages import text
from duly.web.problems import problem

if TYPE_CHECKING:
    from duly.web.pages.acts import Visit


class Place(NamedTuple):
    """One entry of the navigation."""

    path: str
    label: str
    key: str
    """After "g" it goes there."""


NAV: Final = (
    Place("", "Overview", "o"),
    Place("/jobs", "Jobs", "j"),
    Place("/dead", "Dead letters", "d"),
    Place("/tenants", "Tenants", "t"),
    Place("/limits", "Limits", "l"),
    Place("/schedules", "Schedules", "s"),
    Place("/workers", "Workers", "w"),
    Place("/operations", "Operations", "p"),
    Place("/alerts", "Alerts", "a"),
    Place("/audit", "Audit", "u"),
)
"""In this order: Overview, Jobs, Dead letters, Tenants, Limits, Schedules, Workers, Operations, Alerts, Audit."""

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "Cache-Control": "no-store",
    # Not "no-referrer": with that browsers send forms with the origin "null".
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Robots-Tag": "noindex",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
FILES: Final = {
    "ui.css": "text/css; charset=utf-8",
    "ui.js": "text/javascript; charset=utf-8",
    "uplot/uPlot.iife.min.js": "text/javascript; charset=utf-8",
    "uplot/uPlot.min.css": "text/css; charset=utf-8",
    "uplot/LICENSE": "text/plain; charset=utf-8",
}


def page(
    visit: Visit, standing: Status | None, template: str, status: int, context: Mapping[str, object]
) -> Response:
    """A page for a visitor, with navigation, session and the sentence on how things stand."""
    allowed = visit.queues("read")
    queues = () if standing is None else standing.queues
    found = standings.in_order(one for one in queues if allowed is None or one.counts.queue in allowed)
    base: dict[str, object] = {
        "visit": visit,
        "url": visit.url,
        "may": visit.may,
        "missing": lambda verb, queue=None: missing(visit, verb, queue),
        "form_mark": visit.holder.mark,
        "who": visit.caller,
        "expires": visit.holder.expires,
        "flash": visit.flash(),
        "now": visit.now,
        "health": ("bad", "the job store does not answer") if standing is None else standings.sentence(found),
        "nav": NAV,
        "here": visit.request.url.path.removeprefix(visit.url()).rstrip("/"),
        "theme": visit.request.cookies.get("duly_theme", ""),
        "files": f"{visit.url()}/-/{version()}",
    }
    return _answer(template, status, {**base, **context})


def bare(base: str, template: str, status: int, context: Mapping[str, object], theme: str = "") -> Response:
    """A page for whoever is not signed in; `base` is the dashboard's path."""

    def url(path: str = "") -> str:
        return base + path

    return _answer(
        template,
        status,
        {
            "visit": None,
            "url": url,
            "theme": theme,
            "files": f"{base}/-/{version()}",
            "flash": None,
            **context,
        },
    )


def _answer(template: str, status: int, context: Mapping[str, object]) -> Response:
    body = templates().get_template(f"ui/{template}").render(context)
    # Half a surrogate pair is no character of UTF-8; filters show it, and nothing else may break a page.
    return Response(body.encode("utf-8", "replace"), status, HEADERS, "text/html")


async def static(request: Request) -> Response:
    """One of the dashboard's own files."""
    name = request.path_params["name"]
    if name not in FILES:
        return problem(404, "There is no such file")
    headers = {
        "Cache-Control": "public, max-age=31536000, immutable",
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "default-src 'none'",
    }
    return Response(_file(name), 200, headers, FILES[name])


@cache
def _file(name: str) -> bytes:
    return (files("duly.web") / "static").joinpath(*name.split("/")).read_bytes()


@cache
def version() -> str:
    """Another address for other content, so that browsers may keep it."""
    return sha256(b"".join(map(_file, FILES))).hexdigest()[:12]


@cache
def templates() -> Environment:
    """Where a page writes `{{ value }}`, it is escaped; text of jobs goes through `shown` or `block`."""
    environment = Environment(
        loader=PackageLoader("duly.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        shown=text.shown,
        block=text.block,
        prose=text.prose,
        plain=text.plain,
        number=text.number,
        rate=text.rate,
        slope=text.slope,
        age=text.age,
        moment=text.moment,
        since=text.since,
        size=text.size,
        points=text.points,
    )
    return environment


def missing(visit: Visit, verb: Verb, queue: str | None = None) -> str | None:
    """What a disabled button says: the scope that the visitor lacks; None where nothing is missing."""
    if visit.may(verb, queue):
        return None
    return f"needs the scope {verb if queue is None else f'{verb}:{queue}'}"
