"""Schedules: what is due becomes jobs, once in the whole fleet. Every worker looks; the store lets one of them win.

Decides nothing itself: core/schedule.py says what is due, client/ticks.py what a tick's rows are.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from duly.client.pressing import Pressing
from duly.client.scheduled import Declared
from duly.client.ticks import enqueue_ready
from duly.core.defaults import MAX_REASON
from duly.core.errors import QueueFull
from duly.core.job import Stored
from duly.core.lifecycle import Outcome
from duly.core.registration import ScheduleRecord
from duly.core.schedule import due_from, occurrence, plan, trigger_of
from duly.core.text import storable
from duly.stores.faults import Transient
from duly.stores.protocol import Store
from duly.telemetry.hub import Hub
from duly.telemetry.schedules import DueTimesMissed, RowsRefused, ScheduleFailed, ScheduleFired
from duly.worker.board import boottime

_LOOK: Final = 1.0
"""Seconds after which it looks again at the latest: others may have scheduled something sooner."""
_NONE: Final = 3.0
"""The same while there is no schedule at all, as in most databases."""
_AT_ONCE: Final = 100
_TOLD_EVERY: Final = 60.0
"""Of one schedule's missed due times: one that is due each second must not fill the log."""
_FIRST_REST: Final = 1.0
_LONGEST_REST: Final = 60.0


