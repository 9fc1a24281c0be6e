"""Who did what, and why; and whether that record was touched since. Changes nothing."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec
from msgspec import Struct
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from duly.client.client import Client
from duly.core.errors import UsageError
from duly.core.filters import parse_moment
from duly.core.operating import AuditEntry, AuditSeal
from duly.web.operation import read_number
from duly.web.pages.acts import Desk, Visit

SHOWN: Final = 50
FIELDS: Final = ("by", "verb", "target", "since", "until")


class Row(Struct, frozen=True):
    """One entry of the list."""

    entry: AuditEntry
    jobs: int | None
    """On how many jobs it was."""
    link: str
    """Where its target is shown; "" where nowhere."""
    detail: str
    """What else is kept of it, on one line."""


def routes(desk: Desk) -> list[BaseRoute]:
    return [Route("/ui/audit", desk.page(show), methods=["GET"])]


async def show(visit: Visit) -> Response:
    """The newest first, within what the address says; with `verify` all of it is read and checked."""
    # It names jobs, people and reasons of every queue.
    visit.check("operate")
    said = {name: visit.param(name)[:200] for name in FIELDS}
    before = visit.param("before")
    entries = await visit.inspect.aaudit(
        by=said["by"] or None,
        verb=said["verb"] or None,
        target=said["target"] or None,
        since=_moment(visit, said["since"], "since"),
        until=_moment(visit, said["until"], "until"),
        before=read_number(before, "before") if before else None,
        limit=SHOWN,
    )
    older = visit.url("/audit", **said, before=entries[-1].id) if len(entries) == SHOWN else None
    client = visit.site.app.client
    return await visit.render(
        "audit.html",
        rows=[row_of(entry) for entry in entries],
        said=said,
        filtered=any(said.values()),
        newest=visit.url("/audit", **said) if before else None,
        older=older,
        seal=await client.acall(_newest_seal, client),
        verdict=await visit.inspect.averify_audit() if visit.param("verify") else None,
    )


def row_of(entry: AuditEntry) -> Row:
    kind, _, name = entry.target.partition(":")
    links = {"job": "/jobs/", "queue": "/queues/", "dead": "/dead/"}
    link = ""
    if kind == "operation":
        link = "/operations"
    elif kind in links and name and (kind != "job" or name.isdecimal()):
        link = links[kind] + name
    try:
        detail = msgspec.json.decode(entry.detail, type=dict[str, object])
    except (msgspec.MsgspecError, RecursionError):
        return Row(entry, None, link, entry.detail)
    jobs = detail.pop("jobs", None)
    rest = msgspec.json.encode(detail).decode() if detail else ""
    return Row(entry, jobs if isinstance(jobs, int) else None, link, rest)


def _newest_seal(client: Client) -> AuditSeal | None:
    found = client.store.audits.seals(limit=1)
    return found[0] if found else None


def _moment(visit: Visit, text: str, name: str) -> datetime | None:
    if not text:
        return None
    try:
        return parse_moment(text, visit.now, name)
    except OverflowError:
        raise UsageError(f"{name}={text[:40]!r} is no moment; write 2h (ago), or 2026-01-31T10:00Z") from None
