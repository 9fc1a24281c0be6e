"""Work for other languages: claim, ack, fail, extend. One token per job fences all that becomes of it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct
from starlette.responses import Response

from duly.client.asked import QueueName, Span, TaskName, read_span
from duly.client.outside import MOST_CLAIMED, Ending, Held, Reserved, completed, failed, read_lease
from duly.core.defaults import MAX_RESULT
from duly.core.durations import format_size
from duly.core.errors import UsageError
from duly.core.fingerprint import told
from duly.core.job import Incarnation
from duly.core.names import check_name
from duly.core.secret import unmarked
from duly.core.trace import traceparent_of
from duly.web.operation import Call, Nothing, Op, answer
from duly.web.shapes import Id, plain, readable

LONGEST_WAIT: Final = timedelta(seconds=30)
_LEASE: Final = timedelta(seconds=60)
_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 1.0
"""Seconds between two looks of one that waits."""
_SUSPECTS_EVERY: Final = 5.0
_LOST: Final = "lease_lost"

TokenText = Annotated[str, Meta(max_length=200)]


class Claiming(Struct, frozen=True, forbid_unknown_fields=True):
    queues: Annotated[tuple[QueueName, ...], Meta(min_length=1, max_length=100)]
    """In the order to be asked."""
    limit: Annotated[int, Meta(ge=1, le=MOST_CLAIMED)] = 1
    lease: Span = "60s"
    """Until then each job has to be ended or extended; from 5s to 12h."""
    wait: Span = "0s"
    """Wait so long for work, at most 30s."""
    worker: Annotated[str, Meta(max_length=100)] = ""
    """A name of your own, by which `extend` finds all that you hold."""
    tasks: Annotated[tuple[TaskName, ...], Meta(min_length=1, max_length=1000)] | None = None
    """Those that you can run; left out: all that are known. Other jobs are left to others."""


class ReservedAnswer(Struct, frozen=True, kw_only=True):
    """A job that you hold: end or extend it before its deadline."""

    id: Id
    token: str
    queue: str
    task: str
    args: Any
    attempt: int
    deadline: datetime
    enqueued_at: datetime
    tenant: str
    tags: tuple[str, ...]
    correlation_id: str
    traceparent: str | None
    """Of whoever enqueued it."""


class ClaimAnswer(Struct, frozen=True):
    jobs: tuple[ReservedAnswer, ...]


class Ack(Struct, frozen=True, forbid_unknown_fields=True):
    token: TokenText
    result: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class Acking(Struct, frozen=True, forbid_unknown_fields=True):
    acks: Annotated[tuple[Ack, ...], Meta(min_length=1, max_length=MOST_CLAIMED)]


class Fail(Struct, frozen=True, forbid_unknown_fields=True):
    token: TokenText
    error: Annotated[str, Meta(min_length=1)]
    """What went wrong, for people."""
    type: Annotated[str, Meta(min_length=1, max_length=200)] = "Error"
    traceback: str = ""
    permanent: bool = False
    """Another attempt would fail as well: dead at once."""
    after: Span | None = None
    """The next attempt in exactly so long, instead of the task's backoff."""


class Failing(Struct, frozen=True, forbid_unknown_fields=True):
    fails: Annotated[tuple[Fail, ...], Meta(min_length=1, max_length=MOST_CLAIMED)]


class Extending(Struct, frozen=True, forbid_unknown_fields=True):
    """Either tokens, or the name that was given with the claims."""

    tokens: Annotated[tuple[TokenText, ...], Meta(min_length=1, max_length=MOST_CLAIMED)] | None = None
    worker: Annotated[str, Meta(min_length=1, max_length=100)] | None = None
    lease: Span = "60s"


class EndedAnswer(Struct, frozen=True, omit_defaults=True):
    ok: bool
    code: str | None = None
    """lease_lost: the job is somebody else's by now, or has ended; nothing changed."""


