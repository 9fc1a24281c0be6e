"""The model's schedules and releases: what is due when, and who declared it."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from msgspec.structs import replace

from duly.core.job import NewJob, Stored
from duly.core.lifecycle import WAITING, Outcome, State
from duly.core.registration import Registration, Schedule, ScheduleRecord
from duly.core.schedule import declared_by

from .model_keys import KeyedModel

_WELL: Final[dict[str, Any]] = {"failure": None, "failed_at": None, "failures": 0}


class ModelSchedules:
    """See duly.stores.protocol.ScheduleStore."""

    def __init__(self, model: KeyedModel) -> None:
        self._model = model

    def due(self, most: int = 100) -> tuple[datetime, list[ScheduleRecord], datetime | None]:
        now = self._model.clock()
        waiting = [record for record in self.all() if not record.paused]
        waiting.sort(key=lambda record: record.next_at)
        due = [record for record in waiting if record.next_at <= now][:most]
        others = waiting[len(due) :]
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
        with self._model.act():
            record = self._model.tables.schedules.get(name)
            if record is None or record.paused or record.next_at != expected:
                return None
            stored = [self._model.enqueue_or_other(job) for job in jobs]
            created = [one.id for one in stored if one.outcome is Outcome.created]
            self._model.tables.schedules[name] = replace(
                record,
                next_at=next_at,
                last_at=last_at,
                fired=record.fired + len(created),
                missed=record.missed + missed + len(stored) - len(created),
                last_id=stored[-1].id if stored else record.last_id,
                **_WELL,
            )
            return stored

    def advance(
        self, name: str, expected: datetime, next_at: datetime, last_at: datetime, fired: int
    ) -> bool:
        """Move a schedule on, if it still is where the caller has seen it."""
        with self._model.tables.lock:
            record = self._model.tables.schedules.get(name)
            if record is None or record.paused or record.next_at != expected:
                return False
            self._model.tables.schedules[name] = replace(
                record, next_at=next_at, last_at=last_at, fired=record.fired + fired, **_WELL
            )
            return True

    def fail(self, name: str, expected: datetime, failure: str) -> bool:
        with self._model.tables.lock:
            record = self._model.tables.schedules.get(name)
            if record is None or record.paused or record.next_at != expected:
                return False
            self._model.tables.schedules[name] = replace(
                record, failure=failure, failed_at=self._model.clock(), failures=record.failures + 1
            )
            return True

    def put(self, schedule: Schedule, first: datetime) -> ScheduleRecord:
        with self._model.tables.lock:
            known = self._model.tables.schedules.get(schedule.name)
            if known is not None and known.origin:
                raise declared_by(known.origin, schedule.name)
            self._put(schedule, first, "")
            return self._seen(self._model.tables.schedules[schedule.name])

    def _put(self, schedule: Schedule, first: datetime, origin: str) -> None:
        known = self._model.tables.schedules.get(schedule.name)
        if known is None:
            known = ScheduleRecord(schedule, origin, first, created_at=self._model.clock())
        elif known.schedule != schedule:
            known = replace(known, schedule=schedule, next_at=first, **_WELL)
        self._model.tables.schedules[schedule.name] = replace(known, origin=origin)

    def declare(self, registration: Registration) -> bool:
        """As SchemaStore.declare."""
        with self._model.tables.lock:
            tables, origin = self._model.tables, registration.origin
            seen = tables.releases.setdefault(origin, [])
            if registration.release in seen[:-1]:
                return False
            if registration.release not in seen:
                seen.append(registration.release)
            tables.queues.update({queue.name: queue.owner for queue in registration.queues})
            tables.tasks.update({task.name: task.queue for task in registration.tasks})
            tables.policies.update({queue.name: queue for queue in registration.queues})
            for name in tables.limits_of.get(origin, frozenset()):
                tables.limits.pop(name, None)
            tables.limits.update({limit.name: limit for limit in registration.limits})
            tables.limits_of[origin] = frozenset(limit.name for limit in registration.limits)
            tables.task_limits[origin] = registration.task_limits
            declared = {schedule.name for schedule, _ in registration.schedules}
            for name, record in list(tables.schedules.items()):
                if record.origin == origin and name not in declared:
                    del tables.schedules[name]
            for schedule, first in registration.schedules:
                self._put(schedule, first, origin)
            return True

    def all(self) -> list[ScheduleRecord]:
        with self._model.tables.lock:
            return [self._seen(record) for _, record in sorted(self._model.tables.schedules.items())]

    def _seen(self, record: ScheduleRecord) -> ScheduleRecord:
        last = None if record.last_id is None else self._model.tables.entries.get(record.last_id)
        return replace(
            record,
            last_waiting=last is not None and last.state in WAITING,
            last_running=last is not None and last.state is State.running,
        )

    def pause(self, name: str, by: str, reason: str) -> bool:
        with self._model.tables.lock:
            record = self._model.tables.schedules.get(name)
            if record is None or record.paused:
                return False
            self._model.note("pause", f"schedule:{name}", by, reason)
            self._model.tables.schedules[name] = replace(record, paused=True)
            return True

    def resume(self, name: str, next_at: datetime, by: str, reason: str) -> bool:
        with self._model.tables.lock:
            record = self._model.tables.schedules.get(name)
            if record is None or not record.paused:
                return False
            self._model.note("resume", f"schedule:{name}", by, reason)
            later = max(record.next_at, next_at)
            self._model.tables.schedules[name] = replace(record, paused=False, next_at=later)
            return True

    def remove(self, name: str, by: str, reason: str) -> bool:
        with self._model.tables.lock:
            found = self._model.tables.schedules.pop(name, None) is not None
            if found:
                self._model.note("remove", f"schedule:{name}", by, reason)
            return found
