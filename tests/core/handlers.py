"""Values and handlers that the tests of payloads share."""

import dataclasses
import enum
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, NamedTuple, NewType, TypedDict
from uuid import UUID

import msgspec
import pytest
from hypothesis import settings

from duly.core.errors import PayloadError
from duly.core.payload import Arguments, Bounds

# Enough for pure rules to meet their edges, few enough for a suite that is run after every change.
FEW = settings(max_examples=settings().max_examples * 3 // 10)


class Job:
    """Stands where the client's handle stands: core only compares the class."""


class Colour(enum.Enum):
    RED = "red"


class Odd(enum.Enum):
    HALF = (1, 2)


class Size(enum.StrEnum):
    BIG = "big"


class Level(enum.IntEnum):
    HIGH = 3


@dataclass
class Line:
    sku: str
    price: Decimal


@dataclass
class Order:
    id: int
    lines: list[Line]
    notes: dict[str, Any] = dataclasses.field(default_factory=dict)


@dataclass
class Urgent(Order):
    level: int = 1


@dataclass
class Node:
    name: str
    children: "list[Node]"


class Box(msgspec.Struct):
    sizes: tuple[int, ...]
    marks: frozenset[str] = frozenset()
    note: str | msgspec.UnsetType = msgspec.UNSET


class Point(NamedTuple):
    x: int
    y: int


class Wanted(TypedDict):
    sku: str


class Words(str):
    __slots__ = ()


class Count(int):
    pass


class Grams(float):
    pass


CustomerId = NewType("CustomerId", int)
A_UUID = UUID("6ba7b810-9dad-11d1-80b4-00c04fd430c8")
NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)


def taking(annotation: Any) -> Arguments:
    """The arguments of a handler with one parameter `x` of this type."""

    def handler(x: Any) -> None: ...

    handler.__annotations__["x"] = annotation
    return Arguments(handler, job_type=Job)


def plain(x) -> None:  # type: ignore[no-untyped-def]
    """A handler whose author wrote no annotation."""


def refused(arguments: Arguments, value: object, bounds: Bounds | None = None) -> PayloadError:
    with pytest.raises(PayloadError) as caught:
        arguments.encode((value,), {}, bounds or Bounds())
    assert str(caught.value).encode()
    return caught.value