class EndsAnswer(Struct, frozen=True):
    results: tuple[EndedAnswer, ...]
    """In the order asked."""


class ExtendedAnswer(Struct, frozen=True, kw_only=True, omit_defaults=True):
    ok: bool
    code: str | None = None
    id: Id | None = None
    deadline: datetime | None = None
    cancel_wished: bool = False
    """Somebody wants it to stop: end it soon, or ack what is done."""


class ExtendAnswer(Struct, frozen=True):
    results: tuple[ExtendedAnswer, ...]


async def claim(call: Call[Claiming, Nothing]) -> Response:
    """ready -> running, for whoever asks."""
    body, site = call.body, call.site
    for name in dict.fromkeys(body.queues):
        call.caller.check("work", check_name("queue", name))
    for name in body.tasks or ():
        check_name("task", name)
    lease = read_lease(read_span(body.lease, "lease", positive=True) or _LEASE)
    wait = min(read_span(body.wait, "wait") or timedelta(0), LONGEST_WAIT)
    acall, outside = site.app.client.acall, site.outside
    parked = await acall(outside.parked, body.tasks)
    site.keep_up()
    worker = _owner(call, body.worker)
    reservation = await acall(outside.open, body.queues, body.tasks, lease, worker, body.limit)
    reserved: list[Reserved] = []
    try:
        reserved = await _wait_for(call, reservation, parked, lease, wait)
    finally:
        if not reserved:
            await acall(outside.close, reservation)
    return answer(ClaimAnswer(tuple(map(_reserved, reserved))))


async def _wait_for(
    call: Call[Claiming, Nothing],
    reservation: Incarnation,
    parked: tuple[str, ...],
    lease: timedelta,
    wait: timedelta,
) -> list[Reserved]:
    """What is there within the time that the caller waits; nothing for one that has gone away."""
    body, acall, outside = call.body, call.site.app.client.acall, call.site.outside
    loop = asyncio.get_running_loop()
    now = loop.time()
    ends, beat_at = now + wait.total_seconds(), now + lease.total_seconds() / 3
    suspects_at, pause = now, _FIRST_PAUSE
    while not await call.request.is_disconnected():
        looks = loop.time() >= suspects_at
        reserved = await acall(outside.take, reservation, body.queues, body.limit, parked, suspects=looks)
        now = loop.time()
        if reserved:
            # Whoever has gone meanwhile would hold them for a lease, and count as lost.
            return [] if await call.request.is_disconnected() else reserved
        if now >= ends:
            break
        if looks:
            suspects_at = now + _SUSPECTS_EVERY
        if now >= beat_at:
            await acall(outside.beat, reservation)
            beat_at = now + lease.total_seconds() / 3
        await asyncio.sleep(min(ends - now, pause))
        pause = min(pause * 1.5, _LONGEST_PAUSE)
    return []


async def ack(call: Call[Acking, Nothing]) -> Response:
    """running -> completed."""
    endings: list[Ending] = []
    for position, one in enumerate(call.body.acks):
        result = None if one.result is msgspec.UNSET else bytes(one.result)
        if result is not None:
            _check_result(result, position)
        endings.append(completed(None if result == b"null" else result))
    return await _end(call, [one.token for one in call.body.acks], endings)


async def fail(call: Call[Failing, Nothing]) -> Response:
    """running -> scheduled, or dead."""
    endings = [
        failed(
            told(one.type, one.error, one.traceback),
            permanent=one.permanent,
            after=read_span(one.after, f"fails[{position}].after"),
        )
        for position, one in enumerate(call.body.fails)
    ]
    return await _end(call, [one.token for one in call.body.fails], endings)


