"""What people say about groups of dead letters: the TriageStore on SQLite. Moves no letter."""

from collections.abc import Sequence

from msgspec import json
from msgspec.structs import replace

from duly.core.filters import Filter
from duly.core.job import JobId, NewJob, Stored, UniqueKey
from duly.core.lifecycle import Outcome, State
from duly.core.operating import DeadMark, RedriveOutlook, TriageState, edited_note
from duly.stores.sqlite.database import Database
from duly.stores.sqlite.followups import enqueue
from duly.stores.sqlite.inspection import dead_terms, lookup_in
from duly.stores.sqlite.moves import ON_DEAD, THEN
from duly.stores.sqlite.operator import enter
from duly.stores.sqlite.session import Row, Session
from duly.stores.sqlite.specs import job_of
from duly.stores.sqlite.times import from_micros, maybe_from_micros, to_micros
from duly.stores.triage import edit_detail, mark_detail, marked


class SQLiteTriage:
    """See duly.stores.triage.TriageStore."""

    def __init__(self, database: Database) -> None:
        self._database = database

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
        with self._database.write() as session:
            now = from_micros(session.now)
            was = _read(session, fingerprint, queue, task) or DeadMark(
                fingerprint, queue, task, "new", by, now
            )
            mark = replace(marked(was, state, owner, note), by=by, at=now)
            _keep(session, mark)
            enter(
                session,
                "mark",
                f"dead:{fingerprint}",
                by,
                reason,
                mark_detail(queue, task, state, owner, note),
            )
            return mark

    def marks(self, fingerprints: Sequence[str] | None = None, most: int = 1000) -> list[DeadMark]:
        named = None if fingerprints is None else json.encode([*fingerprints]).decode()
        with self._database.read() as session:
            return [_mark(row) for row in session.rows("select_dead_marks", fingerprints=named, most=most)]

    def regressions(self, most: int = 100) -> list[DeadMark]:
        # Looked for without a lock first: nearly every call finds nothing.
        with self._database.read() as session:
            if not session.rows("select_regressed", most=1):
                return []
        with self._database.write() as session:
            found = [_read(session, *group) for group in session.rows("select_regressed", most=most)]
            told = [mark for mark in found if mark is not None]
            for mark in told:
                _keep(session, mark)
            return told

    def outlook(self, filter: Filter, most: int | None = None) -> RedriveOutlook:
        with self._database.read(snapshot=True) as session:
            row = session.row("foresee_redrive", now=session.now, **dead_terms(filter))
        count, oldest, priority, twins = row or (0, None, None, 0)
        return RedriveOutlook(count, maybe_from_micros(oldest), priority, twins)

    def asked(self, id: JobId) -> NewJob | None:
        with self._database.read(snapshot=True) as session:
            if session.row("hold_dead", id=id) is None:
                return None
            return _asked(session, id)

    def edit(self, id: JobId, job: NewJob, by: str, reason: str) -> Stored | None:
        with self._database.write() as session:
            if session.row("hold_dead", id=id) is None:
                return None
            stored = enqueue(session, [job])[0]
            if stored.outcome is Outcome.created:
                session.run("succeed_dead", id=id, successor=stored.id, note=edited_note(stored.id))
                enter(session, "edit", f"job:{id}", by, reason, edit_detail(stored.id))
            return stored


def _asked(session: Session, id: JobId) -> NewJob | None:
    record = lookup_in(session, [id])[0]
    parts = session.row("read_job_parts", id=id)
    if record is None or parts is None or record.state is not State.dead:
        return None
    priority, key, live, version, fair, serialise, blobs = parts
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
        unique=None if key is None else UniqueKey(key, bool(live), False),
        version=version,
        then=tuple(job_of(spec) for (spec,) in session.rows("select_follows", id=id, kind=THEN)),
        on_dead=tuple(job_of(spec) for (spec,) in session.rows("select_follows", id=id, kind=ON_DEAD)),
        blobs=tuple(json.decode(blobs, type=list[str])),
        ordering_key=record.ordering_key,
        serialise=bool(serialise) and record.ordering_key is not None,
        fair=bool(fair),
    )


def _read(session: Session, fingerprint: str, queue: str, task: str) -> DeadMark | None:
    row = session.row("select_dead_mark", fingerprint=fingerprint, queue=queue, task=task)
    return None if row is None else _mark(row)


def _keep(session: Session, mark: DeadMark) -> None:
    session.run(
        "upsert_dead_mark",
        fingerprint=mark.fingerprint,
        queue=mark.queue,
        task=mark.task,
        state=mark.state,
        owner=mark.owner,
        note=mark.note,
        by=mark.by,
        at=to_micros(mark.at),
        regressed_at=None if mark.regressed_at is None else to_micros(mark.regressed_at),
    )


def _mark(row: Row) -> DeadMark:
    """As it counts now: fixed no more when one has died since."""
    fingerprint, queue, task, state, owner, note, by, at, regressed_at, died_at = row
    return DeadMark(
        fingerprint=fingerprint,
        queue=queue,
        task=task,
        state=state if died_at is None else "new",
        by=by,
        at=from_micros(at),
        owner=owner,
        note=note,
        regressed_at=maybe_from_micros(regressed_at if died_at is None else died_at),
    )
