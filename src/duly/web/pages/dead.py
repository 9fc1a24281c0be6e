"""Dead letters: groups by error, one group with its letters, and what is done about them, the count before the act."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from duly.client.triage_reads import FORESEEN, NO_ERROR, TriagedGroup
from duly.core.errors import NotFound, UsageError
from duly.core.filters import Filter
from duly.core.job import JobRecord
from duly.core.lifecycle import State
from duly.core.operating import TriageState, successor_of
from duly.web.operation import read_number
from duly.web.pages.acts import Desk, Visit
from duly.web.pages.acts_on import seen, still
from duly.web.pages.dead_view import args_text, changes_of, letters, row_of, stands
from duly.web.pages.job_view import about
from duly.web.pages.packing import FIELD, check_fresh, unpack
from duly.web.problems import Refused

SHOWN: Final = 20
"""Letters of a group."""
MOST: Final = 200
"""Groups of a list."""
RATE: Final = "20/s"
STATES: Final[tuple[TriageState, ...]] = ("new", "acknowledged", "fixed")


def routes(desk: Desk) -> list[BaseRoute]:
    return [
        Route("/ui/dead", desk.page(show_all), methods=["GET"]),
        Route("/ui/dead/edit/{id:int}", desk.page(show_edit), methods=["GET"]),
        Route("/ui/dead/act/mark", desk.act(mark), methods=["POST"]),
        Route("/ui/dead/act/one", desk.act(redrive_one), methods=["POST"]),
        Route("/ui/dead/act/rest", desk.act(redrive_rest), methods=["POST"]),
        Route("/ui/dead/act/edit", desk.act(edit), methods=["POST"]),
        Route("/ui/dead/{fingerprint:str}", desk.page(show_one), methods=["GET"]),
    ]


async def show_all(visit: Visit) -> Response:
    """Every group that the visitor may see, the largest first, within what the address says."""
    names = ("queue", "task", "tenant", "fingerprint", "owner", "mark")
    said = {name: visit.param(name) for name in names}
    filter = Filter(
        queue=said["queue"] or None,
        task=said["task"] or None,
        tenant=said["tenant"] or None,
        fingerprint=said["fingerprint"] or None,
    )
    found = await visit.inspect.adead_groups(filter, state=_state(said["mark"]), owner=said["owner"] or None)
    groups = [group for group in found if visit.may("read", group.queue)]
    return await visit.render(
        "dead.html",
        rows=[row_of(group) for group in groups[:MOST]],
        total=sum(group.count for group in groups),
        groups=len(groups),
        said=said,
        filtered=any(said.values()),
        states=STATES,
    )


async def show_one(visit: Visit) -> Response:
    """One error: whose it is, its latest traceback, its letters, and the way from one redrive to all."""
    name = visit.path("fingerprint")
    queue = await _queue(visit, name)
    detail = await visit.inspect.adead_group(name, queue=queue)
    watched = await _watched(visit)
    jobs: tuple[JobRecord, ...] = ()
    if detail.fingerprint:
        filter = Filter(queue=queue, state=State.dead, fingerprint=detail.fingerprint)
        page = await visit.inspect.ajobs(filter, limit=SHOWN)
        jobs = page.jobs
    return await visit.render(
        "dead_group.html",
        name=detail.fingerprint or NO_ERROR,
        rows=[row_of(group) for group in detail.groups],
        outlook=detail.outlook,
        foreseen=FORESEEN,
        latest=detail.latest,
        letters=[(job, about(job), successor_of(job.note)) for job in jobs],
        watched=watched,
        queue=queue,
        rate=RATE,
        limit=SHOWN,
    )


async def show_edit(visit: Visit) -> Response:
    """One letter's arguments in a form."""
    job = await seen(visit, read_number(visit.path("id")))
    if job.state is not State.dead or (successor := successor_of(job.note)) is not None:
        into = f": it runs again as job {successor}" if job.state is State.dead else ""
        raise Refused(409, f"Job {job.id} is no dead letter to edit", f"it is {job.state}{into}")
    return await visit.render("dead_edit.html", job=job, text=args_text(job.args))


async def mark(visit: Visit) -> Response:
    """Say whose a group is, or how far."""
    form = visit.form
    fingerprint, queue, task, stood = unpack(form.text(FIELD), 4)
    visit.check("dead", queue)
    reason = form.reason()
    group = await _group(visit, fingerprint, queue, task)
    check_fresh(stood, stands(group), "the group")
    owner, note = form.text("owner"), form.text("note") or None
    operate = visit.operate
    match form.text("verb"):
        case "acknowledge":
            await operate.aacknowledge(
                fingerprint, owner=owner or None, note=note, queue=queue, task=task, reason=reason
            )
            said = "acknowledged"
        case "assign":
            await operate.aassign(
                fingerprint, owner or None, note=note, queue=queue, task=task, reason=reason
            )
            said = f"{owner[:80]}'s" if owner else "the queue's owner's again"
        case "fixed":
            await operate.afixed(fingerprint, note=note, queue=queue, task=task, reason=reason)
            said = "fixed; it is new again as soon as another job dies of it"
        case verb:
            raise UsageError(f"{verb[:40]!r} is nothing that is said of a group")
    return visit.back(f"/dead/{fingerprint or NO_ERROR}", f"The group is {said}.", queue=queue)


