"""A job that is not stored yet: which task, with which arguments, under which options.

Checked when it is enqueued, so that a draft may be made at import, before any setting is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from duly.client.client import Client
from duly.client.declaration import Declaration
from duly.client.options import Options

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Draft(Generic[T_co]):
    """What `task.draft(...)` makes; hand it to `App.enqueue_many`."""

    client: Client = field(repr=False)
    declaration: Declaration = field(repr=False)
    options: Options = field(repr=False)
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]

    def __str__(self) -> str:
        parts = [repr(value) for value in self.args] + [
            f"{name}={value!r}" for name, value in self.kwargs.items()
        ]
        return f"{self.declaration.name}({', '.join(parts):.200})"