class Schedules:
    """Runs at the next due time, or after a second at the latest; after three where nothing is scheduled."""

    name = "schedules"

    def __init__(
        self,
        store: Store,
        declared: Mapping[str, Declared],
        hub: Hub,
        clock: Callable[[], float] = boottime,
        pressing: Pressing | None = None,
    ) -> None:
        self._store = store
        self._pressing = pressing
        self._declared = declared
        self._hub = hub
        self._clock = clock
        self._most = _AT_ONCE
        self._missed = Missed(hub, clock)
        self._faults: dict[str, int] = {}
        self._rests_until: dict[str, float] = {}

    def run(self, now: float) -> float:
        moment, records, upcoming = self._store.schedules.due(self._most)
        moved = [self._one(record, moment) for record in records]
        self._missed.tell()
        if any(moved):
            return 0.0
        if len(records) >= self._most:
            # All of these wait for something; what is due behind them must not wait with them.
            self._most *= 2
            return 0.0
        self._most = max(_AT_ONCE, min(self._most, 2 * len(records)))
        if upcoming is None:
            return _LOOK if records else _NONE
        return min(_LOOK, max(0.001, (upcoming - moment).total_seconds()))

    def failed(self) -> None:
        """Nothing to forget."""

    def _one(self, record: ScheduleRecord, moment: datetime) -> bool:
        """Whether this worker moved it on. One that fails rests for a while, and no other waits for it."""
        name = record.schedule.name
        if self._rests_until.get(name, 0.0) > self._clock():
            return False
        try:
            moved = self._tick(record, moment) if record.schedule.job is None else self._fire(record, moment)
        except Transient:
            raise
        except Exception as error:
            self._rest(record, f"{type(error).__name__}: {error}")
            return False
        self._faults.pop(name, None)
        self._rests_until.pop(name, None)
        return moved

    def _rest(self, record: ScheduleRecord, failure: str) -> None:
        name = record.schedule.name
        faults = self._faults[name] = self._faults.get(name, 0) + 1
        rest = min(_LONGEST_REST, _FIRST_REST * float(1 << min(faults - 1, 10)))
        self._rests_until[name] = self._clock() + rest
        if faults in {1, 10, 100}:
            self._hub.emit(ScheduleFailed(name, failure))
        self._store.schedules.fail(name, record.next_at, storable(failure, MAX_REASON))

    def _fire(self, record: ScheduleRecord, moment: datetime) -> bool:
        schedule, made = record.schedule, plan(record, moment)
        if made.next_at == record.next_at:
            return False
        jobs = [occurrence(schedule, due) for due in made.fire]
        full = self._full(Counter(job.queue for job in jobs))
        if full is not None:
            return self._refused(record, made.next_at, made.missed + len(jobs), full)
        last_at = made.fire[-1] if made.fire else record.last_at or record.next_at
        stored = self._store.schedules.fire(
            schedule.name, record.next_at, made.next_at, last_at, jobs, made.missed
        )
        if stored is None:
            return False
        self._tell(record, made.missed, stored)
        return True

    def _full(self, wanted: Mapping[str, int]) -> QueueFull | None:
        """Why a queue takes none of these now. Nobody waits here: a queue that slows or sheds takes them."""
        if self._pressing is None or self._pressing.idle or not wanted:
            return None
        if self._pressing.wants_look(wanted):
            self._pressing.look(wanted)
        try:
            self._pressing.judge(wanted, strict=frozenset(), joined=False)
        except QueueFull as full:
            self._pressing.note()
            return full
        return None

    def _refused(self, record: ScheduleRecord, next_at: datetime, missed: int, full: QueueFull) -> bool:
        """A due time that meets a full queue has passed: late runs would only come to stand behind it."""
        name, last_at = record.schedule.name, record.last_at or record.next_at
        if self._store.schedules.fire(name, record.next_at, next_at, last_at, [], missed) is None:
            return False
        self._missed.add(name, missed, f"the queue {full.queue!r} is full")
        return True

    def _tick(self, record: ScheduleRecord, moment: datetime) -> bool:
        name = record.schedule.name
        declared = self._declared.get(name)
        if declared is None or declared.tick is None:
            # Another App's, or another release's: its own workers have the code.
            return False
        next_at = due_from(record, moment)
        # Rows are ready or not: after a downtime one look, at the latest due time, stands for all.
        due = next_at - (record.schedule.every or timedelta(0))
        full = self._full({declared.tick.queue: 1})
        if full is not None:
            # The rows stay where they are, for a later look.
            return self._refused(record, next_at, 1, full)
        with self._store.transaction() as connection:
            # The first statement, because it locks the schedule: of two workers one reads the rows.
            if not self._store.advance_on(connection, name, record.next_at, next_at, due, 1):
                return False
            trigger = trigger_of(name, due)
            stored, refused = enqueue_ready(self._store, connection, declared.tick, trigger)
        created = _created(stored)
        if self._pressing is not None and created > 1:
            self._pressing.brought({declared.tick.queue: created - 1})
        if created:
            self._hub.emit(ScheduleFired(name, created))
        if refused:
            self._hub.emit(RowsRefused(name, len(refused), refused[0]))
        return True

    def _tell(self, record: ScheduleRecord, missed: int, stored: Sequence[Stored]) -> None:
        schedule, created = record.schedule, _created(stored)
        if created:
            self._hub.emit(ScheduleFired(schedule.name, created))
        if missed:
            busy = schedule.overlap == "skip" and (record.last_waiting or record.last_running)
            why = "the job before still waits or runs" if busy else f"catch_up is {schedule.catch_up!r}"
            self._missed.add(schedule.name, missed, why)
        if len(stored) > created:
            self._missed.add(schedule.name, len(stored) - created, "a job with their key is there")


class Missed:
    """Due times that passed without a job: told at once, then at most once a minute for each schedule and reason."""

    def __init__(self, hub: Hub, clock: Callable[[], float]) -> None:
        self._hub = hub
        self._clock = clock
        self._untold: dict[tuple[str, str], int] = {}
        self._told_at: dict[tuple[str, str], float] = {}

    def add(self, schedule: str, missed: int, why: str) -> None:
        self._untold[schedule, why] = self._untold.get((schedule, why), 0) + missed

    def tell(self) -> None:
        now = self._clock()
        for key, missed in list(self._untold.items()):
            if now - self._told_at.get(key, -_TOLD_EVERY) >= _TOLD_EVERY:
                self._told_at[key] = now
                del self._untold[key]
                self._hub.emit(DueTimesMissed(key[0], missed, key[1]))


def _created(stored: Sequence[Stored]) -> int:
    return sum(one.outcome is Outcome.created for one in stored)
