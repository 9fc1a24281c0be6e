"""How a command's answer leaves: a table for people, one JSON document, or one JSON object a line.

Owns alignment, relative times and the JSON form of every value; knows no command.
"""

from __future__ import annotations

import shutil
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import cache
from typing import Final, Literal, get_args, get_type_hints

import click
import msgspec

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"] | msgspec.Raw

_EMPTY: Final = "-"
_STYLES: Final = {
    "dead": "red",
    "running": "cyan",
    "completed": "green",
    "cancelled": "yellow",
    "paused": "yellow",
    "error": "red",
    "warning": "yellow",
    "ok": "green",
}


class Form(StrEnum):
    """The value of -o."""

    table = "table"
    json = "json"
    ndjson = "ndjson"


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table; numbers stand right."""

    title: str
    align: Literal["left", "right"] = "left"
    wide: bool = False
    """Takes what room the terminal has left; cut there."""


@dataclass(frozen=True, slots=True)
class Out:
    """Where a command's answer goes."""

    form: Form = Form.table
    quiet: bool = False

    @property
    def for_people(self) -> bool:
        return self.form is Form.table

    def answer(
        self, document: Json, people: Callable[[], Iterable[str]], items: Iterable[Json] | None = None
    ) -> None:
        """Print one answer: `people`'s lines, the whole document, or each item on a line of its own."""
        if self.form is Form.json:
            click.echo(msgspec.json.format(msgspec.json.encode(document), indent=2).decode())
        elif self.form is Form.ndjson:
            for item in [document] if items is None else items:
                click.echo(msgspec.json.encode(item).decode())
        else:
            for line in people():
                click.echo(line)

    def item(self, item: Json, line: str) -> None:
        """Print one entry of an answer that grows while it is watched."""
        click.echo(line if self.for_people else msgspec.json.encode(item).decode())

    def hint(self, text: str) -> None:
        """A line that helps a person and is no part of the answer."""
        if self.for_people and not self.quiet:
            click.echo(text)

    def table(self, columns: Sequence[Column], rows: Iterable[Sequence[str]]) -> list[str]:
        """The lines of a table, without a heading when quiet."""
        return table(columns, rows, heading=not self.quiet)


def table(columns: Sequence[Column], rows: Iterable[Sequence[str]], *, heading: bool = True) -> list[str]:
    """Align cells in columns two blanks apart; only the wide column is cut, at the terminal's edge."""
    cells = [
        [cell or (_EMPTY if column.title else "") for cell, column in zip(row, columns, strict=True)]
        for row in rows
    ]
    if not cells and not heading:
        return []
    titles = [column.title for column in columns]
    widths = [
        max(width_of(row[i]) for row in ([titles, *cells] if heading else cells)) for i in range(len(columns))
    ]
    room = shutil.get_terminal_size((160, 24)).columns
    for i, column in enumerate(columns):
        if column.wide:
            widths[i] = max(
                12, min(widths[i], room - sum(widths[:i] + widths[i + 1 :]) - 2 * (len(widths) - 1))
            )
    lines = [click.style(_line(titles, columns, widths), bold=True)] if heading else []
    return lines + [_line(row, columns, widths) for row in cells]


def _line(row: Sequence[str], columns: Sequence[Column], widths: Sequence[int]) -> str:
    parts: list[str] = []
    for cell, column, width in zip(row, columns, widths, strict=True):
        text = cut(cell, width)
        blank = " " * (width - width_of(text))
        styled = click.style(text, fg=_STYLES[text]) if text in _STYLES else text
        parts.append(blank + styled if column.align == "right" else styled + blank)
    return "  ".join(parts).rstrip()


def width_of(text: str) -> int:
    """Columns of a terminal that the text takes."""
    plain = click.unstyle(text)
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in plain
    )


def cut(text: str, width: int) -> str:
    """One line of at most `width` columns."""
    flat = " ".join(text.split())
    if width_of(flat) <= width:
        return flat
    kept = ""
    for character in flat:
        if width_of(kept + character) >= width:
            break
        kept += character
    return kept + "…"


def printable(text: str) -> str:
    """Stored text as it may go to a terminal: control characters are shown, not obeyed."""
    return "".join(
        c if c in "\n\t" or unicodedata.category(c)[0] != "C" else f"\\x{ord(c):02x}" for c in text
    )


def count(number: int) -> str:
    """A number with its thousands apart."""
    return f"{number:,}"


def counted(number: int, noun: str) -> str:
    """ "1 job", "2 jobs"."""
    return f"{number:,} {noun if number == 1 else noun + 's'}"


def rate(per_second: float | None) -> str:
    """A rate as a person compares it: "310", "0.4"; "-" when nobody measured."""
    if per_second is None:
        return _EMPTY
    return f"{per_second:,.0f}" if abs(per_second) >= 10 else f"{per_second:.1f}".removesuffix(".0")


def age(span: timedelta | None) -> str:
    """A span in its largest unit: "3s", "41m", "5h", "12d"; two units between a minute and ten."""
    if span is None:
        return _EMPTY
    seconds = max(0, round(span.total_seconds()))
    if seconds < 60:
        return f"{seconds}s"
    if seconds < 600:
        return f"{seconds // 60}m {seconds % 60:02d}s"
    if seconds < 5400:
        return f"{seconds // 60}m"
    if seconds < 172_800:
        return f"{seconds / 3600:.0f}h"
    return f"{seconds // 86_400}d"


def relative(moment: datetime | None, now: datetime) -> str:
    """A moment as seen from now: "3s ago", "in 5m"."""
    if moment is None:
        return _EMPTY
    span = now - moment
    if abs(span) < timedelta(seconds=1):
        return "now"
    return f"in {age(-span)}" if span < timedelta(0) else f"{age(span)} ago"


def clock(moment: datetime, now: datetime | None = None) -> str:
    """A moment in UTC, with its date when it is not today's."""
    utc = moment.astimezone(UTC)
    today = now is not None and utc.date() == now.astimezone(UTC).date()
    return utc.strftime("%H:%M:%S" if today else "%Y-%m-%d %H:%M:%S")


def elapsed(span: timedelta) -> str:
    """How long something took: "0.4 s", "12 s", "3m 20s"."""
    seconds = span.total_seconds()
    if seconds < 10:
        return f"{seconds:.2f} s"
    return f"{seconds:.0f} s" if seconds < 60 else age(span)


def plain(value: object) -> Json:
    """Any value of the read model as JSON: times in UTC, spans in seconds under a name that says so."""
    match value:
        case None | bool() | int() | float():
            return value
        case str():
            return str(value)
        case datetime():
            return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
        case timedelta():
            return value.total_seconds()
        case bytes():
            return _stored(value)
        case msgspec.Struct():
            spans = _spans(type(value))
            return {
                f"{name}_s" if name in spans else name: plain(getattr(value, name))
                for name in value.__struct_fields__
            }
        case Mapping():
            return {str(name): plain(item) for name, item in value.items()}
        case Iterable():
            return [plain(item) for item in value]
        case _:
            return str(value)


@cache
def _spans(kind: type) -> frozenset[str]:
    """The fields that hold spans, by their types: an absent span has the same name as a present one."""
    hints = get_type_hints(kind)
    return frozenset(name for name, hint in hints.items() if timedelta in {hint, *get_args(hint)})


def _stored(data: bytes) -> Json:
    """Stored JSON as it is; what is no JSON, as text."""
    try:
        msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):
        return data.decode(errors="backslashreplace")
    return msgspec.Raw(data)
