"""A job that is not stored yet: which task, with which arguments, under which options.

Checked when it is enqueued, so that a draft may be made at import, before any setting is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, TypeVar

from msgspec import Struct

from duly.client.client import Client
from duly.client.declaration import Declaration
from duly.client.options import Options

T_co = TypeVar("T_co", covariant=True)


class Draft(Struct, Generic[T_co], frozen=True):
    """What `task.draft(...)` makes; hand it to `App.enqueue_many`."""

    client: Client
    declaration: Declaration
    options: Options
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]

    def __repr__(self) -> str:
        return f"Draft(args={self.args!r}, kwargs={self.kwargs!r})"

    def __str__(self) -> str:
        parts = [repr(value) for value in self.args] + [
            f"{name}={value!r}" for name, value in self.kwargs.items()
        ]
        return f"{self.declaration.name}({', '.join(parts):.200})"
