"""The verbs of a person: cancel, pause, run again, delete, each with who and why.

Acts through the store's operator protocol. A bulk act becomes a stored operation that workers carry out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, Final

import msgspec

from duly.client import schedule_acts, selection
from duly.client.alert_acts import AlertActs
from duly.client.authorship import reason_given as _reason
from duly.client.identity import AnyJob, job_id
from duly.client.key_acts import KeyActs
from duly.client.options import aware, urgency, whole_number
from duly.client.provider import OWN
from duly.client.selection import Verb
from duly.client.token_acts import TokenActs
from duly.client.triage_acts import TriageActs
from duly.client.twins import blocking, twin
from duly.core.defaults import BULK_ACT, ENQUEUE_BATCH, MAX_PRIORITY, PRIORITY
from duly.core.durations import Duration, parse_duration, parse_rate
from duly.core.errors import NotFound, UsageError
from duly.core.filters import Filter
from duly.core.job import Incarnation, JobId, JobRecord
from duly.core.lifecycle import State
from duly.core.operating import RedriveOutlook
from duly.stores.protocol import OperationRecord, Pause
from duly.telemetry.moves import JobsMoved

Jobs = AnyJob | Iterable[AnyJob] | Filter
"""One job, several, or all that a filter means."""

BEHIND: Final = 100
"""A bulk redrive stands behind today's work: at the priority of its own jobs and so much."""


class Act(msgspec.Struct, frozen=True):
    """What one act did, or in a dry run would do."""

    verb: str
    matched: int
    """Jobs that were meant and are there: an id that no job has counts for nothing."""
    moved: tuple[JobId, ...] = ()
    """Jobs that really changed; running ones that were asked to stop are among them."""
    asked: tuple[JobId, ...] = ()
    """Running jobs that were asked to stop; they end as cancelled when their attempt does."""
    operation: OperationRecord | None = None
    """Set when the act was too large to do at once: workers carry it out."""
    dry_run: bool = False
    outlook: RedriveOutlook | None = None
    """Of a redrive of dead letters by a filter without `where`, in a dry run and where it became an operation."""


