"""What people say about groups of dead letters: the TriageStore on SQLite. Moves no letter."""

from collections.abc import Sequence

from msgspec import json
from msgspec.structs import replace

from duly.core.operating import DeadMark, TriageState
from duly.stores.sqlite.database import Database
from duly.stores.sqlite.operator import enter
from duly.stores.sqlite.session import Row, Session
from duly.stores.sqlite.times import from_micros, maybe_from_micros, to_micros
from duly.stores.triage import mark_detail, marked


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
