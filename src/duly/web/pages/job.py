"""One job: where it stands and why, its story, its attempts, what it carries, whose it is, and acts on it."""

from __future__ import annotations

from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from duly.client.client import Client
from duly.core.batch import BatchRecord
from duly.core.errors import NotFound
from duly.core.filters import Filter
from duly.core.job import JobId, JobRecord
from duly.core.lifecycle import FINAL
from duly.core.operating import successor_of
from duly.core.trace import edited_from, parent_of
from duly.core.why import Why
from duly.web.operation import read_number
from duly.web.pages import render
from duly.web.pages.acts import Desk, Visit
from duly.web.pages.acts_on import DONE, check_verb, do, moved_on, seen, still
from duly.web.pages.job_view import attempts_begun, deeds, story
from duly.web.pages.stored import stored
from duly.web.problems import Refused

RELATED = 12
"""Other jobs of the same request that are named."""


def routes(desk: Desk) -> list[BaseRoute]:
    return [
        Route("/ui/jobs/{id:int}", desk.page(show), methods=["GET"]),
        Route("/ui/jobs/{id:int}/act/{verb:str}", desk.act(act), methods=["POST"]),
        Route("/ui/jobs/{id:int}/{part:str}", desk.page(whole), methods=["GET"]),
    ]


async def show(visit: Visit) -> Response:
    id = read_number(visit.path("id"))
    record = await seen(visit, id)
    detail = await visit.inspect.ajob(id)
    job = detail.job
    related, more = await _related(visit, job)
    parent = parent_of(job.trigger)
    return await visit.render(
        "job.html",
        job=job,
        attempts=detail.attempts,
        began=attempts_begun(job),
        story=story(job, detail.attempts, visit.now),
        why=await _why(visit, record),
        deeds=deeds(job),
        args=stored(job.args),
        result=stored(job.result),
        batch=await visit.site.app.client.acall(_batch, visit.site.app.client, job.id),
        parent=parent,
        edited_from=edited_from(job.trigger),
        successor=successor_of(job.note),
        children=[one for one in related if parent_of(one.trigger) == job.id],
        related=[one for one in related if parent_of(one.trigger) != job.id and one.id != parent],
        more=more,
        over=job.state in FINAL,
    )


async def act(visit: Visit) -> Response:
    """One verb on this job, if it still stands where the page showed it."""
    id, verb = read_number(visit.path("id")), visit.path("verb")
    scope = check_verb(verb)
    record = await seen(visit, id)
    visit.check(scope, record.queue)
    record = await still(visit, id, visit.form)
    reason = visit.form.reason()
    done = await do(visit, verb, [record.id], reason)
    if not done.moved:
        raise moved_on(await seen(visit, id), str(record.state))
    if verb == "purge":
        return visit.back("/jobs", f"Job {id} is deleted.", q=f"queue={record.queue} state=dead")
    said = f"Job {id} is asked to stop." if done.asked else f"Job {id} was {DONE[verb]}."
    return visit.back(f"/jobs/{id}", said)


async def whole(visit: Visit) -> Response:
    """A value or a traceback as plain text, however long it is."""
    record = await seen(visit, read_number(visit.path("id")))
    part = visit.path("part")
    match part:
        case "args" | "result":
            value = stored(record.args if part == "args" else record.result)
            text = "" if value is None else value.told or value.text
        case "error" if record.error is not None:
            text = f"{record.error.type}: {record.error.message}\n\n{record.error.traceback}"
        case _:
            raise Refused(404, "There is no such page", "a job has args, result and error")
    return Response(text.encode("utf-8", "backslashreplace"), 200, render.HEADERS, "text/plain")


async def _why(visit: Visit, record: JobRecord) -> Why | None:
    try:
        return await visit.inspect.awhy(record.id)
    except NotFound:
        # It was purged between two reads.
        return None


async def _related(visit: Visit, job: JobRecord) -> tuple[list[JobRecord], bool]:
    """Other jobs of the same request that the visitor may see, the newest first."""
    page = await visit.inspect.ajobs(Filter(correlation=job.correlation_id), limit=RELATED + 1)
    found = [one for one in page.jobs if one.id != job.id and visit.may("read", one.queue)]
    return found[:RELATED], page.next is not None or len(found) > RELATED


def _batch(client: Client, id: JobId) -> BatchRecord | None:
    batches = client.store.batches
    found = batches.of([id]).get(id)
    return None if found is None else batches.lookup([found])[0]
