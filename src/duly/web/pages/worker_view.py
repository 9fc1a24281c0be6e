"""Worker processes as the page shows them: records in, rows out. Pure; `workers.py` reads and acts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final, Literal

from msgspec import Struct

from duly.client.worker_reads import WorkerDetail, WorkerLease
from duly.core.job import JobRecord
from duly.web.pages.control_view import Allowed, sees

Word = Literal["works", "idle", "draining", "no progress", "silent"]
Tone = Literal["good", "bad", "warn", "note"]

HUNG: Final = timedelta(minutes=10)
"""With jobs in hand and without an end for so long, somebody should look."""
_TONES: Final[dict[Word, Tone]] = {
    "works": "good", "idle": "note", "draining": "warn", "no progress": "bad", "silent": "bad",
}  # fmt: skip
_ORDER: Final[dict[Word, int]] = {"silent": 0, "no progress": 1, "draining": 2, "works": 3, "idle": 4}


class WorkerRow(Struct, frozen=True):
    """One process."""

    id: int
    place: str
    host: str
    supervisor: str
    queues: tuple[str, ...]
    """Those that the visitor may see."""
    others: int
    """Further queues that it serves."""
    running: int
    slots: int
    lease: timedelta
    left: timedelta
    pulse: timedelta
    progress: timedelta | None
    started: datetime
    version: str
    draining: bool
    word: Word
    tone: Tone
    all_queues: tuple[str, ...]
    """For the question whether a visitor may have it drained."""

    @property
    def spent(self) -> float:
        """The share of the lease that is over since the last pulse, 0 to 1."""
        return 1.0 if self.lease <= _NOTHING else min(1.0, max(0.0, self.pulse / self.lease))

    @property
    def stands(self) -> str:
        """Which process it was, for a form to say what it was made for."""
        return f"{self.place}{', draining' if self.draining else ''}"


class HeldRow(Struct, frozen=True):
    """One job that a worker holds."""

    id: int
    task: str
    queue: str
    since: datetime | None
    left: timedelta | None
    """Until its time to run is over; None: it has no deadline."""
    progress: str
    share: float | None
    asked_to_stop: bool
    run: int


class WorkersView(Struct, frozen=True):
    """All of the page."""

    workers: tuple[WorkerRow, ...]
    """Those that need a look first."""

    @property
    def slots(self) -> int:
        return sum(row.slots for row in self.workers)

    @property
    def running(self) -> int:
        return sum(row.running for row in self.workers)

    @property
    def troubled(self) -> int:
        return sum(1 for row in self.workers if row.tone == "bad")


def workers_view(leases: Iterable[WorkerLease], *, allowed: Allowed = None) -> WorkersView:
    rows = [row for row in (worker_row(one, allowed) for one in leases) if row is not None]
    return WorkersView(tuple(sorted(rows, key=lambda row: (_ORDER[row.word], row.host, row.id))))


def worker_row(one: WorkerLease, allowed: Allowed = None) -> WorkerRow | None:
    """None for one that serves none of the visitor's queues."""
    worker = one.worker
    queues = tuple(queue for queue in worker.queues if sees(allowed, queue))
    if allowed is not None and not queues:
        return None
    word = _word(one)
    return WorkerRow(
        id=worker.incarnation,
        place=f"{worker.host}:{worker.pid}",
        host=worker.host,
        supervisor=worker.supervisor,
        queues=queues,
        others=len(worker.queues) - len(queues),
        running=worker.running,
        slots=worker.slots,
        lease=one.lease,
        left=one.left,
        pulse=worker.beat_age,
        progress=worker.progress_age,
        started=worker.started_at,
        version=worker.version,
        draining=worker.draining,
        word=word,
        tone=_TONES[word],
        all_queues=worker.queues,
    )


def held_rows(detail: WorkerDetail, now: datetime, *, allowed: Allowed = None) -> tuple[HeldRow, ...]:
    """Its jobs in the visitor's queues, those with the least time left first."""
    rows = [_held(job, now) for job in _visible(detail.jobs, allowed)]
    return tuple(sorted(rows, key=lambda row: (row.left is None, row.left or _NOTHING, row.id)))


def _visible(jobs: Sequence[JobRecord], allowed: Allowed) -> list[JobRecord]:
    return [job for job in jobs if sees(allowed, job.queue)]


def _held(job: JobRecord, now: datetime) -> HeldRow:
    said, share = "", None
    if job.progress is not None:
        said = f"{job.progress.done:,}"
        if job.progress.of:
            said = f"{said} of {job.progress.of:,}"
            share = min(1.0, max(0.0, job.progress.done / job.progress.of))
        if job.progress.note:
            said = f"{said}: {job.progress.note}"
    return HeldRow(
        id=job.id,
        task=job.task,
        queue=job.queue,
        since=job.started_at,
        left=None if job.deadline is None else job.deadline - now,
        progress=said,
        share=share,
        asked_to_stop=job.cancel_wished,
        run=job.run,
    )


def _word(one: WorkerLease) -> Word:
    worker = one.worker
    if one.left < _NOTHING:
        return "silent"
    if worker.running and worker.progress_age is not None and worker.progress_age >= HUNG:
        return "no progress"
    if worker.draining:
        return "draining"
    return "works" if worker.running else "idle"


_NOTHING: Final = timedelta(0)
