"""/ui/tenants: tenants with their plans and what they use, ordering keys that are stuck or hot, and what helps them."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from duly.client.control_reads import TenantStatus
from duly.core.control_words import plan_text
from duly.core.errors import UsageError
from duly.core.names import check_name
from duly.web.pages.acts import Desk, Visit
from duly.web.pages.bounds import read_bound, read_lasting, read_number, read_rate
from duly.web.pages.packing import FIELD, check_fresh, pack, unpack
from duly.web.pages.tenant_view import key_row, plan_stands, tenants_view

PATH: Final = "/tenants"
KEYS: Final = 500
"""Keys that are looked at; the store itself stops at 60,000 of their jobs."""

ROWS: Final = 50
"""Tenants and keys of one page, those that matter most; others are found by their names."""


def routes(desk: Desk) -> list[BaseRoute]:
    return [
        Route("/ui/tenants", desk.page(show), methods=["GET"]),
        Route("/ui/tenants/act/plan", desk.act(set_plan), methods=["POST"]),
        Route("/ui/tenants/act/bound", desk.act(bound), methods=["POST"]),
        Route("/ui/tenants/act/key", desk.act(skip_head), methods=["POST"]),
    ]


async def show(visit: Visit) -> Response:
    words = visit.param("q")[:200]
    found = await visit.inspect.atenants()
    if words and not any(one.name == words for one in found):
        found = (*found, *await _exact(visit, words))
    view = tenants_view(
        found,
        await visit.inspect.akeys(limit=KEYS),
        await visit.inspect.aoverrides(),
        visit.now,
        allowed=visit.queues(),
        words=words,
        most=ROWS,
        most_keys=ROWS,
    )
    return await visit.render("tenants.html", view=view, words=words, pack=pack, field=FIELD)


async def set_plan(visit: Visit) -> Response:
    """Store what a tenant may have in each fair queue; a new tenant is named by hand."""
    visit.check("operate")
    form = visit.form
    packed = form.text(FIELD)
    name, seen = unpack(packed, 2) if packed else (check_name("tenant", form.text("tenant")), None)
    stands = plan_stands(await visit.inspect.atenant(name))
    if seen is not None:
        check_fresh(seen, stands, "That plan")
    plan = await visit.operate.atenant(
        name,
        weight=read_number(form, "weight") or 1,
        max_running=read_number(form, "max_running"),
        rate=read_rate(form),
        reason=form.reason(),
    )
    return visit.back(PATH, f"The plan of tenant {name}: {plan_text(plan)}. It was: {stands}.")


async def bound(visit: Visit) -> Response:
    """Bound a tenant for a time, in one queue or in every one."""
    form = visit.form
    queue = form.text("queue") or None
    visit.check("operate", queue)
    (name,) = unpack(form.text(FIELD), 1)
    made = await visit.operate.alimit(
        queue,
        tenant=name,
        lasting=read_lasting(form),
        max_running=read_bound(form, "max_running"),
        rate=read_rate(form),
        weight=read_number(form, "weight"),
        reason=form.reason(),
    )
    where = queue or "every queue"
    return visit.back(PATH, f"Tenant {name} is bounded in {where} by override {made.id}; it ends by itself.")


async def skip_head(visit: Visit) -> Response:
    """Let an ordering key go on behind its dead head, or after its pause."""
    queue, tenant, key, seen = unpack(visit.form.text(FIELD), 4)
    visit.check("operate", queue)
    reason = visit.form.reason()
    # Among those that the page shows; one that is no longer there does not wait.
    found = await visit.inspect.akeys(queue, limit=KEYS)
    mine = next((one for one in found if (one.tenant, one.key) == (tenant, key)), None)
    check_fresh(seen, "" if mine is None else key_row(mine, visit.now).stands, "That key")
    if not await visit.operate.aresume_key(queue, key, tenant=tenant, reason=reason):
        raise UsageError("nothing waits behind this key any more: nothing was done")
    return visit.back(PATH, f"Key {key} of {queue} goes on without its head.")


async def _exact(visit: Visit, name: str) -> tuple[TenantStatus, ...]:
    """One by its name, however many there are."""
    try:
        one = await visit.inspect.atenant(name)
    except UsageError:
        # No tenant can have such a name.
        return ()
    return (one,) if one.plan is not None or one.limits or one.waits else ()
