"""What a producer meets at a full queue: it is asked how full queues are, once a second, before jobs are stored.

Decides whether an enqueue is refused, waits first, or is stored above the bound. Knows no drafts and stores no job.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from duly.core.bounds import (
    LONGEST_WAIT,
    SAMPLE_AGE,
    Bound,
    Fill,
    full_text,
    overfull,
    pace,
    room,
    spent_text,
    wait,
)
from duly.core.defaults import IMPORTANCE
from duly.core.errors import DulyError, QueueFull
from duly.core.job import NewJob
from duly.stores.faults import DataFault, Transient
from duly.telemetry.events import QueueWasFull

if TYPE_CHECKING:
    from duly.client.client import Client
    from duly.client.registry import Registry

_AGE: Final = SAMPLE_AGE.total_seconds()
_SHARE: Final = 50
"""Looks cost a producer at most one part in so many of its time: a million jobs are not counted in a moment."""
_ROOMY: Final = 4
"""Times as seldom where there is room for as many again: before that is full, others must bring 40,000 a second."""
_COST: Final = 0.002
_COST_OF_ROW: Final = 1e-5
"""Seconds that a look costs at most, and each job that it counts."""
_KEPT: Final = 0.1
"""Seconds in which a store that counts for all producers together does not count again."""
_PATIENCE: Final = 0.1
"""Seconds: a caller's transaction holds locks, and waits no longer for a look."""
_SHORTEST_REST: Final = 0.02
_LONGEST_REST: Final = 0.25
"""Seconds between two questions whether there is room."""
_TOLD_EVERY: Final = 60.0
_NO_TIME: Final = timedelta(0)
_NONE: Final = {None}
_QUEUE: Final = attrgetter("queue")
_DELAY: Final = attrgetter("delay")
_RUN_AT: Final = attrgetter("run_at")


class Asked(Protocol):
    """What it needs of a store."""

    def fills(self, queues: Mapping[str, int]) -> dict[str, Fill]:
        """See stores.control.PressingStore."""

    def turned_away(self, refused: Mapping[str, int]) -> None:
        """See stores.control.PressingStore."""


class Verdict(NamedTuple):
    """What becomes of jobs that are not refused."""

    over: frozenset[str] = frozenset()
    """Queues that are full and get them all the same."""
    pause: float = 0.0
    """Seconds to wait before they are stored."""


FREE: Final = Verdict()


class Over(NamedTuple):
    """A queue without room for what is brought."""

    queue: str
    why: str
    retry_after: timedelta
    refuses: bool
    pause: timedelta
    makes_room: timedelta
    """How long one job's room takes."""
    text: str


class _Sample:
    __slots__ = ("arrived", "at", "fill", "room", "roomy")

    def __init__(self, bound: Bound, fill: Fill, at: float, arrived: int) -> None:
        self.fill = fill
        self.at = at
        self.room = sys.maxsize if bound.max_depth is None else bound.max_depth - fill.depth
        if bound.max_age is not None and overfull(bound, fill, 0) is not None:
            self.room = -1
        self.roomy = bound.max_age is None and self.room >= fill.depth
        self.arrived = arrived
        """Jobs that this client has brought since, or is about to bring."""


class _Floor(NamedTuple):
    importance: int
    why: str
    retry_after: timedelta


