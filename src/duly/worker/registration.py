"""What a process tells the store before it works: who it is, and what its App declares."""

import os
import socket
from datetime import timedelta
from importlib.metadata import version

from duly.core.job import WorkerInfo
from duly.worker.options import Plan
from duly.worker.source import AppLike


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


def declare(app: AppLike) -> None:
    """Record the queues with their owners and the tasks with their queues; blocks for one round trip."""
    app.store.schema.declare(
        {name: queue.owner or "" for name, queue in app.queues.items()},
        {task.name: task.queue for task in app.tasks.values()},
    )
