"""The run: photographs are enqueued, a real worker resizes them and is killed midway, and all is checked.

Starts one `duly worker` and ends it; kills only processes of that worker. Prints nothing but through its watcher.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Final, Protocol

from msgspec import Struct

from duly.core.errors import DulyError, UsageError
from duly.core.filters import Filter
from duly.core.job import JobId, JobRecord
from duly.core.lifecycle import FINAL, State

from .app import TAG, jobs, photos, resize
from .gather import Advance, gather
from .ledger import Kill, Ledger, draw_up
from .photos import Photo
from .verify import check_all

FOLDER: Final = Path("duly-demo")
_MARK: Final = ".duly-demo"
_LOOK: Final = 0.2
"""Seconds between two looks at the store."""
_PATIENCE: Final = 180.0
_STOP: Final = 40.0


class Watcher(Protocol):
    """Who shows the run to a person."""

    def say(self, text: str) -> None: ...

    def stage(self, label: str) -> AbstractContextManager[Advance]: ...


class Wishes(Struct, frozen=True):
    """What the caller wants."""

    photos: Path | None = None
    """A folder of photographs to use; None makes them."""
    url: str | None = None
    """None is a SQLite file in `folder`."""
    folder: Path = FOLDER


class WorkerEnded(DulyError):
    """The demo's worker ended by itself, or not in time: its log says why."""


def run(wishes: Wishes, watcher: Watcher) -> Ledger:
    """Do all of it. UsageError for a folder that is not the demo's; WorkerEnded when the worker gives up."""
    try:
        return _run(wishes, watcher)
    finally:
        jobs.close()


def _run(wishes: Wishes, watcher: Watcher) -> Ledger:
    began = time.monotonic()
    folder = prepare(wishes.folder)
    url = wishes.url or f"sqlite:///{folder / 'demo.db'}"
    jobs.client.override(url=url)
    gathered = gather(folder / "photos", wishes.photos, watcher.stage)
    ids = _enqueue(gathered, folder, watcher)
    kills: list[Kill] = []
    with _worker(url, folder) as worker, watcher.stage("resizing") as advance:
        _watch(ids, worker, kills, advance, folder)
    wrong = check_all(gathered, folder / "resized", watcher.stage)
    names = {photo.name: id for photo, id in zip(gathered, ids, strict=True)}
    records = dict(zip(names, _lookup(ids), strict=True))
    attempts = {name: jobs.client.call(jobs.store.inspection.attempts, id) for name, id in names.items()}
    return draw_up(
        gathered,
        records,
        attempts,
        kills,
        wrong,
        seconds=time.monotonic() - began,
        url=url,
        folder=str(folder / "resized"),
    )


def prepare(folder: Path) -> Path:
    """The demo's folder, with an empty place for the files. UsageError for a folder that someone else made."""
    folder = folder.resolve()
    mark = folder / _MARK
    if folder.exists() and not mark.exists() and any(folder.iterdir()):
        raise UsageError(f"{folder} is not the demo's; start it in another folder, or move that one away")
    folder.mkdir(parents=True, exist_ok=True)
    mark.touch()
    # Started in a repository, it must not end up in a commit.
    (folder / ".gitignore").write_text("*\n")
    shutil.rmtree(folder / "resized", ignore_errors=True)
    (folder / "resized").mkdir()
    return folder


def _enqueue(gathered: Sequence[Photo], folder: Path, watcher: Watcher) -> list[JobId]:
    jobs.client.call(jobs.store.schema.migrate)
    left = jobs.operate.cancel(Filter(tag=TAG), reason="an earlier demo was interrupted", rate="max")
    if left.matched:
        watcher.say(f"{left.matched} jobs of an earlier run are cancelled")
    resized = str(folder / "resized")
    tagged = resize.using(tags=[TAG])
    enqueued = jobs.enqueue_many(
        tagged.draft(source=photo.path, folder=resized, name=photo.name) for photo in gathered
    )
    watcher.say(f"{len(enqueued)} jobs enqueued, one transaction")
    return [one.id for one in enqueued]


