"""Statements with named parameters as asyncpg wants them: positional, and exact types. Knows no statement."""

import re
from collections.abc import Sequence
from functools import cache
from typing import Any, Final

from duly.stores.connections.kinds import Parameters

_PLACE: Final = re.compile(r"%%|%\((?P<name>[a-z_0-9]+)\)s(?P<array>(?:::(?!bytea\b)[a-z0-9_]+\[\])?)")


@cache
def positional(text: bytes) -> tuple[str, tuple[str, ...]]:
    """The statement with $1, $2, … and the names of its parameters in that order."""
    places: dict[str, int] = {}

    def numbered(match: re.Match[str]) -> str:
        if match["name"] is None:
            return "%"
        number = places.setdefault(match["name"], len(places) + 1)
        # Our arrays are array texts, which asyncpg would take for no array; the server reads them.
        return f"${number}::text{match['array']}" if match["array"] else f"${number}"

    return _PLACE.sub(numbered, text.decode()), tuple(places)


def values(names: Sequence[str], parameters: Parameters) -> tuple[Any, ...]:
    return tuple(parameters[name] for name in names)
