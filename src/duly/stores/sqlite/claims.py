"""Claims: ready -> running, with what must not run set aside on the way. Runs inside an open transaction."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final, NamedTuple

from duly.core.control import queue_limit
from duly.core.defaults import INLINE_PAYLOAD
from duly.core.job import ClaimedJob, ClaimRequest, Counters, QueueClaim
from duly.stores.sqlite.admission import Admission, Gate
from duly.stores.sqlite.ageing import Given, oldest
from duly.stores.sqlite.bounds import bounds_of
from duly.stores.sqlite.fairness import Round, Tenant, Turns
from duly.stores.sqlite.moves import KEYED, UNIQUE, UNTOUCHED, VERSION, lane_of, task_key
from duly.stores.sqlite.ordering import IN_READY, PLACE, SINCE, TENANT
from duly.stores.sqlite.releasing import drop_reserved, let_go, let_go_in, open_due, unblock
from duly.stores.sqlite.session import Row, Session
from duly.stores.sqlite.times import MICROSECOND, from_micros, maybe_duration
from duly.stores.sqlite.transport import ids_text
from duly.stores.sqlite.usage import Use
from duly.stores.sqlite.waiting import (
    BEHIND_LIMIT,
    PAUSED,
    UNKNOWN,
    Waiting,
    expire,
    skip,
    waiting_of,
)

# What one call may set aside (expired, unknown, paused) so that the write lock stays short.
_MOST_ASIDE: Final = 1_000
_CHUNK: Final = 200
_NO_QUEUES: Final = frozenset[str]()
_NO_TASKS: Final = frozenset[int]()
_NOT_PLAIN: Final = VERSION | KEYED


def waiting_in(row: Row) -> Waiting:
    """The waiting side of a row of `select_ready`."""
    return waiting_of((*row[:11], row[TENANT]))


class Pauses(NamedTuple):
    """What is paused now; `version` is of the bounds, `look_at` when a limit is worth another look."""

    queues: frozenset[str]
    tasks: frozenset[int]
    version: int = 0
    look_at: int | None = None


def pauses(session: Session) -> Pauses:
    rows = session.rows("select_live_pauses", now=session.now)
    _, version, look_at = rows.pop()
    if not rows:
        return Pauses(_NO_QUEUES, _NO_TASKS, version, look_at)
    targets = [str(target) for target, _, _ in rows]
    return Pauses(
        frozenset(target.removeprefix("queue:") for target in targets if target.startswith("queue:")),
        frozenset(task_key(target.removeprefix("task:")) for target in targets if target.startswith("task:")),
        version,
        look_at,
    )


class Memory:
    """What claims of one store remember from one to the next. Used under the write lock only."""

    def __init__(self) -> None:
        self.turns = Turns()
        self.given = Given()


class Claim:
    """One claim of one incarnation. A row here is one of `select_ready` or `select_parked`."""

    def __init__(
        self,
        session: Session,
        incarnation: int,
        request: ClaimRequest,
        tasks: Mapping[int, int],
        paused: Pauses,
        memory: Memory,
    ) -> None:
        self._session = session
        self._incarnation = incarnation
        self._request = request
        self._tasks = tasks
        self._paused = paused
        self._memory = memory
        self._bounds = bounds_of(session, paused.version)
        self._admitting: Admission | None = None
        """Made where something is bounded at all."""
        self._taken: list[Row] = []
        self._unwritten: list[Row] = []
        """Of these, the ones that no statement has made claimed yet."""
        self._looked_at = 0
        """So many of the unwritten are known not to be stale."""
        self._expired: list[Waiting] = []
        self._parked: list[tuple[Row, Gate]] = []
        self._blocked = 0
        self._stale: list[Waiting] = []
        self._following: set[int] = set()
        self._left_off = False
        self._missed: list[Row] = []
        """Let go on by a limit, and set aside: another may have their places."""

    def run(self) -> list[ClaimedJob]:
        """Take jobs; the answer is in queue order, then as their lanes gave them."""
        look_at = self._paused.look_at
        if look_at is not None and look_at <= self._session.now:
            open_due(self._session, self._bounds)
        rang, self._session.rings = self._session.rings, False
        lanes = self._lanes()
        room = {lane: claim.most for claim, lane in lanes}
        self._take_parked(room, {lane: claim for claim, lane in lanes})
        self._take_lanes(lanes, room)
        while self._drop_stale(room) and self._aside() < _MOST_ASIDE:
            self._take_lanes(lanes, room)
            order = {lane: place for place, (_claim, lane) in enumerate(lanes)}
            self._taken.sort(key=lambda row: order[row[1]])
        expire(self._session, self._expired)
        skip(self._session, self._stale, "stale")
        self._write()
        self._offer([lane for _, lane in lanes])
        # What was set aside has let others go on, or hid them.
        self._left_off = self._left_off or self._session.rings or self._aside() >= _MOST_ASIDE
        self._session.rings = rang or self._session.rings
        return self._claimed() if self._taken else []

    def _admission(self) -> Admission:
        if self._admitting is None:
            self._admitting = Admission(self._session, self._incarnation, self._bounds)
        return self._admitting

    def again(self) -> timedelta | None:
        """When it is worth to claim again."""
        if self._left_off:
            return timedelta(0)
        times = [None if self._admitting is None else self._admitting.opens_at]
        # What was bounded elsewhere was not met here, and has no time to wait for.
        if self._paused.look_at is not None or (self._bounds.takes and self._admitting is not None):
            times.append(self._session.value("select_next_look"))
        known = [at for at in times if at is not None]
        return max(min(known) - self._session.now, 0) * MICROSECOND if known else None

    def _take_lanes(self, lanes: list[tuple[QueueClaim, int]], room: dict[int, int]) -> None:
        for claim, lane in lanes:
            if (wanted := min(room[lane], self._left())) > 0:
                room[lane] -= self._take_queue(claim, lane, wanted)

    def _lanes(self) -> list[tuple[QueueClaim, int]]:
        return [
            (claim, lane_of(claim.queue, self._request.suspects))
            for claim in self._request.queues
            if claim.queue not in self._paused.queues
        ]

    def _left(self) -> int:
        return self._request.most - len(self._taken)

    def _aside(self) -> int:
        return len(self._expired) + len(self._parked) + self._blocked + len(self._stale)

    def _take_parked(self, room: dict[int, int], claims: Mapping[int, QueueClaim]) -> None:
        for name in self._request.unparked:
            task = task_key(name)
            if self._left() <= 0:
                return
            if task in self._paused.tasks or task not in self._tasks:
                continue
            gone: list[Row] = []
            back: list[int] = []
            lanes = ids_text([lane for lane, left in room.items() if left > 0])
            most = self._left() + _CHUNK
            for row in self._session.rows(
                "select_parked", task=task, lanes=lanes, inline=INLINE_PAYLOAD, most=most
            ):
                if room.get(row[1], 0) <= 0 or self._left() <= 0:
                    continue
                if row[TENANT] or self._queue_use(claims[row[1]].queue) or self._admission().controls(row):
                    back.append(row[0])
                    continue
                gone.append((row[0],))
                if self._is_expired(row):
                    self._expired.append(waiting_in(row))
                else:
                    room[row[1]] -= 1
                    self._take(row)
            self._session.tuples("delete_blocked", gone)
            # These are taken, or not, where the others of their lanes are.
            unblock(self._session, back)

    def _queue_use(self, queue: str) -> list[Use]:
        name = queue_limit(queue)
        bound = self._bounds.bound(name, now=self._session.now)
        bounded = bound.max_running is not None or bound.interval is not None
        return self._admission().limits.of([(name, bound)]) if bounded else []

    def _take_queue(self, claim: QueueClaim, lane: int, wanted: int) -> int:
        """From one queue: how many."""
        uses = self._queue_use(claim.queue) if self._bounds.some else []
        if not uses and not claim.fair:
            return self._take_lane(lane, 0, wanted, uses)
        most = min([wanted, *(use.allowance(self._session.now) for use in uses)])
        if not claim.fair:
            taken = self._take_lane(lane, 0, most, uses)
        else:
            turn = Round(self._session, self._admission().limits, self._memory.turns, claim, lane)
            taken = turn.serve(most, partial(self._take_tenant, lane, uses))
            self._admission().wait_until(turn.opens_at)
            self._left_off = self._left_off or turn.left_off
        if taken == most < wanted and self._session.row("select_lane_waits", queue=lane) is not None:
            for use in uses:
                self._admission().wait_until(use.opens_at(self._session.now))
        return taken

    def _take_tenant(self, lane: int, uses: list[Use], tenant: Tenant, most: int) -> int:
        return self._take_lane(lane, tenant.key, most, uses if tenant.use is None else [*uses, tenant.use])

    def _take_lane(self, lane: int, tenant: int, most: int, uses: list[Use]) -> int:
        """At most so many of a lane, which take these limits, too: the oldest for a share, then as they stand."""
        first, taken = len(self._taken), 0
        if not self._request.suspects and (aged := self._memory.given.aged(lane, most)):
            rows = oldest(self._session, lane, tenant, aged)
            met = 0
            for row in rows:
                if taken >= most:
                    break
                met += 1
                taken += self._keep(row, most - taken)
            self._session.tuples("delete_ready", [(row[0],) for row in rows[:met]])
            self._block()
        taken += self._take_heads(lane, tenant, most - taken)
        self._memory.given.add(lane, taken)
        for row in self._taken[first:] if uses else ():
            for use in uses:
                self._admission().limits.start(use, row[0], counted=bool(tenant))
        return taken

    def _take_heads(self, lane: int, tenant: int, most: int) -> int:
        taken = 0
        while (wanted := most - taken) > 0 and self._aside() < _MOST_ASIDE:
            limit = max(wanted, _CHUNK) if self._aside() else wanted
            rows = self._session.rows(
                "select_ready", queue=lane, tenant=tenant, inline=INLINE_PAYLOAD, most=limit
            )
            last: Row | None = None
            if len(rows) <= wanted and self._take_whole(rows):
                last = rows[-1]
                taken += len(rows)
            else:
                for row in rows:
                    if taken >= most:
                        break
                    last = row
                    taken += self._keep(row, most - taken)
            if last is not None:
                self._session.run(
                    "delete_ready_head", queue=lane, tenant=tenant, priority=last[2], pos=last[3]
                )
            self._block()
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
        if any(row[20] & _NOT_PLAIN or (row[10] is not None and row[10] <= now) for row in rows):
            return False
        if self._bounds.some and (
            not tasks.isdisjoint(self._bounds.takes) or self._bounds.blocks(rows[0][11], now)
        ):
            return False
        (timeout,) = timeouts
        _, lane, priority, pos, *_ = rows[-1]
        self._session.run(
            "insert_claimed_head",
            incarnation=self._incarnation,
            now=now,
            timeout=timeout,
            queue=lane,
            tenant=rows[-1][TENANT],
            priority=priority,
            pos=pos,
        )
        self._taken += rows
        return True

    def _take(self, row: Row) -> None:
        self._taken.append(row)
        self._unwritten.append(row)

    def _keep(self, row: Row, most: int) -> int:
        """Sort one row of a lane: how many are claimed, with those that follow it at once."""
        if row[0] in self._following:
            return 0
        taken = self._sort(row, most)
        if not taken and row[SINCE] is not None:
            self._missed.append(row)
        return taken

    def _sort(self, row: Row, most: int) -> int:
        if self._is_expired(row):
            self._expired.append(waiting_in(row))
        elif row[4] in self._paused.tasks:
            self._parked.append((row, Gate(PAUSED, 0)))
        elif row[4] not in self._tasks:
            self._parked.append((row, Gate(UNKNOWN, 0)))
        elif not row[20] & KEYED and not (self._bounds.some and self._admission().controls(row)):
            self._take(row)
            return 1
        elif row[20] & VERSION and self._are_stale([row[0]]):
            self._stale.append(waiting_in(row))
        elif (gate := self._admission().gate(row)) is not None:
            self._parked.append((row, gate))
        else:
            self._take(row)
            if row[20] & KEYED and not self._request.suspects:
                return 1 + self._follow(row, min(most, self._request.chain) - 1)
            return 1
        return 0

    def _follow(self, head: Row, most: int) -> int:
        """Take the next jobs of its ordering key with a job, without a gap: how many."""
        rows = self._admission().keys.followers(head, most) if most > 0 else []
        count = 0
        for row in rows:
            known = row[4] in self._tasks and row[4] not in self._paused.tasks
            alike = row[1] == head[1] and row[TENANT] == head[TENANT]
            if not known or not alike or self._is_expired(row):
                break
            if row[20] & VERSION and self._are_stale([row[0]]):
                break
            if not self._admission().follows(row):
                break
            self._session.run("delete_ready" if row[PLACE] == IN_READY else "delete_blocked", id=row[0])
            self._take(row[:PLACE])
            self._following.add(row[0])
            count += 1
        if count:
            # One of a more urgent lane was met before its head, and set aside.
            self._parked = [one for one in self._parked if one[0][0] not in self._following]
        return count

    def _are_stale(self, ids: Sequence[int]) -> set[int]:
        rows = self._session.rows("select_stale", ids=ids_text(ids), now=self._session.now)
        return {id for (id,) in rows}

    def _drop_stale(self, room: dict[int, int]) -> bool:
        """True when some of the jobs taken had an older version than one completed before."""
        versioned = [row[0] for row in self._unwritten[self._looked_at :] if row[20] & VERSION]
        self._looked_at = len(self._unwritten)
        if not versioned:
            return False
        stale = self._are_stale(versioned)
        for row in self._unwritten:
            if row[0] in stale:
                self._stale.append(waiting_in(row))
                room[row[1]] += 1
        self._taken = [row for row in self._taken if row[0] not in stale]
        self._unwritten = [row for row in self._unwritten if row[0] not in stale]
        self._looked_at = len(self._unwritten)
        if self._admitting is not None:
            self._admitting.limits.drop(stale)
        return bool(stale)

    def _is_expired(self, row: Row) -> bool:
        return row[10] is not None and row[10] <= self._session.now

    def _block(self) -> None:
        """Write what was set aside behind something: who owns a key is told by where its jobs stand."""
        if not self._parked:
            return
        now = self._session.now
        rows = []
        for row, (cause, gate) in self._parked:
            id, lane, priority, pos, task, *counted = row[:11]
            since = row[SINCE] if cause == BEHIND_LIMIT else None
            rows.append((id, cause, task, lane, priority, pos, *counted, since or now, gate, row[TENANT]))
        self._session.tuples("insert_blocked", rows)
        self._blocked += len(rows)
        self._parked.clear()
        if self._admitting is not None:
            self._admitting.keys.go_on()

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
                    row[TENANT],
                )
                for row in self._unwritten
            ],
        )
        if self._admitting is not None:
            self._admitting.limits.write()
        # Those that were stale have given theirs back by now.
        keyed = [row[0] for row in self._taken if row[20] & UNIQUE]
        if keyed:
            self._session.run("delete_claimed_keys", ids=ids_text(keyed))

    def _offer(self, lanes: list[int]) -> None:
        """Give the places at limits that nobody has taken to others."""
        if self._missed:
            drop_reserved(self._session)
            limits = self._admission().limits
            let_go(self._session, self._bounds, [name for row in self._missed for name in limits.names(row)])
        if self._session.freed and self._left() > 0:
            let_go_in(self._session, self._bounds, lanes)

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
            # All at once: a rest of a row costs a list.
            (id, _, priority, _, _, run, failed, lost, interrupted, snoozed, _, queue, task, args, tenant, tags,
             correlation_id, attempts, timeout, enqueued_at, _, trigger, ordering, _, _) = row  # fmt: skip
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
                    ordering,
                    id in self._following,
                )
            )
        return claimed
