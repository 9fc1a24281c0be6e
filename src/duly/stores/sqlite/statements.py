"""The SQL texts, by file name, with the prefix of our tables in place. Knows no connection and builds no SQL."""

import re
from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256
from importlib.resources import files
from types import MappingProxyType
from typing import Final, NamedTuple

from duly.core.errors import UsageError

Statements = Mapping[str, str]

_PREFIX: Final = re.compile(r"[a-z_][a-z0-9_]{0,39}")
_PLACEHOLDER: Final = "{prefix}"
_NAME: Final = re.compile(r":([a-z_]+)")


class Migration(NamedTuple):
    """One numbered step of the schema. `checksum` is of the text as shipped, whatever the prefix."""

    version: int
    name: str
    checksum: str
    statements: tuple[str, ...]


def check_prefix(schema: str) -> str:
    """The table prefix of a `schema` setting; UsageError when it cannot be one."""
    if not _PREFIX.fullmatch(schema) or schema.startswith("sqlite_"):
        raise UsageError(
            f"schema={schema!r} cannot name tables; write lower-case letters, digits and '_', "
            "at most 40, not a digit first, such as 'duly'"
        )
    return schema


@lru_cache(maxsize=16)
def load(prefix: str) -> Statements:
    """Every statement under queries/, by its file's name without `.sql`."""
    found = {
        entry.name.removesuffix(".sql"): _without_header(entry.read_text("utf-8")).replace(
            _PLACEHOLDER, prefix
        )
        for entry in files(__package__).joinpath("queries").iterdir()
        if entry.name.endswith(".sql")
    }
    return MappingProxyType(found)


@lru_cache(maxsize=256)
def by_position(statement: str) -> str:
    """The same statement for values in the order of its names, each of which it holds once."""
    names = _NAME.findall(statement)
    if len(set(names)) != len(names):
        raise ValueError(f"a name occurs twice in: {statement}")
    return _NAME.sub("?", statement)


@lru_cache(maxsize=16)
def migrations(prefix: str) -> tuple[Migration, ...]:
    """All migrations in order."""
    found = []
    for entry in files(__package__).joinpath("migrations").iterdir():
        if not entry.name.endswith(".sql"):
            continue
        text = entry.read_text("utf-8")
        number, _, name = entry.name.removesuffix(".sql").partition("_")
        statements = tuple(
            part.strip()
            for part in _without_header(text).replace(_PLACEHOLDER, prefix).split(";\n")
            if part.strip()
        )
        found.append(Migration(int(number), name, sha256(text.encode()).hexdigest(), statements))
    return tuple(sorted(found))


def _without_header(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not line.startswith("--")).strip() + "\n"
