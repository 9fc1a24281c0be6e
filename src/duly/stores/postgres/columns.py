"""Between values and the arrays of our functions: jobs and ends as columns, rows as exchanges.

Knows neither connections nor SQL texts.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final, TypeVar

from duly.core.control import ordering_name
from duly.core.defaults import INLINE_PAYLOAD
from duly.core.job import ClaimedJob, Counters, Cursor, Ended, NewJob, Token
from duly.core.lifecycle import Event, State
from duly.core.names import key_of, suspect_key
from duly.stores.postgres.arrays import Blobs, Doubles, Longs, moments, texts, words

T = TypeVar("T")
A = TypeVar("A", str, Blobs)

_STEPS: Final = 32
_BATCH: Final = 128
_FOLLOWS: Final = 512
ADMITTED: Final = 1024
"""Bit of a claimed row's extras: it was set aside by the scan of its lane, and then let through."""

# Beyond this PostgreSQL's timestamps end; the functions cap moments at the year 9999.
_LONGEST: Final = 250_000 * 365.25 * 86_400

_SPECIAL: Final = (
    "delay", "run_at", "expires", "tags", "holder", "idempotency", "unique", "version", "then", "on_dead", "blobs",
    "ordering_key", "fair", "batch",
)  # fmt: skip
_special: Final = attrgetter(*_SPECIAL)
_KEYS: Final = frozenset({"tags", "unique", "ordering_key", "fair", "idempotency"})
_beside_keys: Final = attrgetter(*(name for name in _SPECIAL if name not in _KEYS))
_NOTHING_SPECIAL: Final = _special(NewJob("", "", b""))
_NOTHING_BESIDE: Final = _beside_keys(NewJob("", "", b""))
_kind: Final = attrgetter(
    "queue", "task", "priority", "timeout", "attempts", "tenant", "correlation_id", "trigger", *_SPECIAL
)

queue_key = lru_cache(maxsize=4096)(key_of)
lane_of_suspects = lru_cache(maxsize=4096)(suspect_key)


def seconds(span: timedelta | None) -> float | None:
    return None if span is None else max(-_LONGEST, min(span.total_seconds(), _LONGEST))


def filled(values: list[T | None], form: Callable[[list[T | None]], A]) -> A | None:
    """An array, or None where it would hold nothing but NULLs: unnest fills those in."""
    return None if values.count(None) == len(values) else form(values)


def spans(values: Iterable[timedelta | None]) -> str:
    """Seconds."""
    return words([seconds(value) for value in values])


def alike(jobs: Sequence[NewJob], *, now: datetime | None) -> dict[str, Any] | None:
    """The parameters of enqueue_one_job.sql or enqueue_alike_jobs.sql; None when these jobs are not for those."""
    job = jobs[0]
    if _special(job) != _NOTHING_SPECIAL:
        return None
    if len(jobs) > 1:
        kind = _kind(job)
        if [*map(_kind, jobs)].count(kind) < len(jobs):
            return None
    return _shared(job, job.args if len(jobs) == 1 else Blobs([job.args for job in jobs]), now)


def keyed(job: NewJob, *, own: bool, now: datetime | None) -> dict[str, Any] | None:
    """The parameters of enqueue_keyed_job.sql; None when this job has more than tags and these two keys."""
    if job.idempotency is not None or not _only_keys(job):
        return None
    unique, ordering = job.unique, job.ordering_key
    return {
        **_shared(job, job.args, now),
        "tags": texts(list(job.tags)) if job.tags else None,
        "unique": None if unique is None else unique.digest,
        "live": None if unique is None else unique.live,
        "replace": None if unique is None else unique.replace,
        "ordering_key": ordering,
        "ordering": _ordering(job),
        "own": own,
    }


def keyed_jobs(jobs: Sequence[NewJob], *, own: bool, now: datetime | None) -> dict[str, Any] | None:
    """The parameters of enqueue_keyed_jobs.sql; None when one of these jobs has more to it than tags and keys."""
    if not all(map(_only_keys, jobs)):
        return None
    unique = [job.unique for job in jobs]
    return {
        **_plain(jobs),
        "idempotency": filled([job.idempotency for job in jobs], Blobs),
        "unique": filled([None if key is None else key.digest for key in unique], Blobs),
        "live": filled([None if key is None else key.live for key in unique], words),
        "replace": filled([None if key is None else key.replace for key in unique], words),
        "ordering_keys": filled([job.ordering_key for job in jobs], texts),
        "orderings": filled([_ordering(job) for job in jobs], words),
        "own": own,
        "now": now,
    }


