"""What can be done in a caller's transaction: each as one statement, its parameters, and what its rows mean.

Runs nothing and knows no connection, so that any kind of connection may carry a call. Parameters are named (%(name)s)
and cast to their types in the statement.
"""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, Generic, NamedTuple, TypeVar

from duly.core.batch import BatchAct, CloseBatch, OpenBatch
from duly.core.errors import KeyReused, LeaseLost
from duly.core.job import Ended, Incarnation, JobId, JobRecord, NewJob, Stored
from duly.core.lifecycle import Outcome, State
from duly.stores.batches import batch_refused
from duly.stores.postgres import columns, records, specs
from duly.stores.postgres.arrays import Blobs, words

T = TypeVar("T")
Row = Sequence[Any]


class Call(NamedTuple, Generic[T]):
    """One statement, ready to run."""

    name: str
    """Of queries/NAME.sql."""
    parameters: dict[str, Any]
    read: Callable[[Sequence[Row]], T]
    """What the rows mean; may raise an error of ours, after which the transaction is still usable."""


def enqueueing(
    jobs: Sequence[NewJob], *, own: bool, now: datetime | None, first: int = 0
) -> Call[list[Stored]]:
    """Store jobs. `own`: on a connection of the store's, so that it may lock as it likes; `first` is the place of the
    first of them in the caller's call, for errors."""
    if (alike := columns.alike(jobs, now=now)) is not None:
        name = "enqueue_one_job" if len(jobs) == 1 else "enqueue_alike_jobs"
        return Call(name, alike, _new)
    if len(jobs) == 1 and (keyed := columns.keyed(jobs[0], own=own, now=now)) is not None:
        return Call("enqueue_keyed_job", keyed, lambda rows: _keyed(rows, jobs, first))
    if not any(specs.is_rich(job) for job in jobs):
        parameters = columns.new_jobs(jobs, own=own, now=now)
        return Call("enqueue_jobs", parameters, lambda rows: _stored(rows, jobs))
    if (among := columns.keyed_jobs(jobs, own=own, now=now)) is not None:
        return Call("enqueue_keyed_jobs", among, lambda rows: _keyed(rows, jobs, first))
    parameters = {
        "specs": specs.specs(jobs),
        "args": Blobs([job.args for job in jobs]),
        **columns.holders(jobs),
        "own": own,
        "now": now,
    }
    return Call("enqueue_rich_jobs", parameters, lambda rows: _keyed(rows, jobs, first))


def completing(incarnation: Incarnation, ended: Ended, *, now: datetime | None) -> Call[bool]:
    """Apply one end; False when its token is not live."""
    parameters = {
        "incarnation": incarnation,
        **columns.NO_COMPLETIONS,
        **columns.ends([ended]),
        **columns.NO_CLAIM,
        "own": False,
        "now": now,
    }
    return Call("exchange_jobs", parameters, lambda rows: not any(row[0] == "lost" for row in rows))


def cancelling(
    ids: Sequence[JobId], by: str, reason: str, *, now: datetime | None
) -> Call[dict[JobId, State]]:
    """Cancel what waits, wish it for what runs."""
    parameters = {"ids": words(sorted(set(ids))), "by": by, "reason": reason, "now": now}
    return Call(
        "cancel_jobs",
        parameters,
        lambda rows: {JobId(id): State.running if running else State.cancelled for id, running in rows},
    )


def looking_up(ids: Sequence[JobId]) -> Call[list[JobRecord | None]]:
    """Jobs in the order asked, None for those that are not there."""

    def read(rows: Sequence[Row]) -> list[JobRecord | None]:
        found = {record.id: record for record in map(records.job_record, rows)}
        return [found.get(id) for id in ids]

    return Call("lookup_jobs", {"ids": words(sorted(set(ids)))}, read)


def taking_once(digest: bytes, keep: timedelta, *, own: bool, now: datetime | None) -> Call[bool]:
    """True the first time within `keep`."""
    parameters = {"key": digest, "keep": columns.seconds(keep), "own": own, "now": now}
    return Call("take_once", parameters, _truth)


def advancing(name: str, expected: datetime, next_at: datetime, last_at: datetime, fired: int) -> Call[bool]:
    """Move a tick's schedule on; False when it is no longer due at `expected`."""
    parameters = {"name": name, "expected": expected, "next_at": next_at, "last_at": last_at, "fired": fired}
    return Call("advance_schedule", parameters, _truth)


def acting(act: BatchAct, *, whole: bool, now: datetime | None) -> Call[int]:
    """Make, close or cancel a batch, with `whole` also its members; its id."""
    if isinstance(act, OpenBatch):
        parameters: dict[str, Any] = {
            "name": act.name,
            "then": specs.whole_specs(act.then),
            "on_dead": specs.whole_specs(act.on_dead),
            "refs": specs.references((*act.then, *act.on_dead)),
            "parent": act.parent,
            "now": now,
        }

        def made(rows: Sequence[Row]) -> int:
            id, state = rows[0]
            if id is None:
                raise batch_refused(act.parent or 0, state or "missing")
            return int(id)

        return Call("open_batch", parameters, made)

    def done(rows: Sequence[Row]) -> int:
        if not rows[0][0]:
            raise batch_refused(act.id, "missing")
        return act.id

    if isinstance(act, CloseBatch):
        return Call("close_batch", {"id": act.id, "now": now}, done)
    parameters = {"id": act.id, "by": act.by, "reason": act.reason, "whole": whole, "now": now}
    return Call("cancel_batch", parameters, done)


def _truth(rows: Sequence[Row]) -> bool:
    return bool(rows[0][0])


def _new(rows: Sequence[Row]) -> list[Stored]:
    ids: JobId | list[JobId] = rows[0][0]
    return [Stored(id, Outcome.created) for id in (ids if isinstance(ids, list) else [ids])]


def _stored(rows: Sequence[Row], jobs: Sequence[NewJob]) -> list[Stored]:
    """LeaseLost when the function stored nothing because a holder is not live."""
    if len(rows) < len(jobs):
        raise _lease_lost(jobs)
    return [Stored(JobId(id), Outcome.created, columns.utc_or_none(run_at)) for id, run_at in rows]


def _keyed(rows: Sequence[Row], jobs: Sequence[NewJob], first: int) -> list[Stored]:
    """As `_stored`; KeyReused when the function stored nothing because of a key."""
    if not rows and jobs:
        raise _lease_lost(jobs)
    id, _, outcome, place = rows[0]
    if outcome.startswith("batch "):
        raise batch_refused(id, outcome.removeprefix("batch "))
    if outcome == "reused":
        owner = "another job of this call" if id is None else f"job {id}"
        raise KeyReused(
            f"the idempotency key of job {first + place} in this call was used before, for {owner} with other "
            "arguments; nothing was enqueued: give the new request a key of its own",
            job_id=id,
            position=first + place - 1,
        )
    return [
        Stored(JobId(id), Outcome(outcome), columns.utc_or_none(run_at)) for id, run_at, outcome, _ in rows
    ]


def _lease_lost(jobs: Sequence[NewJob]) -> LeaseLost:
    holder = next(job.holder for job in jobs if job.holder is not None)
    return LeaseLost(
        f"job {holder.job} is no longer held by this attempt; nothing was enqueued", job_id=holder.job
    )
