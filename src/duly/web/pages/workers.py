"""/ui/workers: every worker process with its lease, its queues and its progress, the jobs that one holds; drain."""

from __future__ import annotations

from functools import partial
from typing import Final

from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from duly.core.errors import NotFound
from duly.web.pages.acts import Desk, Visit
from duly.web.pages.packing import FIELD, check_fresh, pack, unpack
from duly.web.pages.render import missing
from duly.web.pages.worker_view import WorkerRow, held_rows, worker_row, workers_view
from duly.web.problems import Refused

PATH: Final = "/workers"
MOST: Final = 500
"""Jobs of one worker that are shown."""


def routes(desk: Desk) -> list[BaseRoute]:
    return [
        Route("/ui/workers", desk.page(show), methods=["GET"]),
        Route("/ui/workers/{id}", desk.page(show_one), methods=["GET"]),
        Route("/ui/workers/act/drain", desk.act(drain), methods=["POST"]),
    ]


async def show(visit: Visit) -> Response:
    view = workers_view(await visit.inspect.aleases(), allowed=visit.queues())
    return await visit.render(
        "workers.html", view=view, pack=pack, field=FIELD, may_drain=partial(_lacks, visit)
    )


async def show_one(visit: Visit) -> Response:
    detail = await visit.inspect.aworker(_number(visit.path("id")))
    row = worker_row(detail.lease, visit.queues())
    if row is None:
        raise _gone(str(detail.lease.worker.incarnation))
    held = held_rows(detail, visit.now, allowed=visit.queues())
    return await visit.render(
        "worker.html",
        row=row,
        held=held[:MOST],
        more=detail.more or len(held) > MOST,
        hidden=len(detail.jobs) - len(held),
        pack=pack,
        field=FIELD,
        may_drain=partial(_lacks, visit),
    )


async def drain(visit: Visit) -> Response:
    """Ask one process to claim no more, and to end when its jobs have."""
    text, seen = unpack(visit.form.text(FIELD), 2)
    id = _number(text)
    row = next((row for row in workers_view(await visit.inspect.aleases()).workers if row.id == id), None)
    if row is None:
        check_fresh(seen, "", f"Worker {id}")
        raise _gone(text)
    for queue in row.all_queues:
        visit.check("operate", queue)
    check_fresh(seen, row.stands, f"Worker {id}")
    if row.draining:
        raise Refused(409, "It drains already", "nothing was done")
    await visit.operate.adrain_worker(id, reason=visit.form.reason())
    left = "its job has" if row.running == 1 else f"its {row.running:,} jobs have"
    return visit.back(PATH, f"Worker {id} at {row.place} claims no more, and ends when {left}.")


def _lacks(visit: Visit, row: WorkerRow) -> str | None:
    """Why the visitor may not have it drained: all of its queues stop there."""
    return next((said for queue in row.all_queues if (said := missing(visit, "operate", queue))), None)


def _number(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 19):
        raise _gone(text)
    return int(text)


def _gone(text: str) -> NotFound:
    return NotFound(
        f"no worker {text:.40} is alive; the list shows those that are", kind="worker", name=text[:40]
    )
