"""The first answers to idempotent requests: the AnswerStore on SQLite. Knows nothing of HTTP."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from duly.core.operating import AnswerAsk, FilledReply, KeptReply
from duly.stores.sqlite.database import Database
from duly.stores.sqlite.joining import Joining
from duly.stores.sqlite.session import Row, Session
from duly.stores.sqlite.times import from_micros, span

T = TypeVar("T")


class SQLiteAnswers:
    """See duly.stores.answers.AnswerStore."""

    def __init__(self, database: Database, joining: Joining) -> None:
        self._database = database
        self._joining = joining

    def take(self, asks: Sequence[AnswerAsk], connection: Any = None) -> list[KeptReply | None]:
        return self._write(connection, lambda session: [_take(session, ask) for ask in asks])

    def fill(self, replies: Sequence[FilledReply], connection: Any = None) -> None:
        self._write(connection, lambda session: _fill(session, replies))

    def look(self, key: bytes) -> KeptReply | None:
        with self._database.read() as session:
            row = session.row("select_reply", key=key, now=session.now)
        return None if row is None else _reply(row)

    def release(self, keys: Sequence[bytes]) -> None:
        with self._database.write() as session:
            session.many("delete_reply", [{"key": key} for key in keys])

    def forget(self, most: int = 2000) -> int:
        # Looked for without a lock first: nearly every call finds nothing.
        with self._database.read() as session:
            if not session.value("select_old_replies", now=session.now):
                return 0
        with self._database.write() as session:
            return session.run("delete_old_replies", now=session.now, most=most)

    def _write(self, connection: Any, act: Callable[[Session], T]) -> T:
        if connection is not None:
            return self._joining.write(connection, act)[0]
        with self._database.write() as session:
            return act(session)


def _take(session: Session, ask: AnswerAsk) -> KeptReply | None:
    taken = session.run(
        "upsert_reply",
        key=ask.key,
        token=ask.token,
        body_hash=ask.body_hash,
        now=session.now,
        expires_at=session.now + span(ask.hold),
    )
    row = None if taken else session.row("select_reply", key=ask.key, now=session.now)
    return None if row is None else _reply(row)


def _fill(session: Session, replies: Sequence[FilledReply]) -> None:
    session.many(
        "update_reply",
        [
            {
                "key": reply.key,
                "status": reply.status,
                "answer": reply.body,
                "expires_at": session.now + span(reply.keep),
            }
            for reply in replies
        ],
    )


def _reply(row: Row) -> KeptReply:
    key, token, body_hash, at, expires_at, status, body = row
    return KeptReply(key, token, body_hash, from_micros(at), from_micros(expires_at), status, body)
