"""Disks that are small: a file system in memory, mounted for one test. Needs the right to mount, as root has."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.conftest import without_service


@contextmanager
def small_disk(folder: Path, size: str, *options: str) -> Iterator[None]:
    """`folder` stands on a disk of its own for the block's length; the test is skipped where that cannot be."""
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", ",".join((f"size={size}", *options)), "tmpfs", str(folder)],
        capture_output=True,
    )
    if mounted.returncode != 0:
        without_service("a small tmpfs cannot be mounted here; run as root")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)
