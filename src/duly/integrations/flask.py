"""Flask: the application context around handlers, the answer 202 for an enqueued job, and duly's errors as problems."""

from collections.abc import Iterator
from typing import Any, Final

import msgspec
from flask import Flask, current_app
from flask.wrappers import Response

from duly.app import App
from duly.client.enqueued import Enqueued
from duly.client.job import Job
from duly.client.ticketing import EXPIRES
from duly.core.durations import Duration
from duly.integrations.problems import ERRORS, MEDIA_TYPE, problem_of

_AT: Final = "duly_at"


def name_place(web: Flask, jobs: App, at: str | None) -> None:
    """Keep where `duly serve` is reached: DULY_PUBLIC_URL, else this path of the site."""
    web.extensions[_AT] = lambda: jobs.settings.public_url or at


def accepted(
    enqueued: Enqueued[Any],
    *,
    expires: Duration = EXPIRES,
    title: str | None = None,
    link: str | None = None,
    failed: str | None = None,
) -> Response:
    """202: the work is stored, or will be with your commit. The body is {"job_id": "7", "outcome": "created"}.

    Where `init_app` was given the path of `duly serve`, or DULY_PUBLIC_URL is set, also a ticket for whoever asked, the
    URLs of its page and of the job, a Location that leads to the page, and Retry-After. Arguments as of `ticket`.
    """
    # Ids are text: JavaScript rounds numbers beyond 2^53.
    told = {"job_id": str(enqueued.id), "outcome": str(enqueued.outcome)}
    headers: dict[str, str] = {}
    place = current_app.extensions.get(_AT)
    at = None if place is None else place()
    if at is not None:
        base = at.rstrip("/")
        ticket = enqueued.ticket(expires=expires, title=title, link=link, failed=failed)
        page = f"{base}/t/{ticket}"
        told |= {"status_url": f"{base}/v1/jobs/{enqueued.id}", "ticket": ticket, "ticket_url": page}
        headers = {"Location": page, "Retry-After": "2"}
    return Response(msgspec.json.encode(told), 202, headers, content_type="application/json")


def surround(web: Flask, jobs: App) -> None:
    """Run every handler inside `web.app_context()`, so that extensions and `current_app` work there."""

    def within_the_application(_: Job) -> Iterator[None]:
        with web.app_context():
            yield

    jobs.around(within_the_application)


def explain_errors(web: Flask) -> None:
    """KeyReused is 422, an unreachable store 503 with Retry-After."""
    for kind in ERRORS:
        web.register_error_handler(kind, _answer)


def _answer(error: Exception) -> Response:
    problem = problem_of(error)
    return Response(problem.body, problem.status, problem.headers, MEDIA_TYPE)
