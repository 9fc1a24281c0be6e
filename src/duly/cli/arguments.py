"""Arguments of a job as a person types them: KEY=VALUE pairs, whose types the task decides, or a file of JSON.

Reads values; stores nothing.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import msgspec

from duly.core.errors import PayloadError, UsageError
from duly.core.payload import Arguments

Taken = TypeVar("Taken")


class Typed(msgspec.Struct, frozen=True):
    """A VALUE as typed and as JSON: which of them is meant, the parameter's type decides."""

    text: str
    value: object


def typed_arguments(pairs: tuple[str, ...], file: str | None) -> dict[str, object]:
    """KEY=VALUE pairs, or the JSON object of a file ("-": stdin). UsageError for what is neither."""
    if file is not None:
        if pairs:
            raise UsageError("KEY=VALUE and --json say two things; give one of them")
        return _from_file(file)
    given: dict[str, object] = {}
    for pair in pairs:
        key, sign, text = pair.partition("=")
        if not sign or not key.isidentifier():
            raise UsageError(f"{pair!r:.60} is no KEY=VALUE; write it like order_id=7")
        if key in given:
            raise UsageError(f"{key} is given twice")
        given[key] = _value(text)
    return given


def _value(text: str) -> object:
    try:
        value: object = msgspec.json.decode(text.encode("utf-8", "surrogateescape"))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return text
    return Typed(text, value)


def plain_arguments(given: dict[str, object]) -> dict[str, object]:
    """As JSON, where it can be read as such."""
    return {key: item.value if isinstance(item, Typed) else item for key, item in given.items()}


def fitted_arguments(arguments: Arguments, given: dict[str, object]) -> dict[str, object]:
    """The values for the function: JSON where its types allow that, else the text as typed."""
    return as_text_where_needed(given, lambda values: arguments.decode(msgspec.json.encode(values)))


def as_text_where_needed(given: dict[str, object], take: Callable[[dict[str, object]], Taken]) -> Taken:
    """What `take` makes of the values; one that it refuses as JSON is given as it was typed. PayloadError else."""
    while True:
        try:
            return take(plain_arguments(given))
        except PayloadError as error:
            key = re.split(r"[.\[]", error.path, maxsplit=1)[0]
            typed = given.get(key)
            if not isinstance(typed, Typed):
                raise
            given = {**given, key: typed.text}


def like_before(given: dict[str, object], before: Mapping[str, object]) -> dict[str, object]:
    """Values for whoever knows no types: as text where there was text before."""
    return {
        key: item.text if isinstance(item, Typed) and isinstance(before.get(key), str) else item
        for key, item in given.items()
    }


def _from_file(file: str) -> dict[str, object]:
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise UsageError(f"--json {file}: {error.strerror}") from error
    try:
        return msgspec.json.decode(data, type=dict[str, object])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(
            f'--json {file} must hold a JSON object, such as {{"order_id": 7}}: {error}'
        ) from error