class Operate(AlertActs, TokenActs, TriageActs, KeyActs):
    """`App.operate`. Every verb names its author: DULY_ACTOR, else user@host. Blocks; each has an `a` twin."""

    @blocking
    def cancel(
        self,
        jobs: Jobs,
        *,
        reason: str = "",
        rate: str | None = None,
        first: int | None = None,
        dry_run: bool = False,
        connection: Any = None,
    ) -> Act:
        """scheduled, ready, blocked -> cancelled; a running job is asked to stop and cancelled at its attempt's end.

        More than 100 jobs need a rate, as "20/s" or "max", and become an operation. With a connection, which takes
        jobs and no filter, all of it belongs to the transaction on it: rolled back, nobody was asked.
        """
        if connection is None or connection is OWN or dry_run:
            return self._bulk("cancel", jobs, reason, rate, first, None, dry_run)
        ids, said = self._together(jobs, reason, rate, first)
        store, by = self._client.store, self.actor()
        found = [store.cancel_on(connection, part, by, said) for part in _parts(ids)]
        left = [store.lookup_on(connection, part) for part in _parts(_unmoved(ids, found))]
        return _cancelled(_count(left), found)

    async def acancel(
        self,
        jobs: Jobs,
        *,
        reason: str = "",
        rate: str | None = None,
        first: int | None = None,
        dry_run: bool = False,
        connection: Any = None,
    ) -> Act:
        """As `cancel`, for async code and async connections."""
        if connection is None or connection is OWN or dry_run:
            return await self._client.acall(self._bulk, "cancel", jobs, reason, rate, first, None, dry_run)
        ids, said = self._together(jobs, reason, rate, first)
        by = self.actor()
        with self._client.reaching():
            store = self._client.store
            found = [await store.acancel_on(connection, part, by, said) for part in _parts(ids)]
            left = [await store.alookup_on(connection, part) for part in _parts(_unmoved(ids, found))]
        return _cancelled(_count(left), found)

    @blocking
    def redrive(
        self,
        jobs: Jobs,
        *,
        reason: str = "",
        rate: str | None = None,
        priority: int | None = None,
        first: int | None = None,
        dry_run: bool = False,
    ) -> Act:
        """dead, cancelled, skipped -> ready with a new budget of attempts; asked twice, a job runs again once.

        More than 100 jobs need a rate and become an operation; it stands behind today's work (their own priority + 100)
        unless a priority is given. `first` takes only so many, the oldest. One that was edited stays.
        """
        return self._bulk("redrive", jobs, reason, rate, first, priority, dry_run)

    @blocking
    def purge(
        self,
        jobs: Jobs,
        *,
        reason: str = "",
        rate: str | None = None,
        first: int | None = None,
        dry_run: bool = False,
    ) -> Act:
        """Delete dead letters for good."""
        return self._bulk("purge", jobs, reason, rate, first, None, dry_run)

    @blocking
    def run_now(self, jobs: AnyJob | Iterable[AnyJob], *, reason: str = "") -> Act:
        """scheduled -> ready; a ready job goes to the tail of its lane again."""
        ids, said = self._listed("run_now", jobs, reason)
        store, by = self._client.store.operator, self.actor()
        return self._acted("run_now", ids, _chunked(ids, lambda part: store.run_now(part, by, said)))

    @blocking
    def run_at(self, jobs: AnyJob | Iterable[AnyJob], at: datetime, *, reason: str = "") -> Act:
        """ready, scheduled -> scheduled at this moment, given with its time zone."""
        moment = aware(at, "at")
        ids, said = self._listed("run_at", jobs, reason)
        store, by = self._client.store.operator, self.actor()
        return self._acted("run_at", ids, _chunked(ids, lambda part: store.run_at(part, moment, by, said)))

    @blocking
    def reprioritise(self, jobs: AnyJob | Iterable[AnyJob], priority: int, *, reason: str = "") -> Act:
        """Give waiting jobs another priority; lower is more urgent."""
        level = urgency(priority)
        ids, said = self._listed("reprioritise", jobs, reason)
        store, by = self._client.store.operator, self.actor()
        moved = _chunked(ids, lambda part: store.reprioritise(part, level, by, said))
        return self._acted("reprioritise", ids, moved)

    @blocking
    def pause(self, target: str, *, lasting: Duration | None = None, reason: str = "") -> Pause:
        """Start no more jobs of a queue (`"mail"`) or a task (`"task:send"`); what runs, ends.

        `lasting` ends the pause by itself; without it, it lasts until `resume`.
        """
        until = None if lasting is None else parse_duration(lasting, "lasting", positive=True)
        return self._client.store.operator.pause(self._target(target), until, self.actor(), _reason(reason))

    @blocking
    def resume(self, target: str, *, reason: str = "") -> bool:
        """Start jobs again; False when it was not paused."""
        return self._client.store.operator.resume(self._target(target), self.actor(), _reason(reason))

    @blocking
    def pause_operation(self, id: int, *, reason: str = "") -> OperationRecord:
        """Hold a running operation; nothing it did is undone. NotFound when there is none or it has ended."""
        return self._operation(id, "paused", reason)

    @blocking
    def resume_operation(self, id: int, *, reason: str = "") -> OperationRecord:
        """Let a paused operation go on."""
        return self._operation(id, "running", reason)

    @blocking
    def cancel_operation(self, id: int, *, reason: str = "") -> OperationRecord:
        """End an operation; nothing it did is undone."""
        return self._operation(id, "cancelled", reason)

    @blocking
    def drain_worker(self, incarnation: int, *, reason: str = "") -> None:
        """Ask one worker process to claim no more and to end when its jobs have. NotFound when it is gone."""
        if not self._client.store.operator.drain_worker(
            Incarnation(incarnation), self.actor(), _reason(reason)
        ):
            raise NotFound(
                f"no worker {incarnation}; `duly workers list` shows the live ones",
                kind="worker",
                name=str(incarnation),
            )

    @blocking
    def run_schedule(self, name: str, *, reason: str = "") -> tuple[JobId, ...]:
        """- -> ready: enqueue now what a due time would; the schedule's rhythm stays. NotFound names the nearest one.

        A tick reads its source, so that it needs the App that declares it; rows that were seen give their jobs' ids.
        """
        return schedule_acts.run(self._client, name, self.actor(), _reason(reason)).ids

    @blocking
    def pause_schedule(self, name: str, *, reason: str = "") -> bool:
        """Let a schedule fire nothing until `resume_schedule`; False when it was paused already. Deploys keep it so."""
        return schedule_acts.pause(self._client, name, self.actor(), _reason(reason))

    @blocking
    def resume_schedule(self, name: str, *, reason: str = "") -> bool:
        """Fire again, from the next due time on; False when it was not paused. What was due meanwhile never fires."""
        return schedule_acts.resume(self._client, name, self.actor(), _reason(reason))

    @blocking
    def remove_schedule(self, name: str, *, reason: str = "") -> bool:
        """Forget a schedule; its jobs stay. One declared in code comes back with the next start of a worker."""
        return schedule_acts.remove(self._client, name, self.actor(), _reason(reason))

    aredrive = twin(redrive)
    apurge = twin(purge)
    arun_now = twin(run_now)
    arun_at = twin(run_at)
    areprioritise = twin(reprioritise)
    apause = twin(pause)
    aresume = twin(resume)
    apause_operation = twin(pause_operation)
    aresume_operation = twin(resume_operation)
    acancel_operation = twin(cancel_operation)
    adrain_worker = twin(drain_worker)
    arun_schedule = twin(run_schedule)
    apause_schedule = twin(pause_schedule)
    aresume_schedule = twin(resume_schedule)
    aremove_schedule = twin(remove_schedule)

    def _bulk(
        self,
        verb: Verb,
        jobs: Jobs,
        reason: str,
        rate: str | None,
        first: int | None,
        priority: int | None,
        dry_run: bool,
    ) -> Act:
        per_second = None if rate is None else parse_rate(rate)
        level = None if priority is None else urgency(priority)
        most = None if first is None else whole_number(first, "first")
        if not isinstance(jobs, Filter):
            ids = _ids(jobs, verb)[:most]
            if dry_run:
                return Act(verb, self._count(ids), dry_run=True)
            return self._act(verb, ids, _reason(reason, needed=len(ids) > 1), level)
        selection.check_states(verb, jobs)
        return self._filtered(verb, jobs, reason, (rate, per_second), most, level, dry_run)

    def _filtered(
        self,
        verb: Verb,
        jobs: Filter,
        reason: str,
        rate: tuple[str | None, float | None],
        first: int | None,
        priority: int | None,
        dry_run: bool,
    ) -> Act:
        inspection = self._client.store.inspection
        if dry_run:
            outlook = self._outlook(verb, jobs)
            total = selection.count(inspection, verb, jobs) if outlook is None else outlook.count
            return Act(verb, total if first is None else min(first, total), dry_run=True, outlook=outlook)
        if first is not None and first > BULK_ACT:
            raise UsageError(
                f"first={first} is a bulk act; try with at most {BULK_ACT}, then take all with rate='20/s'"
            )
        ids = list(selection.walk(inspection, verb, jobs, first or BULK_ACT + 1))
        said = _reason(reason, needed=len(ids) > 1)
        if len(ids) <= BULK_ACT:
            return self._act(verb, ids, said, priority)
        total = selection.count(inspection, verb, jobs)
        if rate[0] is None:
            raise UsageError(f"{total:,} jobs: say how fast, as rate='20/s'; rate='max' means at once")
        outlook = self._outlook(verb, jobs)
        if verb == "redrive" and priority is None:
            own = PRIORITY if outlook is None or outlook.priority is None else outlook.priority
            priority = min(own + BEHIND, MAX_PRIORITY)
        operation = self._client.store.operator.start_operation(
            verb, jobs, rate[1], priority, total, self.actor(), said
        )
        return Act(verb, total, operation=operation, outlook=outlook)

    def _outlook(self, verb: Verb, jobs: Filter) -> RedriveOutlook | None:
        known = verb == "redrive" and jobs.where is None and jobs.state in {None, State.dead}
        return self._client.store.triage.outlook(jobs) if known else None

    def _act(self, verb: Verb, ids: list[JobId], reason: str, priority: int | None) -> Act:
        store, by = self._client.store.operator, self.actor()
        match verb:
            case "redrive":
                moved = _chunked(ids, lambda part: store.redrive(part, by, reason, priority))
                return self._acted(verb, ids, moved)
            case "purge":
                return self._acted(verb, ids, _chunked(ids, lambda part: store.purge(part, by, reason)))
            case "cancel":
                found = [store.cancel(part, by, reason) for part in _parts(ids)]
                act = _cancelled(self._count(_unmoved(ids, found)), found)
                self._tell(verb, [*act.moved])
                return act

    def _tell(self, verb: str, moved: list[JobId]) -> None:
        if moved:
            self._client.tell(JobsMoved(verb, tuple(moved), self.actor()))

    def _acted(self, verb: str, ids: list[JobId], moved: list[JobId]) -> Act:
        self._tell(verb, moved)
        return Act(verb, len(moved) + self._count(_unmoved(ids, [moved])), tuple(moved))

    def _count(self, ids: list[JobId]) -> int:
        """How many of them are jobs."""
        return _count(self._client.store.inspection.lookup(part) for part in _parts(ids))

    def _listed(self, verb: str, jobs: object, reason: str) -> tuple[list[JobId], str]:
        ids = _ids(jobs, verb)
        return ids, _reason(reason, needed=len(ids) > 1)

    def _together(
        self, jobs: Jobs, reason: str, rate: str | None, first: int | None
    ) -> tuple[list[JobId], str]:
        """What is cancelled in one transaction of the caller's."""
        if rate is not None:
            raise UsageError("cancel(connection=…) happens at once, in your transaction; leave rate out")
        most = None if first is None else whole_number(first, "first")
        ids = _ids(jobs, "cancel(connection=…)")[:most]
        return ids, _reason(reason, needed=len(ids) > 1)

    def _operation(self, id: int, state: str, reason: str) -> OperationRecord:
        record = self._client.store.operator.set_operation(id, state, self.actor(), _reason(reason))
        if record is None:
            raise NotFound(
                f"no operation {id} is under way; `duly operations list` shows them",
                kind="operation",
                name=str(id),
            )
        return record


