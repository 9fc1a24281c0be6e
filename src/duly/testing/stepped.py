"""A worker without threads, moved on by hand: the real pump, claims and duties, one job at a time, in claim order.

It decides nothing about how an attempt ends; that is worker/run.py, as in every worker.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

import msgspec

from duly.core.errors import StoreUnreachable
from duly.core.job import Ended, Incarnation
from duly.telemetry.hub import Hub
from duly.telemetry.schedules import ScheduleFailed
from duly.testing.tap import Tapped
from duly.worker.attempt import Attempt, Why, must_be_read
from duly.worker.batches import Batches
from duly.worker.board import Board, boottime
from duly.worker.card import THREAD, Card
from duly.worker.duties import Duty
from duly.worker.fetch import Fetch
from duly.worker.floor import Floor, Slot
from duly.worker.heartbeat import Fence
from duly.worker.idle import IdleCheck
from duly.worker.operations import Operations
from duly.worker.options import WorkerOptions, plan
from duly.worker.promote import Promote
from duly.worker.pump import Pump
from duly.worker.registration import info_of
from duly.worker.reports import Reports
from duly.worker.retention import Retention
from duly.worker.schedules import Schedules
from duly.worker.source import AppLike
from duly.worker.suspects import Suspects
from duly.worker.sweep import Parked, Sweep

# However long a test stands in a debugger, its worker keeps its lease.
_LEASE: Final = timedelta(days=365)
_HEARTBEAT: Final = timedelta(days=30)
_LATENESS: Final = 60.0
# A duty that wants to go on sooner than this has more to do now.
_SOON: Final = 0.25
_MOST_REPEATS: Final = 1000


class SteppedWorker:
    """One incarnation. Every slot counts as a thread's and there is one, so that it claims one job at a time."""

    def __init__(self, app: AppLike, tapped: Tapped, queues: Sequence[str] | None) -> None:
        options = WorkerOptions(
            queues=None if queues is None else dict.fromkeys(queues),
            concurrency=1,
            threads=1,
            isolated=1,
            lease=_LEASE,
            heartbeat=_HEARTBEAT,
        )
        made = plan(options, app.settings, app.queues)
        self._tapped = tapped
        self._store = store = app.store
        self._poison = made.poison
        self._taken: deque[Attempt] = deque()
        self._looks = 0
        hub = Hub()
        cards = _cards(app)
        self._board = Board.create(4)
        registered_at = boottime()
        self.incarnation: Incarnation = store.leases.register(info_of(app, made, "a test"))
        self._board.renew(registered_at)
        fence = Fence(made.lease, made.heartbeat, self._board, registered_at)
        self._floor = Floor(self._board, fence, app.around_functions)
        self._floor.on_follow = self._taken.appendleft
        self.arounds = self._floor.arounds
        self._reports = Reports(store, self.incarnation, fence, made.heartbeat)
        self._suspects = Suspects("alone", made.heartbeat, _nothing, lambda: False)
        fetch = Fetch(made, cards, made.poll_every(store.capabilities.rings), app.queues)
        self._pump = Pump(store, self.incarnation, self._floor, fetch, self._reports, self._suspects, hub)
        self._pump.cards = self._reports.cards = cards
        self._pump.deliver = self._taken.extend
        self._reports.stop = _ask
        ring = self._pump.ring
        self._promote = Promote(store.upkeep, 1.0, ring)
        # Looked at in each round of the duties.
        self._batches = Batches(store.batches, ring, _nobody)
        self._pump.on_batch_end = self._batches.soon
        self._idle = IdleCheck(self._pump, self._promote, self._suspects, self._batches)
        self._fetch = fetch
        self._once: list[Duty] = [
            self._batches,
            self._promote,
            Sweep(store.upkeep, made.poison, _LATENESS, 1.0, ring, hub),
            Parked(store.upkeep, cards, 1.0, self._parked),
        ]
        self._until_done: list[Duty] = [
            Schedules(store, app.client.registry.schedules, hub, pressing=app.client.pressing),
            Operations(store),
            Retention(store.upkeep, app.queues, made.keep, made.keep_dead),
        ]
        self.troubles: list[str] = []
        """Schedules whose source failed."""
        hub.listen(self._hear)

    def look(self) -> Attempt | None:
        """Do what is due, claim, and return the next job to run; None when there is none yet. Ask `is_idle` then."""
        if not self._taken:
            self._do_duties()
            # The first round may look for jobs that must run alone, the second takes any.
            for _ in range(2):
                self._pump.ring()
                self._round()
                if self._taken:
                    break
        return self._taken.popleft() if self._taken else None

    def is_idle(self) -> bool:
        """Nothing is held, due, ready or suspect."""
        return self._idle.done()

    def begin(self, attempt: Attempt) -> Slot | None:
        """Its handler starts; None when it may not."""
        self._read(attempt)
        slot = Slot(0)
        if self._floor.begin(attempt, slot):
            return slot
        self._floor.on_end(attempt)
        return None

    def end(self, attempt: Attempt, ended: Ended, slot: Slot) -> None:
        """Store the end of an attempt, without claiming more."""
        self._floor.finish(attempt, ended, slot)
        if (follower := self._floor.follower(attempt, slot)) is not None:
            self._taken.appendleft(follower)
        self._pump.claiming = False
        try:
            self._round()
        finally:
            self._pump.claiming = True

    def retire(self) -> None:
        """A clean end."""
        self._store.leases.retire(self.incarnation)
        self._board.close()

    def die(self, reason: str) -> None:
        """As a supervisor settles a child that was killed: what had started is lost, the rest is handed back."""
        started = [
            (attempt.job.id, attempt.job.run) for attempt in self._pump.held.all() if attempt.started_at
        ]
        self._store.leases.disown(self.incarnation, started, reason, self._poison)
        self._board.close()

    def _do_duties(self) -> None:
        self._looks += 1
        self._board.tick(self._looks, boottime())
        for duty in self._until_done:
            for _ in range(_MOST_REPEATS):
                if duty.run(boottime()) > _SOON:
                    break
        for duty in self._once:
            duty.run(boottime())

    def _hear(self, event: object) -> None:
        if isinstance(event, ScheduleFailed):
            self.troubles.append(event.sentence())

    def _round(self) -> None:
        self._tapped.fault = None
        self._pump.round()
        fault = self._tapped.fault
        if fault is not None:
            raise StoreUnreachable(f"the store does not answer: {fault}") from fault

    def _read(self, attempt: Attempt) -> None:
        """What its claim has not brought along."""
        if not must_be_read(attempt):
            return
        job = attempt.job
        if job.args is None:
            found = self._store.jobs.arguments([job.id])
            attempt.job = msgspec.structs.replace(job, args=found[job.id])
        if job.has_steps:
            attempt.left = self._store.steps.steps(job.id)

    def _parked(self, tasks: tuple[str, ...]) -> None:
        self._fetch.unparked = tasks


def _cards(app: AppLike) -> dict[str, Card]:
    """Every task on one kind of slot, isolated ones too: a test's doubles are in this process."""
    cards: dict[str, Card] = {}
    for task in app.tasks.values():
        card = Card(task, THREAD)
        cards.update(dict.fromkeys((task.name, *task.aliases), card))
    return cards


def _ask(attempt: Attempt, why: Why, reason: str) -> None:
    attempt.ask(why, reason, boottime())


def _nobody(_: str) -> None:
    pass


def _nothing() -> None:
    pass
