"""Why a value cannot be stored, where in it the reason lies, and what to pass instead.

Recognises rows, files, connections and the like by their shape alone; imports none of the libraries they come from.
"""

import dataclasses
import enum
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, MappingView, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import PurePath
from types import (
    AsyncGeneratorType,
    BuiltinFunctionType,
    CoroutineType,
    FunctionType,
    GeneratorType,
    MethodType,
    ModuleType,
)
from typing import Final
from uuid import UUID

import msgspec

from duly.core.placeholder import Placeholder

_SURROGATE: Final = re.compile("[\ud800-\udfff]")
# 640 digits: the lowest limit on reading integers that any Python can be set to.
_MOST_BITS: Final = 2_126


class Custom(ABC):
    """A value of the layers above that knows its own form in JSON."""

    @abstractmethod
    def to_json(self) -> object:
        """What to write in its place. UsageError where it cannot be stored."""


_FINE_LEAVES: Final = (
    bool,
    bytes,
    bytearray,
    memoryview,
    date,
    time,
    timedelta,
    UUID,
    PurePath,
    msgspec.UnsetType,
    msgspec.Raw,
    Custom,
    Placeholder,
)
# Of exactly these classes; a text that holds half a character is not written in the first place.
_SURE_LEAVES: Final = frozenset({str, bool, type(None), bytes, date, time, timedelta, UUID})
_LOCKS: Final = frozenset({"lock", "Lock", "RLock", "_RLock", "Semaphore", "Condition", "Barrier", "Event"})


@dataclass(slots=True)
class Fault:
    """One reason, with the steps that lead to it, innermost first."""

    reason: str
    steps: list[str] = field(default_factory=list)

    def under(self, step: str) -> "Fault":
        """Add the step that leads from the holder to what was reached so far."""
        self.steps.append(step)
        return self

    def path(self) -> str:
        """Return the steps as code would write them: ".order.lines[3].price"."""
        return "".join(reversed(self.steps))


def key_step(key: object) -> str:
    """Return the step into a field or a key: ".price", or "['odd key']" where it is no identifier."""
    if isinstance(key, str) and key.isidentifier():
        return f".{key}"
    return f"[{key!r:.40}]"


def parts_of(value: object) -> dict[str, object] | None:
    """Return the fields of a dataclass, Struct, attrs class or pydantic model; None for anything else."""
    if isinstance(value, type):
        return None
    if isinstance(value, msgspec.Struct):
        names: list[str] = list(value.__struct_fields__)
    elif dataclasses.is_dataclass(value):
        names = [each.name for each in dataclasses.fields(value)]
    elif attributes := getattr(type(value), "__attrs_attrs__", None):
        names = [each.name for each in attributes]
    elif is_pydantic(type(value)):
        names = [
            *getattr(type(value), "model_fields", ()),
            *(getattr(value, "__pydantic_extra__", None) or ()),
        ]
    else:
        return None
    return {name: getattr(value, name, None) for name in names}


def is_pydantic(kind: object) -> bool:
    """Tell pydantic's model classes from others, whether or not pydantic can be imported here."""
    return isinstance(kind, type) and hasattr(kind, "__pydantic_validator__") and hasattr(kind, "model_dump")


def is_row(value: object) -> bool:
    """Tell instances, and classes, of an ORM's mapped rows."""
    if _has(value, "_sa_instance_state") or _has(value, "_sa_class_manager"):
        return True
    return _has(value, "_meta") and (_has(value, "_state") or _has(value, "_default_manager"))


def _has(value: object, name: str) -> bool:
    try:
        return hasattr(value, name)
    except Exception:  # proxies of web frameworks raise RuntimeError outside of a request
        return False


def surely_storable(value: object) -> bool:
    """Tell, of a value that was written as JSON within its bounds, that `fault_in` has nothing against it.

    Says so of what most handlers return, in a tenth of the time; False means only that it takes a closer look.
    """
    if type(value) is dict:
        return all(
            type(key) is str and (type(part) in _SURE_LEAVES or surely_storable(part))
            for key, part in value.items()
        )
    if type(value) is list or type(value) is tuple:
        return all(type(part) in _SURE_LEAVES or surely_storable(part) for part in value)
    if type(value) is float:
        return math.isfinite(value)
    if type(value) is int:
        return value.bit_length() <= _MOST_BITS
    return type(value) in _SURE_LEAVES or (type(value) is datetime and value.tzinfo is UTC)


def fault_in(value: object, most: int) -> Fault | None:
    """Return the first reason why a value cannot be stored as JSON, nested `most` deep at the most."""
    return _fault(value, most, ())


def _fault(value: object, most: int, holders: tuple[object, ...]) -> Fault | None:
    inside = _inside(value)
    if inside is None:
        reason = _leaf_reason(value)
        return Fault(reason) if reason else None
    if any(holder is value for holder in holders):
        return Fault("contains itself; pass an id, or a tree without a way back")
    if len(holders) >= most:
        return Fault(f"is nested more than {most} deep; pass a flatter value, or an id")
    for step, part in inside:
        if fault := _fault(part, most, (*holders, value)):
            return fault.under(step)
    return None


