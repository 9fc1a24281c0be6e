"""Opening connections to the file: settings, the choice of the journal, clear words when it cannot be opened."""

import errno
import os
import sqlite3
from pathlib import Path
from typing import Final, Literal

from duly.core.errors import DulyError, StoreUnreachable, UsageError
from duly.stores.sqlite.errors import ReadOnlyFile, Unreachable, full_disk, is_busy

Journal = Literal["wal", "truncate"]

OLDEST: Final = (3, 37, 0)  # STRICT tables
WAL_LIMIT: Final = 32 * 1024 * 1024
_SETTINGS: Final = (
    "pragma temp_store = memory",
    # A mapped database turns a full or failing disk into SIGBUS.
    "pragma mmap_size = 0",
    f"pragma journal_size_limit = {WAL_LIMIT}",
    # A large transaction that spilled would need the file alone before its commit, and fail beside a reader.
    "pragma cache_spill = off",
)
_SYNC: Final = {True: "pragma synchronous = full", False: "pragma synchronous = off"}
_JOURNALS: Final[dict[Journal, str]] = {
    "wal": "pragma journal_mode = wal",
    "truncate": "pragma journal_mode = truncate",
}
_CACHES: Final = {True: "pragma cache_size = -32768", False: "pragma cache_size = -8192"}


def wal_is_safe(version: tuple[int, int, int]) -> bool:
    """False for releases that can corrupt a WAL file or lose commits when two connections write (WAL-reset bug)."""
    if version[:2] == (3, 50):
        return version >= (3, 50, 7)
    if version[:2] == (3, 44):
        return version >= (3, 44, 6)
    return version >= (3, 51, 3)


def default_journal() -> Journal:
    return "wal" if wal_is_safe(sqlite3.sqlite_version_info) else "truncate"


def check_library() -> None:
    if sqlite3.sqlite_version_info < OLDEST:
        raise UsageError(
            f"this Python links SQLite {sqlite3.sqlite_version}; duly needs {'.'.join(map(str, OLDEST[:2]))} or later. "
            "Use a newer Python build, or a postgresql:// URL"
        )


def connect(path: str, timeout: float, *, writer: bool, durable: bool = True) -> sqlite3.Connection:
    """A connection in autocommit, usable from any thread by one at a time. Creates the file when it is not there.

    Without `durable` what was committed may be gone after a crash of the machine.
    """
    check_library()
    _check_place(path)
    connection = sqlite3.connect(
        path, timeout=timeout, isolation_level=None, check_same_thread=False, cached_statements=256
    )
    try:
        for setting in _SETTINGS:
            connection.execute(setting).close()
        connection.execute(_SYNC[durable]).close()
        connection.execute(_CACHES[writer]).close()
    except BaseException:
        connection.close()
        raise
    return connection


def set_journal(connection: sqlite3.Connection, wanted: Journal) -> str:
    """Bring the connection to the wanted journal and answer the one in use. A file in WAL stays in WAL."""
    current = str(connection.execute("pragma journal_mode").fetchall()[0][0])
    if current == "wal":
        return current
    try:
        return str(connection.execute(_JOURNALS[wanted]).fetchall()[0][0])
    except sqlite3.OperationalError as error:
        # Going over to WAL needs the file alone; another start will find it so.
        if wanted == "wal" and is_busy(error):
            return current
        raise


def _check_place(path: str) -> None:
    folder = Path(path).parent
    if not folder.is_dir():
        raise StoreUnreachable(
            f"the folder {folder} does not exist; create it, or name another file in the URL"
        )
    if Path(path).is_dir():
        raise StoreUnreachable(f"{path} is a folder; name a file in the URL, such as {path}/duly.db")


def side_file_error(error: OSError, path: str) -> DulyError:
    """What to say when the lock file beside the database cannot be used."""
    if error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
        return ReadOnlyFile(
            f"{error.filename or path} cannot be written; give this process write permission on the folder of {path}"
        )
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return full_disk(path)
    if error.errno == errno.ENOENT:
        return StoreUnreachable(
            f"the folder {Path(path).parent} does not exist; create it, or name another file"
        )
    return Unreachable(f"the lock file of {path} cannot be used: {os.strerror(error.errno or 0)}; try again")
