"""Dead letters over HTTP: groups by fingerprint, redrive and purge, of some jobs or of all that a filter means."""

from __future__ import annotations

from typing import Annotated, Any, Final

from msgspec import Meta, Struct
from starlette.responses import Response

from duly.client.asked import QueueName, TagName, TaskName, TenantName
from duly.core.errors import UsageError
from duly.core.filters import Filter
from duly.web.api.jobs import unseen
from duly.web.operation import Call, Nothing, Op, answer, read_number
from duly.web.problems import Refused
from duly.web.shapes import (
    ActAnswer,
    DeadGroupsAnswer,
    FilterShape,
    Id,
    Reason,
    act_answer,
    group_answer,
)

_MOST_IDS: Final = 1_000

Ids = Annotated[tuple[Id, ...], Meta(min_length=1, max_length=_MOST_IDS)]


class DeadQuery(Struct, frozen=True, forbid_unknown_fields=True):
    queue: QueueName | None = None
    task: TaskName | None = None
    tenant: TenantName | None = None
    tag: TagName | None = None
    fingerprint: str | None = None


class Which(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Either ids or a filter. An act on more than one job needs a reason, one on more than 100 a rate."""

    ids: Ids | None = None
    filter: FilterShape | None = None
    reason: Reason = ""
    rate: Annotated[str, Meta(description='Such as "20/s", or "max".')] | None = None
    first: Annotated[int, Meta(ge=1, le=100, description="Only so many, the oldest.")] | None = None
    dry_run: bool = False
    """Only count."""


class Redriving(Which, frozen=True, forbid_unknown_fields=True, kw_only=True):
    priority: Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)] | None = None


async def list_groups(call: Call[None, DeadQuery]) -> Response:
    """The largest first."""
    query = call.query
    call.caller.check("dead" if call.caller.may("dead", query.queue) else "read", query.queue)
    filter = Filter(
        queue=query.queue, task=query.task, tenant=query.tenant, tag=query.tag, fingerprint=query.fingerprint
    )
    groups = await call.site.inspect.adead_groups(filter)
    return answer(DeadGroupsAnswer(tuple(map(group_answer, groups))))


async def redrive(call: Call[Redriving, Nothing]) -> Response:
    """200, or 202 when workers carry it out."""
    body = call.body
    act = await call.site.operate(call.caller).aredrive(
        await _meant(call),
        reason=body.reason,
        rate=body.rate,
        priority=body.priority,
        first=body.first,
        dry_run=body.dry_run,
    )
    return acted(call, act_answer(act))


async def purge(call: Call[Which, Nothing]) -> Response:
    """As redrive; what is purged is gone for good."""
    body = call.body
    act = await call.site.operate(call.caller).apurge(
        await _meant(call), reason=body.reason, rate=body.rate, first=body.first, dry_run=body.dry_run
    )
    return acted(call, act_answer(act))


def acted(call: Call[Any, Any], act: ActAnswer) -> Response:
    if act.operation is None:
        return answer(act)
    headers = {"Location": call.url(f"/v1/operations/{act.operation.id}"), "Retry-After": "2"}
    return answer(act, 202, headers)


async def _meant(call: Call[Redriving, Nothing] | Call[Which, Nothing]) -> Filter | list[int]:
    """The jobs, if the caller may act on all of them."""
    body = call.body
    if (body.ids is None) == (body.filter is None):
        raise UsageError("say which jobs: give either ids or a filter")
    if body.filter is not None:
        call.caller.check("dead", body.filter.queue)
        return body.filter.filter()
    ids = [read_number(id) for id in body.ids or ()]
    if not call.caller.may("dead"):
        for id, record in zip(ids, await call.site.inspect.alookup(ids), strict=True):
            if record is None or not call.caller.may("dead", record.queue):
                raise unseen(id)
    if body.rate is not None:
        raise Refused(422, "Ids are moved at once", "leave rate out, or say which jobs with a filter")
    return ids


OPERATIONS: Final[tuple[Op[Any, Any], ...]] = (
    Op(
        "listDead",
        "GET",
        "/v1/dead",
        "Dead letters by error, the largest group first.",
        list_groups,
        "dead",
        answer=DeadGroupsAnswer,
        query=DeadQuery,
    ),
    Op(
        "redriveDead",
        "POST",
        "/v1/dead/redrive",
        "Run dead letters again, with a new budget of attempts.",
        redrive,
        "dead",
        answer=ActAnswer,
        body=Redriving,
        also={202: "It is a stored operation, which workers carry out.", 404: "A job is not there."},
    ),
    Op(
        "purgeDead",
        "POST",
        "/v1/dead/purge",
        "Delete dead letters for good.",
        purge,
        "dead",
        answer=ActAnswer,
        body=Which,
        also={202: "It is a stored operation, which workers carry out.", 404: "A job is not there."},
    ),
)
