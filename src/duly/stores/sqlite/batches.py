"""The counts of batches: kept with each enqueue, end and redrive of a member, in the same transaction.

With one writer on the file a count read is the count that will be: what follows is decided at once, by `settle`.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from duly.core.batch import ACCEPTING, TOLD, BatchCounts, BatchRecord, BatchState, state_after
from duly.core.job import NewJob
from duly.core.lifecycle import State
from duly.stores.batches import batch_refused
from duly.stores.sqlite.session import Row, Session, Value
from duly.stores.sqlite.times import from_micros, maybe_from_micros
from duly.stores.sqlite.transport import ids_text

# As the follow-ups of jobs.
_THEN: Final = 1
_ON_DEAD: Final = 2
_COUNTED: Final = BatchCounts.__struct_fields__
_NOTHING: Final = dict.fromkeys(_COUNTED, 0)


class Batch(NamedTuple):
    """One row of `select_batches`."""

    id: int
    name: str
    state: BatchState
    parent: int | None
    counts: BatchCounts
    created_at: int
    closed_at: int | None
    finished_at: int | None
    reason: str | None
    told: BatchState | None
    """How it counts as a member of the batch around it; None while it has not ended."""
    mourned: bool
    """Whether its first death was followed."""


def batch_in(row: Row) -> Batch:
    id, name, state, parent, *rest = row
    counts, (created_at, closed_at, finished_at, reason, told, mourned) = BatchCounts(*rest[:6]), rest[6:]
    return Batch(
        id,
        name,
        BatchState(state),
        parent,
        counts,
        created_at,
        closed_at,
        finished_at,
        reason,
        None if told is None else BatchState(told),
        bool(mourned),
    )


def record_of(batch: Batch) -> BatchRecord:
    return BatchRecord(
        id=batch.id,
        name=batch.name,
        state=batch.state,
        counts=batch.counts,
        created_at=from_micros(batch.created_at),
        parent=batch.parent,
        closed_at=maybe_from_micros(batch.closed_at),
        finished_at=maybe_from_micros(batch.finished_at),
        reason=batch.reason,
    )


def read(session: Session, ids: Iterable[int]) -> list[Batch]:
    return [batch_in(row) for row in session.rows("select_batches", ids=ids_text([*ids]))]


def named(session: Session, id: int) -> Batch:
    """NotFound when there is no such batch."""
    found = read(session, [id])
    if not found:
        raise batch_refused(id, "missing")
    return found[0]


def batch_of(session: Session, job: int) -> Batch | None:
    """The batch of a job; None when it has none, or that is no longer kept."""
    rows = session.rows("select_batches_of", ids=ids_text([job]))
    found = read(session, [batch for _, batch in rows])
    return found[0] if found else None


def check(session: Session, jobs: Sequence[NewJob]) -> None:
    """NotFound or UsageError when a job is for a batch that takes no more."""
    for id in {job.batch for job in jobs if job.batch is not None}:
        accepting(session, id)


def accepting(session: Session, id: int) -> None:
    """NotFound or UsageError when this batch takes no more members."""
    batch = named(session, id)
    if batch.state not in ACCEPTING:
        raise batch_refused(id, batch.state)


def count_new(session: Session, joined: Iterable[int]) -> None:
    """Members that were stored, one entry each."""
    for id, count in Counter(joined).items():
        _count(session, id, {"total": count})


def count_ends(session: Session, ended: Mapping[int, State]) -> None:
    """Members (job -> how it ended) that have just ended."""
    rows = session.rows("select_batches_of", ids=ids_text([*ended]))
    for (id, state), count in Counter((batch, ended[job]) for job, batch in rows).items():
        _count(session, id, {state.value: count})


def count_again(session: Session, ids: str) -> None:
    """Members that had ended and are about to run again. To be called before their final rows are deleted."""
    for (id, status), count in Counter(session.rows("select_batch_ends", ids=ids)).items():
        _count(session, id, {status: -count})


def settle(session: Session) -> list[tuple[int, int]]:
    """Let batches whose counts have changed come to their states: (batch, kind of its follow-ups) to be enqueued."""
    following: list[tuple[int, int]] = []
    while session.batches:
        changed, session.batches = session.batches, set()
        for batch in read(session, sorted(changed)):
            following += _settle(session, batch)
    return following


def _settle(session: Session, batch: Batch) -> list[tuple[int, int]]:
    following: list[tuple[int, int]] = []
    mourned = batch.mourned
    if batch.counts.dead and not mourned and batch.state is not BatchState.cancelled:
        mourned = True
        following.append((batch.id, _ON_DEAD))
    state = state_after(batch.state, batch.counts)
    finished_at = batch.finished_at
    if state is BatchState.completed and batch.state is not state:
        finished_at = session.now
        following.append((batch.id, _THEN))
    tell(session, batch._replace(state=state, mourned=mourned, finished_at=finished_at))
    return following


def tell(session: Session, batch: Batch) -> None:
    """Write where a batch stands, and count it anew in the batch around it."""
    told = batch.state if batch.state in TOLD else None
    if batch.parent is not None and told is not batch.told:
        changed = {} if batch.told is None else {batch.told.value: -1}
        _count(session, batch.parent, changed | ({} if told is None else {told.value: 1}))
    session.run(
        "update_batch_state",
        id=batch.id,
        state=batch.state.value,
        told=None if told is None else told.value,
        mourned=batch.mourned,
        closed_at=batch.closed_at,
        finished_at=batch.finished_at,
        reason=batch.reason,
    )


def _count(session: Session, id: int, changed: Mapping[str, Value]) -> None:
    session.run("update_batch_counts", id=id, **{**_NOTHING, **changed})
    session.batches.add(id)
