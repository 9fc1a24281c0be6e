"""From drafts to stored jobs: one or many, in a transaction of the store's own or in the caller's.

Inside a handler a job inherits the correlation id and is stored only while that attempt is live.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, Final, TypeVar

from duly.client.client import Client
from duly.client.draft import Draft
from duly.client.enqueued import Enqueued
from duly.client.job import Job, current
from duly.client.provider import connection_for
from duly.core.defaults import ENQUEUE_BATCH
from duly.core.errors import DulyError, PayloadError, UsageError
from duly.core.job import NewJob, Stored

T = TypeVar("T")

_SLICE: Final = ENQUEUE_BATCH


def enqueue_one(draft: Draft[T]) -> Enqueued[T]:
    """Store one job; blocks for one round trip."""
    client = draft.client
    client.refuse_blocking(
        f"{draft.declaration.name}.enqueue()", f"await {draft.declaration.name}.aenqueue()"
    )
    connection = connection_for(client, draft.options.connection)
    job = new_job(draft, current.get())
    stored = client.call(_store, client, connection, [job])
    return _answer(draft, job, stored[0], connection)


async def aenqueue_one(draft: Draft[T]) -> Enqueued[T]:
    """As `enqueue_one`, without blocking the loop."""
    client = draft.client
    connection = connection_for(client, draft.options.connection)
    job = new_job(draft, current.get())
    stored = await _astore(client, connection, [job])
    return _answer(draft, job, stored[0], connection)


def enqueue_many(client: Client, drafts: Iterable[Draft[T]], connection: Any) -> list[Enqueued[T]]:
    """Store all or none, one round trip per 1,000; one answer per position. An empty iterable does nothing."""
    client.refuse_blocking("enqueue_many()", "await jobs.aenqueue_many()")
    # All are checked before the store hears of the first, so that a generator holds no lock while it runs.
    kept, jobs = _prepared(client, drafts)
    if not jobs:
        return []
    connection = connection_for(client, connection)
    stored = client.call(_store, client, connection, jobs)
    return _answers(kept, jobs, stored, connection)


async def aenqueue_many(client: Client, drafts: Iterable[Draft[T]], connection: Any) -> list[Enqueued[T]]:
    """As `enqueue_many`; the loop turns between slices of a thousand drafts."""
    kept: list[Draft[T]] = []
    jobs: list[NewJob] = []
    job = current.get()
    for position, draft in enumerate(drafts):
        jobs.append(_at(position, draft, client, job))
        kept.append(draft)
        if position % _SLICE == _SLICE - 1:
            await asyncio.sleep(0)
    if not jobs:
        return []
    connection = connection_for(client, connection)
    stored = await _astore(client, connection, jobs)
    return _answers(kept, jobs, stored, connection)


def new_job(draft: Draft[Any], inside: Job | None) -> NewJob:
    """Check a draft and encode it. PayloadError names the argument; UsageError says what to write."""
    declaration, options, client = draft.declaration, draft.options, draft.client
    settings = client.settings
    queue = options.queue or declaration.queue
    client.registry.check_queue(queue, f"task {declaration.name!r}")
    correlation_id = options.correlation_id
    holder = None
    if inside is not None:
        holder = inside.token
        correlation_id = correlation_id or inside.correlation_id or None
    return NewJob(
        queue=queue,
        task=declaration.name,
        args=declaration.handler.arguments.encode(draft.args, draft.kwargs, settings.bounds),
        priority=declaration.priority if options.priority is None else options.priority,
        delay=options.delay,
        run_at=options.run_at,
        expires=options.expires or declaration.expires,
        timeout=options.timeout,
        attempts=options.attempts,
        tenant=options.tenant or "",
        tags=options.tags or (),
        correlation_id=correlation_id,
        holder=holder,
    )


def _store(client: Client, connection: Any, jobs: list[NewJob]) -> list[Stored]:
    if connection is None:
        return client.store.jobs.enqueue(jobs)
    return client.store.enqueue_on(connection, jobs)


async def _astore(client: Client, connection: Any, jobs: list[NewJob]) -> list[Stored]:
    if connection is None:
        return await client.acall(_store, client, None, jobs)
    with client.reaching():
        return await client.store.aenqueue_on(connection, jobs)


def _prepared(client: Client, drafts: Iterable[Draft[T]]) -> tuple[list[Draft[T]], list[NewJob]]:
    kept: list[Draft[T]] = []
    jobs: list[NewJob] = []
    job = current.get()
    for position, draft in enumerate(drafts):
        jobs.append(_at(position, draft, client, job))
        kept.append(draft)
    return kept, jobs


def _at(position: int, draft: Draft[Any], client: Client, inside: Job | None) -> NewJob:
    if not isinstance(draft, Draft):
        raise UsageError(f"draft {position} of enqueue_many is {draft!r:.80}; write task.draft(…)")
    if draft.client is not client:
        raise UsageError(f"draft {position} of enqueue_many, {draft}, belongs to another App")
    if draft.options.connection is not None:
        raise UsageError(
            f"draft {position} of enqueue_many, {draft}, brings a connection of its own; "
            "hand it to enqueue_many(…, connection=…)"
        )
    try:
        return new_job(draft, inside)
    except PayloadError as error:
        raise PayloadError(
            f"draft {position} of enqueue_many: {error}; nothing was stored", path=error.path
        ) from error
    except DulyError as error:
        raise type(error)(f"draft {position} of enqueue_many: {error}; nothing was stored") from error


def _answers(
    drafts: list[Draft[T]], jobs: list[NewJob], stored: list[Stored], connection: Any
) -> list[Enqueued[T]]:
    return [_answer(*part, connection) for part in zip(drafts, jobs, stored, strict=True)]


def _answer(draft: Draft[T], job: NewJob, stored: Stored, connection: Any) -> Enqueued[T]:
    return Enqueued(
        draft.client,
        draft.declaration.handler,
        stored,
        queue=job.queue,
        task=job.task,
        uncommitted=connection is not None,
    )
