"""What a job has done of itself: the StepStore on SQLite, and the cursors that come with reports and ends."""

from collections.abc import Iterable, Sequence

from duly.core.job import Cursor, Ended, FinishedStep, Incarnation, JobId, Steps
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

    def keep_steps(self, incarnation: Incarnation, steps: Sequence[FinishedStep]) -> list[bool | None]:
        """In one transaction that may be shared with other threads' writes."""
        return self._group.run(lambda session: [_keep(session, incarnation, step) for step in steps])

    def refuse_inside(self, *, thread: bool, searching: bool = False) -> None:
        holding = self._database.holding
        if not thread:
            holding.refuse_block()
            return
        holding.refuse()
        if searching:
            holding.refuse_unseen()


def _keep(session: Session, incarnation: Incarnation, step: FinishedStep) -> bool:
    return (
        session.run(
            "upsert_step",
            incarnation=incarnation,
            id=step.id,
            run=step.run,
            name=step.name,
            value=step.value,
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
