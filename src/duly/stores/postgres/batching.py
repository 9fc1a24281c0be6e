"""The BatchStore on PostgreSQL. Knows in which chunks a cancel goes; what a batch comes to is a function's to say."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from duly.core.batch import BatchAct, BatchCounts, BatchRecord, BatchState, CancelBatch
from duly.core.job import JobId
from duly.stores.faults import Transient
from duly.stores.postgres import calls
from duly.stores.postgres.columns import utc, utc_or_none
from duly.stores.postgres.database import Database
from duly.stores.protocol import OperatorStore

_CHUNK: Final = 1_000
_READ: Final[dict[str, Any]] = {"ids": None, "before": None, "most": 0}
_MEMBERS: Final[dict[str, Any]] = {"batch": None, "after": 0, "most": 0, "ids": []}


class PostgresBatches:
    """See duly.stores.batches.BatchStore."""

    def __init__(self, database: Database, operator: OperatorStore) -> None:
        self._database = database
        self._operator = operator

    def apply(self, act: BatchAct) -> int:
        """The members of a cancelled batch in transactions of their own, so that no lock is held for long."""
        call = calls.acting(act, whole=False, now=self._database.now())
        rows = self._database.call(call.name, call.parameters)
        id = call.read(rows)
        if isinstance(act, CancelBatch) and rows[0][0] == BatchState.cancelled:
            self._cancel(act)
        self.finish()
        return id

    def of(self, ids: Sequence[JobId]) -> dict[JobId, int]:
        rows = self._database.call("read_batch_members", {**_MEMBERS, "ids": list(ids)})
        return {JobId(id): batch for id, batch in rows}

    def lookup(self, ids: Sequence[int]) -> list[BatchRecord | None]:
        rows = self._database.call("read_batches", {**_READ, "ids": list(ids)})
        found = {record.id: record for record in map(_record, rows)}
        return [found.get(id) for id in ids]

    def page(self, before: int | None = None, limit: int = 50) -> list[BatchRecord]:
        return [
            *map(_record, self._database.call("read_batches", {**_READ, "before": before, "most": limit}))
        ]

    def finish(self) -> int:
        return _finish(self._database)

    def _cancel(self, act: CancelBatch) -> None:
        after: int | None = 0
        while after is not None:
            rows = self._database.call(
                "read_batch_members", {**_MEMBERS, "batch": act.id, "after": after, "most": _CHUNK}
            )
            if rows:
                self._operator.cancel([JobId(id) for id, _ in rows], act.by, act.reason)
            after = rows[-1][0] if len(rows) == _CHUNK else None
        for (child,) in self._database.call("read_batches_inside", {"id": act.id}):
            self.apply(CancelBatch(child, act.by, act.reason))


def follow_soon(database: Database) -> None:
    """After an act of ours that may have ended jobs of batches. Word was left with it, should this fail."""
    with suppress(Transient):
        _finish(database)


def _finish(database: Database) -> int:
    """Until nothing is left but what others hold: what they passed by because of our locks is ours to look at."""
    looked = 0
    while found := database.call("finish_batches", {"now": database.now()})[0][0]:
        looked += int(found)
    return looked


def _record(row: Sequence[Any]) -> BatchRecord:
    id, name, state, parent, *rest = row
    created_at, closed_at, finished_at, reason = rest[6:]
    return BatchRecord(
        id=id,
        name=name,
        state=BatchState(state),
        counts=BatchCounts(*rest[:6]),
        created_at=utc(created_at),
        parent=parent,
        closed_at=utc_or_none(closed_at),
        finished_at=utc_or_none(finished_at),
        reason=reason,
    )
