"""Stored bulk acts over HTTP: list, look, pause, resume, cancel."""

from __future__ import annotations

from typing import Any, Final

from starlette.responses import Response

from duly.core.errors import NotFound
from duly.core.scopes import Verb
from duly.stores.protocol import OperationRecord
from duly.web.auth import Caller
from duly.web.operation import Call, Nothing, Op, answer
from duly.web.problems import Refused
from duly.web.shapes import OperationAnswer, OperationsAnswer, Why, operation_answer


async def list_operations(call: Call[None, Nothing]) -> Response:
    """The newest first; those that the caller may see."""
    if not call.caller.scopes.each:
        call.caller.check("read")
    found = await call.site.inspect.aoperations()
    return answer(
        OperationsAnswer(tuple(operation_answer(one) for one in found if _may(call.caller, "read", one)))
    )


async def get_operation(call: Call[None, Nothing]) -> Response:
    return answer(operation_answer(await _seen(call)))


async def pause(call: Call[Why, Nothing]) -> Response:
    """Hold it; nothing it did is undone."""
    id = await _allowed(call)
    return answer(
        operation_answer(await call.site.operate(call.caller).apause_operation(id, reason=call.body.reason))
    )


async def resume(call: Call[Why, Nothing]) -> Response:
    """Let it go on."""
    id = await _allowed(call)
    return answer(
        operation_answer(await call.site.operate(call.caller).aresume_operation(id, reason=call.body.reason))
    )


async def cancel(call: Call[Why, Nothing]) -> Response:
    """End it; nothing it did is undone."""
    id = await _allowed(call)
    return answer(
        operation_answer(await call.site.operate(call.caller).acancel_operation(id, reason=call.body.reason))
    )


async def _seen(call: Call[None, Nothing] | Call[Why, Nothing]) -> OperationRecord:
    """The operation. Refused, 404, for one that is not there or not the caller's to see."""
    number = call.number()
    try:
        record = await call.site.inspect.aoperation(number)
    except NotFound:
        record = None
    if record is None or not _may(call.caller, "read", record):
        raise Refused(404, "There is no such operation here", f"no operation {number} that you may see")
    return record


async def _allowed(call: Call[Why, Nothing]) -> int:
    """Its number, if the caller may act on it. 409 when it has ended."""
    record = await _seen(call)
    verb = _verb(record)
    if not _may(call.caller, verb, record):
        call.caller.check(verb, record.filter.queue)
    if record.ended_at is not None:
        raise Refused(
            409,
            f"The operation is {record.state} already",
            "look at it; what it did stays",
            more={"state": record.state},
        )
    return record.id


def _verb(record: OperationRecord) -> Verb:
    return "operate" if record.verb == "cancel" else "dead"


def _may(caller: Caller, verb: Verb, record: OperationRecord) -> bool:
    """Whoever may do what it does may see it, too."""
    return caller.may(verb, record.filter.queue) or (
        verb == "read" and caller.may(_verb(record), record.filter.queue)
    )


_ALSO: Final = {404: "There is no such operation that the caller may see.", 409: "It has ended already."}

OPERATIONS: Final[tuple[Op[Any, Any], ...]] = (
    Op(
        "listOperations",
        "GET",
        "/v1/operations",
        "Stored bulk acts, the newest first.",
        list_operations,
        "read",
        answer=OperationsAnswer,
    ),
    Op(
        "getOperation",
        "GET",
        "/v1/operations/{id}",
        "How far one of them is.",
        get_operation,
        "read",
        answer=OperationAnswer,
        also={404: _ALSO[404]},
    ),
    *(
        Op(
            f"{word}Operation",
            "POST",
            f"/v1/operations/{{id}}/{word}",
            f"{word.capitalize()} it; nothing it did is undone.",
            act,
            "dead",
            answer=OperationAnswer,
            body=Why,
            body_may_be_left_out=True,
            also=_ALSO,
        )
        for word, act in (("pause", pause), ("resume", resume), ("cancel", cancel))
    ),
)
