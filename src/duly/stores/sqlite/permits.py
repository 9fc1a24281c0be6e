"""Limits and locks that are taken outside a claim: by a handler, or by any code for a while. Inside a transaction.

A permit is a row per limit, like what a claim takes, so that it ends with its attempt or its time.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from duly.core.control import Permit, Refusal
from duly.core.errors import LeaseLost
from duly.core.job import Incarnation, Token
from duly.core.names import key_of
from duly.stores.sqlite.bounds import bounds_of
from duly.stores.sqlite.moves import Values
from duly.stores.sqlite.releasing import freed
from duly.stores.sqlite.session import Session
from duly.stores.sqlite.times import MICROSECOND, maybe_from_micros, span
from duly.stores.sqlite.transport import ids_text
from duly.stores.sqlite.usage import keep, use_of

_LOCK: Final = "lock:"


def acquire(
    session: Session, names: Sequence[str], holder: Token | None, ttl: timedelta | None
) -> Permit | Refusal:
    """All or none. What the attempt holds already is no part of the permit, but for locks."""
    now, bounds = session.now, bounds_of(session)
    mine = frozenset[int]() if holder is None else _held_by(session, holder)
    wanted = sorted(
        {name for name in names if name.startswith(_LOCK) or key_of(name) not in mine}, key=key_of
    )
    uses = [use_of(session, bounds, name) for name in wanted]
    for use in uses:
        refusal = use.refusal(now)
        if refusal is not None:
            return Refusal(use.name, None if refusal.at is None else (refusal.at - now) * MICROSECOND)
    id = -session.numbers(1) if holder is None else holder.job
    incarnation = Incarnation(0) if holder is None else holder.incarnation
    until = None if holder is not None or ttl is None else now + span(ttl)
    for use in uses:
        use.start(now)
        # Its row names it.
        use.changed = True
    session.tuples("insert_hold", [(use.key, id, incarnation, until) for use in uses])
    keep(session, uses)
    return Permit(tuple(use.name for use in uses), id, incarnation, maybe_from_micros(until))


def release(session: Session, permit: Permit) -> bool:
    """Give back what is left of it."""
    if not permit.names:
        return permit.incarnation == 0 or bool(_live(session, permit.incarnation, permit.id))
    keys = ids_text([key_of(name) for name in permit.names])
    whose: Values = {"keys": keys, "id": permit.id, "incarnation": permit.incarnation}
    found = session.rows("select_permit", **whose)
    if not found:
        return False
    session.run("delete_permit", **whose)
    freed(session, [key for key, _ in found])
    return all(until is None or until > session.now for _, until in found)


def _held_by(session: Session, holder: Token) -> frozenset[int]:
    token = {"incarnation": holder.incarnation, "id": holder.job, "run": holder.run}
    if session.row("select_token", **token) is None:
        raise LeaseLost(
            f"job {holder.job} no longer belongs to this attempt; nothing was taken", job_id=holder.job
        )
    rows = session.rows("select_holds", incarnation=holder.incarnation, ids=ids_text([holder.job]))
    return frozenset(key for (key,) in rows)


def _live(session: Session, incarnation: int, id: int) -> int:
    return len(session.rows("select_running", ids=ids_text([id]))) if incarnation else 1
