"""Our SQL files, read once and put into one schema: statements, functions and migrations.

Knows nothing of connections. The only substitution is the schema's name, which is validated and quoted.
"""

import re
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Final

from duly.core.errors import UsageError

TOKEN: Final = "{schema}"  # noqa: S105  (the one placeholder of our SQL files)
_NAME: Final = re.compile(r"[a-z_][a-z0-9_]{0,47}")
_INCLUDE: Final = re.compile(r"^-- include: (functions/[a-z0-9_]+\.sql)$", re.MULTILINE)
_MIGRATION: Final = re.compile(r"(\d{4})_([a-z0-9_]+)\.sql")
_HOME: Final = files("duly.stores.postgres")


@dataclass(frozen=True, slots=True)
class Migration:
    """One numbered file with the functions it installs, its text still without a schema."""

    version: int
    name: str
    text: str

    @property
    def checksum(self) -> str:
        return sha256(self.text.encode()).hexdigest()


def check_schema(name: str) -> str:
    """Return the name if a schema of ours may have it; UsageError else."""
    if not _NAME.fullmatch(name) or name.startswith("pg_"):
        raise UsageError(
            f"schema {name[:60]!r} must be a lower-case name of letters, digits and '_', at most 48, not pg_…"
        )
    return name


def quoted(schema: str) -> str:
    """The schema's name as an SQL identifier."""
    return f'"{check_schema(schema)}"'


@cache
def _text(path: str) -> str:
    return _HOME.joinpath(path).read_text(encoding="utf-8")


@cache
def statement(name: str, schema: str) -> bytes:
    """The text of queries/NAME.sql for a schema."""
    return _text(f"queries/{name}.sql").replace(TOKEN, quoted(schema)).encode()


@cache
def migrations() -> tuple[Migration, ...]:
    """Every migration in order, with the functions it includes written out."""
    found = []
    for entry in _HOME.joinpath("migrations").iterdir():
        match = _MIGRATION.fullmatch(entry.name)
        if match:
            text = _INCLUDE.sub(lambda include: _text(include.group(1)), entry.read_text(encoding="utf-8"))
            found.append(Migration(int(match.group(1)), match.group(2), text))
    return tuple(sorted(found, key=lambda migration: migration.version))
