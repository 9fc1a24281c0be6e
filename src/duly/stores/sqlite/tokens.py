"""Access tokens and the store's own signing keys: the TokenStore on SQLite. Sees digests, never a token's text."""

from collections.abc import Sequence
from datetime import timedelta

from msgspec import json

from duly.core.operating import TOUCH_EVERY, SecretKey, TokenRecord, TokenState
from duly.stores.sqlite.database import Database
from duly.stores.sqlite.operator import note_act
from duly.stores.sqlite.session import Row, Session
from duly.stores.sqlite.times import from_micros, maybe_from_micros, span
from duly.stores.sqlite.transport import ids_text
from duly.stores.tokens import name_taken


class SQLiteTokens:
    """See duly.stores.tokens.TokenStore."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(
        self, name: str, digest: bytes, scopes: Sequence[str], lasting: timedelta | None, by: str, reason: str
    ) -> TokenRecord:
        with self._database.write() as session:
            if session.value("select_token_taken", name=name, hash=digest, now=session.now):
                raise name_taken(name)
            expires_at = None if lasting is None else session.now + span(lasting)
            stored = json.encode([*scopes]).decode()
            id = session.value(
                "insert_token",
                name=name,
                hash=digest,
                scopes=stored,
                by=by,
                now=session.now,
                expires_at=expires_at,
            )
            note_act(session, f"create token:{name}", by, reason)
            row = (id, name, stored, by, session.now, expires_at, None, None)
            return _token(row, session.now)

    def find(self, digest: bytes) -> TokenRecord | None:
        with self._database.read() as session:
            row = session.row("select_token_by_hash", hash=digest)
            return None if row is None else _token(row, session.now)

    def all(self) -> list[TokenRecord]:
        with self._database.read() as session:
            return [_token(row, session.now) for row in session.rows("select_tokens")]

    def revoke(self, id: int, by: str, reason: str) -> bool:
        with self._database.write() as session:
            name = session.value("update_token_revoked", id=id, now=session.now)
            if name is not None:
                note_act(session, f"revoke token:{name}", by, reason)
            return name is not None

    def touch(self, ids: Sequence[int]) -> None:
        text = ids_text([*ids])
        with self._database.read() as session:
            if not session.rows("select_tokens_unused", ids=text, before=session.now - span(TOUCH_EVERY)):
                return
        with self._database.write() as session:
            before = session.now - span(TOUCH_EVERY)
            session.run("update_tokens_used", ids=text, now=session.now, before=before)

    def secret(self, kind: str, value: bytes) -> SecretKey:
        kept = self.secrets(kind)
        if kept:
            return kept[0]
        with self._database.write() as session:
            # Under the lock, as another caller may have been faster.
            if not session.rows("select_secrets", kind=kind):
                session.run("insert_secret", kind=kind, id=1, value=value, now=session.now)
            return _secrets(session, kind)[0]

    def secrets(self, kind: str) -> list[SecretKey]:
        with self._database.read() as session:
            return _secrets(session, kind)

    def rotate(self, kind: str, value: bytes, by: str, reason: str) -> SecretKey:
        with self._database.write() as session:
            kept = _secrets(session, kind)
            id = kept[0].id + 1 if kept else 1
            session.run("update_secrets_retired", kind=kind, now=session.now)
            session.run("insert_secret", kind=kind, id=id, value=value, now=session.now)
            note_act(session, f"rotate secret:{kind}", by, reason)
            return _secrets(session, kind)[0]

    def forget(self, kind: str, id: int, by: str, reason: str) -> bool:
        with self._database.write() as session:
            gone = session.run("delete_secret", kind=kind, id=id) == 1
            if gone:
                note_act(session, f"forget secret:{kind}:{id}", by, reason)
            return gone


def _secrets(session: Session, kind: str) -> list[SecretKey]:
    return [
        SecretKey(name, id, value, from_micros(created_at), maybe_from_micros(retired_at))
        for name, id, value, created_at, retired_at in session.rows("select_secrets", kind=kind)
    ]


def _token(row: Row, now: int) -> TokenRecord:
    id, name, scopes, by, created_at, expires_at, last_used_at, revoked_at = row
    state: TokenState = "live"
    if revoked_at is not None:
        state = "revoked"
    elif expires_at is not None and expires_at <= now:
        state = "expired"
    return TokenRecord(
        id=id,
        name=name,
        scopes=tuple(json.decode(scopes, type=list[str])),
        created_at=from_micros(created_at),
        by=by,
        state=state,
        expires_at=maybe_from_micros(expires_at),
        last_used_at=maybe_from_micros(last_used_at),
        revoked_at=maybe_from_micros(revoked_at),
    )