async def redrive_one(visit: Visit) -> Response:
    """Run one letter again, and watch it."""
    record = await seen(visit, visit.form.number("id"))
    visit.check("dead", record.queue)
    record = await still(visit, record.id, visit.form)
    done = await visit.operate.aredrive(record.id, reason=visit.form.reason())
    if not done.moved:
        successor = successor_of(record.note)
        why = "its unique key is another job's by now" if successor is None else f"it runs as job {successor}"
        raise Refused(409, f"Job {record.id} stays dead", why)
    fingerprint = NO_ERROR if record.error is None else record.error.fingerprint
    return visit.back(
        f"/dead/{fingerprint}" if await _is_left(visit, fingerprint, record.queue) else f"/jobs/{record.id}",
        f"Job {record.id} runs again; watch it before the others.",
        queue=record.queue,
        watch=record.id,
    )


async def redrive_rest(visit: Visit) -> Response:
    """Run all letters of a group again, at a rate."""
    form = visit.form
    fingerprint, queue, task, _ = unpack(form.text(FIELD), 4)
    visit.check("dead", queue)
    reason = form.reason()
    group = await _group(visit, fingerprint, queue, task)
    if not fingerprint:
        raise UsageError(
            "letters without an error have no filter of their own; run them again from the list of jobs"
        )
    filter = letters(group)
    for operation in await visit.inspect.aoperations():
        if operation.ended_at is None and (operation.verb, operation.filter) == ("redrive", filter):
            raise Refused(
                409,
                f"Operation {operation.id} is at this already",
                f"{operation.done:,} of {operation.total:,} are done; it is {operation.state}. Nothing was changed",
            )
    priority = form.signed("priority") if form.text("priority") else None
    act = await visit.operate.aredrive(
        filter, reason=reason, rate=form.text("rate") or None, priority=priority
    )
    if act.operation is None:
        stayed = act.matched - len(act.moved)
        said = f"{len(act.moved):,} of {act.matched:,} run again." + (
            f" {stayed:,} stay: their unique keys are other jobs'." if stayed else ""
        )
        return visit.back("/dead", said, "good" if act.moved else "bad")
    begun = act.operation
    said = f"Operation {begun.id} has begun: {begun.total:,} letters, at priority {begun.priority}."
    return visit.back("/operations", said)


async def edit(visit: Visit) -> Response:
    """Run one letter again with other arguments, as a new job."""
    record = await seen(visit, visit.form.number("id"))
    visit.check("dead", record.queue)
    record = await still(visit, record.id, visit.form)
    reason = visit.form.reason()
    changes = changes_of(record.args, visit.form.text("args"))
    if not changes:
        raise UsageError("nothing was changed; to run it again as it is, redrive it")
    done = await visit.operate.aedit(record.id, changes, reason=reason)
    if done.successor is None:
        raise Refused(409, f"Job {record.id} is no dead letter to edit", done.why)
    said = (
        f"Job {done.successor} runs in the place of job {record.id}, with {', '.join(changes)[:200]} changed."
    )
    return visit.back(f"/jobs/{done.successor}", said)


def _state(text: str) -> TriageState | None:
    if not text:
        return None
    for state in STATES:
        if state == text:
            return state
    raise UsageError(f"mark={text[:40]!r} is none of {', '.join(STATES)}")


async def _queue(visit: Visit, name: str) -> str | None:
    """In which queue a group is looked at; None: in all. Refused, 404, as for one that is not there."""
    said = visit.param("queue")
    if said:
        visit.check("read", said)
        return said
    if visit.queues("read") is None:
        return None
    for group in await visit.inspect.adead_groups(_all_of(name)):
        if visit.may("read", group.queue) and (name != NO_ERROR or not group.fingerprint):
            return group.queue
    raise Refused(404, "There is no such group here", f"no dead letter that you may see has {name[:40]}")


def _all_of(name: str) -> Filter:
    return Filter() if name == NO_ERROR else Filter(fingerprint=name)


async def _group(visit: Visit, fingerprint: str, queue: str, task: str) -> TriagedGroup:
    """The group as it stands now. Refused, 409, when none of its letters is left."""
    try:
        detail = await visit.inspect.adead_group(fingerprint or NO_ERROR, queue=queue, task=task)
    except NotFound:
        raise Refused(
            409, "The group is empty by now", "its letters run again, or were deleted. Nothing was changed"
        ) from None
    return detail.groups[0]


async def _is_left(visit: Visit, fingerprint: str, queue: str) -> bool:
    if fingerprint == NO_ERROR:
        return False
    return bool(await visit.inspect.adead_groups(Filter(fingerprint=fingerprint, queue=queue)))


async def _watched(visit: Visit) -> JobRecord | None:
    """The job that was tried, where the visitor may see it."""
    text = visit.param("watch")
    if not text:
        return None
    record = (await visit.inspect.alookup([read_number(text, "watch")]))[0]
    return record if record is not None and visit.may("read", record.queue) else None
