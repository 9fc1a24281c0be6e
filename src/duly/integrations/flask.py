"""Flask: the application context around handlers, and duly's errors as problems."""

from collections.abc import Iterator

from flask import Flask
from flask.wrappers import Response

from duly.app import App
from duly.client.job import Job
from duly.integrations.problems import ERRORS, MEDIA_TYPE, problem_of


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
