"""Schedules as the page shows them: records in, rows out. Pure; `schedules.py` reads and acts."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from msgspec import Struct

from duly.core.registration import ScheduleRecord
from duly.core.schedule import in_words, next_runs
from duly.web.pages.control_view import Allowed, sees

RUNS: Final = 3


class ScheduleRow(Struct, frozen=True):
    """One schedule."""

    name: str
    words: str
    """When, in plain words and its own zone."""
    exact: str
    """As it is declared, for whoever wants to know exactly."""
    task: str | None
    """None for a tick, whose jobs are made by code."""
    queue: str | None
    origin: str
    """The App that declares it; "" when it was stored at run time."""
    tz: str
    paused: bool
    runs: tuple[datetime, ...]
    """Its next due times, in its zone."""
    due: datetime
    last_at: datetime | None
    last_id: int | None
    last_word: str
    """Where the job of its last due time stands, while it is not over."""
    fired: int
    missed: int
    failure: str | None
    failed_at: datetime | None
    failures: int

    @property
    def stands(self) -> str:
        """How it was when it was shown, for a form to say what it was made for."""
        return schedule_stands(self.paused, self.exact)


class SchedulesView(Struct, frozen=True):
    """All of the page."""

    rows: tuple[ScheduleRow, ...]
    """Those that fail first, then those that are due next, then paused ones."""
    total: int
    failing: int
    paused: int


def schedules_view(
    records: Iterable[ScheduleRecord], *, allowed: Allowed = None, words: str = "", most: int = 200
) -> SchedulesView:
    """`words`: only those with them in their names. Due times are worked out for `most` schedules at most."""
    found = [
        record for record in records if sees(allowed, _queue(record)) and words.lower() in record.name.lower()
    ]
    found.sort(key=lambda one: (one.failure is None, one.paused, one.next_at, one.name))
    return SchedulesView(
        tuple(map(schedule_row, found[:most])),
        len(found),
        sum(1 for one in found if one.failure is not None),
        sum(1 for one in found if one.paused),
    )


def schedule_row(record: ScheduleRecord) -> ScheduleRow:
    schedule, job = record.schedule, record.schedule.job
    waits = "waits" if record.last_waiting else "runs" if record.last_running else ""
    return ScheduleRow(
        name=schedule.name,
        words=in_words(schedule),
        exact=schedule.cron or in_words(schedule),
        task=None if job is None else job.task,
        queue=_queue(record),
        origin=record.origin,
        tz=schedule.tz if schedule.cron is not None else "UTC",
        paused=record.paused,
        runs=next_runs(record, RUNS),
        due=record.next_at,
        last_at=record.last_at if record.fired else None,
        last_id=record.last_id,
        last_word=waits,
        fired=record.fired,
        missed=record.missed,
        failure=record.failure,
        failed_at=record.failed_at,
        failures=record.failures,
    )


def schedule_stands(paused: bool, exact: str) -> str:
    return f"{'paused' if paused else 'on'}, {exact}"


def _queue(record: ScheduleRecord) -> str | None:
    return None if record.schedule.job is None else record.schedule.job.queue
