"""The first answers to idempotent requests: the AnswerStore on PostgreSQL. Knows nothing of HTTP."""

from collections.abc import Callable, Sequence
from typing import Any

from duly.core.operating import AnswerAsk, FilledReply, KeptReply
from duly.stores.postgres.arrays import Blobs, words
from duly.stores.postgres.calls import Call
from duly.stores.postgres.columns import seconds, utc
from duly.stores.postgres.database import Database

OnConnection = Callable[[Any, Call[Any]], tuple[Any, bool]]


class PostgresAnswers:
    """See duly.stores.answers.AnswerStore."""

    def __init__(self, database: Database, on: OnConnection) -> None:
        self._database = database
        self._on = on

    def take(self, asks: Sequence[AnswerAsk], connection: Any = None) -> list[KeptReply | None]:
        parameters = {
            "keys": Blobs([ask.key for ask in asks]),
            "tokens": words([ask.token for ask in asks]),
            "hashes": Blobs([ask.body_hash for ask in asks]),
            "holds": words([seconds(ask.hold) for ask in asks]),
            "own": connection is None,
            "now": self._database.now(),
        }
        rows = self._run("take_answers", parameters, connection)
        kept = {place: _reply(asks[place - 1].key, row) for place, *row in rows}
        return [kept.get(place) for place in range(1, len(asks) + 1)]

    def fill(self, replies: Sequence[FilledReply], connection: Any = None) -> None:
        parameters = {
            "keys": Blobs([reply.key for reply in replies]),
            "statuses": words([reply.status for reply in replies]),
            "answers": Blobs([reply.body for reply in replies]),
            "keep": words([seconds(reply.keep) for reply in replies]),
            "now": self._database.now(),
        }
        self._run("fill_answers", parameters, connection)

    def look(self, key: bytes) -> KeptReply | None:
        rows = self._database.call("read_kept_answer", {"key": key, "now": self._database.now()})
        return _reply(key, rows[0]) if rows else None

    def release(self, keys: Sequence[bytes]) -> None:
        self._database.call("release_answers", {"keys": Blobs(keys)})

    def forget(self, most: int = 2000) -> int:
        return int(self._database.call("forget_answers", {"most": most, "now": self._database.now()})[0][0])

    def _run(self, name: str, parameters: dict[str, Any], connection: Any) -> Sequence[Sequence[Any]]:
        if connection is None:
            return self._database.call(name, parameters)
        rows: Sequence[Sequence[Any]] = self._on(connection, Call(name, parameters, lambda rows: rows))[0]
        return rows


def _reply(key: bytes, row: Sequence[Any]) -> KeptReply:
    token, body_hash, at, expires_at, status, body = row
    return KeptReply(
        key, token, bytes(body_hash), utc(at), utc(expires_at), status, None if body is None else bytes(body)
    )
