"""The application that is measured: one task that does nothing, and counts that it did on a page shared with the bench.

FLAT_URL is the database; FLAT_COUNTER the file of the counter, written by one worker process and read by the bench.
"""

import mmap
import os
import struct
from pathlib import Path

from duly import App

jobs = App(os.environ.get("FLAT_URL", "postgresql:///"))
jobs.queue("probe")


class Counter:
    """A number in a file, grown by one process and seen by all."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            path.write_bytes(b"\0" * mmap.PAGESIZE)
        with path.open("r+b") as file:
            self._page = mmap.mmap(file.fileno(), mmap.PAGESIZE)

    @property
    def value(self) -> int:
        return int(struct.unpack_from("<q", self._page)[0])

    def add(self) -> None:
        struct.pack_into("<q", self._page, 0, self.value + 1)


_counter = Counter(Path(os.environ["FLAT_COUNTER"])) if "FLAT_COUNTER" in os.environ else None


@jobs.task
async def noop(x: int) -> None:
    del x
    if _counter is not None:
        _counter.add()


@jobs.task(queue="probe")
async def probed(x: int) -> None:
    del x
