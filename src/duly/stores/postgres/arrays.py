"""Python values as PostgreSQL's array texts, and bytes as a binary array: much quicker than the driver's general ones.

Knows no statement: every parameter is cast to its type there.
"""

import struct
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import psycopg
from psycopg.adapt import Dumper
from psycopg.pq import Format

_BYTEA: Final = 17
_INT8: Final = 20
_FLOAT8: Final = 701
_BYTEA_ARRAY: Final = 1001
_INT8_ARRAY: Final = 1016
_FLOAT8_ARRAY: Final = 1022


class Blobs:
    """An array of byte strings, sent as it is."""

    __slots__ = ("values",)

    def __init__(self, values: Sequence[bytes | None]) -> None:
        self.values = values


class Longs:
    """An array of 64-bit integers, sent as it is."""

    __slots__ = ("values",)

    def __init__(self, values: Sequence[int]) -> None:
        self.values = values


class Doubles:
    """An array of floating-point numbers, sent as it is."""

    __slots__ = ("values",)

    def __init__(self, values: Sequence[float]) -> None:
        self.values = values


class _BlobsDumper(Dumper):
    format = Format.BINARY
    oid = _BYTEA_ARRAY

    def dump(self, obj: Blobs) -> bytes:
        if not obj.values:
            return struct.pack(">iii", 0, 0, _BYTEA)
        parts = [struct.pack(">iiiii", 1, int(None in obj.values), _BYTEA, len(obj.values), 1)]
        for value in obj.values:
            if value is None:
                parts.append(b"\xff\xff\xff\xff")
            else:
                parts += (len(value).to_bytes(4, "big"), value)
        return b"".join(parts)


class _LongsDumper(Dumper):
    format = Format.BINARY
    oid = _INT8_ARRAY

    def dump(self, obj: Longs) -> bytes:
        return _numbers(obj.values, "q", _INT8)


class _DoublesDumper(Dumper):
    format = Format.BINARY
    oid = _FLOAT8_ARRAY

    def dump(self, obj: Doubles) -> bytes:
        return _numbers(obj.values, "d", _FLOAT8)


def _numbers(values: Sequence[float], code: str, oid: int) -> bytes:
    count = len(values)
    if not count:
        return struct.pack(">iii", 0, 0, oid)
    # Each element is preceded by its length.
    flat: list[float] = [8] * (2 * count)
    flat[1::2] = values
    return struct.pack(f">iiiii{('i' + code) * count}", 1, 0, oid, count, 1, *flat)


psycopg.adapters.register_dumper(Blobs, _BlobsDumper)
psycopg.adapters.register_dumper(Longs, _LongsDumper)
psycopg.adapters.register_dumper(Doubles, _DoublesDumper)


def plain(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The same for any driver: a connection that was opened before this module was loaded knows no Blobs either."""
    return {
        name: list(value.values) if isinstance(value, Blobs) else value for name, value in parameters.items()
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
