"""Reading and acting on stored schedules: list, run, pause, resume, remove.

Called by `Inspect` and `Operate`, which block and translate; knows schedules by their names only.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from duly.client.client import Client
from duly.client.registry import nearest
from duly.client.ticks import enqueue_ready
from duly.core.errors import NotFound, UsageError
from duly.core.job import JobId, Stored
from duly.core.lifecycle import Outcome
from duly.core.registration import ScheduleRecord
from duly.core.schedule import due_from, occurrence, trigger_of
from duly.stores.protocol import Store


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


def run(client: Client, name: str) -> Ran:
    """Enqueue now what a due time would; the rhythm stays as it is, and the job counts for no due time."""
    store = client.store
    record = find(store, name)
    now = store.inspection.now()
    if record.schedule.job is not None:
        # Without the jitter: somebody waits for it.
        job = replace(occurrence(record.schedule, now), run_at=None)
        return _ran(store.jobs.enqueue([job]))
    return _run_tick(client, store, record, now)


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


def _run_tick(client: Client, store: Store, record: ScheduleRecord, now: datetime) -> Ran:
    name = record.schedule.name
    declared = client.registry.schedules.get(name)
    if declared is None or declared.tick is None:
        raise UsageError(
            f"schedule {name!r} is a tick, whose source is code of {record.origin}; name that App with -a"
        )
    with store.transaction() as connection:
        stored, refused = enqueue_ready(store, connection, declared.tick, trigger_of(name, now))
    return _ran(stored, refused)


def _ran(stored: Sequence[Stored], refused: Sequence[str] = ()) -> Ran:
    # Two rows of one key are one job.
    ids = tuple(dict.fromkeys(one.id for one in stored))
    created = tuple(one.id for one in stored if one.outcome is Outcome.created)
    return Ran(ids, created, tuple(refused))
