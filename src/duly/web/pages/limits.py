"""/ui/limits: what bounds jobs, resources with their breakers and holds, and what was changed for a time."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from duly.core.control import BreakerState, resource_limit
from duly.core.control_words import change_text
from duly.core.errors import NotFound, UsageError
from duly.web.pages.acts import Desk, Visit
from duly.web.pages.bounds import read_bound, read_lasting, read_rate
from duly.web.pages.control_view import limit_row, limits_view, override_row
from duly.web.pages.packing import FIELD, check_fresh, pack, unpack
from duly.web.problems import Refused

PATH: Final = "/limits"
MOST: Final = 500
"""Limits read for the page; of what waits behind each the store counts at most 10,000."""
_STATES: Final[dict[str, BreakerState | None]] = {"open": "open", "closed": "closed", "auto": None}


def routes(desk: Desk) -> list[BaseRoute]:
    return [
        Route("/ui/limits", desk.page(show), methods=["GET"]),
        Route("/ui/limits/act/lift", desk.act(lift), methods=["POST"]),
        Route("/ui/limits/act/bound", desk.act(bound), methods=["POST"]),
        Route("/ui/limits/act/breaker", desk.act(set_breaker), methods=["POST"]),
        Route("/ui/limits/act/hold", desk.act(hold), methods=["POST"]),
    ]


async def show(visit: Visit) -> Response:
    words = visit.param("q")[:200]
    view = limits_view(
        await visit.inspect.alimits(limit=MOST),
        await visit.inspect.aoverrides(),
        visit.now,
        allowed=visit.queues(),
        words=words,
        most=MOST,
    )
    return await visit.render("limits.html", view=view, words=words, pack=pack, field=FIELD)


async def lift(visit: Visit) -> Response:
    """End a change before its time."""
    id = visit.form.number("id")
    one = next((one for one in await visit.inspect.aoverrides() if one.id == id), None)
    if one is None:
        raise Refused(409, "This is over already", f"override {id} is no longer in force: nothing was done")
    visit.check("operate", override_row(one).queue)
    if not await visit.operate.alift(id, reason=visit.form.reason()):
        raise Refused(409, "This is over already", f"somebody else has lifted override {id}")
    return visit.back(
        PATH, f"Override {id} of {one.target} ({change_text(one)}) is lifted: what is declared holds."
    )


async def bound(visit: Visit) -> Response:
    """Bound a queue, a task or a resource for a time."""
    form = visit.form
    target = form.text("target")
    kind, colon, name = target.partition(":")
    queue = name if colon and kind == "queue" else target if not colon else None
    visit.check("operate", queue or None)
    made = await visit.operate.alimit(
        target,
        lasting=read_lasting(form),
        max_running=read_bound(form, "max_running"),
        rate=read_rate(form),
        reason=form.reason(),
    )
    return visit.back(PATH, f"Override {made.id}: {made.target}, {change_text(made)}; it ends by itself.")


async def set_breaker(visit: Visit) -> Response:
    """Open or close a breaker by hand, or leave it to its counts."""
    visit.check("operate")
    name, seen = unpack(visit.form.text(FIELD), 2)
    wanted = visit.form.text("state")
    if wanted not in _STATES:
        raise UsageError(f"state={wanted!r:.40}: send open, closed or auto")
    reason = visit.form.reason()
    check_fresh(seen, await _breaker(visit, name), "That breaker")
    await visit.operate.abreaker(name, _STATES[wanted], reason=reason)
    said = "is left to its counts" if wanted == "auto" else f"is {wanted} until it is set again"
    return visit.back(PATH, f"The breaker of {name} {said}.")


async def hold(visit: Visit) -> Response:
    """Let nobody begin to use a resource for a time."""
    visit.check("operate")
    (name,) = unpack(visit.form.text(FIELD), 1)
    until = await visit.operate.ahold(name, read_lasting(visit.form), reason=visit.form.reason())
    return visit.back(PATH, f"Nobody begins to use {name} until {until:%Y-%m-%d %H:%M:%S} UTC.")


async def _breaker(visit: Visit, name: str) -> str:
    found = await visit.inspect.alimits([resource_limit(name)])
    if not found:
        raise NotFound(f"no resource is named {name!r:.100}", kind="resource", name=name)
    return limit_row(found[0], visit.now).stands
