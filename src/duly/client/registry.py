"""What one App has declared: its queues and tasks by name, and the words for a name that is not there.

Pure registration; opens nothing and imports nothing.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from duly.core.alerting import Thresholds
from duly.core.bounds import Bound
from duly.core.defaults import QUEUE
from duly.core.errors import UsageError

if TYPE_CHECKING:
    from duly.client.alert import Alert
    from duly.client.queue import Queue
    from duly.client.resource import Resource
    from duly.client.scheduled import Declared
    from duly.client.task import Task
    from duly.core.notification import Sink


class Registry:
    """Queues and tasks by name; a task is found by its aliases, too."""

    def __init__(self) -> None:
        self.queues: dict[str, Queue] = {}
        self.bounds: dict[str, Bound] = {}
        """Of the queues that have one."""
        self.tasks: dict[str, Task[..., Any]] = {}
        self.schedules: dict[str, Declared] = {}
        self.resources: dict[str, Resource] = {}
        self.alert: Alert | None = None
        """For all queues."""
        self.sinks: dict[str, Sink | str] = {}
        """Where alerts go, by name; a text is a URL."""
        self._aliases: dict[str, str] = {}

    def add_queue(self, queue: Queue) -> None:
        if queue.name in self.queues and self.queues[queue.name] != queue:
            raise UsageError(
                f"the queue {queue.name!r} is declared twice with different options; declare it once and import it"
            )
        self.queues[queue.name] = queue
        if queue.bound is not None:
            self.bounds[queue.name] = queue.bound

    def add_task(self, task: Task[..., Any]) -> None:
        """UsageError, with both places, when the name stands for another function already."""
        for name in (task.name, *task.aliases):
            other = self.find(name)
            # The same line again is the same module imported under a second name, or reloaded.
            if other is not None and other.handler.place != task.handler.place:
                raise UsageError(
                    f"two tasks are named {name!r}:\n    {other.handler.place} {other.handler.fn.__qualname__}\n"
                    f"    {task.handler.place} {task.handler.fn.__qualname__}\n"
                    "rename one function, or give one a name: @jobs.task(name='…')"
                )
        self.tasks[task.name] = task
        self._aliases.update(dict.fromkeys(task.aliases, task.name))

    def add_schedule(self, declared: Declared) -> None:
        """UsageError, with both places, when the name stands for another schedule already."""
        name, task = declared.schedule.name, declared.task
        known = self.schedules.get(name)
        if known is not None and known.task.handler.place != task.handler.place:
            raise UsageError(
                f"two schedules are named {name!r}:\n    {known.task.handler.place} {known.task.name}\n"
                f"    {task.handler.place} {task.name}\ngive one of them another name: name='…'"
            )
        if known is not None and known.schedule != declared.schedule:
            raise UsageError(
                f"task {task.name!r} has two schedules named {name!r}; give one another name: name='…'"
            )
        self.schedules[name] = declared

    def add_resource(self, resource: Resource) -> Resource:
        """The one of this name that all share. UsageError when it was declared with other bounds."""
        known = self.resources.setdefault(resource.name, resource)
        if not known.same_as(resource):
            raise UsageError(
                f"the resource {resource.name!r} is declared twice with different bounds; declare it once and import it"
            )
        return known

    def thresholds(self, queue: str | None) -> Thresholds:
        """When alerts of a queue fire; None: of what belongs to no queue."""
        made = Thresholds() if self.alert is None else self.alert.over(Thresholds())
        declared = None if queue is None else self.queues.get(queue)
        return made if declared is None or declared.alert is None else declared.alert.over(made)

    def unwatched(self, *, watched: bool) -> tuple[str, ...]:
        """Queues without owner and alert, where there are several. `watched`: some sink is there for all of them."""
        if watched or self.alert is not None or self.sinks or len(self.queues) < 2:
            return ()
        return tuple(
            queue.name for queue in self.queues.values() if queue.owner is None and queue.alert is None
        )

    def find(self, name: str) -> Task[..., Any] | None:
        """The task of this name or alias."""
        return self.tasks.get(self._aliases.get(name, name))

    def knows_queue(self, name: str) -> bool:
        return name == QUEUE or name in self.queues

    def check_queue(self, name: str, wanted_by: str) -> None:
        """UsageError with the nearest declared name when nobody declared this queue."""
        if not self.knows_queue(name):
            raise UsageError(
                f"{wanted_by} uses the queue {name!r}, which is not declared; "
                f"declare it with jobs.queue({name!r}){nearest(name, [QUEUE, *self.queues])}"
            )


def nearest(word: str, known: Iterable[str]) -> str:
    """The end of a sentence: the nearest known name as a question, else all of them."""
    names = list(known)
    close = difflib.get_close_matches(word, names, n=1, cutoff=0.6)
    return f"; did you mean {close[0]!r}?" if close else f"; known: {', '.join(sorted(names))}"
