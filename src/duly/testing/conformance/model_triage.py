"""The model's triage: what people say about dead letters."""

from collections.abc import Sequence
from datetime import datetime

from msgspec.structs import replace

from duly.core.filters import Filter
from duly.core.job import JobId, NewJob, Stored
from duly.core.lifecycle import Outcome, State
from duly.core.operating import DeadMark, RedriveOutlook, TriageState, edited_note
from duly.stores.triage import edit_detail, mark_detail, marked

from .model import Entry
from .model_keys import KeyedModel


class ModelTriage:
    """See duly.stores.triage.TriageStore."""

    def __init__(self, model: KeyedModel) -> None:
        self._model = model

    def mark(
        self,
        fingerprint: str,
        queue: str,
        task: str,
        *,
        by: str,
        reason: str,
        state: TriageState | None = None,
        owner: str | None = None,
        note: str | None = None,
    ) -> DeadMark:
        with self._model.tables.lock:
            group, now = (fingerprint, queue, task), self._model.clock()
            kept = self._model.tables.marks.get(group)
            was = DeadMark(*group, "new", by, now) if kept is None else self._seen(kept)
            self._model.tables.marks[group] = replace(marked(was, state, owner, note), by=by, at=now)
            detail = mark_detail(queue, task, state, owner, note)
            self._model.note("mark", f"dead:{fingerprint}", by, reason, detail)
            return self._model.tables.marks[group]

    def marks(self, fingerprints: Sequence[str] | None = None, most: int = 1000) -> list[DeadMark]:
        with self._model.tables.lock:
            found = [self._seen(mark) for group, mark in sorted(self._model.tables.marks.items())]
            named = [mark for mark in found if fingerprints is None or mark.fingerprint in fingerprints]
            return sorted(named, key=lambda mark: mark.at, reverse=True)[:most]

    def regressions(self, most: int = 100) -> list[DeadMark]:
        with self._model.tables.lock:
            told: list[DeadMark] = []
            for group, mark in sorted(self._model.tables.marks.items()):
                if mark.state == "fixed" and self._died_since(mark) is not None and len(told) < most:
                    self._model.tables.marks[group] = self._seen(mark)
                    told.append(self._model.tables.marks[group])
            return told

    def outlook(self, filter: Filter, most: int | None = None) -> RedriveOutlook:
        with self._model.tables.lock:
            found = [
                entry
                for entry in self._model.tables.entries.values()
                if entry.state is State.dead and entry.successor is None and filter.matches(entry.record())
            ]
            return RedriveOutlook(
                len(found),
                min((entry.finished_at for entry in found if entry.finished_at is not None), default=None),
                max((entry.new.priority for entry in found), default=None),
                sum(self._model.holder_of(entry.new) is not None for entry in found),
            )

    def asked(self, id: JobId) -> NewJob | None:
        with self._model.tables.lock:
            entry = self._open(id)
            if entry is None:
                return None
            new = entry.new
            return replace(
                new,
                delay=None,
                run_at=None,
                expires=None,
                holder=None,
                idempotency=None,
                unique=None if new.unique is None else replace(new.unique, replace=False),
                correlation_id=entry.record().correlation_id,
                trigger=None,
                batch=None,
            )

    def edit(self, id: JobId, job: NewJob, by: str, reason: str) -> Stored | None:
        with self._model.tables.lock:
            entry = self._open(id)
            if entry is None:
                return None
            stored = self._model.enqueue([job])[0]
            if stored.outcome is Outcome.created:
                entry.successor = stored.id
                said = edited_note(stored.id)
                entry.note = said if entry.note is None else f"{entry.note}; {said}"
                self._model.note("edit", f"job:{id}", by, reason, edit_detail(stored.id))
            return stored

    def _open(self, id: JobId) -> Entry | None:
        entry = self._model.tables.entries.get(id)
        dead = entry is not None and entry.state is State.dead and entry.successor is None
        return entry if dead else None

    def _seen(self, mark: DeadMark) -> DeadMark:
        died_at = self._died_since(mark) if mark.state == "fixed" else None
        return mark if died_at is None else replace(mark, state="new", regressed_at=died_at)

    def _died_since(self, mark: DeadMark) -> datetime | None:
        deaths = [
            entry.finished_at
            for entry in self._model.tables.entries.values()
            if entry.state is State.dead
            and entry.finished_at is not None
            and entry.finished_at > mark.at
            and (entry.new.queue, entry.new.task) == (mark.queue, mark.task)
            and (entry.error.fingerprint if entry.error else "") == mark.fingerprint
        ]
        return min(deaths, default=None)
