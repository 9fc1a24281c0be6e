"""The BatchStore on SQLite: making, closing, cancelling and reading batches, and what the sweep repairs of them."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from duly.core.batch import BatchAct, BatchRecord, BatchState, CancelBatch, CloseBatch, OpenBatch
from duly.core.job import JobId, NewJob
from duly.stores.sqlite import batches
from duly.stores.sqlite.database import Database
from duly.stores.sqlite.followups import settle_batches
from duly.stores.sqlite.moves import ON_DEAD, THEN
from duly.stores.sqlite.operator import cancel_in, note_act
from duly.stores.sqlite.session import Row, Session
from duly.stores.sqlite.specs import blobs_of, text_of
from duly.stores.sqlite.times import span
from duly.stores.sqlite.transport import ids_text

_CHUNK: Final = 500
_LAST: Final = 2**63 - 1
# What is left of a cancelled batch is looked for so long.
_LOOKED_FOR: Final = timedelta(days=1)
_KEEP: Final = timedelta(days=30)


class SQLiteBatches:
    """See duly.stores.protocol.BatchStore."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def apply(self, act: BatchAct) -> int:
        """In one transaction; the members of a cancelled batch in chunks after it, so that the lock is never long."""
        with self._database.write() as session:
            id = act_in(session, act, whole=False)
            cancelled = batches.named(session, id).state is BatchState.cancelled
        if isinstance(act, CancelBatch) and cancelled:
            self._cancel(id, act.by, act.reason)
        return id

    def of(self, ids: Sequence[JobId]) -> dict[JobId, int]:
        with self._database.read() as session:
            return dict(session.rows("select_batches_of", ids=ids_text([*ids])))

    def lookup(self, ids: Sequence[int]) -> list[BatchRecord | None]:
        with self._database.read() as session:
            found = {batch.id: batches.record_of(batch) for batch in batches.read(session, ids)}
        return [found.get(id) for id in ids]

    def page(self, before: int | None = None, limit: int = 50) -> list[BatchRecord]:
        with self._database.read() as session:
            rows = session.rows(
                "select_batches_before", before=_LAST if before is None else before, most=limit
            )
        return [batches.record_of(batches.batch_in(row)) for row in rows]

    def finish(self) -> int:
        """Ends settle their batches themselves; here is what a killed cancel or an older release left."""
        with self._database.read() as session:
            rows = session.rows(
                "select_unsettled_batches", since=session.now - span(_LOOKED_FOR), most=_CHUNK
            )
            old = session.rows("select_old_batches", before=session.now - span(_KEEP), most=_CHUNK)
        unsettled = {id for id, cancelled in rows if not cancelled}
        if unsettled:
            with self._database.write() as session:
                session.batches |= unsettled
                settle_batches(session)
        for id, cancelled in rows:
            if cancelled:
                self._cancel(id, "duly", "its batch is cancelled")
        if old:
            self._forget()
        return len(rows)

    def _cancel(self, id: int, by: str, reason: str) -> None:
        after: int | None = 0
        while after is not None:
            with self._database.write() as session:
                after = _cancel_members(session, id, after, by, reason)
        with self._database.read() as session:
            inside = session.rows("select_batches_inside", id=id)
        for (child,) in inside:
            self.apply(CancelBatch(child, by, reason))

    def _forget(self) -> None:
        with self._database.write() as session:
            # Under the lock, as somebody may have added to one.
            old = session.rows("select_old_batches", before=session.now - span(_KEEP), most=_CHUNK)
            ids = ids_text([id for (id,) in old])
            for statement in ("delete_follows", "delete_blobs", "delete_batches"):
                session.run(statement, ids=ids)


def act_in(session: Session, act: BatchAct, *, whole: bool = True) -> int:
    """Apply an act in the open transaction; `whole`: a cancel with all members. The id of the batch."""
    if isinstance(act, OpenBatch):
        return _open(session, act)
    batch = batches.named(session, act.id)
    if isinstance(act, CloseBatch):
        if batch.state is BatchState.open:
            batches.tell(session, batch._replace(state=BatchState.running, closed_at=session.now))
            session.batches.add(batch.id)
    else:
        if batch.state in {BatchState.open, BatchState.running, BatchState.dead}:
            ended = batch._replace(state=BatchState.cancelled, finished_at=session.now, reason=act.reason)
            batches.tell(session, ended)
            note_act(session, f"cancel batch:{act.id}", act.by, act.reason)
            batch = batches.named(session, act.id)
        if whole and batch.state is BatchState.cancelled:
            _cancel_all(session, act)
    settle_batches(session)
    return act.id


def _open(session: Session, act: OpenBatch) -> int:
    if act.parent is not None:
        batches.accepting(session, act.parent)
    id = session.numbers(1)
    session.run("insert_batch", id=id, name=act.name, parent=act.parent, now=session.now)
    follows: list[Row] = []
    for kind, jobs in ((THEN, act.then), (ON_DEAD, act.on_dead)):
        follows += [(id, kind, position, text_of(job)) for position, job in enumerate(jobs)]
    session.tuples("insert_follow", follows)
    session.tuples("insert_blob", [(id, reference) for reference in _blobs((*act.then, *act.on_dead))])
    if act.parent is not None:
        batches.count_new(session, [act.parent])
        settle_batches(session)
    return id


def _blobs(jobs: Sequence[NewJob]) -> list[str]:
    return [*dict.fromkeys(reference for job in jobs for reference in blobs_of(job))]


def _cancel_all(session: Session, act: CancelBatch) -> None:
    after: int | None = 0
    while after is not None:
        after = _cancel_members(session, act.id, after, act.by, act.reason)
    for (child,) in session.rows("select_batches_inside", id=act.id):
        act_in(session, CancelBatch(child, act.by, act.reason))


def _cancel_members(session: Session, id: int, after: int, by: str, reason: str) -> int | None:
    """Cancel the next chunk of members; where to go on, None at the end."""
    ids = [JobId(job) for (job,) in session.rows("select_batch_members", id=id, after=after, most=_CHUNK)]
    if ids:
        cancel_in(session, ids, by, reason)
    return ids[-1] if len(ids) == _CHUNK else None
