"""What the file takes: its pages in use and its log, and what is free on its disk. Opens no file; knows no table."""

import os
from pathlib import Path

from duly.core.budget import StoreUse
from duly.stores.sqlite.connecting import WAL_LIMIT
from duly.stores.sqlite.session import Session


def measure(session: Session, path: str) -> StoreUse:
    """The use of the whole file, whoever's tables stand in it. Freed pages are filled again before the file grows."""
    pages, free, size = session.rows("select_file_use")[0]
    return StoreUse((pages - free) * size + _long_log(path), _free_disk(path, free * size))


def _long_log(path: str) -> int:
    """The log beyond the size to which it is cut back, as when a reader lets it grow; up to there it is overwritten."""
    # Never opened: closing a second handle would drop SQLite's locks.
    try:
        return max(0, Path(f"{path}-wal").stat().st_size - WAL_LIMIT)
    except OSError:
        return 0


def _free_disk(path: str, within: int) -> int | None:
    try:
        disk = os.statvfs(Path(path).parent)
    except OSError:
        return None
    return disk.f_bavail * disk.f_frsize + within
