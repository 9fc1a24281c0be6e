"""ASGI: each request with a correlation id and a traceparent, taken or made, for the jobs that it enqueues."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

from duly.integrations.correlation import ALSO, HEADER, TRACE, belonging, bound

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

_HEADER: Final = HEADER.lower().encode()
_ALSO: Final = ALSO.lower().encode()
_TRACE: Final = TRACE.encode()
_TAKEN: Final = frozenset({_HEADER, _ALSO, _TRACE})


class Correlation:
    """Middleware: `web.add_middleware(Correlation)`. Jobs enqueued during a request carry its ids, answers name them.

    Args:
        app: the application inside.
        trust: whether ids that clients send are taken; False makes new ones, for a site that strangers call.

    """

    def __init__(self, app: Application, *, trust: bool = True) -> None:
        self._app = app
        self._trust = trust

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in {"http", "websocket"}:
            await self._app(scope, receive, send)
            return
        said: dict[bytes, str] = {}
        if self._trust:
            said = {name: value.decode("latin-1") for name, value in scope["headers"] if name in _TAKEN}
        to = belonging(said.get(_HEADER), said.get(_ALSO), said.get(_TRACE))
        named = (_HEADER, to.correlation_id.encode())

        async def answer(message: Message) -> None:
            if message["type"] in {"http.response.start", "websocket.accept"}:
                headers = [pair for pair in message.get("headers", ()) if pair[0].lower() != _HEADER]
                message = {**message, "headers": [*headers, named]}
            await send(message)

        with bound(to):
            await self._app(scope, receive, answer)
