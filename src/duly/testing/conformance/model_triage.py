"""The model's triage: what people say about dead letters."""

from collections.abc import Sequence
from datetime import datetime

from msgspec.structs import replace

from duly.core.lifecycle import State
from duly.core.operating import DeadMark, TriageState
from duly.stores.triage import mark_detail, marked

from .model import Model


class ModelTriage:
    """See duly.stores.triage.TriageStore."""

    def __init__(self, model: Model) -> None:
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
