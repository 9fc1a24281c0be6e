"""Claims: ready -> running, with what must not run set aside on the way. Runs inside an open transaction."""

import json
from collections.abc import Mapping
from typing import Final, NamedTuple

from duly.core.job import ClaimedJob, ClaimRequest, Counters, QueueClaim
from duly.stores.sqlite.moves import UNIQUE, VERSION, ids_text, lane_of, task_key
from duly.stores.sqlite.session import Row, Session, Value
from duly.stores.sqlite.times import from_micros, maybe_duration
from duly.stores.sqlite.waiting import (
    PAUSED,
    UNKNOWN,
    Waiting,
    expire,
    jobs_of,
    row_of,
    skip,
    waiting_of,
)

# What one call may set aside (expired, unknown, paused) so that the write lock stays short.
_MOST_ASIDE: Final = 2_000
_CHUNK: Final = 200


class Pauses(NamedTuple):
    """What is paused now."""

    queues: frozenset[str]
    tasks: frozenset[int]


def pauses(session: Session) -> Pauses:
    targets = [str(target) for (target,) in session.rows("select_live_pauses", now=session.now)]
    return Pauses(
        frozenset(target.removeprefix("queue:") for target in targets if target.startswith("queue:")),
        frozenset(task_key(target.removeprefix("task:")) for target in targets if target.startswith("task:")),
    )


