"""Jobs that wait, as rows of the waiting tables: what they hold, and how they go on without running."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from duly.core.defaults import INLINE_PAYLOAD
from duly.core.job import Counters
from duly.core.lifecycle import State
from duly.stores.sqlite.moves import Moves, Subject
from duly.stores.sqlite.session import Row, Session, Value
from duly.stores.sqlite.transport import ids_text

# Causes of being blocked.
UNKNOWN: Final = 1
PAUSED: Final = 2
BEHIND_KEY: Final = 3
BEHIND_LIMIT: Final = 4


class Table(NamedTuple):
    """The statements of one waiting table."""

    named: str
    expired: str
    delete: str


READY: Final = Table("select_these_ready", "select_expired_ready", "delete_ready")
SCHEDULED: Final = Table("select_these_scheduled", "select_expired_scheduled", "delete_scheduled")
BLOCKED: Final = Table("select_these_blocked", "select_expired_blocked", "delete_blocked")


class Waiting(NamedTuple):
    """One row of ready, scheduled or blocked; `pos` is 0 where the table has none."""

    id: int
    task: int
    lane: int
    priority: int
    pos: int
    run: int
    counters: Counters
    expires_at: int | None
    tenant: int = 0
    """The key of its tenant, where its queue goes round them."""


def jobs_of(session: Session, ids: Sequence[int]) -> dict[int, Row]:
    """The stored side of jobs; payloads only up to the inline size."""
    rows = session.rows("select_jobs", ids=ids_text([*ids]), inline=INLINE_PAYLOAD)
    return {row[0]: row for row in rows}


def expire(session: Session, waiting: Sequence[Waiting]) -> int:
    """Record jobs, already taken from where they waited, as skipped because their time is over."""
    return skip(session, waiting, "expired")


def skip(session: Session, waiting: Sequence[Waiting], reason: str) -> int:
    """Record jobs, already taken from where they waited, as skipped."""
    if not waiting:
        return 0
    stored = jobs_of(session, [one.id for one in waiting])
    moves = Moves(session)
    for one in waiting:
        moves.finished(subject_of(one, stored[one.id]), State.skipped, reason=reason)
    moves.flush()
    return len(waiting)


def subject_of(waiting: Waiting, stored: Row) -> Subject:
    return Subject(
        waiting.id,
        waiting.run,
        stored[1],
        stored[2],
        stored[4],
        stored[6],
        stored[9],
        waiting.priority,
        waiting.counters,
        waiting.expires_at,
        stored[10],
        waiting.tenant,
    )


def row_of(waiting: Waiting) -> dict[str, Value]:
    """The columns that the waiting tables share."""
    counters = waiting.counters
    return {
        "id": waiting.id,
        "task": waiting.task,
        "queue": waiting.lane,
        "priority": waiting.priority,
        "pos": waiting.pos,
        "run": waiting.run,
        "failed": counters.failed,
        "lost": counters.lost,
        "interrupted": counters.interrupted,
        "snoozed": counters.snoozed,
        "expires_at": waiting.expires_at,
        "tenant": waiting.tenant,
    }


def waiting_of(row: Row) -> Waiting:
    """From (id, queue, priority, pos, task, run, failed, lost, interrupted, snoozed, expires_at, tenant)."""
    id, lane, priority, pos, task, run, failed, lost, interrupted, snoozed, expires_at, tenant = row
    return Waiting(
        id, task, lane, priority, pos, run, Counters(failed, lost, interrupted, snoozed), expires_at, tenant
    )


def enter_ready(session: Session, waiting: Sequence[Waiting]) -> None:
    """Put jobs, already taken from where they waited, at the tails of their lanes, in the order given."""
    if not waiting:
        return
    first = session.numbers(len(waiting))
    session.many(
        "insert_ready",
        [
            {**row_of(one), "pos": first + offset, "ready_at": session.now}
            for offset, one in enumerate(waiting)
        ],
    )
    session.rings = True


def named_in(session: Session, ids: Sequence[int], table: Table) -> list[Waiting]:
    """The named jobs that stand in this table, in the order named."""
    return [waiting_of(row) for row in session.rows(table.named, ids=ids_text([*ids]))]


def take(session: Session, ids: Sequence[int], *tables: Table) -> list[Waiting]:
    """Remove the named jobs from where they wait, as far as they wait in these tables."""
    taken: list[Waiting] = []
    for table in tables:
        found = named_in(session, ids, table)
        session.many(table.delete, [{"id": one.id} for one in found])
        taken += found
    return taken
