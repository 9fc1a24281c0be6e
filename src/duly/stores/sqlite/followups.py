"""Jobs that follow another: enqueued in the transaction that completes their parent or lets it go dead.

Decides nothing about the parent; a follow-up whose keys are taken is not created.
"""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from duly.core.errors import KeyReused
from duly.core.job import RESULT_MARK, NewJob
from duly.stores.faults import DataFault
from duly.stores.sqlite.enqueueing import enqueue_in
from duly.stores.sqlite.errors import FAILURES, translate
from duly.stores.sqlite.moves import THEN, Moves, Parent
from duly.stores.sqlite.session import Session
from duly.stores.sqlite.specs import job_of

_NO_RESULT: Final = b"null"


def settle(session: Session, moves: Moves) -> None:
    """Write what has moved, then enqueue what follows from it."""
    for parent in moves.flush():
        _follow(session, parent)


def _follow(session: Session, parent: Parent) -> None:
    rows = session.rows("select_follows", id=parent.id, kind=parent.kind)
    session.text("savepoint duly_follow")
    try:
        refused = _enqueue(session, [_made(parent, job_of(spec)) for (spec,) in rows])
    except FAILURES as error:
        if not isinstance(translate(error, ""), DataFault):
            raise
        # The end of the parent must not hang on what cannot be stored: it would come again for ever.
        session.text("rollback to duly_follow")
        refused = [f"its follow-ups were not enqueued: {error}"]
    session.text("release duly_follow")
    if refused:
        statement = "update_finished_note" if parent.kind == THEN else "update_dead_note"
        session.run(statement, id=parent.id, note="; ".join(refused))


def _made(parent: Parent, follow: NewJob) -> NewJob:
    return replace(
        follow,
        args=follow.args.replace(RESULT_MARK, parent.result or _NO_RESULT),
        correlation_id=follow.correlation_id or parent.correlation_id or str(parent.id),
    )


def _enqueue(session: Session, jobs: Sequence[NewJob]) -> list[str]:
    """Enqueue as many as their keys allow; a word on each that was refused."""
    refused = []
    left = list(jobs)
    while left:
        try:
            enqueue_in(session, left)
            break
        except KeyReused as error:
            follow = left.pop(error.position)
            taken = "another" if error.job_id is None else f"job {error.job_id}"
            refused.append(
                f"its follow-up {follow.task} was not enqueued: its idempotency key belongs to {taken}, "
                "which has other arguments"
            )
    return refused
