"""Ends of attempts: running -> whatever the worker decided, each fenced by its token. Decides nothing of its own
but one thing: a wish to cancel turns a job that would run again into a cancelled one.
"""

from collections.abc import Collection, Sequence

from duly.core.job import Counters, Ended, JobId
from duly.core.lifecycle import Event, State
from duly.stores.sqlite import completing
from duly.stores.sqlite.followups import settle
from duly.stores.sqlite.moves import Moves, Subject, pairs
from duly.stores.sqlite.session import Row, Session
from duly.stores.sqlite.steps import keep_cursors, last_cursors
from duly.stores.sqlite.times import span
from duly.stores.sqlite.transport import ids_text

_FINISHED = {State.completed, State.skipped, State.cancelled}
# With a wish the job is cancelled for the reason that the wish gives, also where the handler stopped for it.
_WISHED_AWAY = {State.ready, State.scheduled, State.cancelled}


class Held:
    """One live attempt, from a row of `select_held` or its kin."""

    __slots__ = ("claimed_at", "incarnation", "subject", "wish_by", "wish_reason")

    def __init__(self, row: Row) -> None:
        (
            incarnation,
            id,
            run,
            _lane,
            _task,
            priority,
            failed,
            lost,
            interrupted,
            snoozed,
            claimed_at,
            *job,
        ) = row
        queue, task, tenant, correlation_id, enqueued_at, expires_at, extras, wish_by, wish_reason, lane = job
        counters = Counters(failed, lost, interrupted, snoozed)
        self.incarnation: int = incarnation
        self.claimed_at: int = claimed_at
        self.subject = Subject(
            id,
            run,
            queue,
            task,
            tenant,
            correlation_id,
            enqueued_at,
            priority,
            counters,
            expires_at,
            extras,
            lane,
        )
        self.wish_by: str | None = wish_by
        self.wish_reason: str | None = wish_reason


def apply(
    session: Session, incarnation: int, ended: Sequence[Ended], *, again: bool = True
) -> frozenset[tuple[JobId, int]]:
    """Apply every end whose token is live; the (id, run) pairs applied now or, with `again`, by an earlier try."""
    if not ended:
        return frozenset()
    completed = completing.complete(session, incarnation, ended)
    if len(completed) < len(ended):
        left = [end for end in ended if (end.id, end.run) not in completed]
        completed |= _apply_each(session, incarnation, left, again)
    return frozenset(completed)


def _apply_each(
    session: Session, incarnation: int, ended: Sequence[Ended], again: bool
) -> set[tuple[JobId, int]]:
    asked = {(end.id, end.run): end for end in ended}
    # In the order asked: what goes back to ready gets its positions so.
    rows = session.rows(
        "select_held", ids=ids_text([*dict.fromkeys(id for id, _ in asked)]), incarnation=incarnation
    )
    held = {(row[1], row[2]): Held(row) for row in rows if (row[1], row[2]) in asked}
    moves = Moves(session)
    for token, attempt in held.items():
        _end(session, moves, attempt, asked[token])
    keep_cursors(session, incarnation, last_cursors(asked[token] for token in held))
    release(session, held.values())
    settle(session, moves)
    acked = {(JobId(id), run) for id, run in held}
    if again and len(acked) < len(asked):
        acked |= _ended_before(
            session, incarnation, [end for token, end in asked.items() if token not in held]
        )
    return acked


def release(session: Session, attempts: Collection[Held]) -> None:
    """Delete the claimed rows and what hangs on them."""
    by_holder: dict[int, list[int]] = {}
    for one in attempts:
        by_holder.setdefault(one.incarnation, []).append(one.subject.id)
    for incarnation, ids in by_holder.items():
        completing.release(session, incarnation, ids)


def cancel_instead(moves: Moves, attempt: Held, counters: Counters, started_at: int | None) -> bool:
    """Record the job as cancelled if someone wished so; True when it was done."""
    if attempt.wish_reason is None:
        return False
    subject = attempt.subject._replace(counters=counters)
    moves.finished(
        subject,
        State.cancelled,
        incarnation=attempt.incarnation,
        started_at=started_at,
        reason=attempt.wish_reason,
        note=cancelled_by(attempt.wish_by),
    )
    return True


def cancelled_by(by: str | None) -> str | None:
    return f"cancelled by {by}" if by else None


def _end(session: Session, moves: Moves, attempt: Held, end: Ended) -> None:
    started_at = None
    if end.elapsed is not None:
        # Measured on another clock than the claim: never before it.
        started_at = max(attempt.claimed_at, session.now - span(end.elapsed))
    untried = end.event is Event.interrupt and end.elapsed is None
    # An expiry asks whether the job has started; a retry is not expired.
    subject = attempt.subject.after(end.counters, attempt.subject.expires_at if untried else None)
    if end.event is not Event.complete or end.run > 1:
        moves.attempt(subject, end.event, attempt.incarnation, started_at, end.reason, end.error)
    if end.to in _WISHED_AWAY and cancel_instead(moves, attempt, end.counters, started_at):
        return
    if end.to is State.ready:
        moves.ready(subject)
    elif end.to is State.scheduled:
        moves.scheduled(subject, session.now + (span(end.delay) if end.delay is not None else 0))
    elif end.to is State.dead:
        moves.dead(
            subject,
            incarnation=attempt.incarnation,
            started_at=started_at,
            reason=end.reason,
            note=end.note,
            error=end.error,
        )
    elif end.to in _FINISHED:
        moves.finished(
            subject,
            end.to,
            incarnation=attempt.incarnation,
            started_at=started_at,
            reason=end.reason,
            note=end.note,
            result=end.result,
        )
    else:
        raise ValueError(f"an attempt cannot end as {end.to}")


def _ended_before(session: Session, incarnation: int, ended: Sequence[Ended]) -> set[tuple[JobId, int]]:
    """Of these, the ones that the records show as ended in just this way by this incarnation."""
    asked = {(end.id, end.run): end.event.value for end in ended}
    rows = session.rows("select_ended", pairs=pairs([*asked]), incarnation=incarnation)
    return {(JobId(id), run) for id, run, event in rows if asked[id, run] == event}
