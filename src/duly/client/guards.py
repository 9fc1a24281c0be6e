"""Guards: functions of a task that look at a job's arguments before its handler and may say that it need not run.

Calls them and reads their answers; knows neither the worker nor what becomes of a job.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from duly.client.handler import Handler
from duly.client.job import Job
from duly.core.endings import Skip, SkippedByGuard, Snooze
from duly.core.errors import UsageError

Answer = bool | str | None
"""None or True: go on. Text, or False: stop."""


class Guard:
    """One guard of one task: what it is called, and how it is asked."""

    def __init__(self, task: str, handler: Handler, fn: Callable[..., Any]) -> None:
        try:
            own = Handler(fn)
        except UsageError as error:
            raise UsageError(f"guard of task {task!r}: {error}") from None
        if own.is_async and not handler.is_async:
            raise UsageError(
                f"{own.place}: the guard {fn.__name__} is async, and the task {task!r} is a `def`, which runs in a "
                f"thread without a loop; write `def {fn.__name__}`"
            )
        self.task = task
        self.name: str = fn.__name__
        """Stands in the reason of a job that it stopped."""
        self.fn = fn
        self.place = own.place
        self.is_async = own.is_async
        self._own = own
        self._handler = handler
        parameters = inspect.signature(handler.fn).parameters.values()
        # A parameter left to its default is not stored, and the guard's own default may be another.
        self._defaults = {item.name: item.default for item in parameters if item.default is not item.empty}

    def check(self) -> None:
        """UsageError unless it takes what the handler takes; with or without the job."""
        wanted, found = self._handler.arguments.names, self._own.arguments.names
        if set(wanted) != set(found):
            raise UsageError(
                f"{self.place}: the guard {self.name} takes ({', '.join(found)}), and the task {self.task!r} "
                f"({', '.join(wanted)}); a guard has the parameters of its task"
            )

    def ask(self, job: Job, given: Mapping[str, Any]) -> None:
        """Ask a `def`. SkippedByGuard when it says no; a Snooze of its own with its name; its errors as they are."""
        try:
            self._heed(self._call(job, given))
        except (Skip, Snooze) as ending:
            raise self._named(ending) from None

    async def aask(self, job: Job, given: Mapping[str, Any]) -> None:
        """As `ask`, for either kind."""
        try:
            answer = self._call(job, given)
            self._heed(await answer if self.is_async else answer)
        except (Skip, Snooze) as ending:
            raise self._named(ending) from None

    def _call(self, job: Job, given: Mapping[str, Any]) -> Any:
        arguments = {**self._defaults, **given}
        return self.fn(job, **arguments) if self._own.takes_job else self.fn(**arguments)

    def _heed(self, answer: object) -> None:
        if answer is None or answer is True:
            return
        if answer is False or isinstance(answer, str):
            raise SkippedByGuard(self.name, answer or "no")
        if inspect.iscoroutine(answer):
            answer.close()
        raise UsageError(
            f"{self.place}: the guard {self.name} answered {answer!r:.60}; return None or True to go on, text or False "
            "to stop"
        )

    def _named(self, ending: Skip | Snooze) -> Skip | Snooze:
        if isinstance(ending, SkippedByGuard):
            return ending
        if isinstance(ending, Skip):
            return SkippedByGuard(self.name, ending.reason)
        said = f": {ending.reason}" if ending.reason else ""
        return Snooze(ending.wait, f"guard {self.name}{said}")

    def __repr__(self) -> str:
        return f"<Guard {self.name} of {self.task}>"


def with_guard(guards: list[Guard], guard: Guard) -> None:
    """Add one, after the others. UsageError, with both places, for a name that another has."""
    for position, other in enumerate(guards):
        if other.name != guard.name:
            continue
        if other.place != guard.place:
            raise UsageError(
                f"task {guard.task!r} has two guards named {guard.name!r}:\n    {other.place}\n    {guard.place}\n"
                "rename one function: its name says why a job was skipped"
            )
        guards[position] = guard
        return
    guards.append(guard)
