"""Rows as the values that readers get. Reads nothing itself."""

import json

from duly.core.filters import Filter
from duly.core.fingerprint import ErrorRecord
from duly.core.job import AttemptRecord, Counters, Incarnation, JobId, JobRecord, Progress
from duly.core.lifecycle import Event, State
from duly.stores.protocol import OperationRecord, Pause, WorkerRecord
from duly.stores.sqlite.session import Row
from duly.stores.sqlite.times import MICROSECOND, from_micros, maybe_duration, maybe_from_micros


def job_of(row: Row) -> JobRecord:
    """From a row of `select_job_records`."""
    (id, state, queue, task, tenant, priority, tags, correlation_id, args, *rest) = row
    (failed, lost, interrupted, snoozed, run, attempts, timeout, enqueued_at, expires_at, *rest) = rest
    (run_at, started_at, deadline, finished_at, incarnation, reason, note, result, *rest) = rest
    error, (progress_run, done, of, progress_note, wished, trigger, *rest) = error_of(rest[:4]), rest[4:]
    ordering_key, waits_for = rest
    return JobRecord(
        id=JobId(id),
        state=State(state),
        queue=queue,
        task=task,
        tenant=tenant,
        priority=priority,
        tags=tuple(json.loads(tags)) if tags else (),
        correlation_id=correlation_id or str(id),
        args=args,
        counters=Counters(failed, lost, interrupted, snoozed),
        run=run,
        attempts=attempts,
        timeout=maybe_duration(timeout),
        enqueued_at=from_micros(enqueued_at),
        expires_at=maybe_from_micros(expires_at),
        run_at=maybe_from_micros(run_at),
        started_at=maybe_from_micros(started_at),
        deadline=maybe_from_micros(deadline),
        finished_at=maybe_from_micros(finished_at),
        incarnation=None if incarnation is None else Incarnation(incarnation),
        reason=reason,
        note=note,
        result=result,
        error=error,
        progress=None if done is None else Progress(JobId(id), progress_run, done, of, progress_note),
        cancel_wished=bool(wished),
        trigger=trigger,
        ordering_key=ordering_key,
        waits_for=waits_for,
    )


def error_of(row: list[str | None]) -> ErrorRecord | None:
    kind, message, traceback, fingerprint = row
    if kind is None:
        return None
    return ErrorRecord(kind, message or "", traceback or "", fingerprint or "")


def attempt_of(row: Row) -> AttemptRecord:
    run, event, incarnation, started_at, ended_at, reason, *error = row
    return AttemptRecord(
        run=run,
        event=Event(event),
        incarnation=Incarnation(incarnation),
        started_at=maybe_from_micros(started_at),
        ended_at=from_micros(ended_at),
        reason=reason,
        error=error_of(error),
    )


def worker_of(row: Row, now: int) -> WorkerRecord:
    (incarnation, host, pid, supervisor, queues, slots, running, started_at, beat_at, progress_at, *rest) = (
        row
    )
    version, draining = rest
    return WorkerRecord(
        incarnation=Incarnation(incarnation),
        host=host,
        pid=pid,
        supervisor=supervisor,
        queues=tuple(json.loads(queues)),
        slots=slots,
        running=running,
        started_at=from_micros(started_at),
        beat_age=(now - beat_at) * MICROSECOND,
        progress_age=None if progress_at is None else (now - progress_at) * MICROSECOND,
        version=version,
        draining=bool(draining),
    )


def pause_of(row: Row) -> Pause:
    target, until, by, reason, at = row
    return Pause(target, maybe_from_micros(until), by, reason, from_micros(at))


def operation_of(row: Row) -> OperationRecord:
    (id, verb, filter, state, rate, priority, done, skipped, total, by, reason, *rest) = row
    created_at, ended_at, cursor, upto = rest
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
        created_at=from_micros(created_at),
        ended_at=maybe_from_micros(ended_at),
        cursor=cursor,
        upto=upto,
    )
