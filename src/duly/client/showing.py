"""Stored jobs as people and programs may see them: without what is secret in their arguments and results.

Every record of `inspect` comes through here. Knows neither stores nor who looks.
"""

from __future__ import annotations

from msgspec.structs import replace

from duly.core.job import JobRecord
from duly.core.registration import ScheduleRecord
from duly.core.secret import without_secrets


def shown_payload(data: bytes | None) -> bytes | None:
    """Stored JSON as it may be shown; byte for byte as it is where nothing has to be hidden."""
    return None if data is None else without_secrets(data)


def shown(record: JobRecord) -> JobRecord:
    """A job as it may be shown."""
    args, result = without_secrets(record.args), shown_payload(record.result)
    if args is record.args and result is record.result:
        return record
    return replace(record, args=args, result=result)


def shown_schedule(record: ScheduleRecord) -> ScheduleRecord:
    """A stored schedule as it may be shown."""
    job = record.schedule.job
    if job is None or (args := without_secrets(job.args)) is job.args:
        return record
    return replace(record, schedule=replace(record.schedule, job=replace(job, args=args)))
