"""What to claim next: how many jobs of which queues, from the slots that are free and the run times seen.

All counts change in the pump's thread alone. Knows no store and runs nothing.
"""

import math
import random
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Final

from duly.client.queue import Queue
from duly.core.control import Ordering
from duly.core.job import ClaimRequest, QueueClaim
from duly.worker.attempt import Attempt, Chain
from duly.worker.card import LOOP, PROCESS, THREAD, Card
from duly.worker.options import PREFETCH, Plan

_TINY: Final = timedelta(milliseconds=20)
_TINY_SHARE: Final = 0.05
_LEARN: Final = 0.1
# Jobs of a kind without a free slot that may be claimed in passing from a queue of several kinds.
_PASSING: Final = 4
_PASSING_PAUSE: Final = 1.0
_LONGEST_PASSING_PAUSE: Final = 30.0
# Prefetched jobs must start well before "unstarted" sends them back.
_AHEAD: Final = 0.5
# Where tenants take turns, one that comes now waits behind all that was fetched for the others.
_AHEAD_IN_TURN: Final = 0.04


class QueueState:
    """What was seen of one queue."""

    __slots__ = (
        "ahead",
        "fair",
        "following",
        "held",
        "held_of",
        "kinds",
        "name",
        "own_slots",
        "passing_at",
        "passing_pause",
        "rate",
        "reserve",
        "slow",
        "weight",
        "window_count",
        "window_from",
    )

    def __init__(self, name: str, own_slots: int | None, kinds: Counter[int]) -> None:
        self.name = name
        self.own_slots = own_slots
        self.held = 0
        """Claimed and not ended."""
        self.following = 0
        """Claimed to run behind another job of their ordering key, in its slot."""
        self.fair = False
        self.weight = 1
        """How often it is the first to be asked, beside the others."""
        self.reserve = 0.0
        """Share of the slots that is kept for tenants of which nothing runs."""
        self.held_of = {LOOP: 0, THREAD: 0, PROCESS: 0}
        """The same, by kind of slot."""
        self.ahead = 0
        """Jobs beyond the free slots that may be claimed: some only while nearly all runs take next to nothing."""
        self.passing_at = 0.0
        self.passing_pause = 0.0
        """Grows while looking for jobs of another kind finds only more of the full one."""
        self.kinds = kinds
        """How many jobs of each kind were seen lately; starts with the tasks declared for the queue."""
        self.slow = 1.0
        """Share of runs that took longer than next to nothing; unknown counts as all."""
        self.rate = 0.0
        """Jobs ended per second."""
        self.window_from = 0.0
        self.window_count = 0

    def took(self, kind: int) -> None:
        self.held += 1
        self.held_of[kind] += 1
        self.passing_pause = 0.0
        self.saw(kind)

    def refused(self, kind: int, now: float) -> None:
        self.passing_pause = min(max(_PASSING_PAUSE, self.passing_pause * 2), _LONGEST_PASSING_PAUSE)
        self.passing_at = now + self.passing_pause
        self.saw(kind)

    def saw(self, kind: int) -> None:
        kinds = self.kinds
        count = kinds[kind] = kinds[kind] + 1
        if count > 1000:
            # Halved, so that what a queue used to hold is forgotten.
            for known in kinds:
                kinds[known] = (kinds[known] + 1) // 2

    def ended(self, elapsed: timedelta, now: float) -> None:
        slow = self.slow
        slow += ((elapsed > _TINY) - slow) * _LEARN
        self.slow = slow
        self.window_count += 1
        passed = now - self.window_from
        if passed >= 0.05:
            # A long pause says nothing about how fast the slots are.
            if passed < 2:
                self.rate = self.window_count / passed
            self.window_from, self.window_count = now, 0
        elif (slow < _TINY_SHARE) == (self.ahead > 0):
            return
        ahead = _AHEAD_IN_TURN if self.fair else _AHEAD
        self.ahead = min(PREFETCH, int(self.rate * ahead)) if slow < _TINY_SHARE else 0

    def slots_and_ahead(self, sizes: Mapping[int, int]) -> int:
        return sum(sizes[kind] for kind, count in self.kinds.items() if count) + self.ahead


