"""From drafts to stored jobs: one or many, in a transaction of the store's own or in the caller's.

Inside a handler a job inherits the correlation id and is stored only while that attempt is live.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from duly.client.blocking import loop_is_running
from duly.client.client import Client
from duly.client.draft import Draft
from duly.client.encoding import anew_job, new_job
from duly.client.enqueued import Enqueued
from duly.client.job import current
from duly.client.marking import marked, told
from duly.client.pressing import FREE, Verdict, apress, press
from duly.client.provider import connection_for
from duly.client.settings import without_password
from duly.core.defaults import ENQUEUE_BATCH
from duly.core.errors import DulyError, KeyReused, PayloadError, StoreUnreachable, UsageError
from duly.core.job import NewJob, Stored
from duly.core.lifecycle import Outcome
from duly.stores.faults import Transient
from duly.stores.room import room_of

__all__ = ["aenqueue_many", "aenqueue_one", "enqueue_many", "enqueue_one", "new_job"]

T = TypeVar("T")

_SLICE: Final = ENQUEUE_BATCH
# Together about five seconds: a server's restart, not an outage.
_TRIES: Final = 7
_FIRST_PAUSE: Final = 0.05


def enqueue_one(draft: Draft[T]) -> Enqueued[T]:
    """Store one job; blocks for one round trip."""
    client = draft.client
    if loop_is_running():
        name = draft.declaration.name
        client.refuse_blocking(f"{name}.enqueue()", f"await {name}.aenqueue()")
    connection = connection_for(client, draft.options.connection)
    job = new_job(draft, current.get())
    verdict = FREE if client.pressing.takes(job) else _press(client, [draft], [job], connection)
    try:
        stored = client.call(_store, client, connection, [job])
    except KeyReused as error:
        raise _named([draft], error) from None
    return _answer(client, draft, job, stored[0], verdict)


async def aenqueue_one(draft: Draft[T]) -> Enqueued[T]:
    """As `enqueue_one`, without blocking the loop."""
    client = draft.client
    connection = connection_for(client, draft.options.connection)
    job = await anew_job(draft, current.get())
    verdict = FREE if client.pressing.takes(job) else await _apress(client, [draft], [job], connection)
    try:
        stored = await _astore(client, connection, [job])
    except KeyReused as error:
        raise _named([draft], error) from None
    return _answer(client, draft, job, stored[0], verdict)


def enqueue_many(
    client: Client, drafts: Iterable[Draft[T]], connection: Any, *, batch: int | None = None
) -> list[Enqueued[T]]:
    """Store all or none, one round trip per 1,000; one answer per position. An empty iterable does nothing."""
    client.refuse_blocking("enqueue_many()", "await jobs.aenqueue_many()")
    kept: list[Draft[T]] = []
    jobs: list[NewJob] = []
    job = current.get()
    # All are checked before the store hears of the first, so that a generator holds no lock while it runs.
    for position, draft in enumerate(drafts):
        try:
            jobs.append(_joined(new_job(_own(draft, client), job, client), batch))
        except DulyError as error:
            raise _at(position, error) from error
        kept.append(draft)
    if not jobs:
        return []
    connection = connection_for(client, connection)
    verdict = FREE if client.pressing.idle else _press(client, kept, jobs, connection)
    try:
        stored = client.call(_store, client, connection, jobs)
    except KeyReused as error:
        raise _named(kept, error) from None
    return _answers(client, kept, jobs, stored, verdict)


async def aenqueue_many(
    client: Client, drafts: Iterable[Draft[T]], connection: Any, *, batch: int | None = None
) -> list[Enqueued[T]]:
    """As `enqueue_many`; the loop turns between slices of a thousand drafts."""
    kept: list[Draft[T]] = []
    jobs: list[NewJob] = []
    job = current.get()
    for position, draft in enumerate(drafts):
        try:
            jobs.append(_joined(await anew_job(_own(draft, client), job, client), batch))
        except DulyError as error:
            raise _at(position, error) from error
        kept.append(draft)
        if position % _SLICE == _SLICE - 1:
            await asyncio.sleep(0)
    if not jobs:
        return []
    connection = connection_for(client, connection)
    verdict = FREE if client.pressing.idle else await _apress(client, kept, jobs, connection)
    try:
        stored = await _astore(client, connection, jobs)
    except KeyReused as error:
        raise _named(kept, error) from None
    return _answers(client, kept, jobs, stored, verdict)


def _joined(job: NewJob, batch: int | None) -> NewJob:
    return job if batch is None else replace(job, batch=batch)


def _named(drafts: Sequence[Draft[Any]], error: KeyReused) -> KeyReused:
    """A store knows only the digest of a key; whoever wrote it wants to read it in the error."""
    draft = drafts[error.position]
    whose = "another draft of this call" if error.job_id is None else f"job {error.job_id}"
    return KeyReused(
        f"{draft.declaration.name}: idempotency_key={draft.options.idempotency_key!r} belongs to {whose}, which "
        "has other arguments; nothing was enqueued. Give the new request a key of its own",
        job_id=error.job_id,
        position=error.position,
    )


def _store(client: Client, connection: Any, jobs: list[NewJob]) -> list[Stored]:
    if client.tracer is None:
        stored = _write(client, connection, marked(jobs))
    else:
        with client.tracer.sending(jobs) as sending:
            stored = _write(client, connection, marked(jobs, sending.traceparent))
            sending.stored(stored)
    if client.details:
        told(client.tell, jobs, stored)
    return stored


def _write(client: Client, connection: Any, jobs: list[NewJob]) -> list[Stored]:
    if connection is not None:
        return client.store.enqueue_on(connection, jobs)
    try:
        return client.store.jobs.enqueue(jobs)
    except Transient as fault:
        if not fault.outcome_unknown:
            raise
        return _repeat(client, jobs, fault)


async def _astore(client: Client, connection: Any, jobs: list[NewJob]) -> list[Stored]:
    if connection is None:
        room = room_of(client.store)
        if room is None or jobs[0].holder is not None:
            return await client.acall(_store, client, None, jobs)
        # Waited for here: the threads of this client are few, and handlers need them to make the room.
        async with room.aplace(len(jobs)):
            return await client.acall(_store, client, None, jobs)
    if client.tracer is None:
        stored = await _awrite(client, connection, marked(jobs))
    else:
        with client.tracer.sending(jobs) as sending:
            stored = await _awrite(client, connection, marked(jobs, sending.traceparent))
            sending.stored(stored)
    if client.details:
        told(client.tell, jobs, stored)
    return stored


async def _awrite(client: Client, connection: Any, jobs: list[NewJob]) -> list[Stored]:
    with client.reaching():
        return await client.store.aenqueue_on(connection, jobs)


def _repeat(client: Client, jobs: list[NewJob], fault: Transient) -> list[Stored]:
    """The reply to an enqueue was lost. With an idempotency key each, storing them again stores nothing twice."""
    what = f"whether {_called(jobs)} stored is not known"
    where = without_password(client.settings.url)
    if any(job.idempotency is None for job in jobs):
        raise StoreUnreachable(
            f"{where}: {fault}; {what}: look for it before repeating, or write using(idempotency_key='…'), with which "
            "it is repeated safely and by itself"
        ) from fault
    pause = _FIRST_PAUSE
    for _ in range(_TRIES):
        time.sleep(pause * random.uniform(0.5, 1.0))
        pause *= 2
        try:
            return client.store.jobs.enqueue(jobs)
        except Transient as again:
            fault = again
    raise StoreUnreachable(
        f"{where}: {fault}; {what}: repeat it with the same idempotency key, which stores nothing twice"
    ) from fault


def _called(jobs: list[NewJob]) -> str:
    return f"the job {jobs[0].task} was" if len(jobs) == 1 else f"the {len(jobs)} jobs were"


def _own(draft: Draft[T], client: Client) -> Draft[T]:
    """The draft, if it is one that this client may store."""
    if not isinstance(draft, Draft):
        raise UsageError(f"{draft!r:.80} is no draft; write task.draft(…)")
    if draft.client.registry is not client.registry:
        raise UsageError(f"{draft} belongs to another App")
    if draft.options.client not in {None, client}:
        raise UsageError(f"{draft} is for another store; hand it to enqueue_many of its own app")
    if draft.options.connection is not None:
        raise UsageError(f"{draft} brings a connection of its own; hand it to enqueue_many(…, connection=…)")
    return draft


def _at(position: int, error: DulyError) -> DulyError:
    """The error of one draft among many."""
    text = f"draft {position} of enqueue_many: {error}; nothing was stored"
    return PayloadError(text, path=error.path) if isinstance(error, PayloadError) else type(error)(text)


def _press(client: Client, drafts: Sequence[Draft[Any]], jobs: Sequence[NewJob], connection: Any) -> Verdict:
    verdict = press(client, jobs, _strict(drafts, jobs), joined=connection is not None)
    if verdict.pause:
        time.sleep(verdict.pause)
    return verdict


async def _apress(
    client: Client, drafts: Sequence[Draft[Any]], jobs: Sequence[NewJob], connection: Any
) -> Verdict:
    verdict = await apress(client, jobs, _strict(drafts, jobs), joined=connection is not None)
    if verdict.pause:
        await asyncio.sleep(verdict.pause)
    return verdict


def _strict(drafts: Sequence[Draft[Any]], jobs: Sequence[NewJob]) -> frozenset[str]:
    if not any(draft.options.strict for draft in drafts):
        return frozenset()
    return frozenset(job.queue for draft, job in zip(drafts, jobs, strict=True) if draft.options.strict)


def _answers(
    client: Client, drafts: list[Draft[T]], jobs: list[NewJob], stored: list[Stored], verdict: Verdict
) -> list[Enqueued[T]]:
    if verdict.over:
        return [
            _answer(client, draft, job, one, verdict)
            for draft, job, one in zip(drafts, jobs, stored, strict=True)
        ]
    # As below, for the many that nothing more is to be said of.
    return [
        Enqueued(client, draft.declaration.handler, one, queue=job.queue, task=job.task)
        for draft, job, one in zip(drafts, jobs, stored, strict=True)
    ]


def _answer(client: Client, draft: Draft[T], job: NewJob, stored: Stored, verdict: Verdict) -> Enqueued[T]:
    over = bool(verdict.over) and job.queue in verdict.over and stored.outcome is Outcome.created
    return Enqueued(
        client, draft.declaration.handler, stored, queue=job.queue, task=job.task, over_limit=over
    )
