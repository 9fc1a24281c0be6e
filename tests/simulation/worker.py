"""One worker process: the real pump, fetch, reports, fence, heart and duties, stepped by the timeline. Its handlers are
only times and endings drawn from the seed; its death is as sudden as SIGKILL.
"""

import random
from asyncio import CancelledError
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Protocol, cast

from duly.core.endings import Dead, Retry, Skip, Snooze
from duly.core.job import Incarnation, NewJob, Progress, WorkerInfo
from duly.stores.faults import Transient
from duly.stores.protocol import LeaseStore, OperatorStore, Store, UpkeepStore
from duly.telemetry.hub import Hub
from duly.worker.attempt import Attempt, Phase, Why
from duly.worker.board import Board
from duly.worker.card import Card
from duly.worker.duties import Duty
from duly.worker.fetch import Fetch
from duly.worker.floor import Floor, Slot
from duly.worker.heartbeat import BoardPatient, Fence, Heart
from duly.worker.options import Plan
from duly.worker.promote import Promote
from duly.worker.pump import Pump
from duly.worker.reports import Reports
from duly.worker.rescue import Rescue
from duly.worker.run import raised, returned
from duly.worker.schedules import Schedules
from duly.worker.suspects import Suspects
from duly.worker.sweep import Parked, Sweep
from tests.simulation.timeline import Act, Timeline
from tests.simulation.wire import Wire

WATCH_EVERY = 0.5
LONGEST_PUMP_PAUSE = 1.0


class Surroundings(Protocol):
    """What a process can do to the world."""

    timeline: Timeline
    draw: random.Random
    plan: Plan
    cards: dict[str, Card]
    scheduled: bool

    def began(self, process: "Process", attempt: Attempt) -> None:
        """A handler begins."""

    def ended(self, process: "Process", attempt: Attempt) -> None:
        """A handler is over, stored or not."""

    def child_of(self, process: "Process", attempt: Attempt) -> None:
        """The handler enqueues something of its own."""


