"""LeaseStore on PostgreSQL: worker incarnations, whose row is the lease.

Knows no time of its own: when a worker is overdue is decided by whoever watches.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import json

from duly.core.job import Incarnation, JobId, WorkerInfo
from duly.core.leases import Beat
from duly.stores.postgres.arrays import words
from duly.stores.postgres.batching import follow_soon
from duly.stores.postgres.columns import queue_key, seconds
from duly.stores.postgres.database import Database

_NEVER: Final = 2**31 - 1


class PostgresLeases:
    """See `LeaseStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def register(self, info: WorkerInfo) -> Incarnation:
        known = {str(queue_key(task)): seconds(timeout) for task, timeout in info.tasks.items()}
        rows = self._database.call(
            "register_worker",
            {
                "host": info.host,
                "pid": info.pid,
                "supervisor": info.supervisor,
                "queues": list(info.queues),
                "known": json.encode(known).decode(),
                "lease": seconds(info.lease),
                "heartbeat": seconds(info.heartbeat),
                "slots": info.slots,
                "version": info.version,
                "now": self._database.now(),
            },
        )
        return Incarnation(rows[0][0])

    def beat(self, incarnations: Sequence[Incarnation]) -> frozenset[Incarnation]:
        parameters = {"incarnations": words(sorted(set(incarnations))), "now": self._database.now()}
        return frozenset(Incarnation(row[0]) for row in self._database.call("beat_workers", parameters))

    def beats(self) -> list[Beat]:
        rows = self._database.call("read_beats", {"now": self._database.now()})
        return [Beat(Incarnation(incarnation), beat, lease, age) for incarnation, beat, lease, age in rows]

    def reap(self, overdue: Sequence[Beat], poison: int) -> int:
        watched = sorted(overdue)
        rows = self._database.call(
            "reap_workers",
            {
                "incarnations": [beat.incarnation for beat in watched],
                "beats": [beat.beat for beat in watched],
                "poison": poison,
                "now": self._database.now(),
            },
        )
        moved = int(rows[0][0])
        if moved:
            # Some may have died, or been cancelled.
            follow_soon(self._database)
        return moved

    def disown(
        self, incarnation: Incarnation, started: Sequence[tuple[JobId, int]], reason: str, poison: int
    ) -> int:
        return self._end(incarnation, started, reason, poison)

    def retire(self, incarnation: Incarnation) -> int:
        return self._end(incarnation, (), "its worker ended", _NEVER)

    def _end(
        self, incarnation: Incarnation, started: Sequence[tuple[JobId, int]], reason: str, poison: int
    ) -> int:
        named = dict.fromkeys(started)
        rows = self._database.call(
            "disown_worker",
            {
                "incarnation": incarnation,
                "ids": [id for id, _ in named],
                "runs": [run for _, run in named],
                "reason": reason,
                "poison": poison,
                "now": self._database.now(),
            },
        )
        # Also of what the process ended itself, without a word to anybody who looks after batches.
        follow_soon(self._database)
        return int(rows[0][0])
