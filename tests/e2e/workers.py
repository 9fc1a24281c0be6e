"""Worker processes for tests: started, killed, asked what they did, which stands in the ledger and the store."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from duly.client.task import Task
from duly.core.job import JobId, JobRecord, NewJob
from duly.core.lifecycle import FINAL, State
from duly.stores.faults import Transient
from duly.stores.open import open_store
from duly.stores.protocol import Store, WorkerRecord
from duly.worker.options import WorkerOptions
from tests.waiting import wait_until

ROOT = Path(__file__).parents[2]
AnyTask = Task[..., Any]
QUICK = {"lease": 3.0, "heartbeat": 0.3, "grace": 5.0, "patience": 0.5, "poll": 0.1}
TIMES = {*QUICK, "unstarted"}


class Line(NamedTuple):
    """One line of the ledger."""

    what: str
    id: int
    attempt: int
    pid: int
    at: float


class Worker:
    """One `duly worker`: the supervisor's process and its log."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process = process
        self._log = log

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def wait_said(self, text: str, times: int = 1, timeout: float = 60.0) -> None:
        """Until its log says so that many times."""
        wait_until(
            lambda: self.log.count(text) >= times, timeout=timeout, what=f"{times} x {text!r} in {self._log}"
        )

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def stop(self, timeout: float = 60.0) -> int:
        """SIGTERM; the exit code."""
        self.signal(signal.SIGTERM)
        return self.wait(timeout)

    def wait(self, timeout: float = 60.0) -> int:
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired as error:
            raise AssertionError(f"the worker still runs after {timeout} s:\n{self.log}") from error


class Place:
    """One store, one folder for the ledger, and the workers on them."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self.folder = folder
        self.store: Store = open_store(url)
        self._workers: list[Worker] = []

    def start(
        self,
        app: str = "tests.e2e.chores_app:jobs",
        environment: Mapping[str, str] | None = None,
        **options: Any,
    ) -> Worker:
        """Start a worker with these options, times in seconds; QUICK applies where nothing else is said."""
        said: dict[str, Any] = {
            name: timedelta(seconds=value) if name in TIMES else value
            for name, value in {**QUICK, **options}.items()
        }
        log = self.folder / f"worker-{len(self._workers)}.log"
        with log.open("wb") as stream:
            process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "tests.e2e.start_worker",
                    app,
                    msgspec.json.encode(msgspec.structs.replace(WorkerOptions(), **said)).decode(),
                ],
                cwd=ROOT,
                env={
                    **os.environ,
                    "DULY_URL": self.url,
                    "CHORES": str(self.folder),
                    "DULY_LOG": "text",
                    **(environment or {}),
                },
                stdout=stream,
                stderr=stream,
                stdin=subprocess.DEVNULL,
            )
        worker = Worker(process, log)
        self._workers.append(worker)
        return worker

    def close(self) -> None:
        """End what still runs: supervisors first, then whoever worked under them."""
        pids = {row.pid for row in self._rows()}
        for worker in self._workers:
            with suppress(ProcessLookupError):
                worker.process.send_signal(signal.SIGCONT)
            worker.process.kill()
            worker.process.wait()
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.store.close()

    def enqueue(
        self,
        task: AnyTask,
        many: int = 1,
        *,
        timeout: float | None = None,
        attempts: int | None = None,
        queue: str | None = None,
        then: tuple[NewJob, ...] = (),
        **arguments: object,
    ) -> list[JobId]:
        """Store jobs of a task of the chores with these arguments."""
        job = NewJob(
            queue=queue or task.queue,
            task=task.name,
            args=json.dumps(arguments).encode(),
            timeout=None if timeout is None else timedelta(seconds=timeout),
            attempts=attempts,
            then=then,
        )
        return [stored.id for stored in self.store.jobs.enqueue([job] * many)]

    def enqueue_one(self, task: AnyTask, **options: Any) -> JobId:
        return self.enqueue(task, **options)[0]

    def release(self) -> None:
        """Let the waiting handlers end."""
        (self.folder / "release").touch()

    def ledger(self, what: str | None = None, id: int | None = None) -> list[Line]:
        path = self.folder / "ledger"
        if not path.exists():
            return []
        lines = [Line(**json.loads(line)) for line in path.read_text().splitlines()]
        return [line for line in lines if what in {None, line.what} and id in {None, line.id}]

    def wait_lines(self, what: str, count: int, timeout: float = 60.0) -> list[Line]:
        """Until the ledger has that many lines of the kind."""
        return wait_until(
            lambda: lines if len(lines := self.ledger(what)) == count else [],
            timeout=timeout,
            what=f"{count} x {what!r}",
        )

    def job(self, id: JobId) -> JobRecord:
        record = self.store.inspection.lookup([id])[0]
        assert record is not None
        return record

    def workers(self) -> list[WorkerRecord]:
        return self.store.inspection.workers()

    def wait_started(self, *ids: JobId, attempt: int = 1, timeout: float = 60.0) -> list[Line]:
        """Until the handler of each began that attempt."""

        def started() -> list[Line]:
            lines = [line for line in self.ledger("started") if line.id in ids and line.attempt == attempt]
            return lines if {line.id for line in lines} == set(ids) else []

        try:
            return wait_until(started, timeout=timeout, what=f"start of {ids}, attempt {attempt}")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.logs()}") from None

    def wait_state(self, ids: Sequence[JobId], *states: State, timeout: float = 60.0) -> list[JobRecord]:
        """Until every job is in one of the states."""

        def there() -> list[JobRecord]:
            try:
                records = [record for record in self.store.inspection.lookup(list(ids)) if record is not None]
            except Transient:
                # A handler that holds the GIL may hold its process in the middle of a commit.
                return []
            return (
                records
                if all(record.state in states for record in records) and len(records) == len(ids)
                else []
            )

        try:
            return wait_until(there, timeout=timeout, what=f"{states} of {ids}")
        except AssertionError as error:
            seen = self.store.inspection.lookup(list(ids))
            raise AssertionError(f"{error}\n{seen}\n{self.logs()}") from None

    def wait_final(self, ids: Sequence[JobId], timeout: float = 60.0) -> list[JobRecord]:
        return self.wait_state(ids, *FINAL, timeout=timeout)

    def wait_workers(self, count: int = 1, timeout: float = 60.0) -> list[WorkerRecord]:
        """Until so many processes are registered."""
        return wait_until(
            lambda: rows if len(rows := self.workers()) == count else [],
            timeout=timeout,
            what=f"{count} workers",
        )

    def logs(self) -> str:
        return "\n".join(f"--- {worker.pid}\n{worker.log}" for worker in self._workers)

    def _rows(self) -> list[WorkerRecord]:
        with suppress(Exception):
            return self.workers()
        return []


@contextmanager
def a_place(url: str, folder: Path) -> Iterator[Place]:
    place = Place(url, folder)
    try:
        yield place
    finally:
        place.close()


def runs(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
