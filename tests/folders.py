"""Folders for tests that commit thousands of times and need none of it to outlive the machine."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MEMORY = Path("/dev/shm")


@contextmanager
def fast_folder() -> Iterator[Path]:
    """In memory where the system has such a place. Gone at the end."""
    folder = Path(tempfile.mkdtemp(prefix="duly-test-", dir=MEMORY if MEMORY.is_dir() else None))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)
