"""What `App.task` was told about a function: the function and its policy, fixed at decoration.

Values that nobody gave stay None; the App's settings fill them at first use.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal

from duly.client.guards import Guard
from duly.client.handler import Handler, Isolation
from duly.client.resource import Resource
from duly.client.template import Template
from duly.client.unique import UniqueTemplate
from duly.core.backoff import Backoff
from duly.core.classify import Rule
from duly.core.control import Rate

Ack = Literal["success", "start"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """One task as declared."""

    name: str
    aliases: tuple[str, ...]
    handler: Handler
    queue: str
    isolation: Isolation
    ack: Ack
    """"success": at least once. "start": at most once, a lost attempt is not repeated."""
    priority: int
    permanent: tuple[Rule, ...]
    transient: tuple[Rule, ...]
    timeout: timedelta | None
    attempts: int | None
    backoff: Backoff | None
    expires: timedelta | None
    unique: UniqueTemplate | None = None
    ordering: Template | None = None
    """Its jobs' ordering key."""
    tenant: Template | None = None
    max_running: int | None = None
    rate: Rate | None = None
    uses: tuple[Resource, ...] = ()
    audit: bool = False
    """Each of its jobs stands in the audit: who enqueued it, and how it ended."""
    encrypt: bool | None = None
    """Whether payloads of its jobs are encrypted; None: as their queue says."""
    guards: list[Guard] = field(default_factory=list, compare=False)
    """In the order in which they are asked; grows while modules are imported."""