def _only_keys(job: NewJob) -> bool:
    """Whether it is ready at once, in a lane of its queue, and carries no jobs of its own."""
    return _beside_keys(job) == _NOTHING_BESIDE and not job.serialise and not (job.fair and job.tenant)


def _ordering(job: NewJob) -> int | None:
    if job.ordering_key is None:
        return None
    return key_of(ordering_name(job.queue, job.tenant, job.ordering_key))


def _shared(job: NewJob, args: bytes | Blobs, now: datetime | None) -> dict[str, Any]:
    return {
        "queue": job.queue,
        "queue_key": queue_key(job.queue),
        "suspect_key": lane_of_suspects(job.queue),
        "task": job.task,
        "task_key": queue_key(job.task),
        "args": args,
        "priority": job.priority,
        "timeout": seconds(job.timeout),
        "attempts": job.attempts,
        "tenant": job.tenant,
        "correlation": job.correlation_id,
        "trigger": job.trigger,
        "now": now,
    }


def new_jobs(jobs: Sequence[NewJob], *, own: bool, now: datetime | None) -> dict[str, Any]:
    """The parameters of enqueue_jobs.sql."""
    return {
        **_plain(jobs),
        "delays": filled([job.delay for job in jobs], spans),
        "run_at": filled([job.run_at for job in jobs], moments),
        "expires": filled([job.expires for job in jobs], spans),
        **holders(jobs),
        "own": own,
        "now": now,
    }


def _plain(jobs: Sequence[NewJob]) -> dict[str, Any]:
    return {
        "queues": texts([job.queue for job in jobs]),
        "queue_keys": words([queue_key(job.queue) for job in jobs]),
        "suspect_keys": words([lane_of_suspects(job.queue) for job in jobs]),
        "tasks": texts([job.task for job in jobs]),
        "task_keys": words([queue_key(job.task) for job in jobs]),
        "args": Blobs([job.args for job in jobs]),
        "priorities": words([job.priority for job in jobs]),
        "timeouts": filled([job.timeout for job in jobs], spans),
        "attempts": filled([job.attempts for job in jobs], words),
        "tenants": filled([job.tenant or None for job in jobs], texts),
        # Names hold no line ends.
        "tags": filled(["\n".join(job.tags) or None for job in jobs], texts),
        "correlations": filled([job.correlation_id for job in jobs], texts),
        "triggers": filled([job.trigger for job in jobs], texts),
    }


def holders(jobs: Sequence[NewJob]) -> dict[str, Any]:
    """The attempts that jobs are enqueued from."""
    tokens: list[Token] = sorted({job.holder for job in jobs if job.holder is not None})
    return {
        "holder_incarnations": words([token.incarnation for token in tokens]),
        "holder_ids": words([token.job for token in tokens]),
        "holder_runs": words([token.run for token in tokens]),
    }


def usual(end: Ended) -> bool:
    """Whether this end takes the quick way: the first run completed, and there is little to keep of it."""
    return (
        end.run == 1
        and end.event is Event.complete
        and end.to is State.completed
        and (end.result is None or len(end.result) <= INLINE_PAYLOAD)
        and end.counters == _NO_COUNTS
        and end.note is None
        and end.reason is None
    )


def completions(ended: Iterable[Ended]) -> dict[str, Any]:
    """The parameters of exchange_jobs.sql that describe usual ends, in the order in which rows are locked."""
    rows = [end for _, end in sorted({end.id: end for end in ended}.items())]
    results = [end.result for end in rows]
    return {
        "done_ids": Longs([end.id for end in rows]),
        "done_elapsed": Doubles(
            [None if end.elapsed is None else end.elapsed.total_seconds() for end in rows]
        ),
        "done_results": None if results.count(None) == len(results) else Blobs(results),
    }


def ends(ended: Iterable[Ended]) -> dict[str, Any]:
    """The parameters of exchange_jobs.sql that describe other ends, in the order in which rows are locked."""
    rows = [end for _, end in sorted({(end.id, end.run): end for end in ended}.items())]
    results = [end.result for end in rows]
    errors = [end.error for end in rows] if any(end.error for end in rows) else []
    return {
        "ids": words([end.id for end in rows]),
        "runs": words([end.run for end in rows]),
        "events": words([end.event for end in rows]),
        "states": words([end.to for end in rows]),
        "failed": _counts([end.counters.failed for end in rows]),
        "lost": _counts([end.counters.lost for end in rows]),
        "interrupted": _counts([end.counters.interrupted for end in rows]),
        "snoozed": _counts([end.counters.snoozed for end in rows]),
        "delays": filled([end.delay for end in rows], spans),
        "results": Blobs(results) if any(result is not None for result in results) else None,
        "reasons": filled([end.reason for end in rows], texts),
        "notes": filled([end.note for end in rows], texts),
        "error_types": filled([error.type if error else None for error in errors], texts),
        "error_messages": filled([error.message if error else None for error in errors], texts),
        "tracebacks": filled([error.traceback if error else None for error in errors], texts),
        "fingerprints": filled([error.fingerprint if error else None for error in errors], texts),
        "elapsed": filled([end.elapsed for end in rows], spans),
        **_cursors_of(rows),
    }


