"""Jobs over HTTP: ask for one or many, look at them, wait for a change, cancel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct
from starlette.responses import Response

from duly.client.asked import (
    Asked,
    CorrelationName,
    QueueName,
    Span,
    TagName,
    TaskName,
    TenantName,
    read_span,
)
from duly.client.authorship import acting
from duly.client.intake import Answer, Ask, Outcome
from duly.client.notices import Notices
from duly.client.ticketing import ticket_for
from duly.core.errors import DulyError, NotFound, PayloadError
from duly.core.filters import Filter, parse_moment
from duly.core.job import NewJob, Stored
from duly.core.lifecycle import State
from duly.core.operating import AnswerAsk, KeptReply
from duly.core.trace import trigger_with
from duly.telemetry.context import correlation, traceparent
from duly.web.events import changed_job, etag, follow_job
from duly.web.operation import Call, Nothing, Op, answer, read_number
from duly.web.problems import Refused, problem
from duly.web.shapes import (
    BatchAnswer,
    EnqueuedAnswer,
    Id,
    JobAnswer,
    JobDetailAnswer,
    JobPageAnswer,
    Page,
    Why,
    detail_answer,
    job_answer,
)

# Most jobs are looked at once, to see that they are done; sooner is too soon for nearly all.
RETRY_AFTER: Final = "2"
MOST_IN_BATCH: Final = 1_000
LONGEST_KEY: Final = 255
LONGEST_WAIT: Final = timedelta(seconds=60)
_Tickets = Callable[[Stored, str], tuple[str, str]]
"""(job, queue) -> its ticket, and the URL of the ticket's page."""
_HOLD: Final = timedelta(minutes=1)
_KEY_HEADER: Final = {
    "Idempotency-Key": "A request that is repeated with the same key and body within 24 h is answered as the first one."
}


class Batch(Struct, frozen=True, forbid_unknown_fields=True):
    """Jobs that are stored together or not at all."""

    jobs: Annotated[tuple[Asked, ...], Meta(min_length=1, max_length=MOST_IN_BATCH)]


class Notify(Struct, frozen=True, forbid_unknown_fields=True):
    """Whom to tell when the job has ended."""

    url: Annotated[
        str, Meta(max_length=500, description="Gets a signed Standard Webhook; no private address.")
    ]


