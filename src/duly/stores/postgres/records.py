"""Rows as the values that readers get. Reads nothing itself."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from duly.core.filters import Filter
from duly.core.fingerprint import ErrorRecord
from duly.core.job import AttemptRecord, Counters, Incarnation, JobId, JobRecord, Progress
from duly.core.lifecycle import Event, State
from duly.core.why import JobFacts
from duly.stores.postgres.columns import utc, utc_or_none
from duly.stores.protocol import DeadGroup, OperationRecord, Pause, WorkerRecord

Row = Sequence[Any]


def job_record(row: Row) -> JobRecord:
    """A row of lookup_jobs.sql."""
    id, state, queue, task, tenant, priority, tags, correlation_id, args, *rest = row
    failed, lost, interrupted, snoozed, *rest = rest
    run, attempts, timeout, enqueued_at, expires_at, run_at, started_at, deadline, finished_at, *rest = rest
    incarnation, reason, note, result, *rest = rest
    error, (progress_run, done, of, progress_note, wished, *bound) = _error(rest[:4]), rest[4:]
    trigger, ordering_key, waits_for = bound
    return JobRecord(
        id=JobId(id),
        state=State(state),
        queue=queue,
        task=task,
        tenant=tenant,
        priority=priority,
        tags=tuple(tags or ()),
        correlation_id=correlation_id or str(id),
        args=args,
        counters=Counters(failed, lost, interrupted, snoozed),
        run=run,
        attempts=attempts,
        timeout=timeout,
        enqueued_at=utc(enqueued_at),
        expires_at=utc_or_none(expires_at),
        run_at=utc_or_none(run_at),
        started_at=utc_or_none(started_at),
        deadline=utc_or_none(deadline),
        finished_at=utc_or_none(finished_at),
        incarnation=None if incarnation is None else Incarnation(incarnation),
        reason=reason,
        note=note,
        result=result,
        error=error,
        progress=None if done is None else Progress(JobId(id), progress_run, done, of, progress_note),
        cancel_wished=wished,
        trigger=trigger,
        ordering_key=ordering_key,
        waits_for=waits_for,
    )


def attempt_record(row: Row) -> AttemptRecord:
    run, event, incarnation, started_at, ended_at, reason, *error = row
    return AttemptRecord(
        run=run,
        event=Event(event),
        incarnation=Incarnation(incarnation),
        started_at=utc_or_none(started_at),
        ended_at=utc(ended_at),
        reason=reason,
        error=_error(error),
    )


def worker_record(row: Row) -> WorkerRecord:
    incarnation, host, pid, supervisor, queues, slots, running, started_at, *rest = row
    beat_age, progress_age, version, draining = rest
    return WorkerRecord(
        incarnation=Incarnation(incarnation),
        host=host,
        pid=pid,
        supervisor=supervisor,
        queues=tuple(queues),
        slots=slots,
        running=running,
        started_at=utc(started_at),
        beat_age=timedelta(seconds=beat_age),
        progress_age=timedelta(seconds=progress_age),
        version=version,
        draining=draining,
    )


def dead_group(row: Row) -> DeadGroup:
    fingerprint, queue, task, count, first, last, error, edited = row
    return DeadGroup(fingerprint, queue, task, count, utc(first), utc(last), error, edited)


def pause_record(row: Row) -> Pause:
    target, until, by, reason, at = row
    return Pause(target, utc_or_none(until), by, reason, utc(at))


def operation_record(row: Row) -> OperationRecord:
    id, verb, filter, state, rate, priority, done, skipped, total, *rest = row
    by, reason, created_at, ended_at, cursor, upto = rest
    return OperationRecord(
        id=id,
        verb=verb,
        filter=Filter.from_json(filter),
        state=state,
        rate=rate,
        priority=priority,
        done=done,
        skipped=skipped,
        total=total,
        by=by,
        reason=reason,
        created_at=utc(created_at),
        ended_at=utc_or_none(ended_at),
        cursor=cursor,
        upto=upto,
    )


def _error(row: Row) -> ErrorRecord | None:
    kind, message, traceback, fingerprint = row
    if kind is None:
        return None
    return ErrorRecord(kind, message or "", traceback or "", fingerprint or "")


def job_facts(row: Row) -> JobFacts:
    """A row of read_job_facts.sql."""
    *job, ahead, serving, knowing, head, head_state, paused, before, limits, names, ids = row
    return JobFacts(
        job_record(tuple(job)),
        ahead,
        serving,
        knowing,
        None if head is None else JobId(head),
        None if head_state is None else State(head_state),
        paused,
        before,
        tuple(limits),
        tuple(zip(names, map(JobId, ids), strict=True)),
    )
