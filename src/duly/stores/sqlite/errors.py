"""What SQLite and the file system report, turned into duly's errors: here and nowhere else in this store."""

import sqlite3
from typing import Final

from duly.core.errors import DulyError, MigrationNeeded, StoreFull, StoreUnreachable, UsageError
from duly.stores.faults import DataFault, Full, ReadOnly, Transient

_DATA: Final = {sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_TOOBIG}
_LOCKED: Final = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}

# What sqlite3 raises for one statement or one parameter.
FAILURES: Final = (sqlite3.Error, sqlite3.Warning, OverflowError, UnicodeError)


class Unreachable(Transient, StoreUnreachable):
    """The file cannot be used at the moment: the worker tries again, a caller reads what to do."""


class ReadOnlyFile(ReadOnly, StoreUnreachable):
    """The file or its folder accepts no writes from this process."""


class FullDisk(Full, StoreFull):
    """No space is left for the file or its journal."""


class CannotBecomeWriter(UsageError):
    """The caller's transaction began as a reader, and another connection wrote or writes meanwhile."""


def code_of(error: BaseException) -> int:
    """SQLite's primary result code; 0 for an error that is not SQLite's."""
    code = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF if isinstance(code, int) else 0


def is_busy(error: BaseException) -> bool:
    return code_of(error) in _LOCKED


def translate(error: BaseException, path: str, *, committing: bool = False) -> DulyError | None:
    """The error to raise for `error`; None when it is a defect of ours, to be seen as it is."""
    if isinstance(error, DulyError):
        return error
    if isinstance(error, (OverflowError, UnicodeError, sqlite3.DataError)):
        return DataFault(f"SQLite cannot store a value: {error}")
    code = code_of(error)
    if code in _DATA:
        return DataFault(f"SQLite refused a row: {error}")
    if code in _LOCKED:
        return Unreachable(locked(path))
    if code == sqlite3.SQLITE_READONLY:
        return ReadOnlyFile(
            f"{path} is read-only for this process; give it write permission on the file and its folder"
        )
    if code == sqlite3.SQLITE_FULL:
        return full_disk(path)
    if code == sqlite3.SQLITE_NOTADB:
        return StoreUnreachable(f"{path} is not an SQLite database; name another file in the URL")
    if code == sqlite3.SQLITE_CORRUPT:
        return StoreUnreachable(f"{path} is damaged ({error}); restore it from a backup")
    if code == sqlite3.SQLITE_CANTOPEN:
        return StoreUnreachable(
            f"{path} cannot be opened; check that its folder exists and may be written to"
        )
    if code in {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_INTERRUPT}:
        return Unreachable(f"{path} cannot be used: {error}; try again", outcome_unknown=committing)
    if "no such table" in str(error) or "no such column" in str(error):
        return MigrationNeeded(f"{path} has no tables of this release ({error}); run: duly migrate")
    return None


def full_disk(path: str) -> FullDisk:
    return FullDisk(
        f"the disk of {path} is full; nothing of this call was stored. Free some space, then try again"
    )


def locked(path: str, seconds: float | None = None) -> str:
    """The text for a file that stayed locked."""
    waited = "" if seconds is None else f" for {seconds:g} s"
    return (
        f"{path} has been locked{waited} by a transaction on another connection; end that transaction sooner or, "
        "when it is your own, pass connection= so that the job is stored within it"
    )
