"""What a job has done of itself: the StepStore on SQLite, and the cursors that come with reports and ends."""

from collections.abc import Iterable

from duly.core.job import Cursor, Ended, JobId, Steps, Token
from duly.core.lifecycle import State
from duly.stores.sqlite.database import Database
from duly.stores.sqlite.group import GroupCommit
from duly.stores.sqlite.session import Session


class SQLiteSteps:
    """See duly.stores.protocol.StepStore."""

    def __init__(self, database: Database, group: GroupCommit) -> None:
        self._database = database
        self._group = group

    def steps(self, id: JobId) -> Steps:
        with self._database.read() as session:
            rows = session.rows("select_steps", id=id)
        return Steps(
            {name: value for name, value, _ in rows if value is not None},
            {name: position for name, _, position in rows if position is not None},
        )

    def keep_step(self, token: Token, name: str, value: bytes) -> bool:
        """In one transaction that may be shared with other threads' writes."""
        return self._group.run(lambda session: _keep(session, token, name, value))


def _keep(session: Session, token: Token, name: str, value: bytes) -> bool:
    return (
        session.run(
            "upsert_step",
            incarnation=token.incarnation,
            id=token.job,
            run=token.run,
            name=name,
            value=value,
        )
        == 1
    )


def keep_cursors(session: Session, incarnation: int, cursors: Iterable[Cursor]) -> None:
    """Write those of live attempts."""
    session.many(
        "upsert_cursor",
        [
            {
                "incarnation": incarnation,
                "id": one.id,
                "run": one.run,
                "name": one.name,
                "position": one.position,
            }
            for one in cursors
        ],
    )


def last_cursors(ended: Iterable[Ended]) -> list[Cursor]:
    """Of attempts whose job may run again, be it after a redrive."""
    return [
        Cursor(end.id, end.run, name, position)
        for end in ended
        if end.cursors and end.to is not State.completed
        for name, position in end.cursors
    ]
