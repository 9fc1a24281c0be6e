"""The JSON of the API as types: what is sent and what is answered. Made of the read model; asks nothing."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from duly.client.inspect import QueueStatus
from duly.client.operate import Act
from duly.client.triage_reads import GroupDetail, TriagedGroup
from duly.core.filters import Filter
from duly.core.fingerprint import ErrorRecord
from duly.core.job import AttemptRecord, JobRecord
from duly.core.lifecycle import FINAL, Event, Outcome, State
from duly.core.operating import DeadMark, RedriveOutlook, TriageState
from duly.core.secret import without_secrets
from duly.stores.protocol import OperationRecord, Pause

Id = Annotated[
    str, Meta(pattern="^[1-9][0-9]{0,18}$", description="A number as text: JavaScript rounds large ones.")
]
Reason = Annotated[str, Meta(max_length=2000, description="Why; whoever finds the act later will read it.")]
Page = Annotated[int, Meta(ge=1, le=200)]


class Problem(Struct, frozen=True, kw_only=True):
    """What went wrong and what to do, as RFC 9457 has it. Further members say more."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str | None = None


class Why(Struct, frozen=True, forbid_unknown_fields=True):
    """Of an act that needs nothing else."""

    reason: Reason = ""


class EnqueuedAnswer(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A job that is stored and will be run."""

    job_id: Id
    outcome: Outcome
    """duplicate: another job stands for it, by its unique key; job_id is that one's."""
    status_url: str
    ticket: str | None = None
    """What an end user may hold to follow the job, without a token."""
    ticket_url: str | None = None
    run_at: datetime | None = None
    """When it is due; absent: at once."""


class BatchAnswer(Struct, frozen=True):
    jobs: tuple[EnqueuedAnswer, ...]
    """In the order asked."""


class ErrorAnswer(Struct, frozen=True):
    type: str
    message: str
    fingerprint: str
    traceback: str


class ProgressAnswer(Struct, frozen=True):
    done: int
    of: int | None
    note: str | None


class AttemptAnswer(Struct, frozen=True, kw_only=True):
    run: int
    event: Event
    started_at: datetime | None
    ended_at: datetime
    reason: str | None
    error: ErrorAnswer | None


class JobAnswer(Struct, frozen=True, kw_only=True):
    """One job in whatever state."""

    id: Id
    state: State
    final: bool
    """Whether it will never change again by itself."""
    queue: str
    task: str
    tenant: str
    priority: int
    tags: tuple[str, ...]
    correlation_id: str
    args: Any
    """As stored; null where it is no JSON that can be read."""
    attempt: int
    """1 before and during the first one; failures and losses raise it."""
    failed: int
    lost: int
    snoozed: int
    enqueued_at: datetime
    run_at: datetime | None
    expires_at: datetime | None
    started_at: datetime | None
    deadline: datetime | None
    finished_at: datetime | None
    reason: str | None
    note: str | None
    result: Any
    error: ErrorAnswer | None
    progress: ProgressAnswer | None
    cancel_wished: bool
    ordering_key: str | None
    waits_for: str | None
    """While blocked: "task", "key", or the name of a limit."""


class JobDetailAnswer(JobAnswer, frozen=True, kw_only=True):
    """One job with every recorded attempt, oldest first."""

    attempts: tuple[AttemptAnswer, ...]


class JobPageAnswer(Struct, frozen=True):
    jobs: tuple[JobAnswer, ...]
    next: Id | None
    """Ask again with before=… to go on; null: nothing is left."""
    searched_back_to: datetime | None
    """Set when the time for one look was over: older jobs may match, too."""


class QueueAnswer(Struct, frozen=True, kw_only=True):
    """One queue at one moment."""

    queue: str
    owner: str | None
    ready: int
    scheduled: int
    blocked: int
    running: int
    dead: int
    workers: int
    paused: bool
    paused_until: datetime | None
    oldest_ready_s: float | None
    in_per_s: float | None
    out_per_s: float | None
    slope_per_s: float | None
    drain_s: float | None
    """Until nothing waits at the present rates; null: never, or not known."""
    wait_target_s: float | None
    max_depth: int | None
    refused: int
    """Within the last hour."""
    shed: int
    estimated: tuple[str, ...]
    """Which of the counts are estimates."""
    health: str


class QueuesAnswer(Struct, frozen=True):
    queues: tuple[QueueAnswer, ...]


class PauseAnswer(Struct, frozen=True):
    target: str
    until: datetime | None
    by: str
    reason: str
    at: datetime


class ResumeAnswer(Struct, frozen=True):
    resumed: bool
    """False when it was not paused."""


class DeadGroupAnswer(Struct, frozen=True, kw_only=True):
    fingerprint: str
    queue: str
    task: str
    count: int
    """Without those in whose place an edited job runs."""
    first: datetime
    last: datetime
    error: str
    owner: str | None
    """To whom it was assigned, else the queue's owner."""
    state: TriageState
    note: str
    by: str | None
    """Who marked it last; null: nobody yet."""
    at: datetime | None
    regressed_at: datetime | None
    """When one died although the group was fixed; only while it has not been marked again."""
    edited: int
    """Letters beside `count` in whose place an edited job runs."""


class DeadGroupsAnswer(Struct, frozen=True):
    groups: tuple[DeadGroupAnswer, ...]


class OutlookAnswer(Struct, frozen=True):
    """What a redrive would meet."""

    count: int
    oldest: datetime | None
    """When the first of them died."""
    priority: int | None
    """The least urgent of their own."""
    twins: int
    """So many have a unique key that a live job holds: they would stay dead while it does. Of one error's letters the
    10,000 latest are looked at."""


class DeadGroupDetailAnswer(Struct, frozen=True):
    """One error."""

    fingerprint: str
    groups: tuple[DeadGroupAnswer, ...]
    """One per queue and task."""
    outlook: OutlookAnswer
    latest: JobAnswer | None
    """The letter that died last; null for letters without an error."""


class DeadMarkAnswer(Struct, frozen=True):
    fingerprint: str
    queue: str
    task: str
    state: TriageState
    owner: str | None
    note: str
    by: str
    at: datetime


class DeadMarksAnswer(Struct, frozen=True):
    marks: tuple[DeadMarkAnswer, ...]


class EditedAnswer(Struct, frozen=True):
    job_id: Id
    """The dead letter, which stays."""
    successor_id: Id
    """The job that runs in its place."""


class FilterShape(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Which jobs are meant: all that fit every part given."""

    queue: str | None = None
    task: str | None = None
    tenant: str | None = None
    state: State | None = None
    tag: str | None = None
    correlation: str | None = None
    fingerprint: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    where: (
        Annotated[str, Meta(description='A comparison with an argument: "args.customer_id = 7".')] | None
    ) = None

    def filter(self) -> Filter:
        """UsageError for a part that cannot be meant."""
        return Filter(**{name: getattr(self, name) for name in FilterShape.__struct_fields__})


class OperationAnswer(Struct, frozen=True, kw_only=True):
    """A stored bulk act, which workers carry out."""

    id: Id
    verb: str
    filter: dict[str, str]
    state: str
    """running, paused, done or cancelled."""
    rate_per_s: float | None
    priority: int | None
    done: int
    skipped: int
    total: int
    by: str
    reason: str
    created_at: datetime
    ended_at: datetime | None


class OperationsAnswer(Struct, frozen=True):
    operations: tuple[OperationAnswer, ...]


class ActAnswer(Struct, frozen=True, kw_only=True):
    """What one act did, or in a dry run would do."""

    verb: str
    matched: int
    moved: tuple[Id, ...]
    asked: tuple[Id, ...]
    """Running jobs that were asked to stop."""
    operation: OperationAnswer | None
    dry_run: bool
    outlook: OutlookAnswer | None
    """Of a redrive of dead letters by a filter, in a dry run and where it became an operation."""


def seconds(span: timedelta | None) -> float | None:
    return None if span is None else round(span.total_seconds(), 3)


def error_answer(error: ErrorRecord | None) -> ErrorAnswer | None:
    return (
        None if error is None else ErrorAnswer(error.type, error.message, error.fingerprint, error.traceback)
    )


def job_fields(job: JobRecord) -> dict[str, Any]:
    """The members of a JobAnswer."""
    progress = job.progress
    return {
        "id": str(job.id),
        "state": job.state,
        "final": job.state in FINAL,
        "queue": job.queue,
        "task": job.task,
        "tenant": job.tenant,
        "priority": job.priority,
        "tags": job.tags,
        "correlation_id": job.correlation_id,
        "args": readable(job.args),
        "attempt": 1 + job.counters.failed + job.counters.lost,
        "failed": job.counters.failed,
        "lost": job.counters.lost,
        "snoozed": job.counters.snoozed,
        "enqueued_at": job.enqueued_at,
        "run_at": job.run_at,
        "expires_at": job.expires_at,
        "started_at": job.started_at,
        "deadline": job.deadline,
        "finished_at": job.finished_at,
        "reason": job.reason,
        "note": job.note,
        "result": readable(job.result),
        "error": error_answer(job.error),
        "progress": None if progress is None else ProgressAnswer(progress.done, progress.of, progress.note),
        "cancel_wished": job.cancel_wished,
        "ordering_key": job.ordering_key,
        "waits_for": job.waits_for,
    }


def job_answer(job: JobRecord) -> JobAnswer:
    return JobAnswer(**job_fields(job))


def detail_answer(job: JobRecord, attempts: tuple[AttemptRecord, ...]) -> JobDetailAnswer:
    told = tuple(
        AttemptAnswer(
            run=one.run,
            event=one.event,
            started_at=one.started_at,
            ended_at=one.ended_at,
            reason=one.reason,
            error=error_answer(one.error),
        )
        for one in attempts
    )
    return JobDetailAnswer(**job_fields(job), attempts=told)


def readable(data: bytes | None) -> object:
    """Stored JSON as it is; None where it is none, since it must not break the answer around it."""
    if data is None:
        return None
    return plain(without_secrets(data))


def plain(data: bytes) -> object:
    """As `readable`, with what is secret in it: for whoever runs the job."""
    try:
        # Validated and not rebuilt: numbers of any size come out as they went in.
        msgspec.json.decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
    return msgspec.Raw(data)


def queue_answer(status: QueueStatus) -> QueueAnswer:
    counts, pressure = status.counts, status.pressure
    return QueueAnswer(
        queue=counts.queue,
        owner=status.owner,
        ready=counts.ready,
        scheduled=counts.scheduled,
        blocked=counts.blocked,
        running=counts.running,
        dead=counts.dead,
        workers=status.workers,
        paused=counts.paused,
        paused_until=counts.paused_until,
        oldest_ready_s=seconds(counts.oldest_ready),
        in_per_s=counts.in_per_s,
        out_per_s=counts.out_per_s,
        slope_per_s=counts.slope_per_s,
        drain_s=seconds(status.drain),
        wait_target_s=seconds(pressure.wait_target),
        max_depth=None if pressure.bound is None else pressure.bound.max_depth,
        refused=pressure.refused,
        shed=pressure.shed,
        estimated=counts.estimated,
        health=status.health,
    )


def pause_answer(pause: Pause) -> PauseAnswer:
    return PauseAnswer(pause.target, pause.until, pause.by, pause.reason, pause.at)


def group_answer(group: TriagedGroup) -> DeadGroupAnswer:
    return DeadGroupAnswer(**{name: getattr(group, name) for name in DeadGroupAnswer.__struct_fields__})


def outlook_answer(outlook: RedriveOutlook | None) -> OutlookAnswer | None:
    if outlook is None:
        return None
    return OutlookAnswer(outlook.count, outlook.oldest, outlook.priority, outlook.twins)


def group_detail_answer(detail: GroupDetail) -> DeadGroupDetailAnswer:
    outlook = detail.outlook
    return DeadGroupDetailAnswer(
        detail.fingerprint,
        tuple(map(group_answer, detail.groups)),
        OutlookAnswer(outlook.count, outlook.oldest, outlook.priority, outlook.twins),
        None if detail.latest is None else job_answer(detail.latest),
    )


def mark_answer(mark: DeadMark) -> DeadMarkAnswer:
    return DeadMarkAnswer(**{name: getattr(mark, name) for name in DeadMarkAnswer.__struct_fields__})


def operation_answer(record: OperationRecord) -> OperationAnswer:
    return OperationAnswer(
        id=str(record.id),
        verb=record.verb,
        filter=record.filter.parts(),
        state=record.state,
        rate_per_s=record.rate,
        priority=record.priority,
        done=record.done,
        skipped=record.skipped,
        total=record.total,
        by=record.by,
        reason=record.reason,
        created_at=record.created_at,
        ended_at=record.ended_at,
    )


def act_answer(act: Act) -> ActAnswer:
    return ActAnswer(
        verb=act.verb,
        matched=act.matched,
        moved=tuple(map(str, act.moved)),
        asked=tuple(map(str, act.asked)),
        operation=None if act.operation is None else operation_answer(act.operation),
        dry_run=act.dry_run,
        outlook=outlook_answer(act.outlook),
    )
