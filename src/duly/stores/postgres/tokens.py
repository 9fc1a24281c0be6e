"""Access tokens and the store's own signing keys: the TokenStore on PostgreSQL. Sees digests, never a token's text."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from duly.core.operating import TOUCH_EVERY, SecretKey, TokenRecord
from duly.stores.postgres.columns import seconds, utc, utc_or_none
from duly.stores.postgres.database import Database, Row
from duly.stores.tokens import name_taken

_ALL: Final = None


class PostgresTokens:
    """See duly.stores.tokens.TokenStore."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(
        self, name: str, digest: bytes, scopes: Sequence[str], lasting: timedelta | None, by: str, reason: str
    ) -> TokenRecord:
        parameters = {
            "name": name,
            "hash": digest,
            "scopes": [*scopes],
            "lasting": seconds(lasting),
            **self._by(by, reason),
        }
        rows = self._database.call("put_token", parameters)
        if not rows:
            raise name_taken(name)
        return _token(rows[0])

    def find(self, digest: bytes) -> TokenRecord | None:
        rows = self._database.call("read_tokens", {"hash": digest, "now": self._database.now()})
        return _token(rows[0]) if rows else None

    def all(self) -> list[TokenRecord]:
        rows = self._database.call("read_tokens", {"hash": _ALL, "now": self._database.now()})
        return [_token(row) for row in rows]

    def revoke(self, id: int, by: str, reason: str) -> bool:
        return bool(self._database.call("revoke_token", {"id": id, **self._by(by, reason)})[0][0])

    def touch(self, ids: Sequence[int]) -> None:
        parameters = {"ids": [*ids], "every": seconds(TOUCH_EVERY), "now": self._database.now()}
        self._database.call("touch_tokens", parameters)

    def secret(self, kind: str, value: bytes) -> SecretKey:
        kept = self.secrets(kind)
        if kept:
            return kept[0]
        parameters = {"kind": kind, "value": value, "by": None, "reason": None, "now": self._database.now()}
        return _secret(self._database.call("keep_secret", parameters)[0])

    def secrets(self, kind: str) -> list[SecretKey]:
        return [_secret(row) for row in self._database.call("read_secrets", {"kind": kind})]

    def rotate(self, kind: str, value: bytes, by: str, reason: str) -> SecretKey:
        parameters = {"kind": kind, "value": value, **self._by(by, reason)}
        return _secret(self._database.call("keep_secret", parameters)[0])

    def forget(self, kind: str, id: int, by: str, reason: str) -> bool:
        parameters = {"kind": kind, "id": id, **self._by(by, reason)}
        return bool(self._database.call("forget_secret", parameters)[0][0])

    def _by(self, by: str, reason: str) -> dict[str, object]:
        return {"by": by, "reason": reason, "now": self._database.now()}


def _token(row: Row) -> TokenRecord:
    id, name, scopes, by, created_at, expires_at, last_used_at, revoked_at, state = row
    return TokenRecord(
        id=id,
        name=name,
        scopes=tuple(scopes),
        created_at=utc(created_at),
        by=by,
        state=state,
        expires_at=utc_or_none(expires_at),
        last_used_at=utc_or_none(last_used_at),
        revoked_at=utc_or_none(revoked_at),
    )


def _secret(row: Row) -> SecretKey:
    kind, id, value, created_at, retired_at = row
    return SecretKey(kind, id, value, utc(created_at), utc_or_none(retired_at))
