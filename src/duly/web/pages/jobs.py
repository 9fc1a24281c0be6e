"""The list of jobs: a filter in the address, completion for it, and what may be done with those that are shown."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from duly.client.client import Client
from duly.core.errors import UsageError
from duly.core.filter_text import complete, read_filter, write_filter
from duly.core.filters import Filter
from duly.core.lifecycle import State
from duly.web.operation import read_number
from duly.web.pages import render
from duly.web.pages.acts import Desk, Visit
from duly.web.pages.job_view import about, attempts_begun

PAGE: Final = 50
NAMES_FRESH: Final = 15.0
"""Seconds for which names are offered before they are read again."""


def routes(desk: Desk) -> list[BaseRoute]:
    names = _Names()
    return [
        Route("/ui/jobs", desk.page(show), methods=["GET"]),
        Route("/ui/complete", desk.page(names.complete), methods=["GET"]),
    ]


async def show(visit: Visit) -> Response:
    """Newest first; a look takes at most about 150 ms, and says how far back it got."""
    text = visit.param("q")
    if text.isascii() and text.isdecimal() and len(text) < 19:
        return RedirectResponse(visit.url(f"/jobs/{text}"), 303, render.HEADERS)
    try:
        filter = allowed(visit, read_filter(text, visit.now))
    except UsageError as error:
        return await visit.render(
            "jobs.html", 422, q=text, wrong=str(error), page=None, tabs=_tabs(visit, None)
        )
    before = visit.param("before")
    page = await visit.inspect.ajobs(
        filter, before=read_number(before, "job") if before else None, limit=PAGE
    )
    return await visit.render(
        "jobs.html",
        q=text,
        wrong=None,
        filter=filter,
        page=page,
        rows=[(job, attempts_begun(job), about(job)) for job in page.jobs],
        older=None if page.next is None else visit.url("/jobs", q=text, before=page.next),
        newest=visit.url("/jobs", q=text) if before else None,
        tabs=_tabs(visit, filter),
    )


def allowed(visit: Visit, filter: Filter) -> Filter:
    """The filter within what the visitor may read; Refused, 403, where a queue has to be named."""
    queues = visit.queues("read")
    if queues is not None and filter.queue is None and len(queues) == 1:
        return replace(filter, queue=next(iter(queues)))
    visit.check("read", filter.queue)
    return filter


def _tabs(visit: Visit, filter: Filter | None) -> list[tuple[str, str, bool]]:
    """One link per state that keeps the rest of the filter: (word, address, whether it is this one)."""
    base = filter or Filter()
    everything = ("all", visit.url("/jobs", q=_kept(base, None)), filter is not None and filter.state is None)
    states = ((str(state), visit.url("/jobs", q=_kept(base, state)), base.state is state) for state in State)
    return [everything, *states]


def _kept(filter: Filter, state: State | None) -> str:
    return write_filter(replace(filter, state=state))


class _Names:
    """The names that completion offers, as they were some seconds ago."""

    def __init__(self) -> None:
        self._known: Mapping[str, Sequence[str]] = {}
        self._read_at = float("-inf")

    async def complete(self, visit: Visit) -> Response:
        """JSON for the list below the filter."""
        if time.monotonic() - self._read_at >= NAMES_FRESH:
            client = visit.site.app.client
            self._known = await client.acall(_names, client)
            self._read_at = time.monotonic()
        queues = visit.queues("read")
        known = dict(self._known)
        if queues is not None:
            known = {"queue": sorted(queues)}
        options = complete(visit.request.query_params.get("q", ""), known)
        body = msgspec.json.encode({"options": [one._asdict() for one in options]})
        return Response(body, 200, render.HEADERS, "application/json")


def _names(client: Client) -> dict[str, Sequence[str]]:
    queues, tasks = client.store.schema.declared()
    registry = client.registry
    return {
        "queue": sorted({*queues, *registry.queues}),
        "task": sorted({*tasks, *registry.tasks}),
        "tenant": sorted(plan.name for plan in client.store.control.plans()),
    }
