"""Django: each request with a correlation id and a traceparent, taken or made, for the jobs that it enqueues."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction

from duly.integrations.correlation import ALSO, HEADER, Belonging, belonging, bound


class Correlation:
    """Middleware: add "duly.django.Correlation" to MIDDLEWARE, first. Jobs enqueued during a request carry its ids,
    answers name them, and views find them as `request.correlation_id`.

    The setting DULY_TRUST_CORRELATION = False makes new ids instead of taking those that clients send.
    """

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[Any], Any]) -> None:
        self._get_response = get_response
        self._is_async = iscoroutinefunction(get_response)
        if self._is_async:
            markcoroutinefunction(self)

    def __call__(self, request: Any) -> Any:
        to = _belonging(request)
        request.correlation_id = to.correlation_id
        if self._is_async:
            return self._answer(request, to)
        with bound(to):
            return _named(self._get_response(request), to)

    async def _answer(self, request: Any, to: Belonging) -> Any:
        answer: Callable[[Any], Awaitable[Any]] = self._get_response
        with bound(to):
            return _named(await answer(request), to)


def _belonging(request: Any) -> Belonging:
    from django.conf import settings

    if not getattr(settings, "DULY_TRUST_CORRELATION", True):
        return belonging(None, None, None)
    headers = request.headers
    return belonging(headers.get(HEADER), headers.get(ALSO), headers.get("traceparent"))


def _named(response: Any, to: Belonging) -> Any:
    response[HEADER] = to.correlation_id
    return response
