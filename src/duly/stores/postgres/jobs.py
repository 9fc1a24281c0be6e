"""JobStore on PostgreSQL: jobs in, jobs claimed, attempts ended.

Knows how a request becomes one function call, and keeps the marks of the connection it claims on.
"""

import threading
import time
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

from duly.core.defaults import ENQUEUE_BATCH
from duly.core.job import ClaimRequest, Cursor, Ended, Exchange, Incarnation, JobId, NewJob, Progress, Stored
from duly.stores.postgres import calls, columns
from duly.stores.postgres.arrays import texts, words
from duly.stores.postgres.database import Database, Row
from duly.stores.postgres.marks import FROM_FRONT, Marks, Seen
from duly.stores.postgres.turns import Turns

_EVERY: Final = 1.0
"""Seconds between two scans of a lane from the very front, at least."""
_SHARE: Final = 20
"""And so many times what the last one cost."""


class PostgresJobs:
    """See `JobStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._guard = threading.Lock()
        self._stragglers = 0
        self._reported: set[JobId] = set()
        self._turns = Turns()

    def enqueue(self, jobs: Sequence[NewJob]) -> list[Stored]:
        if not jobs:
            return []
        now = self._database.now()
        if len(jobs) <= ENQUEUE_BATCH:
            call = calls.enqueueing(jobs, own=True, now=now)
            return call.read(self._database.call(call.name, call.parameters))
        # Looked at before the commit: a lost holder or a reused key in a later part takes back the earlier ones.
        answers = self._database.call_together(
            lambda: (
                calls.enqueueing(jobs[start : start + ENQUEUE_BATCH], own=True, now=now, first=start)
                for start in range(0, len(jobs), ENQUEUE_BATCH)
            )
        )
        return [one for answer in answers for one in answer]

    def exchange(
        self, incarnation: Incarnation, ended: Sequence[Ended], request: ClaimRequest | None
    ) -> Exchange:
        lanes = _lanes(request) if request else []
        with self._database.pool.link() as link:
            parameters = {
                "incarnation": incarnation,
                **self._ends(ended),
                **(
                    {**_claim(request, lanes, link.marks), **self._turns.parameters(request, lanes)}
                    if request
                    else columns.NO_CLAIM
                ),
                "own": True,
                "now": self._database.now(),
            }
            rows = self._database.call_on(link, "exchange_jobs", parameters)
            if self._reported:
                self._reported.difference_update(end.id for end in ended)
            if request:
                self._learn(rows, lanes, link.marks)
                self._turns.learn(rows, lanes)
        return _exchange(ended, request, rows)

    def arguments(self, ids: Sequence[JobId]) -> dict[JobId, bytes]:
        rows = self._database.call("read_arguments", {"ids": words(ids)})
        return {JobId(id): args for id, args in rows}

    def extend(self, incarnation: Incarnation, id: JobId, run: int, by: timedelta) -> bool:
        parameters = {
            "incarnation": incarnation,
            "id": id,
            "run": run,
            "by": columns.seconds(by),
            "now": self._database.now(),
        }
        return bool(self._database.call("extend_attempt", parameters)[0][0])

    def report(
        self, incarnation: Incarnation, progress: Sequence[Progress], cursors: Sequence[Cursor] = ()
    ) -> tuple[list[tuple[JobId, int]], list[JobId]]:
        latest = [told for _, told in sorted({told.id: told for told in progress}.items())]
        self._reported.update(told.id for told in latest)
        rows = self._database.call(
            "report_progress",
            {
                "incarnation": incarnation,
                "ids": words([told.id for told in latest]),
                "runs": words([told.run for told in latest]),
                "done": words([told.done for told in latest]),
                "of": words([told.of for told in latest]),
                "notes": texts([told.note for told in latest]),
                **columns.cursors(cursors),
                "now": self._database.now(),
            },
        )
        return [(JobId(id), run) for id, run, _ in rows], [JobId(id) for id, _, wished in rows if wished]

    def stragglers(self) -> int:
        """How many jobs scans from the front have found behind the marks since the last call."""
        with self._guard:
            found, self._stragglers = self._stragglers, 0
        return found

    def _ends(self, ended: Sequence[Ended]) -> dict[str, Any]:
        """What ends in the usual way, and the rest: the quick way looks for no progress."""
        if not ended:
            return {**columns.NO_COMPLETIONS, **columns.NO_ENDS}
        done: list[Ended] = []
        others: list[Ended] = []
        for end in ended:
            (others if end.id in self._reported or not columns.usual(end) else done).append(end)
        return {
            **(columns.completions(done) if done else columns.NO_COMPLETIONS),
            **(columns.ends(others) if others else columns.NO_ENDS),
        }

    def _learn(self, rows: list[Row], lanes: list[int], marks: Marks) -> None:
        taken: list[tuple[int, int]] = []
        now = time.monotonic()
        for row in rows:
            kind, place, top, count, priority, pos, counts, *_ = row
            # Those that were parked or let go on have no position: they came from no lane.
            if kind is None and pos is not None and not row[15] & columns.ADMITTED:
                taken.append((priority, pos))
            elif kind == "lane":
                lane = marks.lane(lanes[place - 1])
                microseconds, swept, wanted = counts
                if swept:
                    late = sum(lane.jumped(*where) for where in taken)
                    lane.swept(now, max(_EVERY, _SHARE * microseconds / 1e6))
                    with self._guard:
                        self._stragglers += late
                lane.learn(
                    Seen(wanted, count, priority, pos, top, microseconds, from_front=bool(swept)),
                    Counter(priority for priority, _ in taken),
                    now,
                )
                taken = []
            elif kind in {"aged", "fair"}:
                # These scans began elsewhere, and say nothing of where live rows begin.
                taken = []


def _lanes(request: ClaimRequest) -> list[int]:
    key = columns.lane_of_suspects if request.suspects else columns.queue_key
    return [key(claim.queue) for claim in request.queues]


def _claim(request: ClaimRequest, lanes: list[int], marks: Marks) -> dict[str, Any]:
    now = time.monotonic()
    jumps = [(lane, jump) for lane in lanes for jump in marks.lane(lane).jumps()]
    if all(jump == FROM_FRONT for _, jump in jumps):
        jumps = []
    return {
        "queues": texts([claim.queue for claim in request.queues]),
        "lanes": words(lanes),
        "caps": words([claim.most for claim in request.queues]),
        "sweeps": words([marks.lane(lane).sweep_due(now) for lane in lanes]),
        "most": request.most,
        "chain": 1 if request.suspects else request.chain,
        "unparked": words([columns.queue_key(task) for task in request.unparked])
        if request.unparked
        else None,
        "jump_lanes": words([lane for lane, _ in jumps]) if jumps else None,
        "jump_from": words([jump.low for _, jump in jumps]) if jumps else None,
        "jump_pos": words([jump.pos for _, jump in jumps]) if jumps else None,
        "jump_to": words([jump.high for _, jump in jumps]) if jumps else None,
    }


def _exchange(ended: Sequence[Ended], request: ClaimRequest | None, rows: list[Row]) -> Exchange:
    lost = {(row[2], row[3]) for row in rows if row[0] == "lost"}
    now = next((row for row in reversed(rows) if row[0] == "now"), None)
    told = now or next((row for row in rows if row[0] in {"lane", "aged", "fair"}), None)
    claimed_at = columns.utc_or_none(told[9]) if told else None
    queues = [claim.queue for claim in request.queues] if request else []
    return Exchange(
        acked=frozenset((end.id, end.run) for end in ended if (end.id, end.run) not in lost),
        claimed=tuple(columns.claimed_job(row, queues, claimed_at) for row in columns.in_order(rows))
        if claimed_at
        else (),
        wishes=tuple(JobId(row[2]) for row in rows if row[0] == "wish"),
        again=now[8] if now else None,
        batches=any(row[0] == "batch" for row in rows),
    )
