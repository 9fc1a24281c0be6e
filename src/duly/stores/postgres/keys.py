"""KeyStore and StepStore on PostgreSQL: what is remembered beside the jobs. What is done is a function's to say."""

from collections.abc import Sequence
from datetime import timedelta

from duly.core.job import JobId, KeptAnswer, Steps, Token
from duly.core.lifecycle import State
from duly.stores.postgres import calls
from duly.stores.postgres.arrays import texts
from duly.stores.postgres.columns import utc
from duly.stores.postgres.database import Database


class PostgresKeys:
    """See `KeyStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def answer(self, id: JobId) -> KeptAnswer | None:
        rows = self._database.call("read_answer", {"id": id, "now": self._database.now()})
        if not rows:
            return None
        status, ended_at, result, reason = rows[0]
        return KeptAnswer(id, State(status), utc(ended_at), result, reason)

    def once(self, digest: bytes, keep: timedelta) -> bool:
        call = calls.taking_once(digest, keep, own=True, now=self._database.now())
        return call.read(self._database.call(call.name, call.parameters))

    def unused_blobs(self, references: Sequence[str]) -> list[str]:
        return [row[0] for row in self._database.call("read_unused_blobs", {"refs": texts(references)})]


class PostgresSteps:
    """See `StepStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def steps(self, id: JobId) -> Steps:
        rows = self._database.call("read_steps", {"id": id})
        return Steps(
            finished={name: value for name, value, _ in rows if value is not None},
            cursors={name: position for name, _, position in rows if position is not None},
        )

    def keep_step(self, token: Token, name: str, value: bytes) -> bool:
        parameters = {
            "incarnation": token.incarnation,
            "id": token.job,
            "run": token.run,
            "name": name,
            "value": value,
        }
        return bool(self._database.call("keep_step", parameters)[0][0])
