"""The model's attempts: their ends, their progress, and what a job has done of itself."""

from collections.abc import Iterable, Sequence
from datetime import timedelta

from duly.core.job import (
    ClaimRequest,
    Cursor,
    Ended,
    Exchange,
    FinishedStep,
    Incarnation,
    JobId,
    Progress,
    Steps,
)
from duly.core.lifecycle import Event, State
from duly.stores.faults import DataFault

from .model_claims import ClaimModel


class AttemptModel(ClaimModel):
    """Attempts ended."""

    def exchange(
        self, incarnation: Incarnation, ended: Sequence[Ended], request: ClaimRequest | None
    ) -> Exchange:
        with self.act():
            for end in ended:
                _storable(end)
            acked = frozenset((end.id, end.run) for end in ended if self._end(incarnation, end))
            self.let_go()
            claimed = self.claim(incarnation, request) if request is not None else ()
            again = self.opens_in(request) if request is not None else None
            if self.let_go():
                # What had been let go may not run here, and left its place to others.
                again = timedelta(0)
            worker = self.tables.workers.get(incarnation)
            if worker is not None:
                worker.progress_at = self.clock()
            return Exchange(acked, claimed, tuple(self._wished(incarnation)), again)

    def end(self, incarnation: Incarnation, end: Ended, *, again: bool = True) -> bool:
        """Apply one end; with `again`, an end applied before counts too."""
        with self.act():
            return self._end(incarnation, end, again=again)

    def _end(self, incarnation: Incarnation, end: Ended, *, again: bool = True) -> bool:
        entry = self.holder(incarnation, end.id, end.run)
        if entry is None:
            return again and self._ended_before(incarnation, end)
        claimed_at = entry.started_at
        started = None if end.elapsed is None else max(claimed_at or self.clock(), self.clock() - end.elapsed)
        if end.event is not Event.complete or end.run > 1:
            self.record_attempt(entry, end.event, started, end.reason, end.error)
        if end.event is not Event.interrupt or started is not None:
            # An expiry asks whether the job has started: it has.
            entry.expires_at = None
        entry.counters = end.counters
        if end.to is not State.completed:
            entry.cursors.update(end.cursors)
        if end.to in {State.ready, State.scheduled, State.cancelled} and self.grant(entry, started):
            return True
        if end.to is State.ready:
            self.back(entry)
        elif end.to is State.scheduled:
            entry.wish = None
            self.to_scheduled(entry, self.clock() + (end.delay or timedelta(0)))
        else:
            result = end.result if end.to is not State.dead else None
            self.to_final(
                entry, end.to, end.reason, incarnation=incarnation, started_at=started, result=result
            )
            entry.note = end.note
            entry.error = end.error if end.to is State.dead else None
        return True

    def _ended_before(self, incarnation: Incarnation, end: Ended) -> bool:
        entry = self.tables.entries.get(end.id)
        if entry is None:
            return False
        if any(
            (at.run, at.event, at.incarnation) == (end.run, end.event, incarnation) for at in entry.attempts
        ):
            return True
        return (
            end.event is Event.complete
            and entry.state is State.completed
            and (entry.run, entry.incarnation) == (end.run, incarnation)
        )

    def _wished(self, incarnation: Incarnation) -> Iterable[JobId]:
        return sorted(entry.id for entry in self.held_by(incarnation) if entry.wish is not None)

    def arguments(self, ids: Sequence[JobId]) -> dict[JobId, bytes]:
        with self.tables.lock:
            return {id: self.tables.entries[id].new.args for id in ids if id in self.tables.entries}

    def extend(self, incarnation: Incarnation, id: JobId, run: int, by: timedelta) -> bool:
        with self.tables.lock:
            entry = self.holder(incarnation, id, run)
            if entry is None or entry.deadline is None:
                return False
            entry.deadline += by
            return True

    def report(
        self, incarnation: Incarnation, progress: Sequence[Progress], cursors: Sequence[Cursor] = ()
    ) -> tuple[list[tuple[JobId, int]], list[JobId]]:
        with self.tables.lock:
            for word in progress:
                entry = self.holder(incarnation, word.id, word.run)
                if entry is not None:
                    entry.progress = word
            for cursor in cursors:
                entry = self.holder(incarnation, cursor.id, cursor.run)
                if entry is not None:
                    entry.cursors[cursor.name] = cursor.position
            held = [(entry.id, entry.run) for entry in self.held_by(incarnation)]
            return held, list(self._wished(incarnation))


class ModelSteps:
    """See duly.stores.protocol.StepStore."""

    def __init__(self, model: AttemptModel) -> None:
        self._model = model

    def steps(self, id: JobId) -> Steps:
        with self._model.tables.lock:
            entry = self._model.tables.entries.get(id)
            return Steps() if entry is None else Steps(dict(entry.steps), dict(entry.cursors))

    def keep_steps(self, incarnation: Incarnation, steps: Sequence[FinishedStep]) -> list[bool | None]:
        for step in steps:
            _encodable(step.name, f"a step of job {step.id}")
        with self._model.tables.lock:
            return [self._keep(incarnation, step) for step in steps]

    def refuse_inside(self, *, thread: bool, searching: bool = False) -> None:
        pass

    def _keep(self, incarnation: Incarnation, step: FinishedStep) -> bool:
        entry = self._model.holder(incarnation, step.id, step.run)
        if entry is not None:
            entry.steps.setdefault(step.name, step.value)
        return entry is not None


def _storable(end: Ended) -> None:
    _encodable(f"{end.reason}{end.note}", f"the end of job {end.id}")


def _encodable(text: str, what: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise DataFault(f"{what} holds text that is no text: {error}") from error
