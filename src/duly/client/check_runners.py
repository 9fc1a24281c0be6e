"""What `duly check` finds about who runs what: unserved queues and schedules, enqueues too early, keys that lack."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any, Final

from duly.client.blobs import Blob
from duly.client.client import Client
from duly.client.task import Task
from duly.core.errors import UsageError
from duly.stores.protocol import WorkerRecord

_SESSIONS: Final = {
    "django.db": "Django",
    "flask_sqlalchemy": "Flask-SQLAlchemy",
    "sqlalchemy.orm": "SQLAlchemy",
}
"""Libraries whose transactions an enqueue has to be told of."""


def unserved(client: Client, workers: Sequence[WorkerRecord]) -> Iterator[str]:
    """Declared queues that tasks or schedules use, and no live worker serves. Nothing where no worker lives at all."""
    if not workers:
        return
    served = {queue for worker in workers if not worker.draining for queue in worker.queues}
    registry = client.registry
    for name in sorted({task.queue for task in registry.tasks.values()} - served):
        yield (
            f"no live worker serves the queue {name!r}, so that its jobs wait; start one, or add the queue to its "
            "--queues (DULY_QUEUES)"
        )
    for name, declared in registry.schedules.items():
        if declared.task.queue not in served:
            yield (
                f"schedule {name!r} enqueues into {declared.task.queue!r}, which no live worker serves; start one with "
                "that queue"
            )


def unserved_stored(client: Client, workers: Sequence[WorkerRecord]) -> Iterator[str]:
    """Schedules that fire nothing: with no worker, nobody looks at them."""
    if workers or not client.store.capabilities.shared_by_processes:
        return
    waiting = [record.name for record in client.call(client.store.schedules.all) if not record.paused]
    if waiting:
        shown = ", ".join(waiting[:5]) + (", …" if len(waiting) > 5 else "")
        yield f"no worker lives, and schedules fire only while one does: {shown}; start duly worker"


def too_early(client: Client) -> Iterator[str]:
    """Enqueues that commit before the transaction around them, for want of a connection."""
    if client.provider is not None:
        return
    for module, name in _SESSIONS.items():
        if module in sys.modules:
            yield (
                f"{name} is in use, and App(connection=…) does not say which connection is open: an enqueue without "
                "using(connection=…) commits at once, before your transaction does or although it is rolled back; "
                "give App a function that returns the session, or write connection= at each enqueue"
            )
            return


def keyless(client: Client) -> Iterator[str]:
    """Tasks that nobody can enqueue, as their payloads have to be encrypted and there is no key."""
    try:
        keys = client.sealing.keys
    except UsageError as error:
        yield str(error)
        return
    names = [task.name for task in client.registry.tasks.values() if task.encrypted()]
    if names and keys is None:
        yield f"{', '.join(names)}: encrypted, and no key is set, so that nobody can enqueue them; write DULY_KEYS"


def half_encrypted(client: Client) -> Iterator[str]:
    """What is not as encrypted as it looks."""
    registry = client.registry
    tasks = [task for task in registry.tasks.values() if task.encrypted()]
    anywhere = bool(tasks) or any(queue.encrypt for queue in registry.queues.values())
    if client.settings.keys is not None and registry.tasks and not anywhere:
        yield "DULY_KEYS is set, and no task is encrypted; write encrypt=True at a task or queue, or DULY_ENCRYPT=on"
    for task in tasks:
        if _holds_blobs(task):
            yield (
                f"task {task.name!r} is encrypted, and the content of its Blob is not; keep the folder of blobs on an "
                "encrypted disk"
            )
        if task.ack == "start":
            yield (
                f"task {task.name!r} is encrypted and acknowledged before it starts: a worker without its key loses "
                "the job; leave ack='start' out"
            )


def _holds_blobs(task: Task[..., Any]) -> bool:
    try:
        return Blob in task.arguments.custom
    except UsageError:
        # Its annotations are a finding of their own.
        return False
