"""What people say about groups of dead letters: the TriageStore on PostgreSQL. Moves no letter."""

from collections.abc import Sequence

from duly.core.operating import DeadMark, TriageState
from duly.stores.postgres.columns import utc, utc_or_none
from duly.stores.postgres.database import Database, Row
from duly.stores.triage import mark_detail


class PostgresTriage:
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


def _mark(row: Row) -> DeadMark:
    fingerprint, queue, task, state, owner, note, by, at, regressed_at = row
    return DeadMark(fingerprint, queue, task, state, by, utc(at), owner, note, utc_or_none(regressed_at))
