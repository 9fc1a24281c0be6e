"""What people say about groups of dead letters: the TriageStore on PostgreSQL. Moves no letter."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from duly.core.filters import Filter
from duly.core.job import JobId, NewJob, Stored, UniqueKey
from duly.core.lifecycle import Outcome, State
from duly.core.operating import DeadMark, RedriveOutlook, TriageState, edited_note
from duly.stores.postgres import calls, specs
from duly.stores.postgres.answers import OnConnection
from duly.stores.postgres.calls import Call
from duly.stores.postgres.columns import utc, utc_or_none
from duly.stores.postgres.database import Database, Row
from duly.stores.postgres.records import job_record
from duly.stores.triage import edit_detail, mark_detail


class PostgresTriage:
    """See duly.stores.triage.TriageStore."""

    def __init__(
        self,
        database: Database,
        on: OnConnection,
        transaction: Callable[[], AbstractContextManager[Any]],
    ) -> None:
        self._database = database
        self._on = on
        self._transaction = transaction

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
        parameters = {
            "fingerprint": fingerprint,
            "queue": queue,
            "task": task,
            "state": state,
            "owner": owner,
            "note": note,
            "by": by,
            "reason": reason,
            "detail": mark_detail(queue, task, state, owner, note),
            "now": self._database.now(),
        }
        return _mark(self._database.call("mark_dead", parameters)[0])

    def marks(self, fingerprints: Sequence[str] | None = None, most: int = 1000) -> list[DeadMark]:
        named = None if fingerprints is None else [*fingerprints]
        rows = self._database.call("read_dead_marks", {"fingerprints": named, "most": most})
        return [_mark(row) for row in rows]

    def regressions(self, most: int = 100) -> list[DeadMark]:
        return [_mark(row) for row in self._database.call("regress_dead", {"most": most})]

    def outlook(self, filter: Filter, most: int | None = None) -> RedriveOutlook:
        parameters = {
            "queue": filter.queue,
            "task": filter.task,
            "tenant": filter.tenant,
            "correlation": filter.correlation,
            "fingerprint": filter.fingerprint,
            "tag": filter.tag,
            "since": filter.since,
            "until": filter.until,
            "most": most,
            "now": self._database.now(),
        }
        count, oldest, priority, twins = self._database.call("foresee_redrive", parameters)[0]
        return RedriveOutlook(count, utc_or_none(oldest), priority, twins)

    def asked(self, id: JobId) -> NewJob | None:
        # The parts first: they stay as they are, and the record says whether it still is a dead letter.
        parts = self._database.call("read_job_parts", {"id": id})
        found = self._database.call("lookup_jobs", {"ids": [id]})
        held = self._database.call("hold_dead", {"id": id})[0][0]
        return _asked(found[0], parts[0]) if parts and found and held else None

    def edit(self, id: JobId, job: NewJob, by: str, reason: str) -> Stored | None:
        now = self._database.now()
        with self._transaction() as connection:
            if not self._on(connection, Call("hold_dead", {"id": id}, lambda rows: bool(rows[0][0])))[0]:
                return None
            stored: Stored = self._on(connection, calls.enqueueing([job], own=False, now=now))[0][0]
            if stored.outcome is Outcome.created:
                said = {
                    "id": id,
                    "successor": stored.id,
                    "note": edited_note(stored.id),
                    "by": by,
                    "reason": reason,
                    "detail": edit_detail(stored.id),
                    "now": now,
                }
                self._on(connection, Call("succeed_dead", said, lambda _: None))
            return stored


def _asked(record_row: Row, parts: Row) -> NewJob | None:
    record = job_record(record_row)
    if record.state is not State.dead:
        return None
    priority, key, live, version, fair, serialise, blobs, then, on_dead = parts
    return NewJob(
        queue=record.queue,
        task=record.task,
        args=record.args,
        priority=priority,
        timeout=record.timeout,
        attempts=record.attempts,
        tenant=record.tenant,
        tags=record.tags,
        correlation_id=record.correlation_id,
        unique=None if key is None else UniqueKey(bytes(key), bool(live), False),
        version=version,
        then=specs.jobs_of(then),
        on_dead=specs.jobs_of(on_dead),
        blobs=tuple(blobs),
        ordering_key=record.ordering_key,
        serialise=serialise and record.ordering_key is not None,
        fair=fair,
    )


def _mark(row: Row) -> DeadMark:
    fingerprint, queue, task, state, owner, note, by, at, regressed_at = row
    return DeadMark(fingerprint, queue, task, state, by, utc(at), owner, note, utc_or_none(regressed_at))
