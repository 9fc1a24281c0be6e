"""Transactions that this very thread holds open on the file by a connection nobody told us of. Looked for only when
the file is locked: the search costs some milliseconds.
"""

import gc
import sqlite3
import sys
import threading
from pathlib import Path


def own_transaction(path: str) -> bool:
    """Whether a connection that only this thread can use is inside a transaction on the file: a wait for itself."""
    return any(_is_ours(connection, path) for connection in _in_transaction())


def users_line() -> str:
    """The line of the program that called duly, as "file.py:12"; empty in a thread of duly's own."""
    frame = sys._getframe(1)
    while frame.f_back is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if not f"{module}.".startswith(("duly.", "contextlib.")):
            return "" if module.startswith("concurrent.") else f"{frame.f_code.co_filename}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


def _in_transaction() -> list[sqlite3.Connection]:
    found = []
    for candidate in gc.get_objects():
        # Not isinstance: a proxy would be asked for its __class__, and may answer with an error.
        if issubclass(type(candidate), sqlite3.Connection):
            try:
                # With autocommit=False a transaction is open at all times, and says nothing.
                if candidate.in_transaction and getattr(candidate, "autocommit", None) is not False:
                    found.append(candidate)
            except sqlite3.ProgrammingError:
                continue
    return found


def _is_ours(connection: sqlite3.Connection, path: str) -> bool:
    """Bound to the thread that made it, this one, and on the file. One that any thread may use says nothing."""
    if not _usable(connection):
        return False
    elsewhere: list[bool] = []
    asking = threading.Thread(target=lambda: elsewhere.append(_usable(connection)))
    asking.start()
    asking.join()
    return elsewhere == [False] and _is_on(connection, path)


def _usable(connection: sqlite3.Connection) -> bool:
    try:
        sqlite3.Connection.cursor(connection, sqlite3.Cursor).close()
    except sqlite3.ProgrammingError:
        return False
    return True


def _is_on(connection: sqlite3.Connection, path: str) -> bool:
    cursor = sqlite3.Connection.cursor(connection, sqlite3.Cursor)
    cursor.row_factory = None
    try:
        for _, schema, file in cursor.execute("pragma database_list").fetchall():
            name = file.decode() if isinstance(file, bytes) else str(file)
            if schema in {"main", b"main"}:
                return bool(name) and Path(name).samefile(path)
    except (OSError, sqlite3.Error):
        return False
    finally:
        cursor.close()
    return False
