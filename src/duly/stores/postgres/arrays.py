"""Python values as PostgreSQL's array texts, and as its binary arrays: much quicker than the driver's general ones.

Knows no statement: every parameter is cast to its type there.
"""

import struct
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import psycopg
from psycopg.adapt import Dumper
from psycopg.pq import Format

_NULL: Final = b"\xff\xff\xff\xff"
_BYTEA: Final = 17
_INT8: Final = 20
_FLOAT8: Final = 701
_BYTEA_ARRAY: Final = 1001


class Packed(ABC):
    """An array that is sent in PostgreSQL's binary form."""

    __slots__ = ("values",)

    def __init__(self, values: Sequence[Any]) -> None:
        self.values = values

    @abstractmethod
    def binary(self) -> bytes: ...


class Blobs(Packed):
    """Byte strings, some of them None."""

    __slots__ = ()

    def binary(self) -> bytes:
        values: Sequence[bytes | None] = self.values
        parts = [_head(len(values), _BYTEA, nulls=None in values)]
        for value in values:
            if value is None:
                parts.append(_NULL)
            else:
                parts += (len(value).to_bytes(4, "big"), value)
        return b"".join(parts)


class Longs(Packed):
    """64-bit integers."""

    __slots__ = ()

    def binary(self) -> bytes:
        return _numbers(self.values, "q", _INT8)


class Doubles(Packed):
    """Floating-point numbers, some of them None."""

    __slots__ = ()

    def binary(self) -> bytes:
        if None not in self.values:
            return _numbers(self.values, "d", _FLOAT8)
        parts = [_NULL if value is None else struct.pack(">id", 8, value) for value in self.values]
        return b"".join([_head(len(parts), _FLOAT8, nulls=True), *parts])


def _head(count: int, oid: int, *, nulls: bool = False) -> bytes:
    return struct.pack(">iiiii", 1, nulls, oid, count, 1) if count else struct.pack(">iii", 0, 0, oid)


def _numbers(values: Sequence[float], code: str, oid: int) -> bytes:
    # Each element is preceded by its length.
    flat: list[float] = [8] * (2 * len(values))
    flat[1::2] = values
    return _head(len(values), oid) + struct.pack(f">{('i' + code) * len(values)}", *flat)


class _BlobsDumper(Dumper):
    format = Format.BINARY
    oid = _BYTEA_ARRAY

    def dump(self, obj: Blobs) -> bytes:
        return obj.binary()


psycopg.adapters.register_dumper(Blobs, _BlobsDumper)


def plain(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The same for any driver: a connection that was opened before this module was loaded knows no Blobs either."""
    return {
        name: list(value.values) if isinstance(value, Packed) else value for name, value in parameters.items()
    }


def words(values: Iterable[object]) -> str:
    """Numbers, booleans and names of our own, none of which needs quotes; None is NULL."""
    return "{" + ",".join(["null" if value is None else str(value) for value in values]) + "}"


def texts(values: Iterable[str | None]) -> str:
    """Any text."""
    return "{" + ",".join(["null" if value is None else _quoted(value) for value in values]) + "}"


def moments(values: Iterable[datetime | None]) -> str:
    """Aware times."""
    return "{" + ",".join(["null" if value is None else f'"{value.isoformat()}"' for value in values]) + "}"


def _quoted(text: str) -> str:
    if "\\" in text or '"' in text:
        text = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'