class JobRequest(Asked, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One job to be, and whom to tell of its end."""

    notify: Notify | None = None


class JobQuery(Struct, frozen=True, forbid_unknown_fields=True):
    wait: Span | None = None
    """Answer when the job has changed since If-None-Match, or after so long: "20s", at most a minute."""


class JobsQuery(Struct, frozen=True, forbid_unknown_fields=True):
    queue: QueueName | None = None
    task: TaskName | None = None
    tenant: TenantName | None = None
    state: State | msgspec.UnsetType = msgspec.UNSET
    tag: TagName | None = None
    correlation: CorrelationName | None = None
    fingerprint: str | None = None
    since: str | None = None
    until: str | None = None
    where: str | None = None
    before: Id | None = None
    limit: Page = 50


async def enqueue(call: Call[JobRequest, Nothing]) -> Response:
    """202 once it is stored, and never before."""
    notices = _notices(call)
    jobs = await _jobs(call, [call.body])
    root = call.url("")
    status, ticket = f"{root}/v1/jobs/", await _ticket_maker(call, root)

    def reply(stored: Sequence[Stored]) -> Answer:
        return Answer(202, msgspec.json.encode(_told(stored[0], jobs[0].queue, status, ticket)))

    outcome = await call.site.intake.store(Ask(jobs, reply, _key(call, call.body)))
    response = _accepted(outcome, call)
    if notices is not None and call.body.notify is not None and response.status_code == 202:
        # Once for each ticket and URL: a request that is repeated asks for nothing new.
        held = msgspec.json.decode(response.body, type=_Told).ticket
        await notices.aenqueue(held, call.body.notify.url)
    return response


async def enqueue_batch(call: Call[Batch, Nothing]) -> Response:
    """All or none; one answer per position."""
    jobs = await _jobs(call, call.body.jobs)
    root = call.url("")
    status, ticket = f"{root}/v1/jobs/", await _ticket_maker(call, root)

    def reply(stored: Sequence[Stored]) -> Answer:
        told = BatchAnswer(
            tuple(_told(one, job.queue, status, ticket) for job, one in zip(jobs, stored, strict=True))
        )
        return Answer(202, msgspec.json.encode(told))

    outcome = await call.site.intake.store(Ask(jobs, reply, _key(call, call.body)))
    return _accepted(outcome, call)


async def list_jobs(call: Call[None, JobsQuery]) -> Response:
    """Newest first."""
    query = call.query
    filter = Filter(
        queue=query.queue,
        task=query.task,
        tenant=query.tenant,
        state=None if query.state is msgspec.UNSET else query.state,
        tag=query.tag,
        correlation=query.correlation,
        fingerprint=query.fingerprint,
        since=await _moment(call, query.since, "since"),
        until=await _moment(call, query.until, "until"),
        where=query.where,
    )
    call.caller.check("read", query.queue)
    before = None if query.before is None else read_number(query.before, "before")
    page = await call.site.inspect.ajobs(filter, before=before, limit=query.limit)
    next_page = None if page.next is None else str(page.next)
    return answer(JobPageAnswer(tuple(map(job_answer, page.jobs)), next_page, page.searched_back_to))


async def get_job(call: Call[None, JobQuery]) -> Response:
    """Where it stands; with `wait` as soon as that has changed."""
    number, wait = call.number(), read_span(call.query.wait, "wait")
    detail = None
    try:
        detail = await call.site.inspect.ajob(number)
    except NotFound:
        pass
    if detail is None or not call.caller.may("read", detail.job.queue):
        raise unseen(number)
    known = call.request.headers.get("if-none-match", "").strip().removeprefix("W/").strip('"')
    if known and known == etag(detail.job):
        if wait is None or not await changed_job(call.site, number, known, min(wait, LONGEST_WAIT)):
            return Response(status_code=304, headers={"ETag": f'"{known}"'})
        detail = await call.site.inspect.ajob(number)
    return answer(detail_answer(detail.job, detail.attempts), headers={"ETag": f'"{etag(detail.job)}"'})


async def job_events(call: Call[None, Nothing]) -> Response:
    """Every change until the end, as server-sent events."""
    number = call.number()
    found = (await call.site.inspect.alookup([number]))[0]
    if found is None or not call.caller.may("read", found.queue):
        raise unseen(number)
    return follow_job(call.site, call.request, found)


async def cancel(call: Call[Why, Nothing]) -> Response:
    """Waiting: cancelled at once; running: asked to stop."""
    number = call.number()
    found = (await call.site.inspect.alookup([number]))[0]
    if found is None or not (call.caller.may("read", found.queue) or call.caller.may("operate", found.queue)):
        raise unseen(number)
    call.caller.check("operate", found.queue)
    act = await call.site.operate(call.caller).acancel(number, reason=call.body.reason)
    left = (await call.site.inspect.alookup([number]))[0]
    if left is None:
        raise unseen(number)
    if not act.moved:
        return problem(
            409,
            f"The job is {left.state} already",
            "only a job that waits or runs can be cancelled",
            more={"state": str(left.state)},
        )
    return answer(job_answer(left))


def unseen(number: int) -> Refused:
    """The same words for a job that never was, one that is gone, and one that this caller may not see."""
    return Refused(
        404,
        "There is no such job here",
        f"no job {number} that you may see: it never was, it ended and is no longer kept, or it is in a queue that "
        "your token may not read",
        more={"kind": "job"},
    )


async def _jobs(
    call: Call[JobRequest, Nothing] | Call[Batch, Nothing], asked: Sequence[Asked]
) -> list[NewJob]:
    """Checked one by one; the first that is wrong refuses all, with its position where there are several."""
    asking = call.site.asking
    trace = traceparent.get()
    trigger = None if trace is None else trigger_with(trace)
    made: list[NewJob] = []
    acting.set(call.caller.name)
    for position, one in enumerate(asked):
        try:
            await asking.prepare(one)
            call.caller.check("enqueue", asking.queue_of(one))
            made.append(asking.job(one, trigger=trigger, correlation_id=correlation.get()))
        except NotFound as error:
            raise Refused(
                422, f"There is no such {error.kind or 'thing'}", str(error), more=_at(position, asked)
            ) from None
        except PayloadError as error:
            more = _at(position, asked) | ({"path": f"args.{error.path}"} if error.path else {})
            raise Refused(422, "An argument does not fit", str(error), more=more) from None
        except DulyError as error:
            if len(asked) == 1:
                raise
            raise Refused(
                422, "A job of the batch does not fit", str(error), more=_at(position, asked)
            ) from None
    return made


def _at(position: int, asked: Sequence[Asked]) -> dict[str, object]:
    return {"position": position} if len(asked) > 1 else {}


def _told(stored: Stored, queue: str, status: str, ticket: _Tickets) -> EnqueuedAnswer:
    text, url = ticket(stored, queue)
    return EnqueuedAnswer(
        job_id=str(stored.id),
        outcome=stored.outcome,
        status_url=f"{status}{stored.id}",
        ticket=text,
        ticket_url=url,
        run_at=stored.run_at,
    )


def _key(call: Call[JobRequest, Nothing] | Call[Batch, Nothing], body: Struct) -> AnswerAsk | None:
    """What the request's Idempotency-Key stands for. Refused, 400, for one that cannot be kept."""
    text = call.request.headers.get("idempotency-key")
    if text is None:
        return None
    # The draft writes it as a string in quotes; nearly nobody does.
    key = text.strip()
    if len(key) >= 2 and key[0] == key[-1] == '"':
        key = key[1:-1]
    if not key or len(key) > LONGEST_KEY or not (key.isascii() and key.isprintable()):
        raise Refused(
            400,
            "The Idempotency-Key cannot be kept",
            f"write 1 to {LONGEST_KEY} printable characters of ASCII, such as a UUID",
        )
    same = f"{call.request.method} {call.request.scope['path']}\n".encode() + msgspec.json.encode(
        body, order="sorted"
    )
    return AnswerAsk(
        key=sha256(f"http\x1f{call.caller.id}\x1f{key}".encode()).digest(),
        token=call.caller.id,
        body_hash=sha256(same).digest(),
        hold=_HOLD,
    )


def _accepted(outcome: Outcome, call: Call[JobRequest, Nothing] | Call[Batch, Nothing]) -> Response:
    headers = {"Retry-After": RETRY_AFTER}
    if isinstance(outcome, KeptReply):
        asked = _key(call, call.body)
        if asked is None or outcome.body_hash != asked.body_hash:
            return problem(
                422,
                "The idempotency key was used before for another request",
                "nothing was stored; give the new request a key of its own",
            )
        if outcome.body is None:
            return problem(
                409,
                "The first request with this idempotency key is still under way",
                "ask again in a second for its answer",
                headers={"Retry-After": "1"},
            )
        headers["Idempotency-Replayed"] = "true"
        status, body = outcome.status, outcome.body
    else:
        status, body = outcome
    if isinstance(call.body, JobRequest):
        headers["Location"] = msgspec.json.decode(body, type=_Told).status_url
    return Response(body, status, headers, "application/json")


class _Told(Struct, frozen=True):
    status_url: str
    ticket: str = ""


def _notices(call: Call[JobRequest, Nothing]) -> Notices | None:
    """Who tells of the end, if somebody shall. Refused, 422, where nobody does or the URL cannot be told at."""
    if call.body.notify is None:
        return None
    notices = call.site.app.notices
    if notices is None:
        raise Refused(
            422,
            "Nobody is notified here",
            "leave notify out; its App declares who tells with jobs.notifications(secrets=['env:NAME'])",
        )
    notices.check(call.body.notify.url)
    return notices


async def _moment(call: Call[None, JobsQuery], text: str | None, what: str) -> datetime | None:
    """ "2h", that long ago by the database's clock, or ISO 8601 with its offset."""
    return None if text is None else parse_moment(text, await call.site.inspect.anow(), what)


async def _ticket_maker(call: Call[Any, Any], root: str) -> _Tickets:
    """What writes tickets in the writer's thread, without asking the store there."""
    client, base = call.site.app.client, f"{root}/t/"
    # Read now, or known already: inside the writer's transaction it would wait for itself.
    await call.site.ready_for_tickets()

    def ticket(stored: Stored, queue: str) -> tuple[str, str]:
        text = ticket_for(client, stored.id, queue=queue)
        return text, base + text

    return ticket


OPERATIONS: Final[tuple[Op[Any, Any], ...]] = (
    Op(
        "enqueue",
        "POST",
        "/v1/jobs",
        "Store one job. 202 once it is stored, never before.",
        enqueue,
        "enqueue",
        answer=EnqueuedAnswer,
        body=JobRequest,
        status=202,
        headers=_KEY_HEADER,
        also={
            409: "The first request with this key is still under way.",
            503: "The queue or the store is full.",
        },
    ),
    Op(
        "enqueueBatch",
        "POST",
        "/v1/jobs/batch",
        "Store up to 1,000 jobs: all or none.",
        enqueue_batch,
        "enqueue",
        answer=BatchAnswer,
        body=Batch,
        status=202,
        headers=_KEY_HEADER,
        batch=True,
        also={
            409: "The first request with this key is still under way.",
            503: "The queue or the store is full.",
        },
    ),
    Op(
        "listJobs",
        "GET",
        "/v1/jobs",
        "Jobs that fit, newest first.",
        list_jobs,
        "read",
        answer=JobPageAnswer,
        query=JobsQuery,
    ),
    Op(
        "getJob",
        "GET",
        "/v1/jobs/{id}",
        "One job with its attempts; with `wait` as soon as it has changed since If-None-Match.",
        get_job,
        "read",
        answer=JobDetailAnswer,
        query=JobQuery,
        headers={"If-None-Match": "The ETag of the answer that is known."},
        also={304: "It has not changed.", 404: "There is no such job that the caller may see."},
    ),
    Op(
        "followJob",
        "GET",
        "/v1/jobs/{id}/events",
        "Every change of a job until its end, as server-sent events.",
        job_events,
        "read",
        answer=JobAnswer,
        media="text/event-stream",
        also={
            204: "It has ended, and the caller knows.",
            404: "There is no such job that the caller may see.",
        },
    ),
    Op(
        "cancelJob",
        "POST",
        "/v1/jobs/{id}/cancel",
        "Cancel a job that waits, or ask a running one to stop.",
        cancel,
        "operate",
        answer=JobAnswer,
        body=Why,
        body_may_be_left_out=True,
        also={404: "There is no such job that the caller may see.", 409: "It has ended already."},
    ),
)
