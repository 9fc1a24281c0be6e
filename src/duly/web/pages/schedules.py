"""/ui/schedules: what is done by the clock, in plain words; run now, pause, resume."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from duly.web.pages.acts import Desk, Visit
from duly.web.pages.control_view import sees
from duly.web.pages.packing import FIELD, check_fresh, pack, unpack
from duly.web.pages.schedule_view import ScheduleRow, schedule_row, schedules_view
from duly.web.problems import Refused

PATH: Final = "/schedules"
MOST: Final = 200
"""Schedules of one page; their next due times are worked out for these only."""


def routes(desk: Desk) -> list[BaseRoute]:
    return [
        Route("/ui/schedules", desk.page(show), methods=["GET"]),
        Route("/ui/schedules/act/run", desk.act(run), methods=["POST"]),
        Route("/ui/schedules/act/pause", desk.act(pause), methods=["POST"]),
        Route("/ui/schedules/act/resume", desk.act(resume), methods=["POST"]),
    ]


async def show(visit: Visit) -> Response:
    words = visit.param("q")[:200]
    view = schedules_view(await visit.inspect.aschedules(), allowed=visit.queues(), words=words, most=MOST)
    return await visit.render(
        "schedules.html",
        view=view,
        words=words,
        pack=pack,
        field=FIELD,
        ticks=frozenset(name for name, one in visit.site.app.client.registry.schedules.items() if one.tick),
    )


async def run(visit: Visit) -> Response:
    """Enqueue now what a due time would."""
    row = await _meant(visit)
    ids = await visit.operate.arun_schedule(row.name, reason=visit.form.reason())
    if not ids:
        return visit.back(PATH, f"{row.name} found nothing to enqueue.", "note")
    jobs = f"job {ids[0]}" if len(ids) == 1 else f"{len(ids):,} jobs, from {ids[0]} on"
    return visit.back(PATH, f"{row.name} enqueued {jobs}; its rhythm stays as it is.")


async def pause(visit: Visit) -> Response:
    """Fire nothing until it is resumed."""
    row = await _meant(visit)
    if not await visit.operate.apause_schedule(row.name, reason=visit.form.reason()):
        raise Refused(409, "It is paused already", "nothing was done")
    return visit.back(PATH, f"{row.name} is paused; what would be due meanwhile is not made up for.")


async def resume(visit: Visit) -> Response:
    """Fire again, from the next due time on."""
    row = await _meant(visit)
    if not await visit.operate.aresume_schedule(row.name, reason=visit.form.reason()):
        raise Refused(409, "It is not paused", "nothing was done")
    return visit.back(PATH, f"{row.name} fires again, from its next due time on.")


async def _meant(visit: Visit) -> ScheduleRow:
    """The schedule of the form, if the visitor may, and it stands as they saw it."""
    name, seen = unpack(visit.form.text(FIELD), 2)
    # Asked for first, so that a refusal tells nothing about what is there.
    visit.form.reason()
    row = schedule_row(await visit.inspect.aschedule(name))
    if not sees(visit.queues(), row.queue):
        visit.check("read")
    visit.check("operate", row.queue)
    check_fresh(seen, row.stands, f"The schedule {row.name}")
    return row
