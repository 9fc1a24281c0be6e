"""Bringing the tables to this release's version inside an open transaction. Takes no lock and commits nothing."""

import sqlite3
from os import urandom
from typing import Final

from duly.core.errors import MigrationNeeded
from duly.core.signing import STORE_KIND
from duly.stores.sqlite.session import Session
from duly.stores.sqlite.statements import Migration, load, migrations

_WITH_SECRETS: Final = 4
"""The migration that brings the table of signing keys."""


def wanted() -> int:
    """The version that this release works with."""
    return migrations("duly")[-1].version


def version_of(session: Session) -> int:
    """The version in the file; 0 without our tables."""
    if session.row("select_schema_table") is None:
        return 0
    return int(session.value("select_schema_version") or 0)


def apply_missing(session: Session, prefix: str, path: str) -> list[str]:
    """Run what is missing, in the caller's transaction; the names of what was applied."""
    found = version_of(session)
    if found > wanted():
        raise too_new(path, found)
    if found == 0:
        session.run("create_schema_version")
    else:
        _check_applied(session, prefix, path)
    applied = []
    for migration in migrations(prefix):
        if migration.version <= found:
            continue
        for statement in migration.statements:
            session.text(statement)
        session.run(
            "insert_schema_version",
            version=migration.version,
            name=migration.name,
            checksum=migration.checksum,
            applied_at=session.now,
        )
        applied.append(f"{migration.version:04d}_{migration.name}")
    if found < _WITH_SECRETS <= wanted() and not session.rows("select_secrets", kind=STORE_KIND):
        # Now, as the first ticket may be asked for inside a transaction, where nothing else can be written.
        session.run("insert_secret", kind=STORE_KIND, id=1, value=urandom(32), now=session.now)
    return applied


def too_new(path: str, found: int) -> MigrationNeeded:
    return MigrationNeeded(
        f"{path} has schema version {found}, made by a newer release of duly; this one knows {wanted()}. "
        "Deploy the newer release here too",
        found=found,
        wanted=wanted(),
    )


def _check_applied(session: Session, prefix: str, path: str) -> None:
    shipped = {migration.version: migration.checksum for migration in migrations(prefix)}
    for version, name, checksum in session.rows("select_schema_versions"):
        if shipped.get(version) != checksum:
            raise MigrationNeeded(
                f"migration {version} ({name}) in {path} is not the one of this release; "
                "use the release that made the file, or start with a new file",
                found=version,
                wanted=wanted(),
            )


def script(prefix: str) -> str:
    """What `apply_missing` runs from nothing, for people to read and to run by hand."""
    texts = load(prefix)
    parts = [texts["create_schema_version"]]
    for migration in migrations(prefix):
        parts += [f"-- migration {migration.version}: {migration.name}", *migration.statements]
        parts.append(_recorded(texts["insert_schema_version"], migration))
    return "\n\n".join(part if part.startswith("-- migration") else f"{part};" for part in parts) + "\n"


def _recorded(text: str, migration: Migration) -> str:
    """The statement that notes a migration as applied, its values written out."""
    values = {
        ":version": str(migration.version),
        ":name": f"'{migration.name}'",
        ":checksum": f"'{migration.checksum}'",
        ":applied_at": "strftime('%s', 'now') * 1000000",
    }
    for name, value in values.items():
        text = text.replace(name, value)
    return text


def library() -> str:
    return sqlite3.sqlite_version
