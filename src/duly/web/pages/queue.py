"""One queue: what waits and why, where it is going, its last hour, who serves it, its bounds; pause and resume."""

from __future__ import annotations

from urllib.parse import quote

import msgspec
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from duly.core.filters import Filter
from duly.core.lifecycle import State
from duly.web.pages import standing as standings
from duly.web.pages.acts import Desk, Visit
from duly.web.pages.flow import flows
from duly.web.pages.job_view import about
from duly.web.problems import Refused

RECENT = 8


def routes(desk: Desk) -> list[BaseRoute]:
    return [
        # A queue's name may hold slashes: an act refuses a GET itself, before the page takes it for a name.
        Route("/ui/queues/{queue:path}/act/pause", desk.act(pause), methods=["GET", "POST"]),
        Route("/ui/queues/{queue:path}/act/resume", desk.act(resume), methods=["GET", "POST"]),
        Route("/ui/queues/{queue:path}", desk.page(show), methods=["GET"]),
    ]


async def show(visit: Visit) -> Response:
    name = _queue(visit)
    known = await visit.desk.standing()
    status = next((one for one in known.queues if one.counts.queue == name), None) if known else None
    if status is None:
        # It says which name is near.
        status = await visit.inspect.aqueue(name)
    why = await visit.inspect.awhy(f"queue:{name}")
    flow = (await flows(visit, [name]))[name]
    pauses = [one for one in await visit.inspect.apauses() if one.target == f"queue:{name}"]
    running = await visit.inspect.ajobs(Filter(queue=name, state=State.running), limit=RECENT)
    dead = await visit.inspect.ajobs(Filter(queue=name, state=State.dead), limit=RECENT)
    workers = [one for one in await visit.inspect.aworkers() if name in one.queues]
    return await visit.render(
        "queue.html",
        name=name,
        one=standings.standing_of(status),
        status=status,
        why=why,
        flow=flow,
        chart=_chart(flow.since.timestamp() if flow.since else 0, flow.completed, flow.failed, flow.dead),
        pause=pauses[0] if pauses else None,
        running=running.jobs,
        dead=[(job, about(job)) for job in dead.jobs],
        workers=workers,
        path=f"/queues/{quote(name, safe='')}",
    )


async def pause(visit: Visit) -> Response:
    name = _queue(visit)
    visit.check("operate", name)
    lasting = visit.form.text("lasting") or None
    await visit.operate.apause(name, lasting=lasting, reason=visit.form.reason())
    until = f" for {lasting}" if lasting else " until it is resumed"
    return visit.back(f"/queues/{quote(name, safe='')}", f"{name} is paused{until}; what runs, ends.")


async def resume(visit: Visit) -> Response:
    name = _queue(visit)
    visit.check("operate", name)
    went = await visit.operate.aresume(name, reason=visit.form.reason())
    path = f"/queues/{quote(name, safe='')}"
    if not went:
        return visit.back(path, f"{name} was not paused any more.", "note")
    return visit.back(path, f"{name} goes on.")


def _queue(visit: Visit) -> str:
    name = visit.path("queue")
    if not visit.may("read", name):
        raise Refused(404, "There is no such queue here", f"no queue {name[:100]!r} that you may read")
    return name


def _chart(since: float, *series: tuple[int, ...]) -> str:
    """JSON for the chart's script: times, then one list per line."""
    times = [since + 60 * index for index in range(len(series[0]))]
    return msgspec.json.encode([times, *series]).decode()
