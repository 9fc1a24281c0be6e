"""/ui/alerts: what fires, who was told, what is silent and for how long; silence, unsilence."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from duly.client.alert_acts import ANY
from duly.core.alerting import RULES
from duly.web.pages.acts import Desk, Visit
from duly.web.pages.alert_view import alerts_view, queue_of
from duly.web.pages.bounds import read_lasting
from duly.web.pages.packing import FIELD, pack, unpack
from duly.web.problems import Refused

PATH: Final = "/alerts"
PAGE: Final = 20
"""Changes of one page, each with one read of its deliveries."""
SPANS: Final = ("30m", "1h", "4h", "1d", "7d")


def routes(desk: Desk) -> list[BaseRoute]:
    return [
        Route("/ui/alerts", desk.page(show), methods=["GET"]),
        Route("/ui/alerts/act/silence", desk.act(silence), methods=["POST"]),
        Route("/ui/alerts/act/unsilence", desk.act(unsilence), methods=["POST"]),
    ]


async def show(visit: Visit) -> Response:
    before = visit.param("before")
    cursor = int(before) if before.isascii() and before.isdecimal() and len(before) < 19 else None
    changes = await visit.inspect.aalert_changes(before=cursor, limit=PAGE)
    allowed = visit.queues()
    deliveries = {
        change.id: await visit.inspect.aalert_deliveries(change.id)
        for change in changes
        if allowed is None or queue_of(change.target) in allowed
    }
    view = alerts_view(
        await visit.inspect.aalerts(),
        await visit.inspect.asilences(),
        changes,
        deliveries,
        allowed=allowed,
        page=PAGE,
    )
    return await visit.render(
        "alerts.html", view=view, newest=cursor is None, rules=RULES, spans=SPANS, pack=pack, field=FIELD
    )


async def silence(visit: Visit) -> Response:
    """Tell nobody of a rule for a target for a while."""
    form = visit.form
    target, rule = (
        unpack(form.text(FIELD), 2) if form.text(FIELD) else (form.text("target"), form.text("rule"))
    )
    visit.check("operate", queue_of(target))
    made = await visit.operate.asilence(
        target, rule=rule or ANY, lasting=read_lasting(form), reason=form.reason()
    )
    what = "every rule" if made.rule == ANY else made.rule
    where = "everything" if made.target == ANY else made.target
    return visit.back(PATH, f"Nobody is told of {what} for {where} until {made.until:%Y-%m-%d %H:%M} UTC.")


async def unsilence(visit: Visit) -> Response:
    """End a silence before its time."""
    id = visit.form.number("id")
    one = next((one for one in await visit.inspect.asilences() if one.id == id), None)
    if one is None:
        raise Refused(
            409, "This silence is over already", f"silence {id} is no longer in force: nothing was done"
        )
    visit.check("operate", queue_of(one.target))
    await visit.operate.aunsilence(id, reason=visit.form.reason())
    return visit.back(PATH, f"Silence {id} is over: what still fires is told.")
