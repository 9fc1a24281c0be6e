"""One operation of the API as data, and the way of a request through it: who asks, how often, how much, what.

The routes and the OpenAPI document are both made of these. Knows no operation by name.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final, Generic, Literal, TypeVar

import msgspec
from msgspec import Struct
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from duly.core.errors import DulyError
from duly.core.scopes import Verb
from duly.web.auth import Caller
from duly.web.problems import Refused, problem, problem_for
from duly.web.site import Site

B = TypeVar("B")
Q = TypeVar("Q")
S = TypeVar("S")

Method = Literal["GET", "POST"]
Endpoint = Callable[[Request], Awaitable[Response]]

_HARDENED: Final = [(b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store")]
_METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT")
_JOB_ID: Final = re.compile(r"[1-9][0-9]{0,18}")
_PLACE: Final = re.compile(r" - at `\$?(.*)`$")
_ENCODER: Final = msgspec.json.Encoder()


class Call(Generic[B, Q]):
    """One request, once it is known who asks and its body is read."""

    __slots__ = ("body", "caller", "query", "request", "site")

    def __init__(self, site: Site, request: Request, caller: Caller, body: B, query: Q) -> None:
        self.site = site
        self.request = request
        self.caller = caller
        self.body = body
        self.query = query

    def number(self, name: str = "id") -> int:
        """A job's or an operation's number in the path. Refused, 400, for what is none."""
        return read_number(str(self.request.path_params[name]), name)

    def text(self, name: str) -> str:
        return str(self.request.path_params[name])

    def url(self, path: str) -> str:
        return self.site.base(self.request) + path


class Nothing(Struct, frozen=True, forbid_unknown_fields=True):
    """No parameters."""


class Op(Struct, Generic[B, Q], frozen=True):
    """One operation."""

    name: str
    """operationId."""
    method: Method
    path: str
    summary: str
    handle: Callable[[Call[B, Q]], Awaitable[Response]]
    verb: Verb
    """The scope it needs; `handle` asks for it, since only it knows the queue."""
    answer: Any = None
    """Of which type the JSON is that a success answers."""
    body: Any = None
    body_may_be_left_out: bool = False
    query: Any = Nothing
    status: int = 200
    also: Mapping[int, str] = {}
    """Further answers: status -> when."""
    headers: Mapping[str, str] = {}
    """Of the request: name -> what for."""
    batch: bool = False
    """Whether its body may be as large as many jobs."""
    media: str = "application/json"


def routes_of(site: Site, ops: Iterable[Op[Any, Any]]) -> list[BaseRoute]:
    """One route per path, in the order of the operations; other methods of it are refused with those that there are."""
    by_path: dict[str, dict[str, Endpoint]] = {}
    for op in ops:
        by_path.setdefault(op.path, {})[op.method] = endpoint_of(site, op)
    return [Route(path, Place(methods), methods=_METHODS) for path, methods in by_path.items()]


class Place:
    """One path. An ASGI application and no function, so that Starlette wraps nothing around each request."""

    def __init__(self, methods: Mapping[str, Endpoint]) -> None:
        self._methods = methods
        self._allowed = ", ".join(f"{name}, HEAD" if name == "GET" else name for name in sorted(methods))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        method = scope["method"]
        found = self._methods.get("GET" if method == "HEAD" else method)
        if found is None:
            response = problem(
                405,
                "This address takes other methods",
                f"it takes {self._allowed}",
                headers={"Allow": self._allowed},
            )
        else:
            response = await found(Request(scope, receive, send))
        await response(scope, receive, send)


def endpoint_of(site: Site, op: Op[Any, Any]) -> Endpoint:
    """From a request to its answer."""
    decoder = None if op.body is None else msgspec.json.Decoder(op.body)

    async def endpoint(request: Request) -> Response:
        headers: Mapping[str, str] = {}
        try:
            caller = await site.auth.caller(request)
            headers = site.limits.check(caller.id or caller.name)
            query = read_query(request, op.query)
            body = None
            if decoder is not None:
                largest = site.largest_batch if op.batch else site.largest_body
                body = await _body(request, decoder, op, largest)
            response = await op.handle(Call(site, request, caller, body, query))
        except Refused as refused:
            response = refused.answer()
        except DulyError as error:
            response = problem_for(error)
        except ClientDisconnect:
            response = Response(status_code=400)
        response.raw_headers += [pair for pair in _HARDENED if pair not in response.raw_headers]
        if headers:
            response.raw_headers += [
                (name.lower().encode(), value.encode()) for name, value in headers.items()
            ]
        return response

    return endpoint


def answer(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """JSON."""
    return Response(_ENCODER.encode(value), status, headers, "application/json")


def read_number(text: str, name: str = "id") -> int:
    """A positive number of 63 bits. Refused, 400, for anything else."""
    if _JOB_ID.fullmatch(text) is None or int(text) >= 2**63:
        raise Refused(
            400, f"{text!r:.60} is no {name}", "ids are whole numbers from 1, as POST /v1/jobs gives them"
        )
    return int(text)


def read_query(request: Request, kind: type[S]) -> S:
    """The query string as a struct. Refused, 400, with the parameter that does not fit."""
    if not request.scope["query_string"] and kind is Nothing:
        return kind()
    given = request.query_params.multi_items()
    named = dict(given)
    if len(named) < len(given):
        raise Refused(400, "A parameter of the query is there twice", "give each one once")
    try:
        return msgspec.convert(named, kind, strict=False)
    except msgspec.ValidationError as error:
        raise Refused(400, "A parameter of the query does not fit", _said(error)) from None


async def _body(request: Request, decoder: msgspec.json.Decoder[Any], op: Op[Any, Any], most: int) -> object:
    data = await read_body(request, most)
    if not data and op.body_may_be_left_out:
        data = b"{}"
    elif not _is_json(request):
        raise Refused(
            415,
            "The body is no JSON",
            "send it with Content-Type: application/json",
            headers={"Accept": "application/json"},
        )
    try:
        found: object = decoder.decode(data)
    except msgspec.ValidationError as error:
        raise Refused(422, "The body does not fit", _said(error), more=_place(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Refused(400, "The body cannot be read as JSON", str(error)) from None
    except RecursionError:
        raise Refused(400, "The body is nested too deep", "write it flatter") from None
    return found


async def read_body(request: Request, most: int) -> bytes:
    """The whole body; Refused, 413, as soon as it is known to be too long. Nothing is parsed before."""
    said = request.headers.get("content-length")
    if said is not None and said.isdecimal() and int(said) > most:
        raise _too_long(most)
    parts: list[bytes] = []
    length = 0
    async for part in request.stream():
        length += len(part)
        if length > most:
            raise _too_long(most)
        parts.append(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _too_long(most: int) -> Refused:
    return Refused(
        413,
        "The body is too long",
        f"at most {most} bytes are read; store what is large elsewhere and send its path or id",
        # What has not been read would be taken for the next request.
        headers={"Connection": "close"},
    )


def _is_json(request: Request) -> bool:
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    return media == "application/json" or (media.startswith("application/") and media.endswith("+json"))


def _said(error: msgspec.ValidationError) -> str:
    return str(error).encode("utf-8", "backslashreplace").decode()


def _place(error: msgspec.ValidationError) -> dict[str, object]:
    found = _PLACE.search(_said(error))
    return {"path": found[1].lstrip(".")} if found is not None else {}
