"""The App of the bench: one task that does nothing but write down when it began.

Its worker is a `duly worker` like any other; where it writes, and whose death ends it, it learns from the environment.
"""

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from struct import Struct
from typing import Any, Final

from duly.app import App
from duly.client.task import Task

RECORD: Final = Struct("ddd")
"""When the job was sent, when its handler began (both on the machine's monotonic clock), CPU seconds of its process."""

RECORDS: Final = "BENCH_RECORDS"
OWNER: Final = "BENCH_OWNER"

_LOOK: Final = 1.0


def bench_app() -> App:
    """What `duly worker duly.bench.app:bench_app` runs, on the store that the environment names."""
    return declared()[0]


def declared(url: str | None = None, schema: str | None = None) -> tuple[App, Task[[float], Any]]:
    """An App with the bench's task; nothing is opened yet."""
    app = App(url, schema=schema)
    records: list[int] = []

    @app.lifespan
    def recording() -> Iterator[None]:
        watch_owner(int(os.environ[OWNER]))
        file = os.open(os.environ[RECORDS], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        records.append(file)
        try:
            yield
        finally:
            records.clear()
            os.close(file)

    @app.task(name="nothing")
    async def nothing(sent: float) -> None:
        os.write(records[0], RECORD.pack(sent, time.monotonic(), time.process_time()))

    return app, nothing


def read_records(path: Path) -> list[tuple[float, float, float]]:
    """What the handlers wrote so far, in the order in which they began."""
    data = path.read_bytes() if path.exists() else b""
    whole = len(data) - len(data) % RECORD.size
    return sorted(
        ((sent, began, cpu) for sent, began, cpu in RECORD.iter_unpack(data[:whole])),
        key=lambda record: record[1],
    )


def watch_owner(pid: int) -> None:
    """End this worker when the bench is gone, which may have been killed in a way that lets nobody clean up."""
    supervisor = os.getppid()

    def look() -> None:
        while True:
            time.sleep(_LOOK)
            try:
                os.kill(pid, 0)
            except ProcessLookupError:
                os.kill(supervisor, signal.SIGTERM)
                return
            except PermissionError:
                return

    threading.Thread(target=look, name="duly-bench-owner", daemon=True).start()
