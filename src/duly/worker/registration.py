"""What a process tells the store before it works: who it is, and what its App declares."""

import os
import socket
from datetime import datetime, timedelta
from hashlib import sha256
from importlib.metadata import version
from typing import Final

import msgspec

from duly.client.bounds import limits_of
from duly.client.reference import reference_of
from duly.core.errors import UsageError
from duly.core.job import WorkerInfo
from duly.core.registration import QueuePolicy, Registration, ScheduleRecord, TaskPolicy
from duly.core.schedule import first_due
from duly.stores.protocol import Store
from duly.telemetry.hub import Hub
from duly.telemetry.schedules import ScheduleTakenOver
from duly.worker.options import Plan
from duly.worker.source import AppLike

_FINGERPRINT: Final = 32


def info_of(app: AppLike, plan: Plan, supervisor: str) -> WorkerInfo:
    """The registration of this process. Every task counts under its former names, too."""
    return WorkerInfo(
        host=socket.gethostname(),
        pid=os.getpid(),
        supervisor=supervisor,
        queues=tuple(plan.queues),
        tasks={name: task.timeout for task in app.tasks.values() for name in (task.name, *task.aliases)},
        lease=timedelta(seconds=plan.lease),
        heartbeat=timedelta(seconds=plan.heartbeat),
        slots=plan.concurrency + plan.threads + plan.isolated,
        version=version("duly"),
    )


def declare(app: AppLike, hub: Hub | None = None) -> bool:
    """Record what this release of the App declares; False when a later release has done so before. Blocks.

    The hub hears of each schedule that somebody else had stored under a name that is declared here.
    """
    registration = registration_of(app, app.store.inspection.now())
    others = _others(app.store, registration) if registration.schedules else []
    declared = app.store.schema.declare(registration)
    if declared and hub is not None:
        for record in others:
            hub.emit(ScheduleTakenOver(record.name, record.origin, registration.origin))
    return declared


def _others(store: Store, registration: Registration) -> list[ScheduleRecord]:
    names = {schedule.name for schedule, _ in registration.schedules}
    return [
        record
        for record in store.schedules.all()
        if record.name in names and record.origin != registration.origin
    ]


def registration_of(app: AppLike, now: datetime) -> Registration:
    """All that the App declares, with the first due time of each schedule from now, under a fingerprint of it."""
    queues = tuple(
        QueuePolicy(
            queue.name,
            queue.owner or "",
            queue.keep,
            queue.keep_dead,
            fair=queue.fair,
            ordering=queue.ordering,
            serialise=queue.serialise,
            wait_target=queue.wait_target,
            max_depth=None if queue.bound is None else queue.bound.max_depth,
            max_age=None if queue.bound is None else queue.bound.max_age,
            when_full="reject" if queue.bound is None else queue.bound.when_full,
            importance=queue.importance,
            reserve=queue.reserve,
        )
        for _, queue in sorted(app.queues.items())
    )
    tasks = tuple(
        TaskPolicy(task.name, task.queue, task.priority, task.expires)
        for _, task in sorted(app.tasks.items())
    )
    schedules = tuple(
        declared.complete(app.client) for _, declared in sorted(app.client.registry.schedules.items())
    )
    limits, task_limits = limits_of(app.client.registry)
    return Registration(
        origin=origin_of(app),
        release=_fingerprint(queues, tasks, schedules, limits, task_limits),
        queues=queues,
        tasks=tasks,
        schedules=tuple((schedule, first_due(schedule, now)) for schedule in schedules),
        limits=limits,
        task_limits=task_limits,
    )


def origin_of(app: AppLike) -> str:
    """Which App this is, in every process: `MODULE:NAME`, or the module of a task where no variable holds it."""
    try:
        return reference_of(app)
    except UsageError:
        return min((task.fn.__module__ for task in app.tasks.values()), default="unnamed")


def _fingerprint(*declared: tuple[msgspec.Struct, ...]) -> str:
    return sha256(msgspec.json.encode(declared)).hexdigest()[:_FINGERPRINT]
