"""What a client is told of a refusal or a fault: problems of RFC 9457, each with what to do. Knows no route."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec
from starlette.responses import Response

from duly.core.errors import (
    DulyError,
    LeaseLost,
    MigrationNeeded,
    NotFound,
    PayloadError,
    UsageError,
)
from duly.integrations.problems import MEDIA_TYPE, problem_of

# A request that could not be read is wrong in form (400); one that was read and cannot be done, in content (422).
_UNPROCESSABLE: Final = 422


class Refused(Exception):
    """An answer that is no success, raised from anywhere below a route."""

    def __init__(
        self,
        status: int,
        title: str,
        detail: str | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        more: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(detail or title)
        self.status = status
        self.title = title
        self.detail = detail
        self.headers = dict(headers or {})
        self.more = dict(more or {})

    def answer(self) -> Response:
        return problem(self.status, self.title, self.detail, headers=self.headers, more=self.more)


def problem(
    status: int,
    title: str,
    detail: str | None = None,
    *,
    headers: Mapping[str, str] | None = None,
    more: Mapping[str, object] | None = None,
) -> Response:
    """One problem; `more` are members of its own kind, such as `state`."""
    body: dict[str, object] = {"type": "about:blank", "title": title, "status": status}
    if detail is not None:
        body["detail"] = detail
    body.update(more or {})
    # Also where no route stands behind the address, and nobody else says so.
    hardened = {"X-Content-Type-Options": "nosniff", **(headers or {})}
    return Response(msgspec.json.encode(_writable(body)), status, hardened, MEDIA_TYPE)


def problem_for(error: DulyError) -> Response:
    """The problem for one of duly's errors. A database's address and words stay inside."""
    match error:
        case NotFound():
            return problem(
                404, "There is no such thing", str(error), more={"kind": error.kind} if error.kind else None
            )
        case PayloadError():
            more = {"path": error.path} if error.path else None
            return problem(_UNPROCESSABLE, "A value cannot be stored", str(error), more=more)
        case UsageError():
            return problem(_UNPROCESSABLE, "The request cannot be done as it stands", str(error))
        case LeaseLost():
            return problem(409, "The job belongs to somebody else by now", str(error))
        case MigrationNeeded():
            headers = {"Retry-After": "60"}
            return problem(503, "The job store has another version; run duly migrate", headers=headers)
        case _:
            known = problem_of(error)
            return Response(known.body, known.status, known.headers, MEDIA_TYPE)


def _writable(value: object) -> object:
    """Text without halves of surrogate pairs, which JSON in UTF-8 cannot hold."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {key: _writable(inner) for key, inner in value.items()}
    return value
