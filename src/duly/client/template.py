"""A text with a task's arguments in it, as "order:{order_id}": read at decoration, filled in for each job.

Knows not what the text is for.
"""

from __future__ import annotations

import enum
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import cached_property
from pathlib import PurePath
from string import Formatter
from typing import Any, Final, NamedTuple
from uuid import UUID

from duly.core.errors import UsageError
from duly.core.payload import Arguments
from duly.core.placeholder import Placeholder

_PLAIN: Final = (str, int, float, Decimal, UUID, PurePath)


class _Field(NamedTuple):
    """One `{parameter}` or `{parameter.attribute}`."""

    text: str
    parameter: str
    attributes: tuple[str, ...]


@dataclass(frozen=True)
class Template:
    """One of a task."""

    task: str
    what: str
    """For messages: "unique key", "ordering key", "tenant"."""
    option: str
    """What `using` calls it."""
    text: str
    pieces: tuple[tuple[str, _Field | None], ...]
    """Literal text, each with what follows it."""

    @classmethod
    def of(cls, task: str, what: str, option: str, text: str) -> Template:
        """Read it. UsageError for broken braces and for what is no parameter's name."""
        shown = f"task {task!r}: the {what} {text!r}"
        try:
            parsed = list(Formatter().parse(text))
        except ValueError as error:
            raise UsageError(
                f"{shown} cannot be read: {error}; write a brace that is meant as {{{{ or }}}}"
            ) from error
        pieces = []
        for literal, name, spec, conversion in parsed:
            if name is not None and (spec or conversion):
                raise UsageError(f"{shown} formats {{{name}}}; write the bare parameter")
            pieces.append((literal, None if name is None else _field(name, shown)))
        return cls(task, what, option, text, tuple(pieces))

    def check(self, arguments: Arguments) -> None:
        """UsageError when a parameter is named that the task does not take."""
        self._check_names(arguments.names)

    def check_early(self, fn: Callable[..., Any]) -> None:
        """As `check`, before annotations can be read: the job, which is no argument, is not told apart yet."""
        self._check_names(tuple(inspect.signature(fn).parameters))

    def fill(self, given: Mapping[str, object]) -> str:
        """The text of one job. UsageError when an argument is no plain text or number."""
        parts = []
        for literal, field in self.pieces:
            parts.append(literal)
            if field is not None:
                parts.append(self._text(field, given[field.parameter]))
        return "".join(parts)

    def fill_any(self, given: Mapping[str, object]) -> str | None:
        """As `fill`; None where it is one argument and nothing else, and that is None or empty."""
        match self.pieces:
            case (("", _Field(_, parameter, ())),) if given[parameter] is None or given[parameter] == "":
                return None
        return self.fill(given)

    def _check_names(self, names: tuple[str, ...]) -> None:
        for field in self._fields:
            if field.parameter not in names:
                raise UsageError(
                    f"task {self.task!r}: its {self.what} {self.text!r} names the parameter "
                    f"'{field.parameter}', which it does not take; its parameters: {', '.join(names) or 'none'}"
                )

    @cached_property
    def _fields(self) -> tuple[_Field, ...]:
        return tuple(field for _, field in self.pieces if field is not None)

    def _text(self, field: _Field, value: object) -> str:
        key = f"task {self.task!r}: its {self.what} {self.text!r}"
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
                f"give the draft {self._own} of its own: using({self.option}='…')"
            )
        text = _plain_text(value)
        if text is None:
            raise UsageError(
                f"{key} needs text or a number, and '{field.text}' is {type(value).__name__}; "
                f"name a part of it, as {{{field.text}.id}}, or give using({self.option}='…')"
            )
        return text

    @property
    def _own(self) -> str:
        return "a tenant" if self.option == "tenant" else "a key"


def read_template(task: str, what: str, option: str, said: object, fn: Callable[..., Any]) -> Template | None:
    """What a task's option says, compared with the names of its parameters. UsageError for what is no text, or none."""
    if said is None:
        return None
    if not isinstance(said, str):
        raise UsageError(f"task {task!r}: {option}={said!r:.60} is no text; write {option}='{{parameter}}'")
    if not said.strip():
        raise UsageError(f"task {task!r}: {option} is empty; write {option}='{{parameter}}', or leave it out")
    template = Template.of(task, what, option, said)
    template.check_early(fn)
    return template


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
