"""The OpenAPI 3.1 document, made of the operations and their types. Knows no operation by name."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from importlib.metadata import version
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from duly.web.api.routes import OPERATIONS
from duly.web.operation import Nothing, Op
from duly.web.shapes import Problem
from duly.web.site import Site

_PARAMETER: Final = re.compile(r"\{([a-z_]+)\}")
_JSON: Final = "application/json"
_PROBLEM: Final = "application/problem+json"
_REFUSED: Final = {
    400: "Something in it cannot be read.",
    401: "There is no token, or none that is known.",
    403: "The token has not the scope.",
    422: "It was read, and cannot be done as it stands.",
    429: "Too many requests; Retry-After says how long to wait.",
    503: "The store does not answer, or is full; Retry-After says how long to wait.",
}
_OF_BODIES: Final = {413: "The body is too long.", 415: "The body is no JSON."}
_RETRY: Final = {"Retry-After": {"description": "Seconds.", "schema": {"type": "integer", "minimum": 0}}}

_EVENT: Final = {
    "type": "object",
    "description": "One event: `job` with the job as JSON in its data, or `end`.",
    "properties": {name: {"type": "string"} for name in ("event", "data", "id")},
}


def routes(site: Site) -> list[BaseRoute]:
    """/openapi.json, which anybody may read: it says nothing of any job."""
    del site
    headers = {"Cache-Control": "public, max-age=300", "X-Content-Type-Options": "nosniff"}

    async def show(_: Request) -> Response:
        return Response(text(), 200, headers, _JSON)

    return [Route("/openapi.json", show)]


@cache
def text() -> bytes:
    return msgspec.json.encode(document(OPERATIONS))


def document(ops: Iterable[Op[Any, Any]]) -> dict[str, Any]:
    """The whole document."""
    listed = list(ops)
    kinds = {kind for op in listed for kind in (op.answer, op.body) if kind is not None} | {Problem}
    queries = {op.query for op in listed if op.query is not Nothing}
    ordered = sorted(kinds | queries, key=lambda kind: str(kind.__name__))
    found, components = msgspec.json.schema_components(ordered, ref_template="#/components/schemas/{name}")
    schemas = dict(zip(ordered, found, strict=True))
    paths: dict[str, Any] = {}
    for op in listed:
        paths.setdefault(op.path, {})[op.method.lower()] = _operation(op, schemas, components)
    for query in queries:
        components.pop(query.__name__, None)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "duly",
            "version": version("duly"),
            "description": "Durable jobs over HTTP. Errors are problems of RFC 9457 and say what to do.",
        },
        "servers": [{"url": "./"}],
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "duly token create --scope enqueue:mail",
                }
            },
        },
    }


def _operation(op: Op[Any, Any], schemas: dict[Any, Any], components: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {
        "operationId": op.name,
        "summary": op.summary,
        "description": f"Needs the scope `{op.verb}`, in the queue that it is about.",
        "responses": _responses(op, schemas),
    }
    parameters = [
        *_path_parameters(op),
        *_query_parameters(op, components),
        *_header_parameters(op),
    ]
    if parameters:
        made["parameters"] = parameters
    if op.body is not None:
        made["requestBody"] = {
            "required": not op.body_may_be_left_out,
            "content": {_JSON: {"schema": schemas[op.body]}},
        }
    return made


def _path_parameters(op: Op[Any, Any]) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": {"type": "string", "pattern": "^[1-9][0-9]{0,18}$"}
            if name == "id"
            else {"type": "string", "minLength": 1, "maxLength": 100},
        }
        for name in _PARAMETER.findall(op.path)
    ]


def _query_parameters(op: Op[Any, Any], components: dict[str, Any]) -> list[dict[str, Any]]:
    if op.query is Nothing:
        return []
    described = components[op.query.__name__]
    needed = described.get("required", [])
    return [
        {"name": name, "in": "query", "required": name in needed, "schema": _without_null(schema)}
        for name, schema in described["properties"].items()
    ]


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """A parameter that is left out is left out: there is no null in a query."""
    kinds = schema.get("anyOf")
    if kinds is None:
        return schema
    left = [kind for kind in kinds if kind != {"type": "null"}]
    rest = {name: value for name, value in schema.items() if name not in {"anyOf", "default"}}
    return {**left[0], **rest} if len(left) == 1 else {"anyOf": left, **rest}


def _header_parameters(op: Op[Any, Any]) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "in": "header",
            "required": False,
            "description": what,
            "schema": {"type": "string"},
        }
        for name, what in op.headers.items()
    ]


def _responses(op: Op[Any, Any], schemas: dict[Any, Any]) -> dict[str, Any]:
    content = {"schema": _EVENT if op.media != _JSON else schemas[op.answer]}
    told: dict[str, Any] = {
        str(op.status): {"description": op.summary, "content": {op.media: content}},
    }
    refusals = {**_REFUSED, **(_OF_BODIES if op.body is not None else {})}
    for status, when in sorted({**refusals, **op.also}.items()):
        if status < 300:
            told[str(status)] = {"description": when, "content": {op.media: content}}
        elif status == 304:
            told[str(status)] = {"description": when}
        else:
            told[str(status)] = {
                "description": when,
                "content": {_PROBLEM: {"schema": schemas[Problem]}},
                **({"headers": _RETRY} if status in {409, 429, 503} else {}),
            }
    told.get("204", {}).pop("content", None)
    return told
