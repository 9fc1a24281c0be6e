"""The read model: what stands where, how fast it moves and what will become of it.

Reads through the store's inspection protocol; the one source of the command line's tables. Changes nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from duly.client import schedule_acts, selection
from duly.client import why as reasons
from duly.client.alert_reads import AlertReads
from duly.client.audit_reads import AuditReads
from duly.client.budget import StoreRoom, room_of
from duly.client.identity import AnyJob, job_id
from duly.client.options import whole_number
from duly.client.provider import OWN
from duly.client.registry import nearest
from duly.client.run_reads import RunReads
from duly.client.scale import Scale, scale_of
from duly.client.settings import without_password
from duly.client.showing import shown, shown_schedule
from duly.client.token_acts import TokenReads
from duly.client.trace_reads import TraceReads
from duly.client.triage_reads import TriageReads
from duly.client.twins import blocking, twin
from duly.client.worker_reads import WorkerReads
from duly.core.bounds import Pressure, pressure_text
from duly.core.control import queue_limit
from duly.core.defaults import QUEUE
from duly.core.envelope import is_sealed
from duly.core.errors import NotFound, UsageError
from duly.core.filters import Filter
from duly.core.job import AttemptRecord, JobId, JobRecord
from duly.core.lateness import late_text
from duly.core.lifecycle import State
from duly.core.plan import Load, full_in, outlook
from duly.core.pressure import drain_time, health
from duly.core.registration import ScheduleRecord
from duly.core.share import DatabaseLoad
from duly.core.why import Why
from duly.stores.protocol import OperationRecord, Pause, QueueCount, WorkerRecord

SEARCHED_AT_ONCE: Final = 500
"""Jobs read per round trip while most are expected not to match."""

ALL: Final = Filter()


class QueueStatus(msgspec.Struct, frozen=True):
    """One queue: its counts, who answers for it, and what will become of it."""

    counts: QueueCount
    owner: str | None
    workers: int
    """Live worker processes that serve it."""
    rates_known: bool
    """Whether workers have kept samples lately; without them `drain` says nothing."""
    drain: timedelta | None
    """How long until nothing waits at the present rates; None: never, or not known."""
    health: str
    """One sentence: what will happen, and what to do where that is bad."""
    pressure: Pressure = Pressure()
    """How much it may hold, and what it has refused and shed within the hour."""
    pressed: str | None = None
    """The same in words, where it is full or nearly so, or has turned jobs away."""
    late: str | None = None
    """In words, where its oldest ready job has waited longer than its `wait_target`."""
    full_in: timedelta | None = None
    """How long until it reaches its max_depth at the present slope; None: it has none, or does not grow."""
    workers_needed: int | None = None
    """Processes like the present ones that hold its `wait_target` (30 s where it has none); None: not known."""
    capped: int | None = None
    """Its max_running, where it runs that many: more processes would start none of its jobs. Looked at only while jobs
    wait."""


class Status(msgspec.Struct, frozen=True):
    """Where things stand, from one look."""

    store: dict[str, str]
    """Facts: where, server version, journal mode, schema."""
    now: datetime
    """By the database's clock."""
    queues: tuple[QueueStatus, ...]
    workers: int
    newest_progress: timedelta | None
    """Since any worker last ended an attempt or found nothing to do."""
    load: DatabaseLoad | None = None
    """What the queues take of a database that others use, too; None of an SQLite file."""
    room: StoreRoom | None = None
    """What the store takes of its budget (settings max_bytes, min_free_disk); None without one."""

    @property
    def jobs_per_s(self) -> float | None:
        """Into all queues, over the last minutes; None when nobody measured."""
        known = [queue.counts.in_per_s for queue in self.queues if queue.counts.in_per_s is not None]
        return sum(known) if known else None


class JobDetail(msgspec.Struct, frozen=True):
    """One job with every recorded attempt, oldest first."""

    job: JobRecord
    attempts: tuple[AttemptRecord, ...]


class JobPage(msgspec.Struct, frozen=True):
    """Jobs by id, newest first, and how far the look went."""

    jobs: tuple[JobRecord, ...]
    next: int | None
    """Pass as `before` to go on; None: nothing is left."""
    searched_back_to: datetime | None = None
    """Set when the time for one look was over: older jobs may match, too."""
    encrypted: int = 0
    """Jobs that were left out because their arguments are encrypted, which no filter by an argument can see."""