def _unmoved(ids: list[JobId], moved: Iterable[Iterable[JobId]]) -> list[JobId]:
    known = {id for part in moved for id in part}
    return [id for id in ids if id not in known]


def _count(found: Iterable[list[JobRecord | None]]) -> int:
    return sum(record is not None for part in found for record in part)


def _cancelled(stayed: int, found: list[dict[JobId, State]]) -> Act:
    """`stayed` jobs were meant, too, and are what they were."""
    states = {id: state for part in found for id, state in part.items()}
    asked = tuple(id for id, state in states.items() if state is State.running)
    return Act("cancel", len(states) + stayed, tuple(states), asked)


def _chunked(ids: list[JobId], act: Callable[[list[JobId]], list[JobId]]) -> list[JobId]:
    return [id for part in _parts(ids) for id in act(part)]


def _parts(ids: list[JobId]) -> list[list[JobId]]:
    return [ids[start : start + ENQUEUE_BATCH] for start in range(0, len(ids), ENQUEUE_BATCH)]


def _ids(jobs: object, verb: str) -> list[JobId]:
    if isinstance(jobs, Filter):
        raise UsageError(f"{verb} takes job ids; read them with inspect.jobs(…) first")
    if isinstance(jobs, Iterable) and not isinstance(jobs, str | bytes):
        return list(dict.fromkeys(job_id(job) for job in jobs))
    return [job_id(jobs)]