class Pressing:
    """How full the queues of one client are, as it last looked. Any thread; one look at a time."""

    def __init__(
        self,
        registry: Registry,
        store: Callable[[], Asked],
        tell: Callable[[QueueWasFull], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._registry = registry
        self._bounds = registry.bounds
        self._store = store
        self._clock = clock
        self._samples: dict[str, _Sample] = {}
        self._admitted: dict[str, int] = {}
        self._floor: _Floor | None = None
        self._lock = threading.Lock()
        self._looking = threading.Lock()
        self._looked_at = -_AGE
        self._look_every = _AGE
        self._counted_at = -_AGE
        self._cost = 0.0
        self._told = _Told(tell, clock)
        self._refused: dict[str, int] = {}
        self._noted_at = -_AGE
        self.on_look: Callable[[], float] | None = None
        """Called with each look while jobs are enqueued: whoever decides on `refuse_below`. The seconds to the next."""

    @property
    def idle(self) -> bool:
        """Whether nothing bounds any queue."""
        return not self._bounds and self.on_look is None and self._floor is None

    def refuse_below(
        self, importance: int | None, why: str = "", retry_after: timedelta = LONGEST_WAIT
    ) -> None:
        """Refuse from now on what goes into less important queues (a larger number), whatever their own bounds say.

        None: no longer. `why` goes into the error as "the store holds 9 GiB, above max_bytes=8GiB". In a caller's
        transaction the jobs are stored nevertheless, with `over_limit`, unless it is strict.
        """
        self._floor = None if importance is None else _Floor(importance, why, retry_after)

    def takes(self, job: NewJob) -> bool:
        """The quick way for the usual case: this job has room, as far as is known, and counts from now on."""
        sample = self._samples.get(job.queue)
        if sample is None:
            return self.idle or (
                job.queue not in self._bounds
                and self._floor is None
                and (self.on_look is None or self._clock() - self._looked_at < self._look_every)
            )
        if (
            self._clock() - self._looked_at >= self._look_every
            or self._floor is not None
            or self._admitted
            or job.delay is not None
            or job.run_at is not None
        ):
            return False
        with self._lock:
            if sample.arrived >= sample.room:
                return False
            sample.arrived += 1
        return True

    def wants_look(self, wanted: Mapping[str, int]) -> bool:
        """Whether to `look` before `judge`: what is known is too old, or says no and may have changed."""
        if self._clock() - self._looked_at >= self._look_every:
            return True
        if any(queue not in self._samples and queue in self._bounds for queue in wanted):
            return True
        if self._admitted:
            wanted = {queue: more for queue, more in wanted.items() if more > self._admitted.get(queue, 0)}
        over = [one.queue for one in self._over(wanted) if one.queue in self._samples]
        age = self._clock() - self._counted_at
        if not over or age < _SHARE * self._cost:
            return False
        # Sooner, a store that keeps its count for all producers knows nothing newer.
        return age >= _KEPT or any(self._samples[queue].fill.at is None for queue in over)

    def look(self, wanted: Iterable[str]) -> None:
        """Ask the store; blocks. Nothing, when another thread is at it and these queues are known."""
        new = [queue for queue in wanted if queue in self._bounds and queue not in self._samples]
        if not self._looking.acquire(blocking=bool(new)):
            return
        every = max(_AGE, _SHARE * self._cost)
        try:
            if self.on_look is not None:
                # A store that fills fast is looked at more often than queues are counted.
                every = min(every, self.on_look())
            if new or self._clock() - self._counted_at >= _SHARE * self._cost:
                self._count(new)
                if self.on_look is None:
                    roomy = all(sample.roomy for sample in self._samples.values())
                    every = max(every, _SHARE * self._cost * (_ROOMY if roomy else 1))
        finally:
            self._looked_at = self._clock()
            self._look_every = every
            self._looking.release()

    def _count(self, new: list[str]) -> None:
        asked = {queue: self._bounds[queue].count_to for queue in {*self._samples, *new}}
        began, rows = self._clock(), 0
        try:
            if asked:
                fills = self._store().fills(asked)
                rows = sum(fill.depth for fill in fills.values())
                self._keep(fills, began)
        finally:
            self._counted_at = self._clock()
            # A first look may have opened the store, and on a busy machine few rows take long, too.
            most = _COST + _COST_OF_ROW * rows
            self._cost = 0.0 if new else min(most, self._counted_at - began)

    def judge(self, wanted: Mapping[str, int], *, strict: frozenset[str], joined: bool) -> Verdict:
        """What becomes of so many jobs for these queues, which count from now on. QueueFull when they are refused.

        `joined`: in a transaction of the caller, where only those of `strict` queues are refused and none waits.
        """
        if self._admitted:
            wanted = self._not_admitted(wanted)
        over = self._over(wanted)
        for one in over:
            if one.queue in strict or (one.refuses and not joined):
                self._told.add(one, "refused", wanted[one.queue])
                with self._lock:
                    self._refused[one.queue] = self._refused.get(one.queue, 0) + max(1, wanted[one.queue])
                raise QueueFull(one.text, queue=one.queue, retry_after=one.retry_after)
        self.brought(wanted)
        if not over:
            return FREE
        pause = _NO_TIME if joined else max(one.pause for one in over)
        for one in over:
            self._told.add(one, "slowed" if pause else "stored", wanted[one.queue])
        return Verdict(frozenset(one.queue for one in over), pause.total_seconds())

    def brought(self, jobs: Mapping[str, int]) -> None:
        """So many jobs for these queues are stored, or are about to be."""
        with self._lock:
            for queue, more in jobs.items():
                sample = self._samples.get(queue)
                if sample is not None:
                    sample.arrived += more

    @property
    def has_news(self) -> bool:
        """Whether `note` has something to do."""
        return bool(self._refused) and self._clock() - self._noted_at >= _AGE

    def note(self) -> None:
        """Let the store count what was refused, at most once a second; blocks. For whoever looks at the queue: nothing
        depends on it, and a store that does not take it hears of it later."""
        with self._lock:
            if not self.has_news:
                return
            self._noted_at = self._clock()
            refused, self._refused = self._refused, {}
        try:
            self._store().turned_away(refused)
        except (DulyError, Transient, DataFault):
            with self._lock:
                for queue, jobs in refused.items():
                    self._refused[queue] = self._refused.get(queue, 0) + jobs

    def admit(self, queue: str) -> float:
        """0: there is room for one more job, which is kept for the next that comes, until `leave`; blocks for a look.
        Else the seconds after which to ask again."""
        if self.idle:
            return 0.0
        wanted = {queue: 1}
        if self.wants_look(wanted):
            self.look(wanted)
        over = self._over(wanted)
        if over:
            self._told.add(over[0], "slowed", 1)
            return min(_LONGEST_REST, max(_SHORTEST_REST, over[0].makes_room.total_seconds()))
        self.brought(wanted)
        with self._lock:
            self._admitted[queue] = self._admitted.get(queue, 0) + 1
        return 0.0

    def leave(self, queue: str) -> None:
        """The place that `admit` kept is needed no longer, if nothing has come."""
        with self._lock:
            self._take(queue, 1)

    def _not_admitted(self, wanted: Mapping[str, int]) -> Mapping[str, int]:
        """What is left to look at: the rest has its places, and was counted."""
        with self._lock:
            left = {queue: more - self._take(queue, more) for queue, more in wanted.items()}
        return {queue: more for queue, more in left.items() if more or not wanted[queue]}

    def _take(self, queue: str, most: int) -> int:
        kept = self._admitted.pop(queue, 0)
        taken = min(kept, most)
        if kept > taken:
            self._admitted[queue] = kept - taken
        return taken

    def _over(self, wanted: Mapping[str, int]) -> list[Over]:
        found = []
        now = self._clock()
        for queue, more in wanted.items():
            if self._floor is not None and self._importance(queue) > self._floor.importance:
                found.append(self._gives_way(queue, self._floor))
                continue
            bound, sample = self._bounds.get(queue), self._samples.get(queue)
            if bound is None or sample is None or not more:
                continue
            fill = sample.fill.since(sample.arrived, now - sample.at)
            why = overfull(bound, fill, more)
            if why is not None:
                found.append(_over(queue, why, bound, fill, more))
        return found

    def _gives_way(self, queue: str, floor: _Floor) -> Over:
        text = spent_text(queue, floor.why, floor.retry_after)
        return Over(queue, floor.why, floor.retry_after, True, _NO_TIME, floor.retry_after, text)

    def _importance(self, queue: str) -> int:
        declared = self._registry.queues.get(queue)
        return IMPORTANCE if declared is None else declared.importance

    def _keep(self, fills: Mapping[str, Fill], at: float) -> None:
        with self._lock:
            for queue, fill in fills.items():
                before = self._samples.get(queue)
                # The store may answer with the count that it gave last time.
                if before is None or fill.at is None or before.fill.at != fill.at:
                    self._samples[queue] = _Sample(
                        self._bounds[queue], fill, at, self._admitted.get(queue, 0)
                    )


class _Told:
    """What producers met, told at once, then at most once a minute for each queue and answer."""

    def __init__(self, tell: Callable[[QueueWasFull], None], clock: Callable[[], float]) -> None:
        self._tell = tell
        self._clock = clock
        self._lock = threading.Lock()
        self._untold: dict[tuple[str, str], int] = {}
        self._told_at: dict[tuple[str, str], float] = {}

    def add(self, over: Over, answer: str, jobs: int) -> None:
        key, now = (over.queue, answer), self._clock()
        with self._lock:
            self._untold[key] = self._untold.get(key, 0) + jobs
            if now - self._told_at.get(key, -_TOLD_EVERY) < _TOLD_EVERY:
                return
            self._told_at[key] = now
            jobs = self._untold.pop(key)
        self._tell(QueueWasFull(over.queue, answer, jobs, over.why))


def press(client: Client, jobs: Sequence[NewJob], strict: frozenset[str], *, joined: bool) -> Verdict:
    """What becomes of these jobs: see `Pressing.judge`. Blocks for a look once a second."""
    pressing, wanted = client.pressing, counted(jobs)
    if pressing.wants_look(wanted):
        if joined:
            _look_beside(client, wanted)
        else:
            client.call(pressing.look, wanted)
    try:
        return pressing.judge(wanted, strict=strict, joined=joined)
    except QueueFull:
        if not joined:
            pressing.note()
        raise


async def apress(client: Client, jobs: Sequence[NewJob], strict: frozenset[str], *, joined: bool) -> Verdict:
    """As `press`, without blocking the loop."""
    pressing, wanted = client.pressing, counted(jobs)
    if pressing.wants_look(wanted):
        if joined:
            await _alook_beside(client, wanted)
        else:
            await client.acall(pressing.look, wanted)
    try:
        return pressing.judge(wanted, strict=strict, joined=joined)
    except QueueFull:
        if not joined and pressing.has_news:
            await client.acall(pressing.note)
        raise


def counted(jobs: Sequence[NewJob]) -> dict[str, int]:
    """How many of them are due at once, by queue; 0 where all are due later."""
    wanted = dict(Counter(map(_QUEUE, jobs)))
    if set(map(_DELAY, jobs)) == _NONE == set(map(_RUN_AT, jobs)):
        return wanted
    now = datetime.now(UTC)
    for job in jobs:
        if (job.delay is not None and job.delay > _NO_TIME) or (job.run_at is not None and job.run_at > now):
            wanted[job.queue] -= 1
    return wanted


def _look_beside(client: Client, wanted: Mapping[str, int]) -> None:
    """A look on a thread of the client: the caller's transaction may be what it waits for, and must not wait for it."""
    with suppress(NotYet, DulyError, Transient, DataFault):
        # What is wrong with the store, the enqueue itself meets.
        _beside(client, wanted).result(_PATIENCE)


async def _alook_beside(client: Client, wanted: Mapping[str, int]) -> None:
    await asyncio.wait([asyncio.wrap_future(_beside(client, wanted))], timeout=_PATIENCE)


def _beside(client: Client, wanted: Mapping[str, int]) -> Future[None]:
    # Opened here, as the enqueue itself would: a first look that opens it would keep the enqueue waiting.
    with suppress(DulyError, Transient, DataFault):
        _ = client.store
    future = client.beside_caller(client.pressing.look, wanted)
    future.add_done_callback(lambda done: done.cancelled() or done.exception())
    return future


def _over(queue: str, why: str, bound: Bound, fill: Fill, more: int) -> Over:
    after = wait(bound, fill, more)
    pause = pace(bound, fill, more) if bound.when_full == "slow" else _NO_TIME
    text = full_text(queue, why, after)
    return Over(queue, why, after, bound.when_full == "reject", pause, room(bound, fill), text)
