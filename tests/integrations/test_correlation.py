"""The middlewares: what a request belongs to reaches the jobs that it enqueues, and nothing else does."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient

from duly import App
from duly.client.task import Task
from duly.core.trace import read_traceparent, traceparent_of
from duly.fastapi import Correlation as AsgiCorrelation
from duly.flask import Correlation as WsgiCorrelation
from duly.integrations.correlation import belonging
from duly.telemetry import context
from tests.connections import django_setup

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
Asked = Callable[[dict[str, str]], tuple[int, str | None]]
"""Headers of a request in; the job that it enqueued and the answer's correlation id out."""


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[App]:
    app = App(f"sqlite:///{tmp_path}/shop.db")
    yield app
    app.close()


@pytest.fixture
def send(jobs: App) -> Task[[int], None]:
    @jobs.task
    def send(order_id: int) -> None: ...

    return send


@pytest.fixture(params=["asgi", "asgi in a thread", "wsgi", "django", "django async"])
def asked(request: pytest.FixtureRequest, send: Task[[int], None]) -> Asked:
    """One request to a site with the middleware: the job that it enqueued, and the answer's header."""
    kinds = {
        "asgi": lambda: _asgi(send, threaded=False),
        "asgi in a thread": lambda: _asgi(send, threaded=True),
        "wsgi": lambda: _wsgi(send),
        "django": lambda: _django(send),
        "django async": lambda: _django_async(send),
    }
    return kinds[request.param]()


def _asgi(send: Task[[int], None], *, threaded: bool) -> Asked:
    async def order(_: Request) -> Response:
        return PlainTextResponse(str((await send.aenqueue(7)).id))

    def order_in_thread(_: Request) -> Response:
        return PlainTextResponse(str(send.enqueue(7).id))

    web = Starlette(routes=[Route("/", order_in_thread if threaded else order, methods=["POST"])])
    web.add_middleware(AsgiCorrelation)

    def ask(headers: dict[str, str]) -> tuple[int, str | None]:
        answer = TestClient(web).post("/", headers=headers)
        return int(answer.text), answer.headers.get("X-Correlation-ID")

    return ask


def _wsgi(send: Task[[int], None]) -> Asked:
    web = Flask("shop")

    @web.post("/")
    def order() -> Iterator[str]:
        # The body is made after the view has returned.
        return (str(send.enqueue(order_id).id) for order_id in (7,))

    web.wsgi_app = WsgiCorrelation(web.wsgi_app)  # type: ignore[method-assign]

    def ask(headers: dict[str, str]) -> tuple[int, str | None]:
        with web.test_client().post("/", headers=headers) as answer:
            return int(answer.data), answer.headers.get("X-Correlation-ID")

    return ask


def _django(send: Task[[int], None]) -> Asked:
    assert django_setup.connections
    from django.http import HttpResponse
    from django.test import RequestFactory

    from duly.django import Correlation

    def view(request: Any) -> Any:
        assert request.correlation_id
        return HttpResponse(str(send.enqueue(7).id))

    middleware = Correlation(view)

    def ask(headers: dict[str, str]) -> tuple[int, str | None]:
        answer = middleware(RequestFactory().post("/", headers=headers))
        return int(answer.content), answer.headers.get("X-Correlation-ID")

    return ask


def _django_async(send: Task[[int], None]) -> Asked:
    assert django_setup.connections
    from asgiref.sync import async_to_sync
    from django.http import HttpResponse
    from django.test import AsyncRequestFactory

    from duly.django import Correlation

    async def view(_: Any) -> Any:
        return HttpResponse(str((await send.aenqueue(7)).id))

    middleware = Correlation(view)

    def ask(headers: dict[str, str]) -> tuple[int, str | None]:
        answer = async_to_sync(middleware)(AsyncRequestFactory().post("/", headers=headers))
        return int(answer.content), answer.headers.get("X-Correlation-ID")

    return ask


def test_a_job_carries_the_ids_of_its_request(jobs: App, asked: Asked) -> None:
    id, answered = asked({"X-Correlation-ID": "order-7", "traceparent": TRACE})

    job = jobs.inspect.job(id).job
    assert (job.correlation_id, answered) == ("order-7", "order-7")
    assert traceparent_of(job.trigger) == TRACE


def test_ids_are_made_where_a_request_has_none_and_do_not_outlive_it(jobs: App, asked: Asked) -> None:
    first, second = asked({}), asked({})

    made = [jobs.inspect.job(id).job for id, _ in (first, second)]
    assert [job.correlation_id for job in made] == [first[1], second[1]]
    assert first[1] != second[1]
    assert all(read_traceparent(traceparent_of(job.trigger)) for job in made)
    assert (context.correlation.get(), context.traceparent.get()) == (None, None)


def test_a_hostile_id_is_replaced(jobs: App, asked: Asked) -> None:
    id, answered = asked({"X-Correlation-ID": "<script>alert(1)</script>", "X-Request-ID": "42"})

    assert jobs.inspect.job(id).job.correlation_id == answered
    assert answered is not None
    assert "<" not in answered
    assert answered != "42"


def test_the_request_id_is_taken_where_there_is_no_correlation_id(jobs: App, asked: Asked) -> None:
    id, answered = asked({"X-Request-ID": "req_1a"})

    assert (jobs.inspect.job(id).job.correlation_id, answered) == ("req_1a", "req_1a")


def test_ids_of_strangers_are_not_taken_where_they_are_not_trusted(
    jobs: App, send: Task[[int], None]
) -> None:
    async def order(_: Request) -> Response:
        return PlainTextResponse(str((await send.aenqueue(7)).id))

    web = Starlette(routes=[Route("/", order, methods=["POST"])])
    web.add_middleware(AsgiCorrelation, trust=False)

    answer = TestClient(web).post("/", headers={"X-Correlation-ID": "order-7", "traceparent": TRACE})

    job = jobs.inspect.job(int(answer.text)).job
    assert job.correlation_id == answer.headers["X-Correlation-ID"] != "order-7"
    assert traceparent_of(job.trigger) != TRACE


@given(st.none() | st.text(), st.none() | st.text(), st.none() | st.text())
def test_whatever_headers_say_the_ids_are_fit_to_be_stored(
    correlation: str | None, request_id: str | None, traceparent: str | None
) -> None:
    to = belonging(correlation, request_id, traceparent)

    assert 1 <= len(to.correlation_id) <= 200
    assert to.correlation_id.isascii()
    assert not to.correlation_id.isdecimal()
    assert read_traceparent(to.traceparent) == to.traceparent
