"""How the value of a setting is read, alike from an environment variable, a TOML file and a Python call.

Each reader takes the raw value and the name to use in its error. Knows no setting by name.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Final, cast
from urllib.parse import unquote, urlsplit

from duly.core.durations import Duration, parse_duration, parse_size
from duly.core.errors import UsageError
from duly.core.plan import Processes, read_processes
from duly.stores.urls import parse_url

LEAST_SECRET: Final = 16

_ON = frozenset({"1", "true", "yes", "on"})
_OFF = frozenset({"0", "false", "no", "off"})


def text(value: object, name: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise UsageError(f"{name} is text, not {value!r}")
    return value.strip()


def url(value: object, name: str) -> str:
    """A relative SQLite path is made absolute here, so that a later change of directory opens no second file."""
    try:
        return parse_url(value).url
    except UsageError as error:
        raise UsageError(f"{name}: {error}") from error


def duration(value: object, name: str) -> timedelta:
    return parse_duration(cast(Duration, value), name, positive=True)


def span(value: object, name: str) -> timedelta:
    """A duration that may be zero."""
    return parse_duration(cast(Duration, value), name)


def size(value: object, name: str) -> int:
    if not isinstance(value, str):
        raise UsageError(f"{name}={value!r} has no unit; write a size such as '256KiB'")
    return parse_size(value, name)


def optional_size(value: object, name: str) -> int | None:
    return None if _is_off(value) else size(value, name)


def folder_url(value: object, name: str) -> Path | None:
    """A folder as `file:///…`; relative ones would be another one for every process."""
    if _is_off(value):
        return None
    said = text(value, name)
    parts = urlsplit(said)
    path = Path(unquote(parts.path))
    if parts.scheme != "file" or parts.netloc not in {"", "localhost"} or parts.query or parts.fragment:
        raise UsageError(f"{name}={said!r} is no folder; write file:///var/lib/duly/blobs")
    if not path.is_absolute() or "\0" in str(path):
        raise UsageError(
            f"{name}={said!r} has no absolute path; three slashes begin one: file:///var/lib/duly/blobs"
        )
    return path


def count(value: object, name: str) -> int:
    number = _whole(value)
    if number is None or not 1 <= number < 2**31:
        raise UsageError(f"{name}={value!r} must be a whole number from 1")
    return number


def optional_count(value: object, name: str) -> int | None:
    return None if _is_off(value) else count(value, name)


def processes(value: object, name: str) -> Processes:
    """A number, or a range to scale in."""
    return read_processes(value, name)


def switch(value: object, name: str) -> bool:
    word = str(value).strip().lower()
    if word in _ON:
        return True
    if word in _OFF:
        return False
    raise UsageError(f"{name}={value!r} is neither on nor off; write 'on' or 'off'")


def optional_switch(value: object, name: str) -> bool | None:
    return None if str(value).strip().lower() == "auto" else switch(value, name)


def choice(*words: str) -> Callable[[object, str], str]:
    def read(value: object, name: str) -> str:
        word = str(value).strip().lower()
        if word not in words:
            raise UsageError(f"{name}={value!r} is none of {', '.join(words)}")
        return word

    return read


def name_list(value: object, name: str) -> str:
    """Names with optional slots, as `mail:8,reports:2`; a TOML list is joined."""
    if isinstance(value, list | tuple) and all(isinstance(part, str) for part in value):
        value = ",".join(value)
    return text(value, name)


class Hidden(tuple[str, ...]):
    """Secrets; no text made of them shows one."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{len(self)} set, not shown"

    __str__ = __repr__


def secret_list(value: object, name: str) -> Hidden:
    """One or several secrets with commas between them. No error shows what was written."""
    if isinstance(value, list | tuple) and all(isinstance(part, str) for part in value):
        value = ",".join(value)
    if not isinstance(value, str):
        raise UsageError(f"{name} is text: secrets of 16 characters or more, with commas between them")
    found = Hidden(part.strip() for part in value.split(",") if part.strip())
    if not found or any(len(part.encode()) < LEAST_SECRET for part in found):
        raise UsageError(
            f"{name} holds a secret shorter than {LEAST_SECRET} characters, which can be guessed; make one with "
            "python -c 'import secrets; print(secrets.token_urlsafe(32))'"
        )
    return found


def url_list(value: object, name: str) -> Hidden:
    """URLs with commas between them, which may hold secrets; a comma inside one is written %2C."""
    if isinstance(value, list | tuple) and all(isinstance(part, str) for part in value):
        value = ",".join(value)
    if not isinstance(value, str):
        raise UsageError(f"{name} is text: URLs with commas between them")
    return Hidden(part.strip() for part in value.split(",") if part.strip())


def _is_off(value: object) -> bool:
    return isinstance(value, str) and value.strip().lower() in {"off", "auto"}


def _whole(value: object) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, str) and value.strip().isdecimal():
        return int(value)
    return None
