"""Gathers what `why` tells of a queue whose jobs wait: its cap, slow tasks, a tenant's flood, its dead letters.

Reads a bounded number of jobs; the sentences are core.why_late's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

from duly.client.client import Client
from duly.client.triage_reads import TriagedGroup, marks_of, triaged
from duly.core.control import LimitRecord
from duly.core.filters import Filter
from duly.core.lifecycle import State
from duly.core.why import Reason
from duly.core.why_late import Group, cap_reason, dead_reasons, slow_reasons, tenant_reason
from duly.stores.protocol import QueueCount

LOOKED_AT: Final = 500
"""Running jobs."""
SAMPLED: Final = 60
"""Waiting jobs, half of them the oldest and half the newest; those of a quiet queue are far to seek."""
_LATELY: Final = timedelta(minutes=10)
_DAY: Final = timedelta(days=1)


def reasons(
    client: Client, count: QueueCount, limits: Sequence[LimitRecord], now: datetime
) -> Iterator[Reason]:
    """In the order in which they cost the most."""
    if count.ready:
        yield from _caps(client, count, limits)
        yield from _slow(client, count.queue)
        yield from _tenant(client, count)
    if count.dead:
        yield from dead_reasons(count.queue, _groups(client, count.queue), now)


def _caps(client: Client, count: QueueCount, limits: Sequence[LimitRecord]) -> Iterator[Reason]:
    for limit in limits:
        if limit.max_running is not None and limit.running >= limit.max_running:
            running = client.store.inspection.page(
                Filter(queue=count.queue, state=State.running), limit=LOOKED_AT
            ).jobs
            found = cap_reason(count.queue, limit.running, limit.max_running, [job.task for job in running])
            if found is not None:
                yield found


def _slow(client: Client, queue: str) -> Iterator[Reason]:
    tallies = client.store.tallies
    until = tallies.counted()
    if until is None:
        return
    lately = tallies.read("minute", until - _LATELY, until, queues=[queue])
    if lately:
        yesterday = until - _DAY
        before = tallies.read(
            "hour", yesterday - timedelta(hours=2), yesterday + timedelta(hours=1), queues=[queue]
        )
        yield from slow_reasons(lately, before)


def _tenant(client: Client, count: QueueCount) -> Iterator[Reason]:
    page = client.store.inspection.page
    waiting = Filter(queue=count.queue, state=State.ready)
    half = SAMPLED // 2
    seen = {
        job.id: job.tenant
        for jobs in (page(waiting, after=0, limit=half).jobs, page(waiting, limit=half).jobs)
        for job in jobs
    }
    fair = any(plan.queue == count.queue for plan in client.store.control.waits(most=1_000))
    found = tenant_reason(count.queue, [*seen.values()], count.ready, fair=fair)
    if found is not None:
        yield found


def _groups(client: Client, queue: str) -> list[Group]:
    found = client.store.inspection.dead_groups(Filter(queue=queue))
    return [
        Group(group.fingerprint, group.count, group.first, group.error, _said(group))
        for group in triaged(found, marks_of(client.store, found), {})
        if group.count
    ]


def _said(group: TriagedGroup) -> str:
    if group.by is None:
        return ""
    if group.regressed_at is not None:
        return "fixed once, and new again"
    owner = f" for {group.owner}" if group.owner else ""
    return f"{group.state}{owner}, said {group.by}"