class Process:
    """From its registration to its end."""

    def __init__(self, world: Surroundings, wire: Wire, number: int) -> None:
        self.world = world
        self.wire = wire
        self.number = number
        self.alive = True
        self.frozen = False
        self.unaware = False
        """It has been frozen and has not looked at its lease and its clocks since."""
        self.fenced = False
        self._deferred: list[tuple[str, Act]] = []
        plan, clock, hub = world.plan, world.timeline.clock, Hub()
        registered_at = clock()
        self.incarnation: Incarnation = wire.leases.register(_info(plan, world.cards, number))
        self.board = Board.create(plan.threads + 8)
        self.board.tick(1, registered_at)
        store = cast(Store, wire)
        self.fence = Fence(plan.lease, plan.heartbeat, self.board, registered_at)
        self.floor = Floor(self.board, self.fence, [], clock)
        self.reports = Reports(store, self.incarnation, self.fence, plan.heartbeat, clock)
        self.suspects = Suspects("alone", plan.heartbeat, _nothing, lambda: False)
        self.fetch = Fetch(plan, world.cards, plan.poll_every(rings=False))
        self.pump = Pump(store, self.incarnation, self.floor, self.fetch, self.reports, self.suspects, hub)
        self.heart = Heart(
            cast(LeaseStore, wire.leases), cast(OperatorStore, wire.operator), plan.heartbeat, hub, clock
        )
        self.heart.add(self.incarnation, BoardPatient(self.board))
        self.reports.cards = self.pump.cards = world.cards
        self.reports.stop = self._stop
        self.pump.deliver = self._deliver
        upkeep = cast(UpkeepStore, wire.upkeep)
        self.duties: list[Duty] = [
            Promote(upkeep, plan.poll_every(rings=False), self.pump.ring),
            Rescue(
                cast(LeaseStore, wire.leases), self.incarnation, plan.heartbeat, plan.poison, self._swept, hub
            ),
            Sweep(upkeep, plan.poison, plan.lateness(), 1.0, self._swept, hub),
            Parked(upkeep, world.cards, 5.0, self._parked),
        ]
        if world.scheduled:
            self.duties.append(Schedules(store, {}, hub, clock))
        self._later(0.0, "beat", self._beat)
        self._later(0.0, "pump", self._pump)
        self._later(WATCH_EVERY, "watch", self._watch)
        for duty in self.duties:
            self._later(world.draw.uniform(0, 2), duty.name, self._duty(duty))

    def __str__(self) -> str:
        return f"process {self.number} ({self.incarnation})"

    def die(self) -> list[tuple[int, int]]:
        """At once; what its board shows as started, for a supervisor that lives on."""
        self.alive = False
        started = [(record.id, record.run) for record in self.board.started()]
        self.board.close()
        for attempt in self.pump.held.all():
            self.world.ended(self, attempt)
        return started

    def freeze(self) -> None:
        self.frozen = self.unaware = True

    def thaw(self) -> None:
        """SIGCONT: what was due meanwhile comes in any order."""
        self.frozen = False
        self.world.timeline.note(f"{self} goes on")
        deferred, self._deferred = self._deferred, []
        for name, act in deferred:
            self._later(0.0, name, act)

    @property
    def idle(self) -> bool:
        return not len(self.pump.held)

    def running(self) -> list[Attempt]:
        return [attempt for attempt in self.pump.held.all() if attempt.phase is Phase.running]

    def _later(self, wait: float, name: str, act: Act) -> None:
        jitter = self.world.draw.uniform(0, 0.05)
        self.world.timeline.after(wait + jitter, f"{self}: {name}", lambda: self._do(name, act))

    def _do(self, name: str, act: Act) -> None:
        if not self.alive:
            return
        if self.frozen:
            self._deferred.append((name, act))
            return
        act()

    def _beat(self) -> None:
        self._later(self.heart.beat(), "beat", self._beat)

    def _pump(self) -> None:
        pause = self.pump.round()
        self._later(min(pause, LONGEST_PUMP_PAUSE), "pump", self._pump)

    def _duty(self, duty: Duty) -> Callable[[], None]:
        def run() -> None:
            try:
                pause = duty.run(self.world.timeline.now)
            except Transient:
                duty.failed()
                pause = 1.0
            self._later(pause, duty.name, run)

        return run

    def _watch(self) -> None:
        """As the real watch: the lease first, then every attempt's clock. Its process ends with its lease."""
        now = self.world.timeline.now
        self.unaware = False
        self.board.tick(int(now), now)
        if self.fenced and not self.running():
            self.world.timeline.note(f"{self} has lost its lease and ends")
            self.die()
            return
        if not self.fence.refresh(now):
            self.fenced = True
            self.pump.claiming = False
            for attempt in self.pump.held.all():
                self._stop(attempt, "lease", "the lease could not be renewed in time")
        for attempt in self.running():
            if attempt.why is None and now >= attempt.deadline_at:
                self._stop(attempt, "timeout", attempt.timeout_text())
        self._later(WATCH_EVERY, "watch", self._watch)

    def _deliver(self, attempts: Sequence[Attempt]) -> None:
        for attempt in attempts:
            wait = self.world.draw.choice([0.0, 0.1, 1.0])
            self._later(wait, f"start {attempt.key}", self._start(attempt))

    def _start(self, attempt: Attempt) -> Callable[[], None]:
        def run() -> None:
            slot = Slot(0)
            if attempt.phase is not Phase.waiting:
                return
            if not self.floor.begin(attempt, slot):
                self.floor.on_end(attempt)
                return
            self.world.began(self, attempt)
            spent = self.world.draw.choice([0.05, 0.5, 2.0, 4.0, 10.0])
            self._later(spent, f"finish {attempt.key}", self._finish(attempt, slot))

        return run

    def _finish(self, attempt: Attempt, slot: Slot) -> Callable[[], None]:
        def run() -> None:
            if attempt.phase is not Phase.running:
                return
            now, draw = self.world.timeline.now, self.world.draw
            if attempt.why is not None:
                ended = raised(attempt, CancelledError(), now)
            else:
                if draw.random() < 0.15:
                    self.world.child_of(self, attempt)
                fault = draw.choice(
                    [
                        None,
                        None,
                        None,
                        ValueError("no"),
                        Snooze("2s"),
                        Skip("no need"),
                        Dead("never"),
                        Retry("1s"),
                    ]
                )
                ended = returned(attempt, None, now) if fault is None else raised(attempt, fault, now)
            self.world.ended(self, attempt)
            self.floor.finish(attempt, ended, slot)

        return run

    def _stop(self, attempt: Attempt, why: Why, reason: str) -> None:
        if not attempt.ask(why, reason, self.world.timeline.now):
            return
        slot = attempt.slot
        if attempt.phase is Phase.running and isinstance(slot, Slot):
            self._later(0.0, f"cancelled {attempt.key}", self._finish(attempt, slot))

    def report_progress(self) -> None:
        for attempt in self.running():
            self.reports.note_progress(attempt, Progress(attempt.job.id, attempt.job.run, 1))

    def _swept(self) -> None:
        self.suspects.look()
        self.pump.ring()

    def _parked(self, tasks: tuple[str, ...]) -> None:
        self.fetch.unparked = tasks


def _info(plan: Plan, cards: dict[str, Card], number: int) -> WorkerInfo:
    return WorkerInfo(
        host=f"host-{number}",
        pid=number,
        supervisor=f"host-{number}:1",
        queues=tuple(plan.queues),
        tasks={name: timedelta(seconds=card.timeout) for name, card in cards.items()},
        lease=timedelta(seconds=plan.lease),
        heartbeat=timedelta(seconds=plan.heartbeat),
        slots=plan.threads,
        version="1",
    )


def _nothing() -> None:
    pass


__all__ = ["NewJob", "Process", "Surroundings"]
