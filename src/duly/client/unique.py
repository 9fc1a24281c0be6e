"""A task's unique key: a template over its arguments, filled in for each job.

Knows no store; what a store keeps of a key is core.keys' digest.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import cached_property
from pathlib import PurePath
from string import Formatter
from typing import Final, NamedTuple
from uuid import UUID

from duly.core.errors import UsageError
from duly.core.job import UniqueKey
from duly.core.keys import Unique, unique_digest
from duly.core.payload import Arguments
from duly.core.placeholder import Placeholder

_PLAIN: Final = (str, int, float, Decimal, UUID, PurePath)


class _Field(NamedTuple):
    """One `{parameter}` or `{parameter.attribute}` of a template."""

    text: str
    parameter: str
    attributes: tuple[str, ...]


@dataclass(frozen=True)
class UniqueTemplate:
    """What `@jobs.task(unique=…)` says: read at decoration, compared with the parameters at first use."""

    task: str
    unique: Unique
    pieces: tuple[tuple[str, _Field | None], ...]
    """Literal text, each with what follows it."""

    @classmethod
    def of(cls, task: str, said: str | Unique) -> UniqueTemplate:
        """Read a template. UsageError for broken braces, and for a scope or a conflict that is none."""
        unique = as_unique(said, "unique")
        shown = f"task {task!r}: the unique key {unique.key!r}"
        try:
            parsed = list(Formatter().parse(unique.key))
        except ValueError as error:
            raise UsageError(
                f"{shown} cannot be read: {error}; write a brace that is meant as {{{{ or }}}}"
            ) from error
        pieces = []
        for literal, name, spec, conversion in parsed:
            if name is not None and (spec or conversion):
                raise UsageError(f"{shown} formats {{{name}}}; write the bare parameter")
            pieces.append((literal, None if name is None else _field(name, shown)))
        return cls(task, unique, tuple(pieces))

    def check(self, arguments: Arguments) -> None:
        """UsageError when a parameter is named that the task does not take."""
        for field in self._fields:
            if field.parameter not in arguments.names:
                takes = ", ".join(arguments.names) or "none"
                raise UsageError(
                    f"task {self.task!r}: its unique key {self.unique.key!r} names the parameter "
                    f"'{field.parameter}', which it does not take; its parameters: {takes}"
                )

    def fill(self, given: Mapping[str, object]) -> Unique:
        """The key of one job. UsageError when an argument is no plain text or number."""
        parts = []
        for literal, field in self.pieces:
            parts.append(literal)
            if field is not None:
                parts.append(self._text(field, given[field.parameter]))
        return Unique("".join(parts), self.unique.scope, self.unique.on_conflict)

    @cached_property
    def _fields(self) -> tuple[_Field, ...]:
        return tuple(field for _, field in self.pieces if field is not None)

    def _text(self, field: _Field, value: object) -> str:
        key = f"task {self.task!r}: its unique key {self.unique.key!r}"
        for attribute in field.attributes:
            if isinstance(value, Placeholder):
                break
            try:
                value = getattr(value, attribute)
            except AttributeError as error:
                raise UsageError(f"{key} asks for {field.text}, but {error}") from error
        if isinstance(value, Placeholder):
            raise UsageError(
                f"{key} needs '{field.parameter}', which is RESULT here and not known yet; "
                "give the draft a key of its own: using(unique_key='…')"
            )
        text = _plain_text(value)
        if text is None:
            raise UsageError(
                f"{key} needs text or a number, and '{field.text}' is {type(value).__name__}; "
                f"name a part of it, as {{{field.text}.id}}, or give using(unique_key='…')"
            )
        return text


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


def _field(name: str, shown: str) -> _Field:
    parameter, *attributes = name.split(".")
    if not all(part.isidentifier() for part in (parameter, *attributes)):
        raise UsageError(
            f"{shown} holds {{{name}}}; write a parameter's name, as {{order_id}} or {{order.id}}"
        )
    return _Field(name, parameter, tuple(attributes))


def _plain_text(value: object) -> str | None:
    if isinstance(value, enum.Enum):
        return _plain_text(value.value)
    if isinstance(value, date | datetime):
        return value.isoformat()
    return str(value) if value is None or isinstance(value, _PLAIN) else None
