"""The record of acts: the AuditStore on SQLite. With one writer the order of ids is that of commits."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final, NamedTuple

from msgspec import json

from duly.core.audit_chain import GENESIS, digest_of
from duly.core.operating import AuditEntry, AuditSeal, AuditVerdict
from duly.stores.audits import FOLLOWER, NOT_KEPT, end_detail, verified
from duly.stores.sqlite.database import Database
from duly.stores.sqlite.joining import Joining
from duly.stores.sqlite.operator import enter
from duly.stores.sqlite.session import Row, Session
from duly.stores.sqlite.times import from_micros, to_micros

_LAST: Final = 2**63 - 1
_CHUNK: Final = 100


class SQLiteAudits:
    """See duly.stores.audits.AuditStore."""

    def __init__(self, database: Database, joining: Joining) -> None:
        self._database = database
        self._joining = joining
        self._looked = 0
        """Up to which id audited jobs were looked at in this round."""

    def append(
        self,
        verb: str,
        target: str,
        by: str,
        reason: str,
        detail: Mapping[str, object] | None = None,
        connection: Any = None,
    ) -> int:
        text = json.encode(detail or {}).decode()
        act = partial(enter, verb=verb, target=target, by=by, reason=reason, detail=text)
        if connection is not None:
            return self._joining.write(connection, act)[0]
        with self._database.write() as session:
            return act(session)

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
        with self._database.read() as session:
            rows = session.rows(
                "select_audit_page",
                before=_LAST if before is None else before,
                most=limit,
                actor=actor,
                verb=verb,
                target=target,
                since=None if since is None else to_micros(since),
                until=None if until is None else to_micros(until),
            )
        return [_entry(row) for row in rows]

    def seal(self, most: int = 1000) -> AuditSeal | None:
        # Looked for without a lock first: nearly every call finds nothing.
        with self._database.read() as session:
            last = _last_seal(session)
            if not _entries(session, 0 if last is None else last.last, 1):
                return None
        with self._database.write() as session:
            return _seal(session, most)

    def seals(self, before: int | None = None, limit: int = 50) -> list[AuditSeal]:
        with self._database.read() as session:
            rows = session.rows("select_audit_seals", before=_LAST if before is None else before, most=limit)
        return [_seal_of(row) for row in rows]

    def follow(self, most: int = 500) -> int:
        with self._database.read() as session:
            rows = session.rows("select_audited", after=self._looked, most=most)
        self._looked = rows[-1][0] if len(rows) == most else 0
        ends = [end for row in rows if (end := _end(row)) is not None]
        if not ends:
            return 0
        with self._database.write() as session:
            return sum(_write_end(session, end) for end in ends)

    def verify(self) -> AuditVerdict:
        return verified(self)

    def seals_after(self, id: int) -> Sequence[AuditSeal]:
        with self._database.read() as session:
            return [_seal_of(row) for row in session.rows("select_audit_seals_after", after=id, most=_CHUNK)]

    def sealed(self, seal: AuditSeal) -> Sequence[AuditEntry]:
        with self._database.read() as session:
            rows = session.rows("select_audit_entries", first=seal.first, last=seal.last, most=seal.count + 1)
        return [_entry(row) for row in rows]

    def totals(self) -> tuple[int, int, int]:
        with self._database.read() as session:
            entries, counted, waiting = session.rows("select_audit_totals")[0]
        return entries, counted, waiting


class _End(NamedTuple):
    id: int
    died: bool
    run: int | None
    reason: str
    detail: str


def _end(row: Row) -> _End | None:
    id, dead_run, kept, queue, task, tenant, status, run, reason, died_in, death = row
    if status is not None:
        return _End(id, False, run, reason or "", end_detail(status, run, queue, task, tenant))
    if died_in is not None:
        detail = end_detail("dead", died_in, queue, task, tenant)
        return None if died_in == dead_run else _End(id, True, died_in, death or "", detail)
    return (
        None
        if kept is not None
        else _End(id, False, None, NOT_KEPT, end_detail("unknown", None, None, None, None))
    )


def _write_end(session: Session, end: _End) -> int:
    """1, unless another process has written it meanwhile."""
    if end.died:
        first = session.run("update_audited", id=end.id, run=end.run)
    else:
        first = session.run("delete_audited", id=end.id)
    if first:
        enter(session, "end", f"job:{end.id}", FOLLOWER, end.reason, end.detail)
    return first


def _seal(session: Session, most: int) -> AuditSeal | None:
    before = _last_seal(session)
    entries = _entries(session, 0 if before is None else before.last, most)
    if not entries:
        return None
    previous = GENESIS if before is None else before.digest
    seal = AuditSeal(
        id=1 if before is None else before.id + 1,
        first=entries[0].id,
        last=entries[-1].id,
        count=len(entries),
        digest=digest_of(previous, entries),
        previous=previous,
        at=from_micros(session.now),
    )
    session.run(
        "insert_audit_seal",
        id=seal.id,
        first=seal.first,
        last=seal.last,
        count=seal.count,
        digest=seal.digest,
        previous=seal.previous,
        at=session.now,
    )
    return seal


def _last_seal(session: Session) -> AuditSeal | None:
    row = session.row("select_audit_seals", before=_LAST, most=1)
    return None if row is None else _seal_of(row)


def _entries(session: Session, after: int, most: int) -> list[AuditEntry]:
    return [
        _entry(row) for row in session.rows("select_audit_entries", first=after + 1, last=_LAST, most=most)
    ]


def _entry(row: Row) -> AuditEntry:
    id, at, *rest = row
    return AuditEntry(id, from_micros(at), *rest)


def _seal_of(row: Row) -> AuditSeal:
    id, first, last, count, digest, previous, at = row
    return AuditSeal(id, first, last, count, digest, previous, from_micros(at))
