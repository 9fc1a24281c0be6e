"""Errors as text that can be stored and grouped: type, message, traceback, fingerprint.

Reads no state but the error itself (and, for the traceback's lines, the source of loaded modules); never raises,
because it runs where an attempt must come to its recorded end.
"""

import re
import traceback
from collections import deque
from collections.abc import Iterator
from hashlib import blake2b
from itertools import islice
from types import FrameType, TracebackType
from typing import Final

from msgspec import Struct

from duly.core.defaults import MAX_ERROR
from duly.core.secret import masked
from duly.core.text import storable

_FRAMES: Final = 40
_LINES: Final = 400
_NAMED_FRAMES: Final = 5
_LEAVES: Final = 10

_VARYING: Final = (
    (re.compile(r"(?<!\w)(?:'[^'\n]*'|\"[^\"\n]*\"|`[^`\n]*`|“[^”\n]*”|«[^»\n]*»)(?!\w)"), "#"),
    (re.compile(r"[^\s@]+@[^\s@]+"), "#"),
    (re.compile(r"\b[0-9a-fA-F]{8,}\b"), "#"),
    (re.compile(r"\w*\d\w*"), "#"),
    (re.compile(r"#(?:[\s,.:;/+_-]*#)+"), "#"),
    (re.compile(r"\s+"), " "),
)


class ErrorRecord(Struct, frozen=True):
    """What is kept of an error: plain text, at most MAX_ERROR bytes in all."""

    type: str
    """Dotted name of the class; builtins without their module."""
    message: str
    traceback: str
    """The newest lines, without the worker's own frames on top."""
    fingerprint: str
    """Eight hexadecimal digits, the same for errors that differ in ids, numbers and quoted parts only."""


def describe(error: BaseException, *, max_bytes: int = MAX_ERROR) -> ErrorRecord:
    """Return the record of an error, whatever its class does when asked; never raises."""
    name = storable(_name(type(error)), max_bytes // 8)
    message = storable(message_of(error), max_bytes // 4)
    room = max_bytes - len(name.encode()) - len(message.encode())
    return ErrorRecord(
        type=name,
        message=message,
        traceback=_lines(error, room),
        fingerprint=_fingerprint(error, name, message),
    )


def told(name: str, message: str, traceback: str = "", *, max_bytes: int = MAX_ERROR) -> ErrorRecord:
    """The record of an error that a worker elsewhere tells in words; grouped by its type and message."""
    name = storable(name, max_bytes // 8)
    message = storable(message, max_bytes // 4)
    room = max_bytes - len(name.encode()) - len(message.encode())
    lines = deque(storable(line, room // 8) + "\n" for line in traceback.splitlines()[-_LINES:])
    parts = "\n".join((name, normalise(message)))
    return ErrorRecord(
        type=name,
        message=message,
        traceback=_tail(lines, room),
        fingerprint=blake2b(parts.encode("utf-8", "replace"), digest_size=4).hexdigest(),
    )


def _name(kind: type) -> str:
    try:
        module, name = str(kind.__module__), str(kind.__qualname__)
    except BaseException:  # a metaclass may do anything
        return "unnamed error"
    return name if module == "builtins" else f"{module}.{name}"


def message_of(error: BaseException) -> str:
    """Return the text of an error, without a Secret in it; never raises, whatever its `__str__` does."""
    try:
        return masked(str(error))
    except BaseException as failure:  # even SystemExit raised by __str__ must not end the worker
        return f"(its text cannot be read: str() raised {_name(type(failure))})"


def _lines(error: BaseException, room: int) -> str:
    try:
        report = traceback.TracebackException(
            type(error), error, _user_part(error), limit=-_FRAMES, compact=True
        )
        newest = deque(
            (storable(masked(line.rstrip()), room // 8) + "\n" for line in report.format()), maxlen=_LINES
        )
    except BaseException as failure:  # a broken __cause__, __notes__ or RecursionError while formatting
        return storable(f"(no traceback: formatting it raised {_name(type(failure))})", room)
    return _tail(newest, room)


def _tail(lines: deque[str], room: int) -> str:
    kept: deque[str] = deque()
    left = room - len("…\n".encode())
    while lines and len(lines[-1].encode()) <= left:
        left -= len(lines[-1].encode())
        kept.appendleft(lines.pop())
    if lines:
        kept.appendleft("…\n")
    return "".join(kept)


def is_own(frame: FrameType) -> bool:
    """Tell duly's frames, and those of the loops and pools that it runs handlers in, from the user's."""
    module = frame.f_globals.get("__name__")
    return isinstance(module, str) and module.partition(".")[0] in {
        "duly",
        "asyncio",
        "concurrent",
        "threading",
    }


def _user_part(error: BaseException) -> TracebackType | None:
    start = error.__traceback__
    while start is not None and is_own(start.tb_frame):
        start = start.tb_next
    return start or error.__traceback__


def _fingerprint(error: BaseException, name: str, message: str) -> str:
    parts = [name, normalise(message), *_functions(error)]
    try:
        # All failures of a TaskGroup have one type and one message: what is inside tells them apart.
        if isinstance(error, BaseExceptionGroup):
            inside = islice(leaves(error), _LEAVES)
            parts += sorted({f"{_name(type(leaf))} {normalise(message_of(leaf))}" for leaf in inside})
    except BaseException:  # a group whose own attributes misbehave
        parts.append("unreadable group")
    return blake2b("\n".join(parts).encode("utf-8", "replace"), digest_size=4).hexdigest()


def _functions(error: BaseException) -> list[str]:
    names: deque[str] = deque(maxlen=_NAMED_FRAMES)
    step = error.__traceback__
    while step is not None:
        name = step.tb_frame.f_code.co_qualname
        # Recursion of any depth counts once: the depth at which it broke means nothing.
        if not is_own(step.tb_frame) and name not in names:
            names.append(name)
        step = step.tb_next
    return sorted(names)


def leaves(error: BaseException) -> Iterator[BaseException]:
    """Yield what a group, nested or not, holds; an error that is no group yields itself."""
    waiting = [error]
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, BaseExceptionGroup):
            waiting.extend(inner.exceptions)
        else:
            yield inner


def normalise(message: str) -> str:
    """Return a message without what differs from one case to the next: numbers, ids, addresses, quoted parts."""
    # The patterns are quadratic in the length of a word, so that the length is bounded first.
    text = message[:500]
    for pattern, replacement in _VARYING:
        text = pattern.sub(replacement, text)
    return text.strip()[:200]