class Inspect(AlertReads, TraceReads, RunReads, TokenReads, TriageReads, AuditReads, WorkerReads):
    """`App.inspect`. Every method blocks for a round trip or few; each has an `a` twin."""

    @blocking
    def status(self) -> Status:
        """All queues and workers at one moment."""
        store = self._client.store.inspection
        workers = store.workers()
        ages = [worker.progress_age for worker in workers if worker.progress_age is not None]
        facts = {name: without_password(fact) for name, fact in store.describe().items()}
        queues = self._queues(workers)
        newest = min(ages, default=None)
        room = room_of(self._client)
        return Status(facts, store.now(), queues, len(workers), newest, store.load(), room)

    @blocking
    def queues(self) -> tuple[QueueStatus, ...]:
        """Every queue that is declared or has jobs, by name."""
        return self._queues(self._client.store.inspection.workers())

    @blocking
    def queue(self, name: str) -> QueueStatus:
        """One queue. NotFound names the nearest one."""
        return self._queue(name)

    def _queue(self, name: str) -> QueueStatus:
        found = {
            status.counts.queue: status for status in self._queues(self._client.store.inspection.workers())
        }
        if name not in found:
            raise NotFound(f"no queue is named {name!r}{nearest(name, found)}", kind="queue", name=name)
        return found[name]

    @blocking
    def scale(self, queue: str) -> Scale:
        """One queue's numbers for whoever starts and stops workers, flat. NotFound names the nearest queue."""
        return scale_of(self._queue(queue))

    @blocking
    def job(self, id: AnyJob, *, connection: Any = None) -> JobDetail:
        """One job in whatever state. NotFound when it never was or is no longer kept.

        With a connection as its transaction sees the job, so that what it enqueued itself is there already.
        """
        number = job_id(id)
        if connection is None or connection is OWN:
            return self._detail(number, self._client.store.inspection.lookup([number]))
        return self._detail(number, self._client.store.lookup_on(connection, [number]))

    async def ajob(self, id: AnyJob, *, connection: Any = None) -> JobDetail:
        """As `job`, for async code and async connections."""
        number = job_id(id)
        if connection is None or connection is OWN:
            return await self._client.acall(
                lambda: self._detail(number, self._client.store.inspection.lookup([number]))
            )
        with self._client.reaching():
            found = await self._client.store.alookup_on(connection, [number])
        return await self._client.acall(self._detail, number, found)

    @blocking
    def lookup(self, ids: Iterable[AnyJob]) -> tuple[JobRecord | None, ...]:
        """Many jobs in one round trip, in the order asked; None for one that never was or is no longer kept."""
        found = self._client.store.inspection.lookup([job_id(id) for id in ids])
        return tuple(None if record is None else shown(record) for record in found)

    @blocking
    def now(self) -> datetime:
        """The database's clock; the cheapest question whether the store answers."""
        return self._client.store.inspection.now()

    @blocking
    def jobs(self, filter: Filter = ALL, *, before: int | None = None, limit: int = 50) -> JobPage:
        """Jobs that fit, newest first. A look takes at most about 150 ms: then it says how far back it went."""
        most = whole_number(limit, "limit")
        store = self._client.store.inspection
        until = time.monotonic() + selection.SEARCH_BUDGET
        found: list[JobRecord] = []
        oldest: JobRecord | None = None
        cursor = before
        sealed = 0
        while True:
            page = store.page(
                filter, before=cursor, limit=most if filter.where is None else max(most, SEARCHED_AT_ONCE)
            )
            for job in page.jobs:
                oldest = job
                sealed += filter.where is not None and is_sealed(job.args)
                if filter.where is None or filter.matches(job):
                    found.append(shown(job))
                    if len(found) == most:
                        more = page.next is not None or job is not page.jobs[-1]
                        return JobPage(tuple(found), job.id if more else None, encrypted=sealed)
            cursor = page.next
            if cursor is None:
                return JobPage(tuple(found), None, encrypted=sealed)
            if time.monotonic() >= until:
                at = None if oldest is None else oldest.enqueued_at
                return JobPage(tuple(found), cursor, at, sealed)

    @blocking
    def workers(self) -> tuple[WorkerRecord, ...]:
        """Every live worker process."""
        return tuple(self._client.store.inspection.workers())

    @blocking
    def pauses(self) -> tuple[Pause, ...]:
        """What is paused, by whom and until when."""
        return tuple(self._client.store.inspection.pauses())

    @blocking
    def operations(self) -> tuple[OperationRecord, ...]:
        """Stored bulk acts, the newest first."""
        return tuple(sorted(self._client.store.inspection.operations(), key=lambda record: -record.id))

    @blocking
    def operation(self, id: int) -> OperationRecord:
        """One bulk act. NotFound when there is none of this number."""
        for record in self._client.store.inspection.operations():
            if record.id == id:
                return record
        raise NotFound(
            f"no operation {id}; `duly operations list` shows them", kind="operation", name=str(id)
        )

    @blocking
    def schedules(self) -> tuple[ScheduleRecord, ...]:
        """Every stored schedule by name: when it is due next, what it fired last, how many due times it missed."""
        return tuple(shown_schedule(record) for record in self._client.store.schedules.all())

    @blocking
    def schedule(self, name: str) -> ScheduleRecord:
        """One schedule. NotFound names the nearest one."""
        return shown_schedule(schedule_acts.find(self._client.store, name))

    @blocking
    def why(self, target: AnyJob | str, *, guards: bool = False) -> Why:
        """Every reason why a job is not running now, or what holds up "QUEUE", "tenant:NAME" and so on.

        Targets beside a job: a queue's name, "tenant:NAME", "resource:NAME", "batch:ID".

        With `guards` the guards of the job's task are asked, here and now, without a start; they should only look.
        """
        if not isinstance(target, str):
            return reasons.of_job(self._client, job_id(target), guards=guards)
        kind, colon, name = target.partition(":")
        if target.isascii() and target.isdecimal():
            return reasons.of_job(self._client, job_id(int(target)), guards=guards)
        match kind if colon else "queue":
            case "queue":
                return reasons.of_queue(self._client, self._queue(name if colon else target))
            case "tenant":
                return reasons.of_tenant(self._client, self._tenant(name))
            case "resource":
                return reasons.of_resource(self._client, name)
            case "batch":
                return reasons.of_batch(self._client, name)
        raise UsageError(
            f"{target!r:.80}: write a job's number, a queue, tenant:NAME or resource:NAME, or batch:NUMBER"
        )

    alookup = twin(lookup)
    anow = twin(now)
    astatus = twin(status)
    awhy = twin(why)
    aqueues = twin(queues)
    aqueue = twin(queue)
    ascale = twin(scale)
    ajobs = twin(jobs)
    aworkers = twin(workers)
    apauses = twin(pauses)
    aoperations = twin(operations)
    aoperation = twin(operation)
    aschedules = twin(schedules)
    aschedule = twin(schedule)

    def _detail(self, number: JobId, found: list[JobRecord | None]) -> JobDetail:
        record = found[0]
        if record is None:
            raise NotFound(
                f"no job {number}: it never was, its transaction was rolled back, or it ended and is no longer kept",
                kind="job",
                name=str(number),
            )
        # Attempts are committed when they end, whatever becomes of the caller's transaction. They are read after the
        # record: what ended between the two is left out, or a job would be running and over at the same time.
        attempts = self._client.store.inspection.attempts(number) if record.run else ()
        over = record.run + (record.state is not State.running)
        return JobDetail(shown(record), tuple(attempt for attempt in attempts if attempt.run < over))

    def _queues(self, workers: list[WorkerRecord]) -> tuple[QueueStatus, ...]:
        registry = self._client.registry
        declared, _ = self._client.store.schema.declared()
        owners = {
            **declared,
            **{name: queue.owner or declared.get(name, "") for name, queue in registry.queues.items()},
        }
        counts = {count.queue: count for count in self._client.store.inspection.counts()}
        names = sorted({QUEUE, *owners, *counts})
        pressures = self._pressures(names)
        # Asked for only where a time is told.
        told = any(one.refused or one.shed for one in pressures.values())
        now = self._client.store.inspection.now() if told else datetime.now(UTC)
        caps = self._caps([name for name, count in counts.items() if count.ready and count.running])
        return tuple(
            _queue_status(
                counts.get(name, QueueCount(name)),
                owners.get(name),
                workers,
                pressures[name],
                now,
                caps.get(name),
            )
            for name in names
        )

    def _caps(self, names: list[str]) -> dict[str, int]:
        """The max_running of those that run as many as it allows. Asks only about queues where jobs wait and run."""
        if not names:
            return {}
        found = self._client.store.control.limits([queue_limit(name) for name in names])
        return {
            limit.name.partition(":")[2]: limit.max_running
            for limit in found
            if limit.max_running is not None and limit.running >= limit.max_running
        }

    def _pressures(self, names: list[str]) -> dict[str, Pressure]:
        """As stored; of the queues that this App declares, as it says."""
        here = self._client.registry.queues
        return {
            name: replace(
                found,
                bound=here[name].bound,
                importance=here[name].importance,
                wait_target=here[name].wait_target,
            )
            if name in here
            else found
            for name, found in self._client.store.pressing.pressures(names).items()
        }


