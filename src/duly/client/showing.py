"""Stored jobs as people and programs may see them: without what is secret or encrypted in them.

Every record of `inspect` comes through here. Knows neither stores nor who looks.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from duly.core.envelope import is_sealed, key_of
from duly.core.job import JobRecord
from duly.core.registration import ScheduleRecord
from duly.core.secret import without_secrets

_ENCRYPTED: Final = b'"encrypted with the key %s"'
"""What stands in the place of a payload that is not for everybody who may read jobs."""


def shown_payload(data: bytes | None) -> bytes | None:
    """Stored JSON as it may be shown; byte for byte as it is where nothing has to be hidden."""
    if data is None:
        return None
    return _ENCRYPTED % key_of(data).encode() if is_sealed(data) else without_secrets(data)


def shown(record: JobRecord) -> JobRecord:
    """A job as it may be shown."""
    args, result = shown_payload(record.args) or b"", shown_payload(record.result)
    if args is record.args and result is record.result:
        return record
    return replace(record, args=args, result=result)


def shown_schedule(record: ScheduleRecord) -> ScheduleRecord:
    """A stored schedule as it may be shown."""
    job = record.schedule.job
    if job is None or (args := shown_payload(job.args)) is None or args is job.args:
        return record
    return replace(record, schedule=replace(record.schedule, job=replace(job, args=args)))
