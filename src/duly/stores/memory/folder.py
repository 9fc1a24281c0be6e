"""The private folder of one store in memory: made at the first use, gone with the store or with the process.

What a killed process left behind is removed by the next that makes one. Knows nothing of what is in it.
"""

import fcntl
import os
import shutil
import tempfile
import weakref
from contextlib import suppress
from pathlib import Path
from typing import Final

_PREFIX: Final = "duly-memory-"
_IN_USE: Final = "in-use"
_ROOM: Final = 2**30


class PrivateFolder:
    """Readable by this user alone. Its lock is held as long as the process, or a fork of it, has it open."""

    def __init__(self) -> None:
        base = _base()
        _remove_left_behind(base)
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=base))
        self._lock = os.open(self.path / _IN_USE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._remove = weakref.finalize(self, _remove, self.path, self._lock, os.getpid())

    def remove(self) -> None:
        """Delete it with all that is in it. Repeating it does nothing."""
        self._remove()


def _base() -> Path:
    """In memory where there is room; a container's default of 64 MB is none."""
    memory = Path("/dev/shm")  # noqa: S108 - mkdtemp makes a private folder there
    if os.access(memory, os.W_OK | os.X_OK) and shutil.disk_usage(memory).free >= _ROOM:
        return memory
    return Path(tempfile.gettempdir())


def _remove(path: Path, lock: int, owner: int) -> None:
    with suppress(OSError):
        os.close(lock)
    # A fork inherits this finalizer, and the folder is its parent's.
    if os.getpid() == owner:
        shutil.rmtree(path, ignore_errors=True)


def _remove_left_behind(base: Path) -> None:
    for folder in base.glob(f"{_PREFIX}*"):
        # Whose lock file is not there yet is just being made, or belongs to another user.
        with suppress(OSError):
            descriptor = os.open(folder / _IN_USE, os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(descriptor)
