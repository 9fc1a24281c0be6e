"""Jobs that follow another: enqueued in the transaction that completes their parent or lets it go dead;
and those that follow a batch, once its last job has ended or its first has died.

Decides nothing about the parent; a follow-up whose keys are taken is not created.
"""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from duly.core.batch import ACCEPTING, BatchState
from duly.core.errors import KeyReused
from duly.core.job import RESULT_MARK, NewJob, Stored
from duly.stores.faults import DataFault
from duly.stores.sqlite import batches
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
    settle_batches(session)


def settle_batches(session: Session) -> None:
    """Enqueue what follows from the counts of batches that this transaction has changed."""
    while session.batches:
        for id, kind in batches.settle(session):
            _follow(session, Parent(id, kind, None, None, trigger=f"batch:{id}"))


def enqueue(session: Session, jobs: Sequence[NewJob]) -> list[Stored]:
    """As `enqueue_in`, with what follows where a job of a batch was replaced."""
    stored = enqueue_in(session, jobs)
    if session.batches:
        settle_batches(session)
    return stored


def _follow(session: Session, parent: Parent) -> None:
    rows = session.rows("select_follows", id=parent.id, kind=parent.kind)
    session.text("savepoint duly_follow")
    try:
        if parent.member and (batch := batches.batch_of(session, parent.id)) is not None:
            if batch.state is BatchState.cancelled:
                refused = [f"its follow-ups were not enqueued: batch {batch.id} is cancelled"]
            else:
                joined = batch.id if batch.state in ACCEPTING else None
                refused = _enqueue(session, [_made(parent, job_of(spec), joined) for (spec,) in rows])
        else:
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


def _made(parent: Parent, follow: NewJob, batch: int | None = None) -> NewJob:
    if parent.trigger is not None:
        args = follow.args.replace(RESULT_MARK, _NO_RESULT)
        return replace(follow, args=args, trigger=parent.trigger)
    return replace(
        follow,
        args=follow.args.replace(RESULT_MARK, parent.result or _NO_RESULT),
        correlation_id=follow.correlation_id or parent.correlation_id or str(parent.id),
        batch=batch,
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