def _inside(value: object) -> Iterator[tuple[str, object]] | None:
    if isinstance(value, (list, tuple, set, frozenset)):
        return ((f"[{index}]", part) for index, part in enumerate(value))
    if isinstance(value, dict):
        return _entries(value)
    if is_row(value):
        return None
    parts = parts_of(value)
    return None if parts is None else ((key_step(name), part) for name, part in parts.items())


def _entries(value: Mapping[object, object]) -> Iterator[tuple[str, object]]:
    for key, part in value.items():
        if key is None or isinstance(key, (bool, tuple, frozenset, Placeholder)):
            yield f"[{key!r:.40}]", _BadKey()
        if isinstance(key, (str, int, float)):
            yield f"[{key!r:.40}]", key  # a key must be storable as much as its value
        yield key_step(key), part


class _BadKey:
    """Stands for a key that no JSON object has."""


def _leaf_reason(value: object) -> str | None:
    if value is None or (isinstance(value, _FINE_LEAVES) and not isinstance(value, datetime)):
        return None
    if isinstance(value, enum.Enum):
        return enum_reason(value)
    if isinstance(value, (str, int, float, Decimal, datetime)):
        return scalar_reason(value)
    return advice(value)


def enum_reason(member: enum.Enum) -> str | None:
    """Return why a member of an enum cannot be stored; None when its value is text or an integer."""
    if isinstance(member.value, (str, int)):
        return None
    kind = type(member.value).__name__
    return f"is {member}, whose value is of type {kind}; only text and integers can be stored"


def scalar_reason(value: str | float | Decimal | datetime) -> str | None:
    """Return why a text, number or moment cannot be stored; None when it can."""
    if isinstance(value, str):
        found = _SURROGATE.search(value)
        return found and (
            f"holds a lone surrogate (U+{ord(found.group()):04X}, half a character) at position {found.start()}; "
            "decode the text rightly where it was read, or pass bytes"
        )
    if isinstance(value, int):
        return (
            "is an integer of more than 640 digits; pass it as a str"
            if value.bit_length() > _MOST_BITS
            else None
        )
    if isinstance(value, float):
        return (
            None if math.isfinite(value) else f"is {value}, which JSON cannot hold; pass None or leave it out"
        )
    if isinstance(value, Decimal):
        return None if value.is_finite() else f"is {value}, which is no number; pass None or leave it out"
    return _moment_reason(value)


def _moment_reason(moment: datetime) -> str | None:
    offset = moment.utcoffset()
    if offset is None:
        return "is a datetime without a time zone; write datetime.now(UTC) or add .replace(tzinfo=UTC)"
    if offset % timedelta(minutes=1):
        return "is a datetime whose UTC offset has seconds; write it as .astimezone(UTC)"
    return None


def advice(value: object) -> str:
    """Return what a value of no storable type is, and what to pass instead of it."""
    kind = type(value)
    name, home = kind.__name__, str(kind.__module__).partition(".")[0]
    if isinstance(value, _BadKey):
        return "is a key that JSON cannot hold; its keys are text: pass a list of pairs"
    if is_row(value):
        return f"is a database row ({name}); pass its id and load it in the handler"
    if isinstance(value, CoroutineType):
        return "is a coroutine that nobody awaited; await it first and pass what it returns"
    if isinstance(value, (BuiltinFunctionType, FunctionType, MethodType, ModuleType, type)):
        return f"is {article(name)}, not data; make it a task of its own, or pass its name"
    if isinstance(value, BaseException):
        return f"is an error ({name}); pass str(error)"
    if kinds := _shape(value):
        return f"is {kinds} ({name}); " + _INSTEAD[kinds]
    if isinstance(value, (GeneratorType, AsyncGeneratorType, Iterator)):
        return f"is {article(name)}, which yields its values only once; pass list(...) of it, or what it is made from"
    if isinstance(value, (Mapping, Sequence, AbstractSet, MappingView)):
        return f"is {article(name)}; pass {'dict' if isinstance(value, Mapping) else 'list'}(...) of it"
    if _has(value, "tolist"):
        return f"is a {home} {name}; pass its .tolist()"
    return f"is {article(name)}, which has no form in JSON; pass its id, or a dataclass with what the handler needs"


def article(name: str) -> str:
    """Return a class's name with its article: "a tuple", "an Order"."""
    return f"{'an' if name[:1].lower() in 'aeio' else 'a'} {name}"


_INSTEAD: Final = {
    "a lock": "it means nothing in another process: take it in the handler",
    "an open file": "pass its path and open it in the handler",
    "a socket": "pass its address and connect in the handler",
    "an HTTP request or response": "pass its id, or the values that the handler needs from it",
    "a session or connection": "open one in the handler, and pass the id of what it is about",
}


def _shape(value: object) -> str | None:
    names = {ancestor.__name__ for ancestor in type(value).__mro__}
    if names & _LOCKS:
        return "a lock"
    if _ends(names, ("socket", "Socket")):
        return "a socket"
    if _has(value, "read") and _has(value, "close") and (_has(value, "seek") or _has(value, "fileno")):
        return "an open file"
    if _ends(names, ("Request", "Response")):
        return "an HTTP request or response"
    if _ends(
        names,
        ("Session", "session", "Connection", "connection", "Cursor", "Client", "Engine", "Pool", "Redis"),
    ):
        return "a session or connection"
    return None


def _ends(names: set[str], endings: tuple[str, ...]) -> bool:
    return any(name.endswith(endings) for name in names)
