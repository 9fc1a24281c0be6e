"""OperatorStore on PostgreSQL: acts of a person, each noted with who and why.

Knows in which chunks an act goes; what is moved is a function's to say.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from duly.core.filters import Filter
from duly.core.job import Incarnation, JobId
from duly.core.lifecycle import State
from duly.stores.audits import OPERATION_VERBS
from duly.stores.postgres.batching import follow_soon
from duly.stores.postgres.columns import queue_key, seconds, utc, utc_or_none
from duly.stores.postgres.database import Database
from duly.stores.postgres.records import operation_record
from duly.stores.protocol import OperationRecord, Pause

_CHUNK: Final = 1_000


class PostgresOperator:
    """See `OperatorStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def cancel(self, ids: Sequence[JobId], by: str, reason: str) -> dict[JobId, State]:
        answer: dict[JobId, State] = {}
        for chunk in _chunks(ids):
            act = {"by": by, "reason": reason, "now": self._database.now()}
            # Two transactions: the wish must be visible to whoever ends an attempt while we look again.
            cancelled, wished = self._database.call("ask_cancel", {"ids": chunk, **act})[0]
            answer.update((JobId(id), State.cancelled) for id in cancelled)
            if wished:
                rows = self._database.call("settle_cancel", {"ids": wished, **act})
                answer.update(
                    (JobId(id), State.running if running else State.cancelled) for id, running in rows
                )
        if State.cancelled in answer.values():
            follow_soon(self._database)
        return answer

    def redrive(self, ids: Sequence[JobId], by: str, reason: str, priority: int | None = None) -> list[JobId]:
        return self._act("redrive_jobs", ids, by, reason, priority=priority)

    def purge(self, ids: Sequence[JobId], by: str, reason: str) -> list[JobId]:
        return self._act("purge_jobs", ids, by, reason)

    def run_now(self, ids: Sequence[JobId], by: str, reason: str) -> list[JobId]:
        return self._act("run_jobs_now", ids, by, reason)

    def run_at(self, ids: Sequence[JobId], at: datetime, by: str, reason: str) -> list[JobId]:
        return self._act("run_jobs_at", ids, by, reason, at=at)

    def reprioritise(self, ids: Sequence[JobId], priority: int, by: str, reason: str) -> list[JobId]:
        return self._act("reprioritise_jobs", ids, by, reason, priority=priority)

    def pause(self, target: str, lasting: timedelta | None, by: str, reason: str) -> Pause:
        parameters = {
            "target": target,
            "key": queue_key(target.partition(":")[2]),
            "lasting": seconds(lasting),
            "by": by,
            "reason": reason,
            "now": self._database.now(),
        }
        until, at = self._database.call("pause_target", parameters)[0]
        return Pause(target, utc_or_none(until), by, reason, utc(at))

    def resume(self, target: str, by: str, reason: str) -> bool:
        parameters = {"target": target, "by": by, "reason": reason, "now": self._database.now()}
        return bool(self._database.call("resume_target", parameters)[0][0])

    def drain_worker(self, incarnation: Incarnation, by: str, reason: str) -> bool:
        parameters = {"incarnation": incarnation, "by": by, "reason": reason, "now": self._database.now()}
        return bool(self._database.call("drain_worker", parameters)[0][0])

    def draining(self, incarnations: Sequence[Incarnation]) -> frozenset[Incarnation]:
        rows = self._database.call("read_draining", {"incarnations": list(incarnations)})
        return frozenset(Incarnation(row[0]) for row in rows)

    def start_operation(
        self,
        verb: str,
        filter: Filter,
        rate: float | None,
        priority: int | None,
        total: int,
        by: str,
        reason: str,
    ) -> OperationRecord:
        parameters = {
            "verb": verb,
            "filter": filter.to_json().decode(),
            "rate": rate,
            "priority": priority,
            "total": total,
            "by": by,
            "reason": reason,
            "now": self._database.now(),
        }
        return operation_record(self._database.call("start_operation", parameters)[0])

    def set_operation(self, id: int, state: str, by: str, reason: str) -> OperationRecord | None:
        parameters = {
            "id": id,
            "state": state,
            "verb": OPERATION_VERBS[state],
            "by": by,
            "reason": reason,
            "now": self._database.now(),
        }
        rows = self._database.call("set_operation", parameters)
        return operation_record(rows[0]) if rows else None

    def advance_operation(self, id: int, cursor: int, done: int, skipped: int, ended: bool) -> bool:
        """`done` and `skipped` are of this step."""
        parameters = {
            "id": id,
            "cursor": cursor,
            "done": done,
            "skipped": skipped,
            "ended": ended,
            "now": self._database.now(),
        }
        return bool(self._database.call("advance_operation", parameters)[0][0])

    def _act(self, statement: str, ids: Sequence[JobId], by: str, reason: str, **more: Any) -> list[JobId]:
        moved: list[JobId] = []
        for chunk in _chunks(ids):
            parameters = {"ids": chunk, "by": by, "reason": reason, "now": self._database.now(), **more}
            moved += [JobId(row[0]) for row in self._database.call(statement, parameters)]
        return moved


def _chunks(ids: Sequence[JobId]) -> Iterator[list[JobId]]:
    """In order of id, the order in which rows are locked; each chunk is a transaction of its own."""
    wanted = sorted(set(ids))
    for start in range(0, len(wanted), _CHUNK):
        yield wanted[start : start + _CHUNK]
