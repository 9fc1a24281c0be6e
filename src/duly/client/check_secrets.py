"""What `duly check` finds about what is secret: arguments that sound so and would be shown. Reads annotations only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from duly.client.task import Task
from duly.core.secret import Secret, sounds_secret

_HARMLESS = (msgspec.inspect.BoolType, msgspec.inspect.NoneType)


def shown_secrets(task: Task[..., Any]) -> Iterator[str]:
    """Parameters of a task, and fields inside of them, that are named like a secret and are no `Secret`."""
    for name, kind in task.arguments.types.items():
        yield from _found(name, msgspec.inspect.type_info(kind), set())


def secret_sentence(task: Task[..., Any]) -> str | None:
    """The finding about a task's arguments; None when nothing sounds secret."""
    found = list(dict.fromkeys(shown_secrets(task)))
    if not found:
        return None
    return (
        f"task {task.name!r} takes {', '.join(found)}, which whoever may read jobs sees, in lists, errors and logs; "
        f"annotate it Secret[str], or pass an id and read the secret in the handler"
    )


def _found(path: str, kind: msgspec.inspect.Type, seen: set[type]) -> Iterator[str]:
    parts = list(_alternatives(kind))
    if all(_is_secret(part) for part in parts):
        return
    harmless = all(isinstance(part, _HARMLESS) or _is_secret(part) for part in parts)
    if sounds_secret(path.rpartition(".")[2]) and not harmless:
        yield path
        return
    for part in parts:
        owner = getattr(part, "cls", None)
        if owner in seen:
            continue
        deeper = seen | {owner} if isinstance(owner, type) else seen
        for field in getattr(part, "fields", ()):
            yield from _found(f"{path}.{field.name}", field.type, deeper)
        for inner in ("item_type", "value_type"):
            if (held := getattr(part, inner, None)) is not None:
                yield from _found(path, held, deeper)


def _alternatives(kind: msgspec.inspect.Type) -> Iterator[msgspec.inspect.Type]:
    if isinstance(kind, msgspec.inspect.Metadata):
        yield from _alternatives(kind.type)
    elif isinstance(kind, msgspec.inspect.UnionType):
        for part in kind.types:
            yield from _alternatives(part)
    else:
        yield kind


def _is_secret(kind: msgspec.inspect.Type) -> bool:
    return isinstance(kind, msgspec.inspect.NoneType) or getattr(kind, "cls", None) is Secret
