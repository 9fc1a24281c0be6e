"""Acts on the jobs of a list: those that were ticked, or all that fit its filter, counted first."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from typing import Any, Final, NamedTuple

from msgspec.structs import replace
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from duly.client import selection
from duly.client.client import Client
from duly.client.operate import Act
from duly.client.selection import Verb
from duly.core.defaults import BULK_ACT
from duly.core.errors import UsageError
from duly.core.filter_text import read_filter, write_filter
from duly.core.filters import Filter
from duly.core.job import JobId, JobRecord
from duly.core.lifecycle import State
from duly.web.operation import read_number
from duly.web.pages.acts import Desk, Visit
from duly.web.pages.acts_on import DONE, SCOPES, check_verb, do, moved, moved_on
from duly.web.pages.job_view import about
from duly.web.problems import Refused

COUNTED: Final = 0.4
"""Seconds that counting all that fit may take; then it is "at least" so many."""
PATIENCE: Final = 10.0
"""Seconds after which a visitor is not kept waiting for a large act to begin."""
RATE: Final = "20/s"
TITLES: Final = {"cancel": "Cancel", "redrive": "Redrive", "purge": "Delete"}
SAMPLES: Final = 5


class Meant(NamedTuple):
    """How many jobs an act would move."""

    jobs: int
    exact: bool


def routes(desk: Desk) -> list[BaseRoute]:
    bulk = _Bulk()
    return [
        Route("/ui/jobs/act/selected", desk.act(selected), methods=["POST"]),
        Route("/ui/jobs/all/{verb:str}", desk.page(confirm), methods=["GET"]),
        Route("/ui/jobs/all/{verb:str}/act", desk.act(bulk.start), methods=["POST"]),
    ]


async def selected(visit: Visit) -> Response:
    """One verb on the ticked jobs; those that have moved on since the page was shown are left as they are."""
    form = visit.form
    verb, q = form.text("verb"), form.text("q")
    scope = check_verb(verb)
    shown = [_box(text) for text in form.all("job")]
    if not shown:
        return visit.back("/jobs", "Nothing was ticked, so nothing was changed.", "note", q=q)
    reason = form.reason()
    records = await visit.inspect.alookup([id for id, _, _ in shown])
    late: list[JobRecord] = []
    ids: list[JobId] = []
    gone = 0
    for (_, state, run), record in zip(shown, records, strict=True):
        if record is None or not visit.may("read", record.queue):
            gone += 1
            continue
        visit.check(scope, record.queue)
        if moved(record, state, run):
            late.append(record)
        else:
            ids.append(record.id)
    act = await do(visit, verb, ids, reason) if ids else Act(verb, 0)
    if not act.moved and len(shown) == 1 and late:
        raise moved_on(late[0], shown[0][1])
    said, tone = _told(verb, act, len(ids), late, gone)
    return visit.back("/jobs", said, tone, q=q)


async def confirm(visit: Visit) -> Response:
    """What an act on all that fit would do: counted, with some of them, before anything is changed."""
    verb = _bulk_verb(visit.path("verb"))
    filter = _filter(visit, verb, visit.param("q"))
    client = visit.site.app.client
    meant = await client.acall(_count, client, verb, filter)
    sample = await visit.inspect.ajobs(_shown(verb, filter), limit=SAMPLES)
    text = write_filter(filter)
    return await visit.render(
        "all.html",
        verb=verb,
        title=TITLES[verb],
        q=text,
        meant=meant,
        sample=[(job, about(job)) for job in sample.jobs],
        bulk=meant.jobs > BULK_ACT or not meant.exact,
        rate=RATE,
        lacks=None if visit.may(SCOPES[verb], filter.queue) else f"{SCOPES[verb]}{_in(filter)}",
        back=visit.url("/jobs", q=text),
    )


class _Bulk:
    """Starts large acts, one at a time, so that the same one is not started twice."""

    def __init__(self) -> None:
        self._starting = asyncio.Lock()
        self._late: set[asyncio.Task[Act]] = set()

    async def start(self, visit: Visit) -> Response:
        verb = _bulk_verb(visit.path("verb"))
        filter = _filter(visit, verb, visit.form.text("q"))
        visit.check(SCOPES[verb], filter.queue)
        reason = visit.form.reason()
        async with self._starting:
            await _refuse_second(visit, verb, filter)
            task = asyncio.ensure_future(_act(visit, verb, filter, reason))
            self._late.add(task)
            task.add_done_callback(self._late.discard)
            done, _ = await asyncio.wait({task}, timeout=PATIENCE)
        q = write_filter(filter)
        if not done:
            task.add_done_callback(_forget)
            return visit.back(
                "/operations", "The jobs are still being counted; it appears here when it begins.", "note"
            )
        act = task.result()
        if act.operation is None:
            said, tone = _told(verb, act, act.matched, [], 0)
            return visit.back("/jobs", said, tone, q=q)
        said = f"Operation {act.operation.id} has begun: {act.operation.total:,} jobs are to be {DONE[verb]}."
        return visit.back("/operations", said)


def _forget(task: asyncio.Task[Act]) -> None:
    """Nobody waits for it any more; what it has begun stands among the operations."""
    if not task.cancelled():
        task.exception()


def _act(visit: Visit, verb: Verb, filter: Filter, reason: str) -> Coroutine[Any, Any, Act]:
    operate, rate = visit.operate, visit.form.text("rate") or None
    match verb:
        case "cancel":
            return operate.acancel(filter, reason=reason, rate=rate)
        case "purge":
            return operate.apurge(filter, reason=reason, rate=rate)
        case "redrive":
            priority = visit.form.signed("priority") if visit.form.text("priority") else None
            return operate.aredrive(filter, reason=reason, rate=rate, priority=priority)


async def _refuse_second(visit: Visit, verb: Verb, filter: Filter) -> None:
    for operation in await visit.inspect.aoperations():
        if operation.state in {"running", "paused"} and operation.verb == verb and operation.filter == filter:
            raise Refused(
                409,
                f"Operation {operation.id} is at this already",
                f"{operation.done:,} of {operation.total:,} are done; it is {operation.state}. Nothing was changed",
            )


def _filter(visit: Visit, verb: Verb, text: str) -> Filter:
    """What is meant, within what the visitor may see, with its spans counted from now. UsageError where the verb moves
    none of it."""
    filter = read_filter(text, visit.now)
    visit.check("read", filter.queue)
    selection.check_states(verb, filter)
    return filter


def _count(client: Client, verb: Verb, filter: Filter) -> Meant:
    inspection = client.store.inspection
    if filter.where is None and verb != "cancel" and filter.state in {None, State.dead}:
        return Meant(selection.count(inspection, verb, filter), True)
    until, found = time.monotonic() + COUNTED, 0
    for _ in selection.walk(inspection, verb, filter):
        found += 1
        if time.monotonic() >= until:
            return Meant(found, False)
    return Meant(found, True)


def _shown(verb: Verb, filter: Filter) -> Filter:
    return replace(filter, state=State.dead) if filter.state is None and verb != "cancel" else filter


def _bulk_verb(text: str) -> Verb:
    for verb in selection.VERBS:
        if verb == text:
            return verb
    raise UsageError(f"{text[:40]!r} is nothing that is done with all jobs of a filter")


def _box(text: str) -> tuple[int, str, str]:
    """What one box stands for: a job, in the state and the run that the page has shown."""
    id, _, rest = text.partition(":")
    state, _, run = rest.partition(":")
    return read_number(id, "job"), state, run


def _told(verb: str, act: Act, asked: int, late: list[JobRecord], gone: int) -> tuple[str, Any]:
    moved = len(act.moved)
    parts = [f"{moved:,} {'job was' if moved == 1 else 'jobs were'} {DONE[verb]}"]
    if act.asked:
        parts.append(f"{len(act.asked):,} of them run, and were asked to stop")
    stayed = asked - moved
    if late or stayed:
        names = ", ".join(f"{job.id} is {job.state}" for job in late[:5])
        parts.append(
            f"{len(late) + stayed:,} had moved on since the page was shown, and are left as they are"
            + (f" ({names})" if names else "")
        )
    if gone:
        parts.append(f"{gone:,} are no longer kept")
    return "; ".join(parts) + ".", "good" if moved else "bad"


def _in(filter: Filter) -> str:
    return "" if filter.queue is None else f":{filter.queue}"