async def extend(call: Call[Extending, Nothing]) -> Response:
    """Hold them for a lease more, from now."""
    body, acall, outside = call.body, call.site.app.client.acall, call.site.outside
    lease = read_lease(read_span(body.lease, "lease", positive=True) or _LEASE)
    if (body.tokens is None) == (body.worker is None):
        raise UsageError("say which jobs: give either tokens or the worker's name")
    held: Sequence[Held | None]
    if body.tokens is not None:
        held = await acall(outside.held, body.tokens)
    else:
        held = await acall(outside.holds, _owner(call, body.worker or ""))
    _check(call, held)
    extended = iter(await acall(outside.extend, [one for one in held if one is not None], lease))
    results = []
    for one in held:
        found = None if one is None else next(extended)
        results.append(
            ExtendedAnswer(ok=False, code=_LOST)
            if found is None
            else ExtendedAnswer(
                ok=True, id=str(found.id), deadline=found.deadline, cancel_wished=found.cancel_wished
            )
        )
    return answer(ExtendAnswer(tuple(results)))


async def _end(call: Call[Any, Nothing], tokens: list[str], endings: list[Ending]) -> Response:
    acall, outside = call.site.app.client.acall, call.site.outside
    # An attempt ends once: of two words about it the first one counts.
    first = {token: position for position, token in reversed([*enumerate(tokens)])}
    held = [
        one if first[token] == position else None
        for position, (token, one) in enumerate(zip(tokens, await acall(outside.held, tokens), strict=True))
    ]
    _check(call, held)
    live = [(one, ending) for one, ending in zip(held, endings, strict=True) if one is not None]
    done = iter(await acall(outside.end, [one for one, _ in live], [ending for _, ending in live]))
    results = [
        EndedAnswer(True) if one is not None and next(done) else EndedAnswer(False, _LOST) for one in held
    ]
    return answer(EndsAnswer(tuple(results)))


def _check_result(result: bytes, position: int) -> None:
    if len(result) > MAX_RESULT:
        raise UsageError(
            f"acks[{position}].result is larger than {format_size(MAX_RESULT)}; store it elsewhere and ack its path"
        )
    if readable(result) is None:
        raise UsageError(
            f"acks[{position}].result cannot be read again: it holds a number or a text beyond JSON"
        )


def _check(call: Call[Any, Nothing], held: Sequence[Held | None]) -> None:
    for one in held:
        if one is not None:
            call.caller.check("work", one.record.queue)


def _owner(call: Call[Any, Nothing], worker: str) -> str:
    """Under which name the reservation stands: nobody extends what another token holds."""
    own = f"http:{call.caller.name}"
    return f"{own}:{check_name('actor', worker)}" if worker else own


def _reserved(one: Reserved) -> ReservedAnswer:
    job = one.job
    return ReservedAnswer(
        id=str(job.id),
        token=one.token,
        queue=job.queue,
        task=job.task,
        args=None if job.args is None else plain(unmarked(job.args)),
        attempt=job.attempt,
        deadline=one.deadline,
        enqueued_at=job.enqueued_at,
        tenant=job.tenant,
        tags=job.tags,
        correlation_id=job.correlation_id,
        traceparent=traceparent_of(job.trigger),
    )


OPERATIONS: Final[tuple[Op[Any, Any], ...]] = (
    Op(
        "claim",
        "POST",
        "/v1/claim",
        "Take jobs to run them; waits for some if asked to.",
        claim,
        "work",
        answer=ClaimAnswer,
        body=Claiming,
    ),
    Op(
        "ack",
        "POST",
        "/v1/ack",
        "Jobs that are done, with their results.",
        ack,
        "work",
        answer=EndsAnswer,
        body=Acking,
        batch=True,
    ),
    Op(
        "fail",
        "POST",
        "/v1/fail",
        "Jobs that failed: they are tried again, or dead.",
        fail,
        "work",
        answer=EndsAnswer,
        body=Failing,
        batch=True,
    ),
    Op(
        "extend",
        "POST",
        "/v1/extend",
        "Hold jobs for longer.",
        extend,
        "work",
        answer=ExtendAnswer,
        body=Extending,
    ),
)
