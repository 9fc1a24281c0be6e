"""Claims: ready -> running, with what must not run set aside on the way. Runs inside an open transaction."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Final, NamedTuple

from duly.core.defaults import INLINE_PAYLOAD
from duly.core.job import ClaimedJob, ClaimRequest, Counters, QueueClaim
from duly.stores.sqlite.moves import UNIQUE, UNTOUCHED, VERSION, ids_text, lane_of, task_key
from duly.stores.sqlite.session import Row, Session
from duly.stores.sqlite.times import from_micros, maybe_duration
from duly.stores.sqlite.waiting import (
    PAUSED,
    UNKNOWN,
    Waiting,
    expire,
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
    """One claim of one incarnation. A row here is one of `select_ready` or `select_parked`."""

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
        self._taken: list[Row] = []
        self._unwritten: list[Row] = []
        """Of these, the ones that no statement has made claimed yet."""
        self._looked_at = 0
        """So many of the unwritten are known not to be stale."""
        self._expired: list[Waiting] = []
        self._parked: list[tuple[Waiting, int]] = []
        self._stale: list[Waiting] = []

    def run(self) -> list[ClaimedJob]:
        """Take jobs; the answer is in queue order, then by (priority, position)."""
        lanes = self._lanes()
        room = {lane: claim.most for claim, lane in lanes}
        self._take_parked(room)
        self._take_lanes(lanes, room)
        while self._drop_stale(room) and self._aside() < _MOST_ASIDE:
            self._take_lanes(lanes, room)
            order = {lane: place for place, (_claim, lane) in enumerate(lanes)}
            self._taken.sort(key=lambda row: order[row[1]])
        self._set_aside()
        self._write()
        return self._claimed() if self._taken else []

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
            gone: list[Row] = []
            lanes = ids_text([lane for lane, left in room.items() if left > 0])
            most = self._left() + _CHUNK
            for row in self._session.rows(
                "select_parked", task=task, lanes=lanes, inline=INLINE_PAYLOAD, most=most
            ):
                if room.get(row[1], 0) <= 0 or self._left() <= 0:
                    continue
                gone.append((row[0],))
                if self._is_expired(row):
                    self._expired.append(waiting_of(row[:11]))
                else:
                    room[row[1]] -= 1
                    self._take(row)
            self._session.tuples("delete_blocked", gone)

    def _take_lane(self, lane: int, most: int) -> int:
        taken = 0
        while (wanted := min(most - taken, self._left())) > 0 and self._aside() < _MOST_ASIDE:
            limit = max(wanted, _CHUNK) if self._aside() else wanted
            rows = self._session.rows("select_ready", queue=lane, inline=INLINE_PAYLOAD, most=limit)
            last: Row | None = None
            if len(rows) <= wanted and self._take_whole(rows):
                last = rows[-1]
                taken += len(rows)
            else:
                for row in rows:
                    if wanted <= 0:
                        break
                    last = row
                    if self._keep(row):
                        wanted -= 1
                        taken += 1
            if last is not None:
                self._session.run("delete_ready_head", queue=lane, priority=last[2], pos=last[3])
            if len(rows) < limit:
                break
        return taken

    def _take_whole(self, rows: list[Row]) -> bool:
        """Claim the head of a lane with one statement, if all of its jobs run, for one and the same time."""
        tasks = {row[4] for row in rows}
        timeouts = {self._tasks.get(task) for task in tasks}
        if len(timeouts) != 1 or None in timeouts or not tasks.isdisjoint(self._paused.tasks):
            return False
        now = self._session.now
        if any(row[20] & VERSION or (row[10] is not None and row[10] <= now) for row in rows):
            return False
        (timeout,) = timeouts
        _, lane, priority, pos, *_ = rows[-1]
        self._session.run(
            "insert_claimed_head",
            incarnation=self._incarnation,
            now=now,
            timeout=timeout,
            queue=lane,
            priority=priority,
            pos=pos,
        )
        self._taken += rows
        return True

    def _take(self, row: Row) -> None:
        self._taken.append(row)
        self._unwritten.append(row)

    def _keep(self, row: Row) -> bool:
        """Sort one row of a lane; True when it is claimed."""
        if self._is_expired(row):
            self._expired.append(waiting_of(row[:11]))
        elif row[4] in self._paused.tasks:
            self._parked.append((waiting_of(row[:11]), PAUSED))
        elif row[4] not in self._tasks:
            self._parked.append((waiting_of(row[:11]), UNKNOWN))
        else:
            self._take(row)
            return True
        return False

    def _drop_stale(self, room: dict[int, int]) -> bool:
        """True when some of the jobs taken had an older version than one completed before."""
        versioned = [row[0] for row in self._unwritten[self._looked_at :] if row[20] & VERSION]
        self._looked_at = len(self._unwritten)
        if not versioned:
            return False
        stale = {
            id for (id,) in self._session.rows("select_stale", ids=ids_text(versioned), now=self._session.now)
        }
        for row in self._unwritten:
            if row[0] in stale:
                self._stale.append(waiting_of(row[:11]))
                room[row[1]] += 1
        self._taken = [row for row in self._taken if row[0] not in stale]
        self._unwritten = [row for row in self._unwritten if row[0] not in stale]
        self._looked_at = len(self._unwritten)
        return bool(stale)

    def _is_expired(self, row: Row) -> bool:
        return row[10] is not None and row[10] <= self._session.now

    def _set_aside(self) -> None:
        rows = [
            {**row_of(waiting), "cause": cause, "since": self._session.now} for waiting, cause in self._parked
        ]
        self._session.many("insert_blocked", rows)
        expire(self._session, self._expired)
        skip(self._session, self._stale, "stale")

    def _write(self) -> None:
        """Make the rest claimed."""
        now, tasks, incarnation = self._session.now, self._tasks, self._incarnation
        self._session.tuples(
            "insert_claimed",
            [
                (
                    incarnation,
                    row[0],
                    row[5] + 1,
                    row[1],
                    row[4],
                    row[2],
                    *row[6:11],
                    now,
                    now + (row[18] or tasks[row[4]]),
                )
                for row in self._unwritten
            ],
        )
        # Those that were stale have given theirs back by now.
        keyed = [row[0] for row in self._taken if row[20] & UNIQUE]
        if keyed:
            self._session.run("delete_claimed_keys", ids=ids_text(keyed))

    def _stepped(self) -> set[int]:
        """Jobs of which earlier runs have left steps or cursors."""
        again = [row[0] for row in self._taken if row[5]]
        if not again:
            return set()
        return {id for (id,) in self._session.rows("select_stepped", ids=ids_text(again))}

    def _claimed(self) -> list[ClaimedJob]:
        stepped = self._stepped()
        moments: dict[int, datetime] = {}
        # Jobs claimed together mostly have the same.
        tags_of: dict[str | None, tuple[str, ...]] = {None: (), "": ()}
        claimed_at = from_micros(self._session.now)
        claimed = []
        for row in self._taken:
            (id, _, priority, _, _, run, failed, lost, interrupted, snoozed, _, *stored) = row
            queue, task, args, tenant, tags, correlation_id, attempts, timeout, enqueued_at, _, trigger = (
                stored
            )
            if (moment := moments.get(enqueued_at)) is None:
                moment = moments[enqueued_at] = from_micros(enqueued_at)
            if tags not in tags_of:
                tags_of[tags] = tuple(json.loads(tags))
            # By position: to name them costs several times as much.
            claimed.append(
                ClaimedJob(
                    id,
                    run + 1,
                    queue,
                    task,
                    args,
                    priority,
                    tenant,
                    tags_of[tags],
                    correlation_id or str(id),
                    Counters(failed, lost, interrupted, snoozed) if run else UNTOUCHED,
                    attempts,
                    maybe_duration(timeout),
                    moment,
                    claimed_at,
                    trigger,
                    id in stepped,
                )
            )
        return claimed
