"""What an App does by the clock: `every` and `cron` over a task, `schedule` at run time, and `tick` over rows.

Declaring opens nothing. A worker fires what is due; this module only says what that is.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import replace

from duly.client.draft import Draft
from duly.client.encoding import new_job
from duly.client.provider import OWN, connection_for
from duly.client.scheduled import Declared
from duly.client.sealing import alike
from duly.client.task import Task
from duly.client.ticks import Source, Tick
from duly.core.durations import Duration, parse_duration
from duly.core.errors import UsageError
from duly.core.registration import CatchUp, Overlap, Schedule, ScheduleRecord
from duly.core.schedule import checked, first_due

if TYPE_CHECKING:
    from duly.client.client import Client

N = TypeVar("N", bound=Callable[[], Any])
K = TypeVar("K", bound=Task[..., Any])


class Scheduling:
    """The part of `App` that schedules."""

    client: Client

    def every(
        self,
        interval: Duration,
        /,
        *,
        name: str | None = None,
        jitter: Duration | None = None,
        catch_up: CatchUp = "last",
        overlap: Overlap = "skip",
    ) -> Callable[[N], N]:
        """Enqueue a task again and again, as `@jobs.every("10m")` above `@jobs.task`; once in the whole fleet.

        The first time is one interval after a worker or `duly migrate` has first seen it; a restart changes nothing.

        Args:
            interval: from one due time to the next, at least "1s".
            name: of the schedule; the task's name unless given.
            jitter: let each job start up to this much later than it is due.
            catch_up: of due times that no worker saw: "last" runs one job for all, "skip" none, "all" one for each.
            overlap: while the job before waits or runs: "skip" the due time, "queue" it until then, or "allow" both.

        """
        schedule = _schedule(name, None, interval, "UTC", jitter, catch_up, overlap)
        return self._over_task(schedule, named=name is not None)

    def cron(
        self,
        expression: str,
        /,
        *,
        tz: str,
        name: str | None = None,
        jitter: Duration | None = None,
        catch_up: CatchUp = "last",
        overlap: Overlap = "skip",
    ) -> Callable[[N], N]:
        """Enqueue a task by a cron expression, as `@jobs.cron("0 9 * * 1-5", tz="Europe/Berlin")` above `@jobs.task`.

        A local time that the clock skips comes right after the gap, one that comes twice counts once; where minute or
        hour begins with `*`, the expression follows the clock instead. The other arguments are those of `every`.

        Args:
            expression: minute hour day-of-month month day-of-week, or @hourly, @daily, @weekly, @monthly, @yearly.
            tz: the time zone of the expression, as "Europe/Berlin" or "UTC".
            name: of the schedule; the task's name unless given.
            jitter: let each job start up to this much later than it is due.
            catch_up: of due times that no worker saw: "last" runs one job for all, "skip" none, "all" one for each.
            overlap: while the job before waits or runs: "skip" the due time, "queue" it until then, or "allow" both.

        """
        schedule = _schedule(name, expression, None, tz, jitter, catch_up, overlap)
        return self._over_task(schedule, named=name is not None)

    def tick(
        self, interval: Duration, /, *, source: Source, key: str, name: str | None = None
    ) -> Callable[[K], K]:
        """Make jobs of rows that are ready, as `@jobs.tick("10s", source="select id from …", key="order:{id}")`.

        At each interval one worker reads the source and enqueues one job for each row, with an idempotency key: a row
        that was seen before makes no second job. Reading and enqueueing are one transaction of duly's database.

        Args:
            interval: from one look to the next, at least "1s".
            source: SQL for duly's own database, or a function that takes its connection and returns rows: mappings,
                named tuples or tuples. A row holds the task's arguments, by name or in their order.
            key: names the work of a row, as "order:{order_id}": a template over the task's parameters.
            name: of the schedule; the task's name unless given.

        """
        schedule = _schedule(name, None, interval, "UTC", None, "last", "allow")

        def declare(task: K) -> K:
            if not isinstance(task, Task):
                raise UsageError(f"{task!r:.80} is no task; write @jobs.tick(…) above @jobs.task")
            self._refuse_strangers(task)
            tick = Tick(task, source, key)
            self.client.registry.add_schedule(Declared(_named(schedule, task, name is not None), task, tick))
            return task

        return declare

    def schedule(
        self,
        name: str,
        draft: Draft[Any],
        /,
        *,
        cron: str | None = None,
        every: Duration | None = None,
        tz: str | None = None,
        jitter: Duration | None = None,
        catch_up: CatchUp = "last",
        overlap: Overlap = "skip",
    ) -> ScheduleRecord:
        """Store a schedule at run time, or replace the one of this name; blocks. The same again changes nothing.

        It belongs to the database, not to a release: it goes on until `jobs.operate.remove_schedule(name)`. A changed
        one goes on from its next due time; what was due before does not fire.
        """
        self.client.refuse_blocking("jobs.schedule()", "await jobs.aschedule()")
        connection_for(self.client, OWN)
        wanted = self._stored(name, draft, _schedule(name, cron, every, tz, jitter, catch_up, overlap))
        return self.client.call(self._put, wanted)

    async def aschedule(
        self,
        name: str,
        draft: Draft[Any],
        /,
        *,
        cron: str | None = None,
        every: Duration | None = None,
        tz: str | None = None,
        jitter: Duration | None = None,
        catch_up: CatchUp = "last",
        overlap: Overlap = "skip",
    ) -> ScheduleRecord:
        """As `schedule`, without blocking the loop."""
        connection_for(self.client, OWN)
        wanted = self._stored(name, draft, _schedule(name, cron, every, tz, jitter, catch_up, overlap))
        return await self.client.acall(self._put, wanted)

    def _over_task(self, schedule: Schedule, *, named: bool) -> Callable[[N], N]:
        def declare(task: N) -> N:
            if not isinstance(task, Task):
                raise UsageError(
                    f"{task!r:.80} is no task, so that nothing can be enqueued; write @jobs.task directly above the "
                    "function and the schedule above that"
                )
            self._refuse_strangers(task)
            _refuse_arguments(task)
            self.client.registry.add_schedule(Declared(_named(schedule, task, named), task, None))
            return task

        return declare

    def _refuse_strangers(self, task: Task[..., Any]) -> None:
        # Its jobs would lie in this App's store, where no worker knows the task.
        if task.draft().client.registry is not self.client.registry:
            raise UsageError(
                f"task {task.name!r} ({task.handler.place}) belongs to another App; schedule it with the App that "
                "declares it"
            )

    def _stored(self, name: str, draft: Draft[Any], schedule: Schedule) -> Schedule:
        if not isinstance(draft, Draft):
            raise UsageError(f"schedule {name!r} takes a draft, not {draft!r:.80}; write task.draft(…)")
        if draft.client.registry is not self.client.registry:
            raise UsageError(f"the draft {draft} of schedule {name!r} belongs to another App")
        if name in self.client.registry.schedules:
            raise UsageError(
                f"schedule {name!r} is declared in code for {self.client.registry.schedules[name].task.name!r}; "
                "take another name"
            )
        _refuse_moments(name, draft)
        equal = alike.set(True)
        try:
            job = new_job(draft, None, self.client)
        finally:
            alike.reset(equal)
        if job.blobs:
            raise UsageError(
                f"the draft of schedule {name!r} holds a Blob, which is kept only as long as a job has it; give the "
                "task what it needs to find the content"
            )
        return replace(schedule, job=job)

    def _put(self, schedule: Schedule) -> ScheduleRecord:
        store = self.client.store
        return store.schedules.put(schedule, first_due(schedule, store.inspection.now()))


def _schedule(
    name: str | None,
    cron: str | None,
    every: Duration | None,
    tz: str | None,
    jitter: Duration | None,
    catch_up: CatchUp,
    overlap: Overlap,
) -> Schedule:
    if cron is not None and tz is None:
        raise UsageError(f"cron={cron!r} needs its time zone; write tz='Europe/Berlin' or tz='UTC'")
    if every is not None and tz not in {None, "UTC"}:
        raise UsageError(f"every={every!r} has no time zone; leave tz={tz!r} out, or write cron=…")
    return checked(
        Schedule(
            # A task's name may be longer than a schedule's, which is checked once it is known.
            name="unnamed" if name is None else name,
            every=None if every is None else parse_duration(every, "every", positive=True),
            cron=cron,
            tz="UTC" if tz is None else tz,
            jitter=timedelta(0) if jitter is None else parse_duration(jitter, "jitter"),
            catch_up=catch_up,
            overlap=overlap,
        )
    )


def _named(schedule: Schedule, task: Task[..., Any], named: bool) -> Schedule:
    return schedule if named else checked(replace(schedule, name=task.name))


def _refuse_arguments(task: Task[..., Any]) -> None:
    needed = [
        parameter.name
        for parameter in task.handler.callers_signature().parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind not in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD}
    ]
    if needed:
        raise UsageError(
            f"task {task.name!r} ({task.handler.place}) needs {', '.join(needed)}, which nobody gives it at a due "
            f"time; give a default, or write jobs.schedule('{task.name}', {task.name}.draft(…), cron=…, tz=…)"
        )


def _refuse_moments(name: str, draft: Draft[Any]) -> None:
    options = draft.options
    if options.connection is not None or options.client is not None:
        raise UsageError(
            f"the draft of schedule {name!r} goes elsewhere; leave out using(connection=…) and using(app=…)"
        )
    if options.delay is not None or options.run_at is not None:
        raise UsageError(
            f"the draft of schedule {name!r} has a due time of its own; leave out delay and run_at"
        )
    if options.idempotency_key is not None:
        raise UsageError(
            f"the draft of schedule {name!r} has an idempotency key, so that only its first job would ever be "
            "stored; use unique_key to have one at a time"
        )
