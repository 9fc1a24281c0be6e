"""Reading and acting on stored schedules: list, run, pause, resume, remove.

Called by `Inspect` and `Operate`, which block and translate; knows schedules by their names only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from duly.client.client import Client
from duly.client.registry import nearest
from duly.client.ticks import Tick, enqueue_ready
from duly.core.errors import NotFound, UsageError
from duly.core.job import JobId, Stored
from duly.core.lifecycle import Outcome
from duly.core.registration import ScheduleRecord
from duly.core.schedule import due_from, occurrence, trigger_of
from duly.stores.protocol import Store

_NAMED: Final = 1_000
"""Jobs that the record of acts names of one run."""


class Ran(Struct, frozen=True):
    """What running a schedule by hand came to."""

    ids: tuple[JobId, ...]
    """New jobs, and those that already stood for what was to be enqueued."""
    created: tuple[JobId, ...]
    refused: tuple[str, ...] = ()
    """Why rows made no job."""


def find(store: Store, name: str) -> ScheduleRecord:
    """The stored schedule of this name. NotFound names the nearest one."""
    records = {record.schedule.name: record for record in store.schedules.all()}
    if name not in records:
        hint = nearest(name, records) if records else "; there are none"
        raise NotFound(f"no schedule is named {name!r}{hint}", kind="schedule", name=name)
    return records[name]


def run(client: Client, name: str, by: str, reason: str) -> Ran:
    """Enqueue now what a due time would; the rhythm stays as it is, and the job counts for no due time.

    That somebody did is in the record of acts, in the same transaction.
    """
    store = client.store
    record = find(store, name)
    now = store.inspection.now()
    tick = None if record.schedule.job is not None else _tick(client, record)
    with store.transaction() as connection:
        if tick is None:
            # Without the jitter: somebody waits for it.
            job = replace(occurrence(record.schedule, now), run_at=None)
            ran = _ran(store.enqueue_on(connection, [job]))
        else:
            ran = _ran(*enqueue_ready(store, connection, tick, trigger_of(name, now)))
        detail = {"jobs": len(ran.ids), "ids": ran.ids[:_NAMED]}
        store.audits.append("run", f"schedule:{name}", by, reason, detail, connection)
    return ran


def pause(client: Client, name: str, by: str, reason: str) -> bool:
    """Fire nothing until it is resumed; False when it was paused already."""
    return not find(client.store, name).paused and client.store.schedules.pause(name, by, reason)


def resume(client: Client, name: str, by: str, reason: str) -> bool:
    """Fire again from the next due time on; False when it was not paused."""
    store = client.store
    record = find(store, name)
    return store.schedules.resume(name, due_from(record, store.inspection.now()), by, reason)


def remove(client: Client, name: str, by: str, reason: str) -> bool:
    """Forget it. One declared in code comes back with the next start of an App that declares it."""
    find(client.store, name)
    return client.store.schedules.remove(name, by, reason)


def _tick(client: Client, record: ScheduleRecord) -> Tick:
    name = record.schedule.name
    declared = client.registry.schedules.get(name)
    if declared is None or declared.tick is None:
        raise UsageError(
            f"schedule {name!r} is a tick, whose source is code of {record.origin}; name that App with -a"
        )
    return declared.tick


def _ran(stored: Sequence[Stored], refused: Sequence[str] = ()) -> Ran:
    # Two rows of one key are one job.
    ids = tuple(dict.fromkeys(one.id for one in stored))
    created = tuple(one.id for one in stored if one.outcome is Outcome.created)
    return Ran(ids, created, tuple(refused))
