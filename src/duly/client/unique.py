"""A task's unique key: a template over its arguments, filled in for each job.

Knows no store; what a store keeps of a key is core.keys' digest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from duly.client.template import Template
from duly.core.errors import UsageError
from duly.core.job import UniqueKey
from duly.core.keys import Unique, unique_digest
from duly.core.payload import Arguments


@dataclass(frozen=True)
class UniqueTemplate:
    """What `@jobs.task(unique=…)` says: read at decoration, compared with the parameters at first use."""

    unique: Unique
    template: Template

    @classmethod
    def of(cls, task: str, said: str | Unique) -> UniqueTemplate:
        """Read a template. UsageError for broken braces, and for a scope or a conflict that is none."""
        unique = as_unique(said, "unique")
        return cls(unique, Template.of(task, "unique key", "unique_key", unique.key))

    def check(self, arguments: Arguments) -> None:
        """UsageError when a parameter is named that the task does not take."""
        self.template.check(arguments)

    def fill(self, given: Mapping[str, object]) -> Unique:
        """The key of one job. UsageError when an argument is no plain text or number."""
        return Unique(self.template.fill(given), self.unique.scope, self.unique.on_conflict)


def as_unique(said: str | Unique, name: str) -> Unique:
    """What a caller wrote, checked in every part."""
    if isinstance(said, str):
        said = Unique(said)
    if not isinstance(said, Unique):
        raise UsageError(
            f"{name}={said!r:.80} is no key; write {name}='order:7' or {name}=Unique('order:7', scope='live')"
        )
    try:
        return said.checked()
    except UsageError as error:
        raise UsageError(f"{name}: {error}") from None


def stored_form(unique: Unique, task: str, tenant: str) -> UniqueKey:
    """The key as a store keeps it. UsageError for one that is empty, too long or holds what no key may."""
    try:
        unique.checked()
    except UsageError as error:
        raise UsageError(f"task {task!r}: {error}") from None
    digest = unique_digest(task, tenant, unique.key)
    return UniqueKey(digest, live=unique.scope == "live", replace=unique.on_conflict == "replace")
