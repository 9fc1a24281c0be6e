"""The model's claims: which jobs a worker is given, in which order, and whose turn it is among tenants."""

from dataclasses import dataclass, field
from datetime import timedelta

from duly.core.ageing import aged
from duly.core.defaults import INLINE_PAYLOAD
from duly.core.job import ClaimedJob, ClaimRequest, Incarnation, QueueClaim
from duly.core.lifecycle import State
from duly.stores.protocol import Clock

from .model import BEHIND_KEY, PAUSED, STALE, UNKNOWN, Entry, Tables, Worker
from .model_bounds import Behind, BoundedModel, place_of


@dataclass
class Turn:
    """What one handle remembers of one queue."""

    given: int = 0
    """Jobs taken from its lanes."""
    last: str | None = None
    """The tenant served last."""
    left: int = 0
    """What is left of that one's turn."""


@dataclass
class Claim:
    """One claim that is under way."""

    incarnation: Incarnation
    worker: Worker
    request: ClaimRequest
    asked: dict[str, QueueClaim]
    taken: list[ClaimedJob] = field(default_factory=list)
    given: dict[str, int] = field(default_factory=dict)
    given_busy: dict[str, int] = field(default_factory=dict)
    """To tenants of which something runs."""

    def room(self, queue: str) -> int:
        return min(
            self.asked[queue].most - self.given.get(queue, 0),
            self.request.most - len(self.taken),
        )

    def room_for_busy(self, queue: str) -> int:
        asked = self.asked[queue]
        return min(self.room(queue), asked.most - asked.reserved - self.given_busy.get(queue, 0))


