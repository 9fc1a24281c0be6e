"""Dead letters as a work list over HTTP: one group, what is said of it, and one letter with other arguments."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Final

from msgspec import Meta, Struct
from starlette.responses import Response

from duly.client.asked import QueueName, TaskName
from duly.core.operating import DeadMark
from duly.web.api.jobs import unseen
from duly.web.operation import Call, Nothing, Op, answer, read_number
from duly.web.problems import Refused
from duly.web.shapes import (
    DeadGroupDetailAnswer,
    DeadMarksAnswer,
    EditedAnswer,
    Id,
    Reason,
    group_detail_answer,
    mark_answer,
)

Note = Annotated[str, Meta(max_length=2000, description="Kept with the group, for whoever looks next.")]
Owner = Annotated[str, Meta(max_length=200)]


class GroupQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """Of one error in several queues and tasks all groups, unless one is named."""

    queue: QueueName | None = None
    task: TaskName | None = None


class Marking(Struct, frozen=True, forbid_unknown_fields=True):
    queue: QueueName | None = None
    task: TaskName | None = None
    note: Note | None = None
    reason: Reason = ""


class Acknowledging(Marking, frozen=True, forbid_unknown_fields=True):
    owner: Owner | None = None


class Assigning(Marking, frozen=True, forbid_unknown_fields=True, kw_only=True):
    owner: Owner | None
    """null gives it back to the queue's owner."""


class Editing(Struct, frozen=True, forbid_unknown_fields=True):
    id: Id
    args: Annotated[dict[str, Any], Meta(min_length=1, description="Only those that change.")]
    reason: Reason = ""


async def get_group(call: Call[None, GroupQuery]) -> Response:
    query = call.query
    call.caller.check("dead" if call.caller.may("dead", query.queue) else "read", query.queue)
    detail = await call.site.inspect.adead_group(call.text("fingerprint"), queue=query.queue, task=query.task)
    return answer(group_detail_answer(detail))


async def acknowledge(call: Call[Acknowledging, Nothing]) -> Response:
    body = call.body

    async def act(fingerprint: str) -> tuple[DeadMark, ...]:
        return await call.site.operate(call.caller).aacknowledge(
            fingerprint,
            owner=body.owner,
            note=body.note,
            queue=body.queue,
            task=body.task,
            reason=body.reason,
        )

    return await _marked(call, body, act)


async def assign(call: Call[Assigning, Nothing]) -> Response:
    body = call.body

    async def act(fingerprint: str) -> tuple[DeadMark, ...]:
        return await call.site.operate(call.caller).aassign(
            fingerprint, body.owner, note=body.note, queue=body.queue, task=body.task, reason=body.reason
        )

    return await _marked(call, body, act)


async def fixed(call: Call[Marking, Nothing]) -> Response:
    body = call.body

    async def act(fingerprint: str) -> tuple[DeadMark, ...]:
        return await call.site.operate(call.caller).afixed(
            fingerprint, note=body.note, queue=body.queue, task=body.task, reason=body.reason
        )

    return await _marked(call, body, act)


async def edit(call: Call[Editing, Nothing]) -> Response:
    """201 with the new job; 409 when the letter is dead no more, or was edited already."""
    number = read_number(call.body.id)
    record = (await call.site.inspect.alookup([number]))[0]
    if record is None or not call.caller.may("dead", record.queue):
        raise unseen(number)
    done = await call.site.operate(call.caller).aedit(number, call.body.args, reason=call.body.reason)
    if done.successor is None:
        raise Refused(409, "The job is no dead letter to edit", done.why, more={"state": record.state})
    headers = {"Location": call.url(f"/v1/jobs/{done.successor}")}
    return answer(EditedAnswer(str(done.job), str(done.successor)), 201, headers)


async def _marked(
    call: Call[Any, Nothing], body: Marking, act: Callable[[str], Awaitable[tuple[DeadMark, ...]]]
) -> Response:
    call.caller.check("dead", body.queue)
    return answer(DeadMarksAnswer(tuple(map(mark_answer, await act(call.text("fingerprint"))))))


_MISSING: Final = {404: "No dead letter has this fingerprint."}

OPERATIONS: Final[tuple[Op[Any, Any], ...]] = (
    # Before the group, whose address fits it, too.
    Op(
        "editDead",
        "POST",
        "/v1/dead/edit",
        "Run a dead letter again as a new job, some of its arguments changed.",
        edit,
        "dead",
        answer=EditedAnswer,
        body=Editing,
        status=201,
        also={
            404: "There is no such job that the caller may see.",
            409: "It is dead no more, or was edited.",
        },
    ),
    Op(
        "getDeadGroup",
        "GET",
        "/v1/dead/{fingerprint}",
        "One error: its groups, what a redrive would meet, and the latest letter.",
        get_group,
        "dead",
        answer=DeadGroupDetailAnswer,
        query=GroupQuery,
        also=_MISSING,
    ),
    *(
        Op(
            f"{word}Dead",
            "POST",
            f"/v1/dead/{{fingerprint}}/{word}",
            summary,
            act,
            "dead",
            answer=DeadMarksAnswer,
            body=body,
            body_may_be_left_out=word != "assign",
            also=_MISSING,
        )
        for word, summary, act, body in (
            ("acknowledge", "Somebody has seen the group.", acknowledge, Acknowledging),
            ("assign", "Say who sees to it.", assign, Assigning),
            ("fixed", "The cause is gone; new again as soon as another job dies of it.", fixed, Marking),
        )
    ),
)
