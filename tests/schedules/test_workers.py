"""Real `duly worker` processes: a schedule in code fires each due time once, whoever is killed."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from duly.stores.open import open_store
from duly.stores.protocol import Store
from tests.scenarios.schedulers import due_times, record
from tests.waiting import wait_until

SHOP = """\
from duly import App

jobs = App()


@jobs.every("1s", catch_up="all", overlap="allow")
@jobs.task
def digest() -> None: ...
"""


@contextmanager
def worker(folder: Path, url: str, number: int) -> Iterator[subprocess.Popen[bytes]]:
    """A supervisor in a group of its own, which is killed whole at the end."""
    with (folder / f"worker-{number}.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "duly.cli.main", "worker", "shop"],
            cwd=folder,
            env={**os.environ, "DULY_URL": url},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        kill(process)


def kill(process: subprocess.Popen[bytes]) -> None:
    if process.returncode is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(60)


def fired(store: Store) -> int:
    return record(store).fired if store.schedules.all() else 0


@pytest.mark.process
@pytest.mark.timeout(180)
def test_workers_that_are_killed_leave_no_due_time_out_and_fire_none_twice(
    tmp_path: Path, file_url: str
) -> None:
    (tmp_path / "shop.py").write_text(SHOP)
    store = open_store(file_url)

    with worker(tmp_path, file_url, 1) as first, worker(tmp_path, file_url, 2):
        wait_until(lambda: fired(store) >= 2, timeout=60)
        kill(first)
        wait_until(lambda: fired(store) >= 4, timeout=60)
    with worker(tmp_path, file_url, 3):
        wait_until(lambda: fired(store) >= 7, timeout=60)

    dues = due_times(store)
    assert dues == [dues[0] + n * timedelta(seconds=1) for n in range(len(dues))]
    assert (record(store).fired, record(store).missed) == (len(dues), 0)
    store.close()
