"""FastAPI and Starlette: the answer 202 for an enqueued job, and duly's errors as problems."""

from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response

from duly.app import App
from duly.client.enqueued import Enqueued
from duly.integrations.problems import ERRORS, MEDIA_TYPE, problem_of


class Accepted(Response):
    """202: the work is stored and will be done. The body is {"job_id": "7", "outcome": "created"}."""

    media_type = "application/json"

    def __init__(self, enqueued: Enqueued[Any]) -> None:
        # Ids are text: JavaScript rounds numbers beyond 2^53.
        body = {"job_id": str(enqueued.id), "outcome": str(enqueued.outcome)}
        super().__init__(msgspec.json.encode(body), status_code=202)


def mount(web: Starlette, jobs: App) -> None:
    """Answer duly's errors as problems: KeyReused is 422, an unreachable store 503 with Retry-After.

    Opens nothing: enter `async with jobs:` in the lifespan to see a wrong setting at the start.
    """
    del jobs
    for kind in ERRORS:
        web.add_exception_handler(kind, _answer)


def _answer(_: Request, error: Exception) -> Response:
    problem = problem_of(error)
    return Response(problem.body, problem.status, problem.headers, MEDIA_TYPE)
