"""ScheduleStore on PostgreSQL: when what is due next. Decides nothing: what fires is the caller's to say."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from duly.core.job import JobId, NewJob, Stored
from duly.core.lifecycle import Outcome
from duly.core.registration import Schedule, ScheduleRecord
from duly.core.schedule import declared_by
from duly.stores.postgres import specs
from duly.stores.postgres.arrays import Blobs
from duly.stores.postgres.columns import utc, utc_or_none
from duly.stores.postgres.database import Database


class PostgresSchedules:
    """See `ScheduleStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def due(self, most: int = 100) -> tuple[datetime, list[ScheduleRecord], datetime | None]:
        rows = self._database.call("read_due_schedules", {"most": most, "now": self._database.now()})
        found = [_record(row[2:]) for row in rows if row[2] is not None]
        return utc(rows[0][0]), found, utc_or_none(rows[0][1])

    def fire(
        self,
        name: str,
        expected: datetime,
        next_at: datetime,
        last_at: datetime,
        jobs: Sequence[NewJob],
        missed: int,
    ) -> list[Stored] | None:
        parameters = {
            "name": name,
            "expected": expected,
            "next_at": next_at,
            "last_at": last_at,
            "specs": specs.specs(jobs),
            "args": Blobs([job.args for job in jobs]),
            "missed": missed,
            "now": self._database.now(),
        }
        rows = self._database.call("fire_schedule", parameters)
        if not rows:
            return None
        return [Stored(JobId(id), Outcome(outcome), utc_or_none(run_at)) for id, run_at, outcome in rows[1:]]

    def fail(self, name: str, expected: datetime, failure: str) -> bool:
        parameters = {"name": name, "expected": expected, "failure": failure, "now": self._database.now()}
        return bool(self._database.call("fail_schedule", parameters)[0][0])

    def put(self, schedule: Schedule, first: datetime) -> ScheduleRecord:
        parameters = {
            "name": schedule.name,
            "definition": specs.definition(schedule),
            "first": first,
            "now": self._database.now(),
        }
        if origin := self._database.call("put_schedule", parameters)[0][0]:
            raise declared_by(origin, schedule.name)
        return next(record for record in self.all() if record.schedule.name == schedule.name)

    def all(self) -> list[ScheduleRecord]:
        return [_record(row) for row in self._database.call("read_schedules")]

    def pause(self, name: str, by: str, reason: str) -> bool:
        return self._act("pause_schedule", name, by, reason)

    def resume(self, name: str, next_at: datetime, by: str, reason: str) -> bool:
        return self._act("resume_schedule", name, by, reason, next_at=next_at)

    def remove(self, name: str, by: str, reason: str) -> bool:
        return self._act("remove_schedule", name, by, reason)

    def _act(self, statement: str, name: str, by: str, reason: str, **more: Any) -> bool:
        parameters = {"name": name, "by": by, "reason": reason, "now": self._database.now(), **more}
        return bool(self._database.call(statement, parameters)[0][0])


def _record(row: Sequence[Any]) -> ScheduleRecord:
    """A row of read_schedules.sql."""
    name, definition, origin, next_at, paused, last_at, last_id, waiting, running, *rest = row
    fired, missed, created_at, failure, failed_at, failures = rest
    return ScheduleRecord(
        schedule=specs.schedule(name, definition),
        origin=origin,
        next_at=utc(next_at),
        paused=paused,
        last_at=utc_or_none(last_at),
        last_id=None if last_id is None else JobId(last_id),
        last_waiting=waiting,
        last_running=running,
        fired=fired,
        missed=missed,
        created_at=utc(created_at),
        failure=failure,
        failed_at=utc_or_none(failed_at),
        failures=failures,
    )