@contextmanager
def _worker(url: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A `duly worker` of our own; at the end it is asked to stop, and must do so cleanly."""
    command = [sys.executable, "-m", "duly.cli.main", "worker", "duly.demo.app", "--url", url]
    command += ["--queues", photos.name]
    with (folder / "worker.log").open("wb") as log:
        worker = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        yield worker
        worker.send_signal(signal.SIGTERM)
        if worker.wait(_STOP) != 0:
            raise WorkerEnded(f"the worker stopped with exit code {worker.returncode}: {_log(folder)}")
    except subprocess.TimeoutExpired:
        raise WorkerEnded(f"the worker did not stop within {_STOP:.0f} s: {_log(folder)}") from None
    finally:
        if worker.poll() is None:
            worker.terminate()
            with suppress(subprocess.TimeoutExpired):
                worker.wait(_STOP)
            worker.kill()
            worker.wait()


def _watch(
    ids: Sequence[JobId],
    worker: subprocess.Popen[bytes],
    kills: list[Kill],
    advance: Advance,
    folder: Path,
) -> None:
    """Until every job has ended; midway, kill the process that runs one of them."""
    until = time.monotonic() + _PATIENCE
    due = len(ids) // 3
    while True:
        records = [record for record in _lookup(ids) if record is not None]
        done = sum(record.state in FINAL for record in records)
        lost = sum(record.counters.lost for record in records)
        advance(done, len(ids), _note(records, kills, lost))
        if done == len(records):
            return
        if done >= due and not lost and (pid := _victim(records, worker.pid)) is not None:
            os.kill(pid, signal.SIGKILL)
            kills.append(Kill(pid, done))
            # It may have died between two photographs: then another one must die, a little later.
            due = done + max(2, len(ids) // 10)
        if worker.poll() is not None:
            raise WorkerEnded(f"the worker ended with exit code {worker.returncode}: {_log(folder)}")
        if time.monotonic() > until:
            raise WorkerEnded(f"{len(ids) - done} jobs are not done after {_PATIENCE:.0f} s: {_log(folder)}")
        time.sleep(_LOOK)


def _note(records: Sequence[JobRecord], kills: Sequence[Kill], lost: int) -> str:
    running = sum(record.state is State.running for record in records)
    dead = sum(record.state is State.dead for record in records)
    note = f"{running} running, {dead} dead"
    if kills:
        note += f", worker {kills[-1].pid} was killed, {lost} attempts lost"
    return note


def _victim(records: Sequence[JobRecord], supervisor: int) -> int | None:
    """The process of our own worker that holds a running job."""
    holding = {record.incarnation for record in records if record.state is State.running}
    for row in jobs.client.call(jobs.store.inspection.workers):
        if row.incarnation in holding and _parent(row.pid) == supervisor:
            return row.pid
    return None


def _parent(pid: int) -> int | None:
    """The parent of a process of this machine; None when there is none."""
    stat = Path(f"/proc/{pid}/stat")
    try:
        if stat.exists():
            # The name, in brackets, may hold blanks.
            return int(stat.read_text().rpartition(")")[2].split()[1])
        found = subprocess.run(
            ["ps", "-o", "ppid=", "-p", str(pid)], capture_output=True, text=True, check=False
        )
        return int(found.stdout)
    except (OSError, ValueError):
        return None


def _lookup(ids: Sequence[JobId]) -> list[JobRecord | None]:
    return jobs.client.call(jobs.store.inspection.lookup, ids)


def _log(folder: Path) -> str:
    log = folder / "worker.log"
    last = log.read_text(errors="replace").strip().splitlines()[-1:]
    return f"{last[0] if last else 'it said nothing'} (all of it is in {log})"
