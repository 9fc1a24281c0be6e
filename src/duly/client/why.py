"""Gathers what `why` tells: the store's reads for a job, a queue, a tenant or a resource, and the answers of guards.

The sentences are core.why's. Changes nothing; guards run only where they were asked for.
"""

from __future__ import annotations

import asyncio
from itertools import islice
from typing import TYPE_CHECKING, Final

from duly.client import why_late
from duly.client.client import Client
from duly.client.control_reads import key_troubles
from duly.client.job import Job, local_job
from duly.client.registry import nearest
from duly.core.batch import BatchRecord
from duly.core.bounds import pressure_text
from duly.core.control import queue_limit, resource_limit, tenant_limit
from duly.core.endings import Ending, Skip, Snooze
from duly.core.errors import NotFound, UsageError
from duly.core.fingerprint import describe
from duly.core.job import JobId, JobRecord
from duly.core.lifecycle import FINAL, State
from duly.core.names import check_name
from duly.core.trace import is_trace
from duly.core.why import GuardAnswer, Situation, Stop, Why, why_job
from duly.core.why_places import why_batch, why_queue, why_resource, why_tenant
from duly.stores.batches import batch_refused
from duly.stores.protocol import QueueCount

if TYPE_CHECKING:
    from duly.client.control_reads import TenantStatus
    from duly.client.guards import Guard
    from duly.client.inspect import QueueStatus
    from duly.client.task import Task

_KEYS: Final = 5
"""Ordering keys of a queue that are told of."""


def of_job(client: Client, id: JobId, *, guards: bool) -> Why:
    """NotFound when it never was or is no longer kept."""
    store = client.store
    facts = store.inspection.facts(id)
    if facts is None:
        raise NotFound(
            f"no job {id}: it never was, its transaction was rolled back, or it ended and is no longer kept",
            kind="job",
            name=str(id),
        )
    job, now = facts.job, store.inspection.now()
    batch = _batch_of(client, job.id)
    if job.state in FINAL or job.state is State.running:
        return why_job(Situation(now, facts, batch=batch))
    names = [queue_limit(job.queue), *facts.limits]
    if job.tenant:
        names.append(tenant_limit(job.queue, job.tenant))
    count = next((one for one in store.inspection.counts() if one.queue == job.queue), QueueCount(job.queue))
    pressure = store.pressing.pressures([job.queue])[job.queue]
    return why_job(
        Situation(
            now,
            facts,
            stops=stops(client, queue_limit(job.queue), f"task:{job.task}"),
            limits=tuple(store.control.limits(list(dict.fromkeys(names)))),
            overrides=tuple(store.control.overrides()),
            out_per_s=count.out_per_s,
            guards=_asked(client, job) if guards else (),
            batch=batch,
            pressed=pressure_text(pressure, count.ready, count.oldest_ready, now),
        )
    )


def of_queue(client: Client, status: QueueStatus) -> Why:
    counts = status.counts
    queue = counts.queue
    served = f"{status.workers:,} worker{'' if status.workers == 1 else 's'}"
    text = (
        f"{counts.ready:,} ready, {counts.running:,} running, {counts.scheduled:,} scheduled, "
        f"{counts.blocked:,} blocked, {counts.dead:,} dead; {served}"
    )
    control = client.store.control
    target = queue_limit(queue)
    known = control.limits([target])
    now = client.store.inspection.now()
    return why_queue(
        queue,
        now,
        counts=text,
        health=status.health,
        stops=stops(client, target),
        limits=[one for one in known if one.max_running is not None or one.rate is not None],
        overrides=[one for one in control.overrides() if one.target == target],
        pressed=status.pressed,
        late=status.late,
        keys=[*islice(key_troubles(client, queue), _KEYS)],
        waits=[*why_late.reasons(client, counts, known, now)],
    )


def of_tenant(client: Client, status: TenantStatus) -> Why:
    return why_tenant(status.name, client.store.inspection.now(), status.plan, status.limits, status.waits)


def of_resource(client: Client, name: str) -> Why:
    """NotFound names the nearest one."""
    check_name("resource", name)
    control = client.store.control
    target = resource_limit(name)
    known = {limit.name for limit in control.limits()}
    found = control.limits([target])
    if not found or (target not in known and name not in client.registry.resources):
        names = {*client.registry.resources, *(one[9:] for one in known if one.startswith("resource:"))}
        raise NotFound(f"no resource is named {name!r}{nearest(name, names)}", kind="resource", name=name)
    return why_resource(name, client.store.inspection.now(), found[0])


def of_batch(client: Client, name: str) -> Why:
    """NotFound after 30 days, or when it never was."""
    if not (name.isascii() and name.isdecimal()):
        raise UsageError(f"batch:{name!r:.40} is no batch's number; jobs.inspect.batches() shows them")
    found = client.store.batches.lookup([int(name)])[0]
    if found is None:
        raise batch_refused(int(name), "missing")
    return why_batch(found, client.store.inspection.now())


def _batch_of(client: Client, id: JobId) -> BatchRecord | None:
    batches = client.store.batches
    found = batches.of([id]).get(id)
    return None if found is None else batches.lookup([found])[0]


def stops(client: Client, *targets: str) -> tuple[Stop, ...]:
    """The pauses of these targets."""
    return tuple(
        Stop(pause.target, pause.by, pause.reason, pause.until)
        for pause in client.store.inspection.pauses()
        if pause.target in targets
    )


def _asked(client: Client, record: JobRecord) -> tuple[GuardAnswer, ...]:
    """What the task's guards say now, up to the first that stops; in code that does not know the task, nothing."""
    task = client.registry.find(record.task)
    if task is None or not task.guards:
        return ()
    try:
        given = task.arguments.decode(
            client.sealing.open_arguments(record.queue, record.task, record.tenant, record.args)
        )
    except Exception as error:
        return (GuardAnswer("arguments", f"they cannot be read: {describe(error).message}"),)
    answers: list[GuardAnswer] = []
    for guard in task.guards:
        answers.append(GuardAnswer(guard.name, _answer(guard, _handle(task, record), given)))
        if answers[-1].said:
            break
    return tuple(answers)


def _answer(guard: Guard, job: Job, given: dict[str, object]) -> str:
    """ "" for yes. An async guard gets a loop of its own: what belongs to another loop does not work in it."""
    try:
        if guard.is_async:
            asyncio.run(guard.aask(job, given))
        else:
            guard.ask(job, given)
    except Snooze as ending:
        return f"not now{': ' + ending.reason if ending.reason else ''}"
    except Skip as ending:
        return ending.reason.partition(": ")[2] or ending.reason
    except Ending as ending:
        return str(ending) or type(ending).__name__
    except Exception as error:
        told = describe(error)
        return f"it fails: {told.type}: {told.message}"
    return ""


def _handle(task: Task[..., object], record: JobRecord) -> Job:
    """The job as the guard sees it; it writes nothing."""
    job = local_job(task.name, record.queue, task.timeout, task.handler.encode_result)
    job.id = record.id
    job.attempt = 1 + record.counters.failed + record.counters.lost
    job.tenant, job.tags = record.tenant, record.tags
    job.correlation_id = record.correlation_id
    job.trigger = None if is_trace(record.trigger) else record.trigger
    job.enqueued_at = record.enqueued_at
    return job


__all__ = ["Why", "of_batch", "of_job", "of_queue", "of_resource", "of_tenant", "stops"]
