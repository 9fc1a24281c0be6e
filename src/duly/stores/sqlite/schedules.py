"""When what is due next: the ScheduleStore on SQLite. Decides nothing about due times but that they never go back."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from duly.core.errors import KeyReused
from duly.core.job import JobId, NewJob, Stored
from duly.core.lifecycle import Outcome
from duly.core.registration import Schedule, ScheduleRecord
from duly.core.schedule import declared_by
from duly.stores.sqlite.database import Database
from duly.stores.sqlite.followups import enqueue
from duly.stores.sqlite.operator import note_act
from duly.stores.sqlite.session import Row, Session
from duly.stores.sqlite.specs import schedule_of, schedule_text
from duly.stores.sqlite.times import from_micros, maybe_from_micros, to_micros

_AT_RUN_TIME: Final = ""


class SQLiteSchedules:
    """See duly.stores.protocol.ScheduleStore."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def due(self, most: int = 100) -> tuple[datetime, list[ScheduleRecord], datetime | None]:
        """One statement, nothing locked."""
        with self._database.read() as session:
            records = _records(session.rows("select_upcoming_schedules", most=most + 1))
            now = from_micros(session.now)
        due = [record for record in records[:most] if record.next_at <= now]
        others = records[len(due) :]
        return now, due, others[0].next_at if others else None

    def fire(
        self,
        name: str,
        expected: datetime,
        next_at: datetime,
        last_at: datetime,
        jobs: Sequence[NewJob],
        missed: int,
    ) -> list[Stored] | None:
        """A job whose idempotency key belongs to one with other arguments counts as missed, too."""
        with self._database.write() as session:
            if not _is_as(session, name, expected):
                return None
            stored = _enqueue(session, jobs)
            created = sum(one.outcome is Outcome.created for one in stored)
            session.run(
                "update_schedule_fired",
                name=name,
                expected=to_micros(expected),
                next_at=to_micros(next_at),
                last_at=to_micros(last_at),
                last_id=stored[-1].id if stored else None,
                fired=created,
                missed=missed + len(stored) - created,
            )
        return stored

    def fail(self, name: str, expected: datetime, failure: str) -> bool:
        with self._database.write() as session:
            micros, now = to_micros(expected), session.now
            return (
                session.run("update_schedule_failed", name=name, expected=micros, failure=failure, now=now)
                == 1
            )

    def put(self, schedule: Schedule, first: datetime) -> ScheduleRecord:
        with self._database.write() as session:
            known = _records(session.rows("select_schedule", name=schedule.name))
            if known and known[0].origin != _AT_RUN_TIME:
                raise declared_by(known[0].origin, schedule.name)
            put_in(session, schedule, first, _AT_RUN_TIME)
            return _records(session.rows("select_schedule", name=schedule.name))[0]

    def all(self) -> list[ScheduleRecord]:
        with self._database.read() as session:
            return records_in(session)

    def pause(self, name: str, by: str, reason: str) -> bool:
        with self._database.write() as session:
            return _act(session, "update_schedule_paused", f"pause schedule:{name}", name, by, reason)

    def resume(self, name: str, next_at: datetime, by: str, reason: str) -> bool:
        """paused -> not; False when it was not paused or is not there."""
        with self._database.write() as session:
            found = session.run("update_schedule_resumed", name=name, next_at=to_micros(next_at)) == 1
            if found:
                note_act(session, f"resume schedule:{name}", by, reason)
            return found

    def remove(self, name: str, by: str, reason: str) -> bool:
        with self._database.write() as session:
            return _act(session, "delete_schedule", f"remove schedule:{name}", name, by, reason)


def advance_in(
    session: Session, name: str, expected: datetime, next_at: datetime, last_at: datetime, fired: int
) -> bool:
    """Move a tick's schedule on in the open transaction; False when it is not as expected any more."""
    return (
        session.run(
            "update_schedule_fired",
            name=name,
            expected=to_micros(expected),
            next_at=to_micros(next_at),
            last_at=to_micros(last_at),
            last_id=None,
            fired=fired,
            missed=0,
        )
        == 1
    )


def put_in(session: Session, schedule: Schedule, first: datetime, origin: str) -> None:
    """Store a schedule; the same definition again keeps its due time."""
    known = _records(session.rows("select_schedule", name=schedule.name))
    if known and known[0].schedule == schedule:
        if known[0].origin != origin:
            session.run("update_schedule_origin", name=schedule.name, origin=origin)
        return
    session.run(
        "upsert_schedule",
        name=schedule.name,
        origin=origin,
        definition=schedule_text(schedule),
        next_at=to_micros(first),
        now=session.now,
    )


def declare_in(session: Session, origin: str, schedules: Sequence[tuple[Schedule, datetime]]) -> None:
    """Make the schedules of an App those given."""
    names = {schedule.name for schedule, _ in schedules}
    for record in records_in(session):
        if record.origin == origin != _AT_RUN_TIME and record.schedule.name not in names:
            session.run("delete_schedule", name=record.schedule.name)
    for schedule, first in schedules:
        put_in(session, schedule, first, origin)


def records_in(session: Session) -> list[ScheduleRecord]:
    """All, by name."""
    return _records(session.rows("select_schedules"))


def _is_as(session: Session, name: str, expected: datetime) -> bool:
    found = _records(session.rows("select_schedule", name=name))
    return bool(found) and not found[0].paused and found[0].next_at == expected


def _enqueue(session: Session, jobs: Sequence[NewJob]) -> list[Stored]:
    stored: list[Stored] = []
    for job in jobs:
        try:
            stored += enqueue(session, [job])
        except KeyReused as error:
            if error.job_id is None:
                raise
            # The due time would else come again and again.
            stored.append(Stored(JobId(error.job_id), Outcome.duplicate))
    return stored


def _act(session: Session, statement: str, verb: str, name: str, by: str, reason: str) -> bool:
    found = session.run(statement, name=name) == 1
    if found:
        note_act(session, verb, by, reason)
    return found


def _records(rows: Sequence[Row]) -> list[ScheduleRecord]:
    return [_record_of(*row) for row in rows]


def _record_of(
    name: str,
    origin: str,
    definition: str,
    next_at: int,
    paused: int,
    last_at: int | None,
    last_id: int | None,
    waiting: int,
    running: int,
    fired: int,
    missed: int,
    created_at: int,
    failure: str | None,
    failed_at: int | None,
    failures: int,
) -> ScheduleRecord:
    return ScheduleRecord(
        schedule=schedule_of(name, definition),
        origin=origin,
        next_at=from_micros(next_at),
        paused=bool(paused),
        last_at=maybe_from_micros(last_at),
        last_id=None if last_id is None else JobId(last_id),
        last_waiting=bool(waiting),
        last_running=bool(running),
        fired=fired,
        missed=missed,
        created_at=from_micros(created_at),
        failure=failure,
        failed_at=maybe_from_micros(failed_at),
        failures=failures,
    )