def _cursors_of(ended: Sequence[Ended]) -> dict[str, Any]:
    """Kept where the job may run again."""
    if not any(end.cursors for end in ended):
        return _NO_CURSORS
    return cursors(
        Cursor(end.id, end.run, name, position)
        for end in ended
        if end.to is not State.completed
        for name, position in end.cursors
    )


def cursors(told: Iterable[Cursor]) -> dict[str, Any]:
    """The latest word on each, in the order in which rows are locked."""
    rows = [told for _, told in sorted({(told.id, told.name): told for told in told}.items())]
    return {
        "cursor_ids": words([told.id for told in rows]),
        "cursor_runs": words([told.run for told in rows]),
        "cursor_names": texts([told.name for told in rows]),
        "cursor_positions": words([told.position for told in rows]),
    }


_NO_CURSORS: Final = cursors(())


def _counts(values: list[int]) -> str | None:
    """The functions take a missing counter as 0, which most are."""
    return words(values) if any(values) else None


_NO_COUNTS: Final = Counters()
NO_COMPLETIONS: Final[dict[str, Any]] = dict.fromkeys(completions(()))
NO_ENDS: Final[dict[str, Any]] = dict.fromkeys(ends(()))
NO_CLAIM: Final[dict[str, Any]] = {
    **dict.fromkeys(
        ("queues", "lanes", "caps", "sweeps", "unparked", "jump_lanes", "jump_from", "jump_pos", "jump_to")
    ),
    **dict.fromkeys(("fair", "reserved", "last", "rest", "given", "asked", "aged")),
    "most": 0,
    "chain": 1,
}


def in_order(rows: Sequence[Sequence[Any]]) -> Iterable[Sequence[Any]]:
    """The claimed rows of an exchange. Those that were set aside by a scan come behind its others: they go back into
    their places, each with its followers behind it."""
    if not any(row[0] is None and row[15] & ADMITTED for row in rows):
        return [row for row in rows if row[0] is None]
    ordered: list[Sequence[Any]] = []
    scan: list[tuple[tuple[int, int], Sequence[Any]]] = []
    over = False
    for row in rows:
        if row[0] is None:
            late = row[15] & (ADMITTED | _FOLLOWS)
            if over and not late:
                ordered += _sorted(scan)
                scan, over = [], False
            follows = row[15] & _FOLLOWS and scan
            scan.append((scan[-1][0] if follows else (row[4], row[5] if row[5] is not None else -1), row))
        elif row[0] in {"lane", "aged", "fair"}:
            over = True
    return ordered + _sorted(scan)


def _sorted(scan: list[tuple[tuple[int, int], Sequence[Any]]]) -> list[Sequence[Any]]:
    return [row for _, row in sorted(scan, key=lambda pair: pair[0])]


def claimed_job(row: Sequence[Any], queues: Sequence[str], claimed_at: datetime) -> ClaimedJob:
    """A row without a kind. `queues` are those of the request, in its order."""
    _, place, id, run, priority, _, counts, attempts, timeout, enqueued_at, task, tenant, tags, *rest = row
    correlation_id, args, extras, trigger, ordering_key = rest
    return ClaimedJob(
        id,
        run,
        queues[place - 1],
        task,
        args,
        priority,
        tenant or "",
        tuple(tags) if tags else (),
        correlation_id or str(id),
        Counters(*counts) if counts else _NO_COUNTS,
        attempts,
        timeout,
        utc(enqueued_at),
        claimed_at,
        trigger,
        extras & _STEPS != 0,
        ordering_key,
        extras & _FOLLOWS != 0,
        extras & _BATCH != 0,
    )


def utc(moment: datetime) -> datetime:
    """In UTC, whatever time zone the connection has."""
    return moment.astimezone(UTC)


def utc_or_none(moment: datetime | None) -> datetime | None:
    return None if moment is None else moment.astimezone(UTC)
