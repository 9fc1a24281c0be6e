"""What went through queues within the last hour, minute by minute, from folded counts. Costs no job anything."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from duly.client.client import Client
from duly.core.operating import Tally
from duly.web.pages.acts import Visit

MINUTES: Final = 60


class Flow(Struct, frozen=True):
    """One queue's last hour; each list has one number per minute, the oldest first."""

    since: datetime | None = None
    """None: nothing was counted yet."""
    completed: tuple[int, ...] = ()
    failed: tuple[int, ...] = ()
    dead: tuple[int, ...] = ()
    waited: timedelta | None = None
    """From enqueue to the start of the last attempt, on average of those completed."""
    ran: timedelta | None = None

    @property
    def total(self) -> int:
        return sum(self.completed)


async def flows(visit: Visit, queues: Sequence[str]) -> dict[str, Flow]:
    """By queue; one read for all of them."""
    client = visit.site.app.client
    return await client.acall(_flows, client, list(queues))


def _flows(client: Client, queues: list[str]) -> dict[str, Flow]:
    tallies = client.store.tallies
    until = tallies.counted()
    if until is None or not queues:
        return dict.fromkeys(queues, Flow())
    since = until - timedelta(minutes=MINUTES)
    found: dict[str, list[Tally]] = {name: [] for name in queues}
    for tally in tallies.read("minute", since, until, queues=queues):
        found[tally.queue].append(tally)
    return {name: _flow(since, rows) for name, rows in found.items()}


def _flow(since: datetime, rows: list[Tally]) -> Flow:
    completed, failed, dead = ([0] * MINUTES for _ in range(3))
    for row in rows:
        at = int((row.at - since) / timedelta(minutes=1))
        if 0 <= at < MINUTES:
            completed[at] += row.completed
            failed[at] += row.failed
            dead[at] += row.dead
    ended = sum(completed)
    return Flow(
        since,
        tuple(completed),
        tuple(failed),
        tuple(dead),
        sum((row.waited for row in rows), timedelta(0)) / ended if ended else None,
        sum((row.ran for row in rows), timedelta(0)) / ended if ended else None,
    )
