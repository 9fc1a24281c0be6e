"""The bench's worker: one `duly worker` as a user runs it, started in an empty folder and ended whatever happens."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from duly.client.settings import Settings
from duly.core.errors import DulyError

from .app import OWNER, RECORDS

_APP: Final = "duly.bench.app:bench_app"
_STOP: Final = 40.0


class WorkerEnded(DulyError):
    """The bench's worker ended by itself, or did not do its work: its log says why."""


class BenchWorker:
    """One running worker and what it has written down."""

    def __init__(self, process: subprocess.Popen[bytes], folder: Path) -> None:
        self._process = process
        self._log = folder / "worker.log"

    def check(self, what: str, until: float) -> None:
        """WorkerEnded when it is gone, or when the time for `what` is over."""
        if self._process.poll() is not None:
            raise WorkerEnded(
                f"the worker ended with exit code {self._process.returncode}: {self._last_words()}"
            )
        if time.monotonic() > until:
            raise WorkerEnded(f"gave up waiting for {what}: {self._last_words()}")

    def _last_words(self) -> str:
        text = self._log.read_text(errors="replace").strip() if self._log.exists() else ""
        return text[-600:] or "it wrote nothing"


@contextmanager
def worker(folder: Path, records: Path, url: str, schema: str, settings: Settings) -> Iterator[BenchWorker]:
    """Run one while the block lasts; its records go to `records`."""
    folder.mkdir(exist_ok=True)
    environment = {
        **_without_settings(os.environ),
        "DULY_URL": url,
        "DULY_SCHEMA": schema,
        "DULY_POOL": str(settings.pool),
        "DULY_LOG_LEVEL": "warning",
        RECORDS: str(records),
        OWNER: str(os.getpid()),
    }
    if settings.notify is not None:
        environment["DULY_NOTIFY"] = "on" if settings.notify else "off"
    command = [sys.executable, "-m", "duly.cli.main", "worker", _APP]
    with (folder / "worker.log").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    try:
        yield BenchWorker(process, folder)
    finally:
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(subprocess.TimeoutExpired):
        process.terminate()
        process.wait(_STOP)
    if process.poll() is None:
        process.kill()
        process.wait()


def _without_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """The user's settings are for the user's jobs: a list of queues, for one, would leave this worker without work."""
    return {name: value for name, value in environment.items() if not name.startswith("DULY_")}
