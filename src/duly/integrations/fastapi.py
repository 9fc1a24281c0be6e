"""FastAPI and Starlette: the answer 202 for an enqueued job, and duly's errors as problems."""

from functools import partial
from typing import Any, Final, NamedTuple

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from duly.app import App
from duly.client.enqueued import Enqueued
from duly.client.ticketing import EXPIRES
from duly.core.durations import Duration
from duly.core.errors import UsageError
from duly.integrations.problems import ERRORS, MEDIA_TYPE, problem_of

_PLACE: Final = "duly_mounted"


class Accepted(Response):
    """202: the work is stored and will be done. The body is {"job_id": "7", "outcome": "created"}.

    Where `mount` was given a path, also a ticket for whoever asked, the URLs of its page and of the job, a Location
    that leads to the page, and Retry-After.

    Args:
        enqueued: what `aenqueue` returned.
        expires: for how long the ticket is valid.
        title: what was asked for, in your words.
        link: where the result will be.
        failed: what the holder reads when it did not work out.

    """

    media_type = "application/json"

    def __init__(
        self,
        enqueued: Enqueued[Any],
        *,
        expires: Duration = EXPIRES,
        title: str | None = None,
        link: str | None = None,
        failed: str | None = None,
    ) -> None:
        self._enqueued = enqueued
        self._ticket = partial(enqueued.aticket, expires=expires, title=title, link=link, failed=failed)
        # Ids are text: JavaScript rounds numbers beyond 2^53.
        self._told = {"job_id": str(enqueued.id), "outcome": str(enqueued.outcome)}
        super().__init__(msgspec.json.encode(self._told), status_code=202)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        mounted: _Mounted | None = getattr(scope["app"].state, _PLACE, None) if "app" in scope else None
        if mounted is not None:
            await self._add_ticket(mounted.base(scope))
        await super().__call__(scope, receive, send)

    async def _add_ticket(self, base: str) -> None:
        ticket = await self._ticket()
        page = f"{base}/t/{ticket}"
        urls = {"status_url": f"{base}/v1/jobs/{self._enqueued.id}", "ticket": ticket, "ticket_url": page}
        self.body = msgspec.json.encode({**self._told, **urls})
        self.headers.update({"Location": page, "Retry-After": "2", "Content-Length": str(len(self.body))})


def mount(web: Starlette, jobs: App, at: str | None = None) -> None:
    """Answer duly's errors as problems: KeyReused is 422, an unreachable store 503 with Retry-After.

    With `at`, as "/duly", the HTTP API, the pages of tickets and health are there, too, and `Accepted` hands out
    tickets; needs the extra `web`. Opens nothing: enter `async with jobs:` in the lifespan to see a wrong setting at
    the start.
    """
    for kind in ERRORS:
        web.add_exception_handler(kind, _answer)
    if at is not None:
        if not at.startswith("/") or at.endswith("/"):
            raise UsageError(f"at={at!r:.80} is no path to mount at; write '/duly'")
        web.mount(at, jobs.asgi())
        setattr(web.state, _PLACE, _Mounted(jobs, at))


class _Mounted(NamedTuple):
    jobs: App
    at: str

    def base(self, scope: Scope) -> str:
        """Where clients find it: under DULY_PUBLIC_URL, else on the site that they asked."""
        public = self.jobs.settings.public_url
        path: str = scope.get("root_path", "") + self.at
        return path if public is None else public.rstrip("/")


def _answer(_: Request, error: Exception) -> Response:
    problem = problem_of(error)
    return Response(problem.body, problem.status, problem.headers, MEDIA_TYPE)
