"""What an App has scheduled in code: each schedule with its task, and the jobs they make.

Reads settings only when the jobs are made; opens nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from duly.client.encoding import new_job
from duly.core.registration import Schedule

if TYPE_CHECKING:
    from duly.client.client import Client
    from duly.client.task import Task
    from duly.client.ticks import Tick


@dataclass(frozen=True, slots=True)
class Declared:
    """One schedule as declared over a task."""

    schedule: Schedule
    """Without its job, which needs the App's settings."""
    task: Task[..., Any]
    tick: Tick | None
    """For `App.tick`: how its jobs are made."""

    def complete(self, client: Client) -> Schedule:
        """The schedule as a store keeps it. UsageError when the task's queue is not declared."""
        if self.tick is not None:
            return self.schedule
        return replace(self.schedule, job=new_job(self.task.draft(), None, client))
