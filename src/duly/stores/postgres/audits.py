"""The record of acts: the AuditStore on PostgreSQL. Seals name their entries, which commit in any order of ids."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from msgspec import json

from duly.core.audit_chain import GENESIS, digest_of
from duly.core.operating import AuditEntry, AuditSeal, AuditVerdict
from duly.stores.audits import FOLLOWER, NOT_KEPT, verified
from duly.stores.postgres.answers import OnConnection
from duly.stores.postgres.calls import Call
from duly.stores.postgres.columns import utc
from duly.stores.postgres.database import Database

_CHUNK: Final = 100


class PostgresAudits:
    """See duly.stores.audits.AuditStore."""

    def __init__(self, database: Database, on: OnConnection) -> None:
        self._database = database
        self._on = on
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
        parameters = {
            "verb": verb,
            "target": target,
            "by": by,
            "reason": reason,
            "detail": json.encode(detail or {}).decode(),
            "now": self._database.now(),
        }
        if connection is None:
            return int(self._database.call("append_audit", parameters)[0][0])
        return int(self._on(connection, Call("append_audit", parameters, lambda rows: rows[0][0]))[0])

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
        parameters = {
            "before": before,
            "actor": actor,
            "verb": verb,
            "target": target,
            "since": since,
            "until": until,
            "most": limit,
        }
        return [_entry(row) for row in self._database.call("read_audit_page", parameters)]

    def seal(self, most: int = 1000) -> AuditSeal | None:
        rows = self._database.call("read_unsealed", {"most": most})
        if not rows:
            return None
        after, sealed = rows[0][:2]
        entries = [_entry(row[2:]) for row in rows]
        previous = GENESIS if sealed is None else bytes(sealed)
        digest = digest_of(previous, entries)
        ids = [entry.id for entry in entries]
        parameters = {
            "after": after,
            "ids": ids,
            "digest": digest,
            "previous": previous,
            "now": self._database.now(),
        }
        told = self._database.call("seal_audit", parameters)
        if not told:
            return None
        return AuditSeal(after + 1, ids[0], ids[-1], len(ids), digest, previous, utc(told[0][0]))

    def seals(self, before: int | None = None, limit: int = 50) -> list[AuditSeal]:
        return self._seals(before=before, after=None, most=limit)

    def follow(self, most: int = 500) -> int:
        parameters = {
            "after": self._looked,
            "most": most,
            "by": FOLLOWER,
            "not_kept": NOT_KEPT,
            "now": self._database.now(),
        }
        written, self._looked = self._database.call("follow_audited", parameters)[0]
        return int(written)

    def verify(self) -> AuditVerdict:
        return verified(self)

    def seals_after(self, id: int) -> Sequence[AuditSeal]:
        return self._seals(before=None, after=id, most=_CHUNK)

    def sealed(self, seal: AuditSeal) -> Sequence[AuditEntry]:
        return [_entry(row) for row in self._database.call("read_sealed", {"seal": seal.id})]

    def totals(self) -> tuple[int, int, int]:
        entries, counted, waiting = self._database.call("read_audit_totals")[0]
        return entries, counted, waiting

    def _seals(self, **parameters: int | None) -> list[AuditSeal]:
        return [
            AuditSeal(id, first, last, count, bytes(digest), bytes(previous), utc(at))
            for id, first, last, count, digest, previous, at in self._database.call(
                "read_audit_seals", parameters
            )
        ]


def _entry(row: Sequence[Any]) -> AuditEntry:
    id, at, *rest = row
    return AuditEntry(id, utc(at), *rest)
