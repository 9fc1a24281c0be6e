"""Queues over HTTP: how they stand, pause, resume, and what a scaler asks."""

from __future__ import annotations

from typing import Annotated, Any, Final

from msgspec import Meta, Struct
from starlette.responses import Response

from duly.client.asked import Span, read_span
from duly.client.scale import Scale
from duly.web.operation import Call, Nothing, Op, answer
from duly.web.problems import Refused
from duly.web.shapes import (
    PauseAnswer,
    QueueAnswer,
    QueuesAnswer,
    Reason,
    ResumeAnswer,
    Why,
    pause_answer,
    queue_answer,
    seconds,
)


class Pausing(Struct, frozen=True, forbid_unknown_fields=True):
    lasting: Span | None = None
    """It ends by itself after so long; without it, it lasts until it is resumed."""
    reason: Reason = ""


class ScaleQuery(Struct, frozen=True, forbid_unknown_fields=True):
    queue: Annotated[str, Meta(min_length=1, max_length=100)]


class ScaleAnswer(Struct, frozen=True, kw_only=True):
    """One queue's numbers, flat, as KEDA's metrics-api reads them: valueLocation workers_needed."""

    queue: str
    ready: int
    running: int
    workers: int
    workers_needed: int
    oldest_s: float | None
    wait_target_s: float | None
    in_per_s: float | None
    out_per_s: float | None
    slope_per_s: float | None
    drain_s: float | None
    full_in_s: float | None
    max_running: int | None
    sentence: str


async def list_queues(call: Call[None, Nothing]) -> Response:
    """Those that the caller may read, by name."""
    allowed = call.caller.scopes.queues("read")
    if allowed is not None and not allowed:
        call.caller.check("read")
    found = await call.site.inspect.aqueues()
    return answer(
        QueuesAnswer(
            tuple(queue_answer(one) for one in found if allowed is None or one.counts.queue in allowed)
        )
    )


async def get_queue(call: Call[None, Nothing]) -> Response:
    name = call.text("queue")
    _check_read(call, name)
    return answer(queue_answer(await call.site.inspect.aqueue(name)))


async def pause(call: Call[Pausing, Nothing]) -> Response:
    """Start no more of its jobs; what runs, ends."""
    name = call.text("queue")
    call.caller.check("operate", name)
    lasting = read_span(call.body.lasting, "lasting", positive=True)
    done = await call.site.operate(call.caller).apause(name, lasting=lasting, reason=call.body.reason)
    return answer(pause_answer(done))


async def resume(call: Call[Why, Nothing]) -> Response:
    name = call.text("queue")
    call.caller.check("operate", name)
    done = await call.site.operate(call.caller).aresume(name, reason=call.body.reason)
    return answer(ResumeAnswer(done))


async def scale(call: Call[None, ScaleQuery]) -> Response:
    """How many workers one queue needs, and why."""
    _check_read(call, call.query.queue)
    return answer(_scale_answer(await call.site.inspect.ascale(call.query.queue)))


def _check_read(call: Call[Any, Any], name: str) -> None:
    if not call.caller.may("read", name):
        # As for a queue that is not there: a token learns no names that are not its own.
        raise Refused(404, "There is no such queue here", f"no queue {name[:100]!r} that you may read")


def _scale_answer(found: Scale) -> ScaleAnswer:
    return ScaleAnswer(
        queue=found.queue,
        ready=found.ready,
        running=found.running,
        workers=found.workers,
        workers_needed=found.workers_needed,
        oldest_s=seconds(found.oldest),
        wait_target_s=seconds(found.wait_target),
        in_per_s=found.in_per_s,
        out_per_s=found.out_per_s,
        slope_per_s=found.slope_per_s,
        drain_s=seconds(found.drain),
        full_in_s=seconds(found.full_in),
        max_running=found.max_running,
        sentence=found.sentence,
    )


_GONE: Final = {404: "There is no such queue that the caller may see."}

OPERATIONS: Final[tuple[Op[Any, Any], ...]] = (
    Op(
        "listQueues",
        "GET",
        "/v1/queues",
        "How every queue stands.",
        list_queues,
        "read",
        answer=QueuesAnswer,
    ),
    Op(
        "getQueue",
        "GET",
        "/v1/queues/{queue}",
        "How one queue stands.",
        get_queue,
        "read",
        answer=QueueAnswer,
        also=_GONE,
    ),
    Op(
        "pauseQueue",
        "POST",
        "/v1/queues/{queue}/pause",
        "Start no more of its jobs.",
        pause,
        "operate",
        answer=PauseAnswer,
        body=Pausing,
        body_may_be_left_out=True,
        also=_GONE,
    ),
    Op(
        "resumeQueue",
        "POST",
        "/v1/queues/{queue}/resume",
        "Start its jobs again.",
        resume,
        "operate",
        answer=ResumeAnswer,
        body=Why,
        body_may_be_left_out=True,
        also=_GONE,
    ),
    Op(
        "getScale",
        "GET",
        "/v1/scale",
        "The numbers of one queue for a scaler.",
        scale,
        "read",
        answer=ScaleAnswer,
        query=ScaleQuery,
        also=_GONE,
    ),
)
