"""Between values and the arrays of our functions: jobs and ends as columns, rows as exchanges.

Knows neither connections nor SQL texts.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final, TypeVar

from duly.core.job import ClaimedJob, Counters, Ended, JobId, NewJob, Token
from duly.core.names import key_of, suspect_key

T = TypeVar("T")

# Beyond this PostgreSQL's timestamps end; the functions cap moments at the year 9999.
_LONGEST: Final = 250_000 * 365.25 * 86_400

queue_key = lru_cache(maxsize=4096)(key_of)
lane_of_suspects = lru_cache(maxsize=4096)(suspect_key)


def seconds(span: timedelta | None) -> float | None:
    return None if span is None else max(-_LONGEST, min(span.total_seconds(), _LONGEST))


def column(values: Iterable[T | None]) -> list[T | None] | None:
    """An array, or None where it would hold nothing but NULLs: unnest fills those in."""
    listed = list(values)
    return listed if any(value is not None for value in listed) else None


def new_jobs(jobs: Sequence[NewJob], *, own: bool, now: datetime | None) -> dict[str, Any]:
    """The parameters of enqueue_jobs.sql."""
    holders: list[Token] = sorted({job.holder for job in jobs if job.holder is not None})
    return {
        "queues": [job.queue for job in jobs],
        "queue_keys": [queue_key(job.queue) for job in jobs],
        "suspect_keys": [lane_of_suspects(job.queue) for job in jobs],
        "tasks": [job.task for job in jobs],
        "task_keys": [queue_key(job.task) for job in jobs],
        "args": [job.args for job in jobs],
        "priorities": [job.priority for job in jobs],
        "delays": column(seconds(job.delay) for job in jobs),
        "run_at": column(job.run_at for job in jobs),
        "expires": column(seconds(job.expires) for job in jobs),
        "timeouts": column(seconds(job.timeout) for job in jobs),
        "attempts": column(job.attempts for job in jobs),
        "tenants": column(job.tenant or None for job in jobs),
        # Names hold no line ends.
        "tags": column("\n".join(job.tags) or None for job in jobs),
        "correlations": column(job.correlation_id for job in jobs),
        "holder_incarnations": [holder.incarnation for holder in holders],
        "holder_ids": [holder.job for holder in holders],
        "holder_runs": [holder.run for holder in holders],
        "own": own,
        "now": now,
    }


def ends(ended: Iterable[Ended]) -> dict[str, Any]:
    """The parameters of exchange_jobs.sql that describe ends, in the order in which rows are locked."""
    rows = [end for _, end in sorted({(end.id, end.run): end for end in ended}.items())]

    def of(value: Callable[[Ended], T | None]) -> list[T | None] | None:
        return column(map(value, rows))

    return {
        "ids": [end.id for end in rows],
        "runs": [end.run for end in rows],
        "events": [str(end.event) for end in rows],
        "states": [str(end.to) for end in rows],
        "failed": [end.counters.failed for end in rows],
        "lost": [end.counters.lost for end in rows],
        "interrupted": [end.counters.interrupted for end in rows],
        "snoozed": [end.counters.snoozed for end in rows],
        "delays": of(lambda end: seconds(end.delay)),
        "results": of(lambda end: end.result),
        "reasons": of(lambda end: end.reason),
        "notes": of(lambda end: end.note),
        "error_types": of(lambda end: end.error and end.error.type),
        "error_messages": of(lambda end: end.error and end.error.message),
        "tracebacks": of(lambda end: end.error and end.error.traceback),
        "fingerprints": of(lambda end: end.error and end.error.fingerprint),
        "elapsed": of(lambda end: seconds(end.elapsed)),
    }


NO_ENDS: Final = ends(())
NO_CLAIM: Final[dict[str, Any]] = {
    "queues": [],
    "lanes": [],
    "caps": [],
    "sweeps": [],
    "most": 0,
    "unparked": [],
    "jump_lanes": [],
    "jump_from": [],
    "jump_pos": [],
    "jump_to": [],
}


def claimed_job(row: Sequence[Any]) -> ClaimedJob:
    """A row of kind `claimed`."""
    _, _, id, run, priority, _, failed, lost, interrupted, snoozed, attempts, *rest = row
    timeout, enqueued_at, claimed_at, queue, task, tenant, tags, correlation_id, args = rest
    return ClaimedJob(
        id=JobId(id),
        run=run,
        queue=queue,
        task=task,
        args=args,
        priority=priority,
        tenant=tenant,
        tags=tuple(tags or ()),
        correlation_id=correlation_id or str(id),
        counters=Counters(failed, lost, interrupted, snoozed),
        attempts=attempts,
        timeout=timeout,
        enqueued_at=utc(enqueued_at),
        claimed_at=utc(claimed_at),
    )


def utc(moment: datetime) -> datetime:
    """In UTC, whatever time zone the connection has."""
    return moment.astimezone(UTC)


def utc_or_none(moment: datetime | None) -> datetime | None:
    return None if moment is None else moment.astimezone(UTC)
