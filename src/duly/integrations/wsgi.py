"""WSGI: each request with a correlation id and a traceparent, taken or made, for the jobs that it enqueues."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Final

from duly.integrations.correlation import HEADER, Belonging, belonging, bound

Environ = dict[str, Any]
ExcInfo = tuple[type[BaseException], BaseException, TracebackType] | tuple[None, None, None] | None
StartResponse = Callable[..., Callable[[bytes], object]]
Application = Callable[[Environ, StartResponse], Iterable[bytes]]

_KEYS: Final = ("HTTP_X_CORRELATION_ID", "HTTP_X_REQUEST_ID", "HTTP_TRACEPARENT")


class Correlation:
    """Middleware: `web.wsgi_app = Correlation(web.wsgi_app)`. Jobs enqueued during a request carry its ids, answers
    name them.

    Args:
        app: the application inside.
        trust: whether ids that clients send are taken; False makes new ones, for a site that strangers call.

    """

    def __init__(self, app: Application, *, trust: bool = True) -> None:
        self._app = app
        self._trust = trust

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        correlation, request_id, traceparent = (environ.get(key) if self._trust else None for key in _KEYS)
        to = belonging(correlation, request_id, traceparent)

        def start(
            status: str, headers: list[tuple[str, str]], exc_info: ExcInfo = None
        ) -> Callable[..., object]:
            kept = [pair for pair in headers if pair[0].lower() != HEADER.lower()]
            return start_response(status, [*kept, (HEADER, to.correlation_id)], exc_info)

        with bound(to):
            body = self._app(environ, start)
        return _Body(body, to)


class _Body:
    """An answer whose parts are made in the request's context, too."""

    def __init__(self, body: Iterable[bytes], to: Belonging) -> None:
        self._body = body
        self._to = to

    def __iter__(self) -> Iterator[bytes]:
        parts = iter(self._body)
        while True:
            with self._inside():
                try:
                    part = next(parts)
                except StopIteration:
                    return
            yield part

    def close(self) -> None:
        close = getattr(self._body, "close", None)
        if close is not None:
            with self._inside():
                close()

    def _inside(self) -> AbstractContextManager[None]:
        return bound(self._to)