class Fetch:
    """Decides on each claim. `poll` is the longest wait for work nobody rang for."""

    def __init__(
        self, plan: Plan, cards: Mapping[str, Card], poll: float, declared: Mapping[str, Queue] | None = None
    ) -> None:
        self._plan = plan
        self.cards = cards
        self._poll = poll
        self._sizes = {LOOP: plan.concurrency, THREAD: plan.threads, PROCESS: plan.isolated}
        self._held = {LOOP: 0, THREAD: 0, PROCESS: 0}
        self._queues = {
            name: QueueState(
                name, slots, Counter(card.kind for card in set(cards.values()) if card.queue == name)
            )
            for name, slots in plan.queues.items()
        }
        for name, policy in (declared or {}).items():
            if name in self._queues:
                self._queues[name].fair, self._queues[name].reserve = policy.fair, policy.reserve
                self._queues[name].weight = policy.weight
        self._orderings = {name: policy.ordering for name, policy in (declared or {}).items()}
        self._following = 0
        self._order = deque(self._queues)
        self._turns = dict.fromkeys(self._queues, 0)
        self._next_at = 0.0
        self._rung = False
        self._blocked = False
        self.unparked: tuple[str, ...] = ()
        """Known tasks that have parked jobs; set by the sweep's duty."""
        self.loop_turns: Callable[[], bool] = _turns
        """Whether the event loop has turned lately: what it cannot start is left to others."""
        self.dry = False
        """The last claim found less than it asked for."""

    @property
    def outstanding(self) -> int:
        """Jobs claimed whose handlers have not ended."""
        return sum(self._held.values()) + self._following

    def admit(self, attempt: Attempt, now: float) -> bool:
        """Count a claimed job against its slots. False: they are taken, or kept for another queue; it goes back."""
        kind = attempt.card.kind
        queue = self._queues.get(attempt.job.queue)
        if queue is not None:
            if not queue.ahead:
                full = queue.own_slots is not None and queue.held >= queue.own_slots
                if full or self._free(queue, kind, self._room()) <= 0:
                    queue.refused(kind, now)
                    return False
            queue.took(kind)
        self._held[kind] += 1
        return True

    def follow(self, attempt: Attempt, before: Attempt | None) -> bool:
        """Put a claimed job behind the one before it of its ordering key. False: it goes back.

        A chain takes one slot, its head's; the last of it to be collected gives that free.
        """
        if before is None or before.card.ack_first or attempt.card.ack_first:
            return False
        chain = before.chain
        if chain is None:
            chain = before.chain = Chain(before.card.kind)
        attempt.chain = chain
        chain.left += 1
        chain.waiting.append(attempt)
        self._following += 1
        queue = self._queues.get(attempt.job.queue)
        if queue is not None:
            queue.following += 1
            queue.saw(attempt.card.kind)
        return True

    def released(self, attempt: Attempt, now: float) -> None:
        """Its slot is free again: it ended, went back, or was given up."""
        if attempt.released:
            return
        attempt.released = True
        chain, kind = attempt.chain, attempt.card.kind
        queue = self._queues.get(attempt.job.queue)
        if chain is not None:
            chain.left -= 1
            kind = chain.kind
        if chain is not None and chain.left:
            self._following -= 1
            if queue is not None:
                queue.following -= 1
        else:
            self._held[kind] -= 1
            if queue is not None:
                queue.held -= 1
                queue.held_of[kind] -= 1
        if queue is not None:
            ended = attempt.ended
            if ended is not None and ended.elapsed is not None:
                queue.ended(ended.elapsed, now)

    def wake(self) -> None:
        """There may be work: claim at the next chance. Called from any thread."""
        self._rung = True
        self._next_at = 0.0

    def due_in(self, now: float) -> float:
        """Seconds until a claim is due, as far as time is concerned."""
        return max(0.0, self._next_at - now)

    def request(self, now: float, *, riding: bool) -> ClaimRequest | None:
        """The next claim, or None. `riding` says that a round trip is made anyway."""
        if not riding and now < self._next_at:
            return None
        self._rung = False
        if self._plan.quarantine:
            return self.suspects() if self.outstanding == 0 else None
        self._take_turns()
        self._blocked = not self.loop_turns()
        room = self._room()
        claims = []
        for name in self._order:
            most = self._most(self._queues[name], room, now)
            if most > 0:
                claims.append(self._claim(self._queues[name], most))
        if not claims:
            return None
        most = min(sum(claim.most for claim in claims), max(1, self._room_in_all(claims, room)))
        return ClaimRequest(tuple(claims), most, unparked=self.unparked, chain=self._chain(claims))

    def suspects(self) -> ClaimRequest:
        """One job with a loss behind it, which will be alone in this process."""
        claims = tuple(QueueClaim(name, 1, self._queues[name].fair) for name in self._order)
        return ClaimRequest(claims, 1, suspects=True)

    def answered(self, request: ClaimRequest, got: int, now: float, again: timedelta | None = None) -> None:
        """A full answer means more may wait; a short one waits for a ring, the poll, or the time the store named."""
        self.dry = got < request.most
        # A ring during the round trip may be about a job that it did not see.
        if not self.dry or self._rung:
            self._next_at = 0.0
            return
        pause = self._poll * random.uniform(0.8, 1.2)
        self._next_at = now + (pause if again is None else min(pause, again.total_seconds()))

    def failed(self, now: float, pause: float) -> None:
        self._next_at = now + pause

    def ordering(self, queue: str) -> Ordering:
        """What the jobs behind a dead one of their ordering key do."""
        return self._orderings.get(queue, "wait")

    def _take_turns(self) -> None:
        """Whose turn it is to be first: by weight, as far apart as that allows; the others behind it in a circle."""
        total = 0
        for queue in self._queues.values():
            self._turns[queue.name] += queue.weight
            total += queue.weight
        # Of equals the one that comes next in the circle.
        self._order.rotate(-1)
        first = max(self._order, key=self._turns.__getitem__)
        self._turns[first] -= total
        self._order.rotate(-self._order.index(first))

    def _claim(self, queue: QueueState, most: int) -> QueueClaim:
        reserved = 0
        if queue.reserve:
            kinds = [kind for kind, count in queue.kinds.items() if count]
            slots = queue.own_slots or sum(self._sizes[kind] for kind in kinds or self._sizes)
            reserved = min(most, math.ceil(queue.reserve * slots))
        return QueueClaim(queue.name, most, queue.fair, reserved)

    def _chain(self, claims: Iterable[QueueClaim]) -> int:
        """Jobs of one key, one after another in one slot: only while they take next to no time.

        Behind a long one the others would come back unstarted.
        """
        seen = (self._queues[claim.queue] for claim in claims)
        return max(1, min((queue.ahead for queue in seen if queue.rate), default=1))

    def _room_in_all(self, claims: Iterable[QueueClaim], room: Mapping[int, int]) -> int:
        asked = [self._queues[claim.queue] for claim in claims]
        kinds = {kind for queue in asked for kind in queue.kinds} or set(room)
        ahead = sum(
            queue.slots_and_ahead(self._sizes) - queue.held - queue.following
            for queue in asked
            if queue.ahead
        )
        return max(sum(max(0, room[kind]) for kind in kinds), ahead)

    def _room(self) -> dict[int, int]:
        return {kind: size - self._held[kind] for kind, size in self._sizes.items()}

    def _most(self, queue: QueueState, room: Mapping[int, int], now: float) -> int:
        kinds = queue.kinds
        if self._blocked and kinds[LOOP]:
            return 0
        seen = kinds.total()
        if queue.own_slots is not None:
            # Slots of its own are a cap on what runs, so that nothing is fetched ahead of them.
            return min(queue.own_slots - queue.held, max(room[kind] for kind in kinds or room))
        if seen == 0:
            most = max(self._free(queue, kind, room) for kind in room)
        else:
            shares = [(self._free(queue, kind, room), count / seen) for kind, count in kinds.items() if count]
            most = min(_fitting(free, share) for free, share in shares)
            if most <= 0 and now >= queue.passing_at:
                most = self._in_passing(shares, kinds)
        return self._topped_up(most, queue) if queue.ahead else most

    def _free(self, queue: QueueState, kind: int, room: Mapping[int, int]) -> int:
        """Free slots of a kind, less those kept for the other queues of that kind."""
        kept = sum(
            int(not other.held_of[kind]) if other.own_slots is None else max(0, other.own_slots - other.held)
            for other in self._queues.values()
            if other is not queue and other.kinds[kind]
        )
        # With fewer slots than queues nobody can be kept free.
        return room[kind] - min(kept, self._sizes[kind] - 1)

    def _in_passing(self, shares: Iterable[tuple[int, float]], kinds: Iterable[int]) -> int:
        """One kind is full: look for jobs of the others behind it, but only a few at a time."""
        free = max((free for free, _ in shares), default=0)
        over = max((self._held[kind] - self._sizes[kind] for kind in kinds), default=0)
        return max(0, min(_PASSING - max(0, over), free))

    def _topped_up(self, free: int, queue: QueueState) -> int:
        """With tiny jobs, more than the free slots; but a nearly full buffer is left alone."""
        wanted = queue.slots_and_ahead(self._sizes) - queue.held - queue.following
        return max(free, wanted if wanted >= queue.ahead // 4 else 0)


def _turns() -> bool:
    return True


def _fitting(free: int, share: float) -> int:
    return int(free / max(share, 0.05)) if free > 0 else 0