def _queue_status(
    count: QueueCount,
    owner: str | None,
    workers: list[WorkerRecord],
    pressure: Pressure,
    now: datetime,
    capped: int | None,
) -> QueueStatus:
    serving = sum(1 for worker in workers if count.queue in worker.queues and not worker.draining)
    into, out = count.in_per_s, count.out_per_s
    known = into is not None and out is not None
    load = Load(
        count.queue,
        count.ready,
        serving,
        oldest=count.oldest_ready,
        in_per_s=into,
        out_per_s=out,
        slope_per_s=count.slope_per_s,
        wait_target=pressure.wait_target,
        paused=count.paused,
        capped=capped is not None,
    )
    return QueueStatus(
        counts=count,
        owner=owner or None,
        workers=serving,
        rates_known=known,
        drain=drain_time(count.ready, into, out) if into is not None and out is not None else None,
        health=health(
            count.queue,
            depth=count.ready,
            running=count.running,
            workers=serving,
            paused=count.paused,
            oldest=count.oldest_ready,
            in_per_s=into,
            out_per_s=out,
            outlook=outlook(load, pressure.bound, capped=capped),
        ),
        pressure=pressure,
        pressed=pressure_text(pressure, count.ready, count.oldest_ready, now),
        late=late_text(pressure.wait_target, count.oldest_ready),
        full_in=full_in(count.ready, count.slope_per_s, pressure.bound),
        workers_needed=load.needed(),
        capped=capped,
    )