class Claim:
    """One claim of one incarnation."""

    def __init__(
        self,
        session: Session,
        incarnation: int,
        request: ClaimRequest,
        tasks: Mapping[int, int],
        paused: Pauses,
    ) -> None:
        self._session = session
        self._incarnation = incarnation
        self._request = request
        self._tasks = tasks
        self._paused = paused
        self._taken: list[Waiting] = []
        self._expired: list[Waiting] = []
        self._parked: list[tuple[Waiting, int]] = []
        self._stale: list[Waiting] = []
        self._stored: dict[int, Row] = {}
        self._rich: list[Row] = []
        """Of these, the jobs that carry anything beside themselves."""

    def run(self) -> list[ClaimedJob]:
        """Take jobs; the answer is in queue order, then by (priority, position)."""
        lanes = self._lanes()
        room = {lane: claim.most for claim, lane in lanes}
        self._take_parked(room)
        self._take_lanes(lanes, room)
        while self._drop_stale(room) and self._aside() < _MOST_ASIDE:
            self._take_lanes(lanes, room)
            order = {lane: place for place, (_claim, lane) in enumerate(lanes)}
            self._taken.sort(key=lambda waiting: order[waiting.lane])
        self._set_aside()
        return self._claim()

    def _take_lanes(self, lanes: list[tuple[QueueClaim, int]], room: dict[int, int]) -> None:
        for _claim, lane in lanes:
            room[lane] -= self._take_lane(lane, room[lane])

    def _lanes(self) -> list[tuple[QueueClaim, int]]:
        return [
            (claim, lane_of(claim.queue, self._request.suspects))
            for claim in self._request.queues
            if claim.queue not in self._paused.queues
        ]

    def _left(self) -> int:
        return self._request.most - len(self._taken)

    def _aside(self) -> int:
        return len(self._expired) + len(self._parked) + len(self._stale)

    def _take_parked(self, room: dict[int, int]) -> None:
        for name in self._request.unparked:
            task = task_key(name)
            if self._left() <= 0:
                return
            if task in self._paused.tasks or task not in self._tasks:
                continue
            gone: list[dict[str, Value]] = []
            lanes = json.dumps([lane for lane, left in room.items() if left > 0])
            for row in self._session.rows(
                "select_parked", task=task, lanes=lanes, most=self._left() + _CHUNK
            ):
                waiting = waiting_of(row)
                if room.get(waiting.lane, 0) <= 0 or self._left() <= 0:
                    continue
                gone.append({"id": waiting.id})
                if self._is_expired(waiting):
                    self._expired.append(waiting)
                else:
                    room[waiting.lane] -= 1
                    self._taken.append(waiting)
            self._session.many("delete_blocked", gone)

    def _take_lane(self, lane: int, most: int) -> int:
        taken = 0
        while (wanted := min(most - taken, self._left())) > 0 and self._aside() < _MOST_ASIDE:
            limit = max(wanted, _CHUNK) if self._aside() else wanted
            rows = self._session.rows("select_ready", queue=lane, most=limit)
            last: Waiting | None = None
            for row in rows:
                if wanted <= 0:
                    break
                last = _from_lane(lane, row)
                if self._keep(last):
                    wanted -= 1
                    taken += 1
            if last is not None:
                self._session.run("delete_ready_head", queue=lane, priority=last.priority, pos=last.pos)
            if len(rows) < limit:
                break
        return taken

    def _keep(self, waiting: Waiting) -> bool:
        """Sort one row of a lane; True when it is claimed."""
        if self._is_expired(waiting):
            self._expired.append(waiting)
        elif waiting.task in self._paused.tasks:
            self._parked.append((waiting, PAUSED))
        elif waiting.task not in self._tasks:
            self._parked.append((waiting, UNKNOWN))
        else:
            self._taken.append(waiting)
            return True
        return False

    def _drop_stale(self, room: dict[int, int]) -> bool:
        """Read what is stored of the jobs taken; True when some had an older version than one completed before."""
        known = self._stored
        new = [waiting.id for waiting in self._taken if waiting.id not in known]
        if not new:
            return False
        found = jobs_of(self._session, new)
        known.update(found)
        rich = [row for row in found.values() if row[10]]
        self._rich += rich
        versioned = [row[0] for row in rich if row[10] & VERSION]
        if not versioned:
            return False
        stale = {
            id for (id,) in self._session.rows("select_stale", ids=ids_text(versioned), now=self._session.now)
        }
        for waiting in self._taken:
            if waiting.id in stale:
                self._stale.append(waiting)
                room[waiting.lane] += 1
        self._taken = [waiting for waiting in self._taken if waiting.id not in stale]
        return bool(stale)

    def _is_expired(self, waiting: Waiting) -> bool:
        return waiting.expires_at is not None and waiting.expires_at <= self._session.now

    def _set_aside(self) -> None:
        rows = [
            {**row_of(waiting), "cause": cause, "since": self._session.now} for waiting, cause in self._parked
        ]
        self._session.many("insert_blocked", rows)
        expire(self._session, self._expired)
        skip(self._session, self._stale, "stale")

    def _claim(self) -> list[ClaimedJob]:
        if not self._taken:
            return []
        now, stored = self._session.now, self._stored
        stepped, tasks, incarnation = self._stepped(), self._tasks, self._incarnation
        rows: list[dict[str, Value]] = []
        claimed = []
        for waiting in self._taken:
            row = stored[waiting.id]
            job = self._claimed_job(waiting, row, now, waiting.id in stepped)
            rows.append(
                {
                    **row_of(waiting),
                    "incarnation": incarnation,
                    "run": job.run,
                    "claimed_at": now,
                    "deadline": now + (row[8] or tasks[waiting.task]),
                }
            )
            claimed.append(job)
        self._session.many("insert_claimed", rows)
        # Those that were stale have given theirs back by now.
        keyed = [row[0] for row in self._rich if row[10] & UNIQUE]
        if keyed:
            self._session.run("delete_claimed_keys", ids=ids_text(keyed))
        return claimed

    def _stepped(self) -> set[int]:
        """Jobs of which earlier runs have left steps or cursors."""
        again = [waiting.id for waiting in self._taken if waiting.run]
        if not again:
            return set()
        return {id for (id,) in self._session.rows("select_stepped", ids=ids_text(again))}

    @staticmethod
    def _claimed_job(waiting: Waiting, stored: Row, now: int, has_steps: bool) -> ClaimedJob:
        id, queue, task, args, tenant, tags, correlation_id, attempts, timeout, enqueued_at, _, trigger = (
            stored
        )
        # By position: to name them costs several times as much.
        return ClaimedJob(
            id,
            waiting.run + 1,
            queue,
            task,
            args,
            waiting.priority,
            tenant,
            tuple(json.loads(tags)) if tags else (),
            correlation_id or str(id),
            waiting.counters,
            attempts,
            maybe_duration(timeout),
            from_micros(enqueued_at),
            from_micros(now),
            trigger,
            has_steps,
        )


def _from_lane(lane: int, row: Row) -> Waiting:
    priority, pos, id, task, run, failed, lost, interrupted, snoozed, expires_at = row
    return Waiting(
        id, task, lane, priority, pos, run, Counters(failed, lost, interrupted, snoozed), expires_at
    )
