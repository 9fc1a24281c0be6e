"""A declared queue: its name, who answers for it, and how long its finished jobs are kept.

Knows nothing of what is in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class Queue:
    """A named line of jobs, made by `App.queue`."""

    name: str
    owner: str | None = None
    """Whom a dead letter concerns, as an address or a team."""
    keep: timedelta | None = None
    """How long completed, skipped and cancelled jobs are kept; None is the setting `keep`."""
    keep_dead: timedelta | None = None
    """How long dead letters are kept; None is the setting `keep_dead`."""

    def __str__(self) -> str:
        return self.name
