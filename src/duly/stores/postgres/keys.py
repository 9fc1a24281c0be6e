"""KeyStore and StepStore on PostgreSQL: what is remembered beside the jobs. What is done is a function's to say."""

from collections.abc import Sequence
from datetime import timedelta

from duly.core.job import FinishedStep, Incarnation, JobId, KeptAnswer, Steps
from duly.core.lifecycle import State
from duly.stores.postgres import calls
from duly.stores.postgres.arrays import Blobs, Longs, texts, words
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

    def keep_steps(self, incarnation: Incarnation, steps: Sequence[FinishedStep]) -> list[bool | None]:
        parameters = {
            "incarnation": incarnation,
            "ids": Longs([step.id for step in steps]),
            "runs": words([step.run for step in steps]),
            "names": texts([step.name for step in steps]),
            "values": Blobs([step.value for step in steps]),
        }
        kept: list[bool | None] = [True] * len(steps)
        for place, held in self._database.call("keep_steps", parameters):
            kept[place - 1] = None if held else False
        return kept

    def refuse_inside(self, *, thread: bool, searching: bool = False) -> None:
        """Nothing is waited for: another transaction's rows are left out."""
