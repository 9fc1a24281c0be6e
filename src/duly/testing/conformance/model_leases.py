"""The model's leases: workers that come, beat and go, and what becomes of what they held."""

from collections.abc import Sequence

from duly.core.job import Counters, Incarnation, JobId, WorkerInfo
from duly.core.leases import Beat
from duly.core.lifecycle import Event, State

from .model import Entry, Worker
from .model_attempts import AttemptModel


class LeasedModel(AttemptModel):
    """Worker incarnations: the row's existence is the lease."""

    def register(self, info: WorkerInfo) -> Incarnation:
        with self.tables.lock:
            now = self.clock()
            incarnation = Incarnation(self.number())
            self.tables.workers[incarnation] = Worker(info, now, now, now)
            return incarnation

    def beat(self, incarnations: Sequence[Incarnation]) -> frozenset[Incarnation]:
        with self.tables.lock:
            alive = frozenset(incarnations) & self.tables.workers.keys()
            for incarnation in alive:
                self.tables.workers[incarnation].beat += 1
                self.tables.workers[incarnation].beat_at = self.clock()
            return alive

    def beats(self) -> list[Beat]:
        with self.tables.lock:
            return [
                Beat(
                    incarnation,
                    worker.beat,
                    worker.info.lease.total_seconds(),
                    (self.clock() - worker.beat_at).total_seconds(),
                )
                for incarnation, worker in self.tables.workers.items()
            ]

    def reap(self, overdue: Sequence[Beat], poison: int) -> int:
        with self.act():
            moved = 0
            for seen in overdue:
                worker = self.tables.workers.get(seen.incarnation)
                if worker is None or worker.beat != seen.beat:
                    continue
                del self.tables.workers[seen.incarnation]
                for entry in self.held_by(seen.incarnation):
                    self.lose(entry, "its worker's lease lapsed", poison)
                    moved += 1
            return moved

    def disown(
        self, incarnation: Incarnation, started: Sequence[tuple[JobId, int]], reason: str, poison: int
    ) -> int:
        with self.act():
            if self.tables.workers.pop(incarnation, None) is None:
                return 0
            held = self.held_by(incarnation)
            for entry in held:
                if (entry.id, entry.run) in started:
                    self.lose(entry, reason, poison, witnessed=True)
                else:
                    self._interrupt(entry, reason)
            return len(held)

    def retire(self, incarnation: Incarnation) -> int:
        return self.disown(incarnation, (), "its worker ended", 0)

    def lose(self, entry: Entry, reason: str, poison: int, *, witnessed: bool = False) -> None:
        """running -> ready, or dead when the evidence is against the job itself."""
        before, incarnation, started = entry.counters, entry.incarnation, entry.started_at
        convicted = before.lost + 1 >= poison and (witnessed or before.lost >= 1)
        text = f"poison: its worker was lost {before.lost + 1} times" if convicted else reason
        self.record_attempt(entry, Event.lose, started, text)
        entry.counters = Counters(before.failed, before.lost + 1, 0, before.snoozed)
        entry.expires_at = None
        if convicted:
            self.to_final(entry, State.dead, text, incarnation=incarnation, started_at=started)
        elif not self.grant(entry, started):
            self.back(entry)

    def _interrupt(self, entry: Entry, reason: str) -> None:
        before = entry.counters
        self.record_attempt(entry, Event.interrupt, None, reason)
        entry.counters = Counters(before.failed, before.lost, before.interrupted + 1, before.snoozed)
        if not self.grant(entry, None):
            self.back(entry)
