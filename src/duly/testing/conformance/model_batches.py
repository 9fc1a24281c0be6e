"""The model's batches: counts kept with each move of a member, and looked at when the act is over."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from msgspec.structs import replace

from duly.core.batch import (
    ACCEPTING,
    TOLD,
    BatchAct,
    BatchCounts,
    BatchRecord,
    BatchState,
    CloseBatch,
    OpenBatch,
    state_after,
)
from duly.core.job import RESULT_MARK, JobId, NewJob
from duly.core.lifecycle import FINAL
from duly.stores.batches import batch_refused

if TYPE_CHECKING:
    from .model_reading import ReadableModel


@dataclass
class Batch:
    """One batch."""

    id: int
    made: OpenBatch
    created_at: datetime
    state: BatchState = BatchState.open
    counted: dict[str, int] = field(default_factory=dict)
    told: BatchState | None = None
    mourned: bool = False
    closed_at: datetime | None = None
    finished_at: datetime | None = None
    reason: str | None = None

    @property
    def counts(self) -> BatchCounts:
        return BatchCounts(**self.counted)

    def count(self, what: str, by: int = 1) -> None:
        self.counted[what] = self.counted.get(what, 0) + by

    def record(self) -> BatchRecord:
        return BatchRecord(
            id=self.id,
            name=self.made.name,
            state=self.state,
            counts=self.counts,
            created_at=self.created_at,
            parent=self.made.parent,
            closed_at=self.closed_at,
            finished_at=self.finished_at,
            reason=self.reason,
        )


class ModelBatches:
    """See duly.stores.batches.BatchStore."""

    def __init__(self, model: "ReadableModel") -> None:
        self._model = model

    def apply(self, act: BatchAct) -> int:
        with self._model.act():
            return self._apply(act)

    def of(self, ids: Sequence[JobId]) -> dict[JobId, int]:
        with self._model.tables.lock:
            found = {id: self._model.tables.entries[id].new.batch for id in ids}
            return {id: batch for id, batch in found.items() if batch is not None}

    def lookup(self, ids: Sequence[int]) -> list[BatchRecord | None]:
        with self._model.tables.lock:
            known = self._model.tables.batches
            return [known[id].record() if id in known else None for id in ids]

    def page(self, before: int | None = None, limit: int = 50) -> list[BatchRecord]:
        with self._model.tables.lock:
            newest = sorted(self._model.tables.batches.items(), reverse=True)
            return [one.record() for id, one in newest if before is None or id < before][:limit]

    def finish(self) -> int:
        """Every act does it."""
        return 0

    def settle(self) -> list[NewJob]:
        """What follows from the counts, to be enqueued."""
        following: list[NewJob] = []
        # A batch inside has a higher id than the one around it.
        for batch in sorted(self._model.tables.batches.values(), key=lambda one: -one.id):
            if batch.counts.dead and not batch.mourned and batch.state is not BatchState.cancelled:
                batch.mourned = True
                following += _named(batch, batch.made.on_dead)
            before, batch.state = batch.state, state_after(batch.state, batch.counts)
            if batch.state is BatchState.completed and before is not batch.state:
                batch.finished_at = self._model.clock()
                following += _named(batch, batch.made.then)
            self._tell(batch)
        return following

    def _apply(self, act: BatchAct) -> int:
        known = self._model.tables.batches
        if isinstance(act, OpenBatch):
            if act.parent is not None:
                check(known, act.parent)
                known[act.parent].count("total")
            id = self._model.number()
            known[id] = Batch(id, act, self._model.clock())
            return id
        if act.id not in known:
            raise batch_refused(act.id, "missing")
        batch = known[act.id]
        if isinstance(act, CloseBatch):
            if batch.state is BatchState.open:
                batch.state, batch.closed_at = BatchState.running, self._model.clock()
        elif batch.state in ACCEPTING:
            self._model.note("cancel", f"batch:{act.id}", act.by, act.reason)
            batch.state, batch.finished_at, batch.reason = (
                BatchState.cancelled,
                self._model.clock(),
                act.reason,
            )
            entries = [one for one in self._model.tables.entries.values() if one.new.batch == act.id]
            self._model.cancel([one.id for one in entries if one.state not in FINAL], act.by, act.reason)
            for inside in [one.id for one in known.values() if one.made.parent == act.id]:
                self._apply(replace(act, id=inside))
        return act.id

    def _tell(self, batch: Batch) -> None:
        told = batch.state if batch.state in TOLD else None
        if batch.made.parent is not None and told is not batch.told:
            around = self._model.tables.batches[batch.made.parent]
            if batch.told is not None:
                around.count(batch.told.value, -1)
            if told is not None:
                around.count(told.value)
        batch.told = told


def check(batches: dict[int, Batch], id: int) -> None:
    """NotFound or UsageError when this batch takes no more members."""
    if id not in batches:
        raise batch_refused(id, "missing")
    if batches[id].state not in ACCEPTING:
        raise batch_refused(id, batches[id].state)


def _named(batch: Batch, follows: Sequence[NewJob]) -> list[NewJob]:
    return [
        replace(one, args=one.args.replace(RESULT_MARK, b"null"), trigger=f"batch:{batch.id}")
        for one in follows
    ]
