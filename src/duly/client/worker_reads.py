"""Worker processes with what is left of their leases, and the jobs that one of them holds. Part of `inspect`."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import msgspec

from duly.client.control_reads import ControlReads
from duly.client.twins import blocking, twin
from duly.core.errors import NotFound
from duly.core.filters import Filter
from duly.core.job import JobRecord
from duly.core.lifecycle import State
from duly.stores.protocol import WorkerRecord

_PAGE: Final = 500
_PAGES: Final = 10


class WorkerLease(msgspec.Struct, frozen=True):
    """One live worker process, and how long it may be silent."""

    worker: WorkerRecord
    lease: timedelta
    """Without a heartbeat for so long others may take its jobs."""
    left: timedelta
    """Of that, since its last heartbeat; negative: nobody has looked yet, or others still watch it."""


class WorkerDetail(msgspec.Struct, frozen=True):
    """One live worker process with the jobs it holds, the newest first."""

    lease: WorkerLease
    jobs: tuple[JobRecord, ...]
    more: bool = False
    """It holds others, too: only the newest 5,000 running jobs are looked at."""


class WorkerReads(ControlReads):
    """Part of `Inspect`."""

    @blocking
    def leases(self) -> tuple[WorkerLease, ...]:
        """Every live worker process, by its number."""
        return self._leases()

    @blocking
    def worker(self, incarnation: int) -> WorkerDetail:
        """One of them. NotFound when it is gone."""
        found = next((one for one in self._leases() if one.worker.incarnation == incarnation), None)
        if found is None:
            raise NotFound(
                f"no worker {incarnation} is alive; duly workers list shows those that are",
                kind="worker",
                name=str(incarnation),
            )
        held: list[JobRecord] = []
        before: int | None = None
        for _ in range(_PAGES):
            page = self._client.store.inspection.page(Filter(state=State.running), before=before, limit=_PAGE)
            held += [job for job in page.jobs if job.incarnation == incarnation]
            before = page.next
            if before is None or len(held) >= found.worker.running:
                break
        return WorkerDetail(found, tuple(held), len(held) < found.worker.running and before is not None)

    aleases = twin(leases)
    aworker = twin(worker)

    def _leases(self) -> tuple[WorkerLease, ...]:
        # Whoever came or went between the two reads is left out.
        beats = {beat.incarnation: beat for beat in self._client.store.leases.beats()}
        found = []
        for worker in self._client.store.inspection.workers():
            beat = beats.get(worker.incarnation)
            if beat is not None:
                lease = timedelta(seconds=beat.lease)
                found.append(WorkerLease(worker, lease, lease - worker.beat_age))
        return tuple(sorted(found, key=lambda one: one.worker.incarnation))
