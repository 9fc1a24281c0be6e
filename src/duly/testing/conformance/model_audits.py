"""The model's record of acts, and its seals."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import json

from duly.core.audit_chain import GENESIS, digest_of
from duly.core.job import JobId
from duly.core.lifecycle import FINAL, State
from duly.core.operating import AuditEntry, AuditSeal, AuditVerdict
from duly.stores.audits import FOLLOWER, NOT_KEPT, end_detail, verified

from .model import Model


class ModelAudits:
    """See duly.stores.audits.AuditStore."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def append(
        self,
        verb: str,
        target: str,
        by: str,
        reason: str,
        detail: Mapping[str, object] | None = None,
        connection: Any = None,
    ) -> int:
        with self._model.tables.lock:
            return self._model.note(verb, target, by, reason, json.encode(detail or {}).decode())

    def page(
        self,
        *,
        before: int | None = None,
        limit: int = 50,
        actor: str | None = None,
        verb: str | None = None,
        target: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> list[AuditEntry]:
        with self._model.tables.lock:
            return [
                entry
                for entry in reversed(self._model.tables.acts)
                if (before is None or entry.id < before)
                and actor in {None, entry.actor}
                and verb in {None, entry.verb}
                and target in {None, entry.target}
                and (since is None or entry.at >= since)
                and (until is None or entry.at < until)
            ][:limit]

    def seal(self, most: int = 1000) -> AuditSeal | None:
        with self._model.tables.lock:
            seals = self._model.tables.seals
            before = seals[-1] if seals else None
            entries = self._waiting()[:most]
            if not entries:
                return None
            previous = GENESIS if before is None else before.digest
            digest, now = digest_of(previous, entries), self._model.clock()
            id, first, last = len(seals) + 1, entries[0].id, entries[-1].id
            seals.append(AuditSeal(id, first, last, len(entries), digest, previous, now))
            return seals[-1]

    def seals(self, before: int | None = None, limit: int = 50) -> list[AuditSeal]:
        with self._model.tables.lock:
            seals = reversed(self._model.tables.seals)
            return [seal for seal in seals if before is None or seal.id < before][:limit]

    def follow(self, most: int = 500) -> int:
        with self._model.tables.lock:
            return sum(
                self._write_end(id, run) for id, run in list(self._model.tables.audited.items())[:most]
            )

    def _write_end(self, id: JobId, dead_run: int | None) -> bool:
        tables = self._model.tables
        entry = tables.entries.get(id)
        if entry is None:
            del tables.audited[id]
            self._model.note(
                "end", f"job:{id}", FOLLOWER, NOT_KEPT, end_detail("unknown", None, None, None, None)
            )
            return True
        if entry.state not in FINAL or (entry.state is State.dead and entry.run == dead_run):
            return False
        if entry.state is State.dead:
            tables.audited[id] = entry.run
        else:
            del tables.audited[id]
        new = entry.new
        detail = end_detail(entry.state, entry.run, new.queue, new.task, new.tenant)
        self._model.note("end", f"job:{id}", FOLLOWER, entry.reason or "", detail)
        return True

    def verify(self) -> AuditVerdict:
        with self._model.tables.lock:
            return verified(self)

    def seals_after(self, id: int) -> Sequence[AuditSeal]:
        return [seal for seal in self._model.tables.seals if seal.id > id]

    def sealed(self, seal: AuditSeal) -> Sequence[AuditEntry]:
        return [entry for entry in self._model.tables.acts if seal.first <= entry.id <= seal.last]

    def totals(self) -> tuple[int, int, int]:
        counted = sum(seal.count for seal in self._model.tables.seals)
        return len(self._model.tables.acts), counted, len(self._waiting())

    def _waiting(self) -> list[AuditEntry]:
        seals = self._model.tables.seals
        last = seals[-1].last if seals else 0
        return [entry for entry in self._model.tables.acts if entry.id > last]