class ClaimModel(BoundedModel):
    """Jobs claimed."""

    def __init__(self, clock: Clock, tables: Tables | None = None) -> None:
        super().__init__(clock, tables)
        self._turns: dict[str, Turn] = {}

    def claim(self, incarnation: Incarnation, request: ClaimRequest) -> tuple[ClaimedJob, ...]:
        worker = self.tables.workers.get(incarnation)
        if worker is None:
            return ()
        asked = {one.queue: one for one in request.queues if not self.is_paused(f"queue:{one.queue}")}
        claim = Claim(incarnation, worker, request, asked)
        for task in request.unparked:
            if task in worker.info.tasks and not self.is_paused(f"task:{task}"):
                self._take(claim, self._parked(task, claim))
        for queue, one in asked.items():
            if request.suspects:
                self._take(claim, self._line(queue))
            elif one.fair:
                self._in_turns(claim, queue)
            else:
                self._by_age_and_priority(claim, queue, "", claim.room(queue))
        return tuple(claim.taken)

    def _parked(self, task: str, claim: Claim) -> list[Entry]:
        found = [
            entry
            for entry in self.tables.entries.values()
            if entry.state is State.blocked
            and entry.parked == UNKNOWN
            and entry.new.task == task
            and entry.new.queue in claim.asked
        ]
        return sorted(found, key=lambda entry: entry.pos)

    def _line(self, queue: str, lane: str | None = None) -> list[Entry]:
        """What is ready in a queue, or in one lane of it."""
        found = [
            entry
            for entry in self.tables.entries.values()
            if entry.state is State.ready
            and entry.new.queue == queue
            and (lane is None or entry.lane == lane)
        ]
        return sorted(found, key=lambda entry: (entry.priority, entry.pos))

    def _by_age_and_priority(self, claim: Claim, queue: str, lane: str, most: int) -> int:
        """Some of the oldest, whatever their priority, then the most urgent; how many."""
        turn = self._turns.setdefault(queue, Turn())
        oldest = sorted(self._line(queue, lane), key=lambda entry: entry.pos)
        before = len(claim.taken)
        # Of what the tenant may have, not of all that was asked for.
        self._take(claim, oldest, aged(turn.given, self._free(queue, lane, most)))
        self._take(claim, self._line(queue, lane), most - (len(claim.taken) - before))
        turn.given += len(claim.taken) - before
        return len(claim.taken) - before

    def _free(self, queue: str, lane: str, most: int) -> int:
        """How many more of a lane its tenant's limit lets start."""
        if not lane:
            return most
        limit = self.tenant_of(queue, lane)
        return next((count for count in range(most) if self.refused(limit, count) is not None), most)

    def _in_turns(self, claim: Claim, queue: str) -> None:
        """Tenant after tenant, each as many as its weight says, until there is no room or no one left."""
        turn = self._turns.setdefault(queue, Turn())
        barren: set[str] = set()
        share = 0
        # Whom a limit has let go on had its turn there.
        self._take(claim, [entry for entry in self._line(queue) if entry.let_go], claim.room(queue))
        while claim.room(queue) > 0:
            lanes = {entry.lane for entry in self._line(queue) if not entry.counters.lost}
            order = sorted(lanes - barren, key=place_of)
            if not order:
                return
            share = share or max(1, claim.room(queue) // sum(self._weight(queue, lane) for lane in order))
            if turn.last not in order or turn.left <= 0:
                later = [
                    lane for lane in order if turn.last is not None and place_of(lane) > place_of(turn.last)
                ]
                turn.last = (later or order)[0]
                turn.left = share * self._weight(queue, turn.last)
            lane = turn.last
            room = claim.room_for_busy(queue) if self._is_busy(queue, lane) else claim.room(queue)
            # Of an idle tenant the first makes it a busy one.
            room = room if self._is_busy(queue, lane) else min(room, max(1, claim.room_for_busy(queue)))
            wanted = min(turn.left, max(room, 0))
            got = self._by_age_and_priority(claim, queue, lane, wanted)
            turn.left -= got
            if got < wanted or wanted == 0:
                barren.add(lane)
                turn.left = 0

    def _weight(self, queue: str, lane: str) -> int:
        plan = self.tables.plans.get(lane)
        weight = 1 if plan is None or not lane else plan.weight
        for override in self.live_overrides():
            if lane and override.target == self.tenant_of(queue, lane).name and "weight" in override.value:
                return int(str(override.value["weight"]))
        return weight

    def _is_busy(self, queue: str, lane: str) -> bool:
        return any(
            entry.state is State.running and (entry.new.queue, entry.lane) == (queue, lane)
            for entry in self.tables.entries.values()
        )

    def _take(self, claim: Claim, line: list[Entry], most: int = 1_000_000) -> None:
        before = len(claim.taken)
        for entry in line:
            queue = entry.new.queue
            if claim.room(queue) <= 0 or len(claim.taken) - before >= most:
                continue
            if entry.state not in {State.ready, State.blocked}:
                continue  # claimed behind the head of its key
            if bool(entry.counters.lost) != claim.request.suspects:
                continue
            fair = claim.asked[queue].fair
            if not self._may_run(claim, entry):
                continue
            if any(self.refused(limit) for limit in self.lane_limits(entry, fair)):
                continue
            behind = self.behind(entry)
            if behind is not None:
                self._park(entry, behind.what)
                continue
            self._give(claim, entry)
            self._chain(claim, entry)

    def _may_run(self, claim: Claim, entry: Entry) -> bool:
        """Whether this worker may run it at all; set aside or ended where it may not."""
        task = entry.new.task
        if self.expire(entry):
            return False
        if self.is_paused(f"task:{task}"):
            self._park(entry, PAUSED)
        elif task not in claim.worker.info.tasks:
            self._park(entry, UNKNOWN)
        elif self._is_stale(entry):
            self.to_final(entry, State.skipped, STALE)
        else:
            return True
        return False

    def _chain(self, claim: Claim, first: Entry) -> None:
        """The next ones of the same ordering key, while nothing at all is in between."""
        if first.key is None or claim.request.suspects:
            return
        members = self.members(first.key)
        if members[0] is not first:
            return
        for entry in members[1 : claim.request.chain]:
            fair = claim.asked[entry.new.queue].fair
            waits = entry.state is State.ready or entry.parked == BEHIND_KEY
            limits = [*self.lane_limits(entry, fair), *self.limits_of(entry)]
            known = entry.new.task in claim.worker.info.tasks and not self.is_paused(f"task:{entry.new.task}")
            fits = waits and known and not entry.counters.lost and not self.has_expired(entry)
            if claim.room(entry.new.queue) <= 0 or not fits or self._is_stale(entry):
                return
            if self.blocks(entry) is not None or any(self.refused(limit, but=entry) for limit in limits):
                return
            self._give(claim, entry, follows=True)

    def _is_stale(self, entry: Entry) -> bool:
        unique, version = entry.new.unique, entry.new.version
        if unique is None or version is None:
            return False
        newest = self.newest_version(unique.digest)
        return newest is not None and version < newest

    def _park(self, entry: Entry, cause: str) -> None:
        pos = entry.pos
        if cause not in {PAUSED, UNKNOWN, BEHIND_KEY}:
            entry.limited_at = entry.limited_at or self.clock()
        if cause in {PAUSED, UNKNOWN}:
            entry.reserved = frozenset()
        self.leave(entry)
        entry.state, entry.parked, entry.pos, entry.waiting_since = State.blocked, cause, pos, self.clock()

    def _give(self, claim: Claim, entry: Entry, *, follows: bool = False) -> None:
        queue = entry.new.queue
        fair = claim.asked[queue].fair
        if self._is_busy(queue, entry.lane):
            claim.given_busy[queue] = claim.given_busy.get(queue, 0) + 1
        claim.given[queue] = claim.given.get(queue, 0) + 1
        held = self.start([*self.lane_limits(entry, fair), *self.limits_of(entry)])
        timeout = claim.worker.info.tasks[entry.new.task]
        claim.taken.append(self._run(entry, claim.incarnation, timeout, held, follows))

    def _run(
        self, entry: Entry, incarnation: Incarnation, timeout: timedelta, held: frozenset[str], follows: bool
    ) -> ClaimedJob:
        now = self.clock()
        self.leave(entry)
        entry.state, entry.incarnation, entry.started_at = State.running, incarnation, now
        entry.holds, entry.reserved, entry.limited_at = held, frozenset(), None
        entry.run += 1
        if entry.new.unique is not None and not entry.new.unique.live:
            self.free(entry)
        entry.deadline = now + (entry.new.timeout or timeout)
        new = entry.new
        return ClaimedJob(
            id=entry.id,
            run=entry.run,
            queue=new.queue,
            task=new.task,
            args=new.args if len(new.args) <= INLINE_PAYLOAD else None,
            priority=entry.priority,
            tenant=new.tenant,
            tags=new.tags,
            correlation_id=new.correlation_id or str(entry.id),
            counters=entry.counters,
            attempts=new.attempts,
            timeout=new.timeout,
            enqueued_at=entry.enqueued_at,
            claimed_at=now,
            trigger=new.trigger,
            has_steps=bool(entry.steps or entry.cursors),
            ordering_key=new.ordering_key,
            follows=follows,
        )

    def opens_in(self, request: ClaimRequest) -> timedelta | None:
        """When time alone lets something start that this request waits for."""
        now, times = self.clock(), []
        for entry in self.tables.entries.values():
            asked = next((one for one in request.queues if one.queue == entry.new.queue), None)
            if asked is None or not (entry.state is State.ready or entry.bounded):
                continue
            reasons: list[Behind | None] = [self.behind(entry)]
            reasons += [self.refused(limit) for limit in self.lane_limits(entry, asked.fair)]
            times += [reason.until for reason in reasons if reason is not None and reason.until is not None]
        return min(times) - now if times else None
