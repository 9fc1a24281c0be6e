"""The engine: one incarnation's parts in one process, put together; a worker process and an embedded worker share it.

The lease is renewed elsewhere: by a supervisor, or by an embedded worker's own heart.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from duly.alerts.watch import AlertWatch
from duly.client.settings import resolve
from duly.core.job import Incarnation
from duly.stores.faults import Transient
from duly.stores.protocol import Listener
from duly.telemetry.events import HandlerSaid, QueuesUnwatched
from duly.telemetry.hub import Hub
from duly.worker.attempt import Attempt, must_be_read
from duly.worker.batches import Batches
from duly.worker.blobs import Blobs
from duly.worker.board import Board
from duly.worker.budget import StoreBudget
from duly.worker.card import cards_of
from duly.worker.crew import LONGEST_CUT, Crew, Surroundings
from duly.worker.dead_breaker import DeadBreakers
from duly.worker.duties import Duties, Duty
from duly.worker.fetch import Fetch
from duly.worker.floor import Floor, Group
from duly.worker.heartbeat import Fence
from duly.worker.idle import IdleCheck
from duly.worker.isolated import IsolatedGroup, Isolation
from duly.worker.lateness import Lateness
from duly.worker.loops import LoopGroup
from duly.worker.messages import Prepare
from duly.worker.operations import Operations
from duly.worker.options import PREFETCH, Plan, WorkerOptions, usable_cores
from duly.worker.payloads import Payloads
from duly.worker.process import resident
from duly.worker.promote import Promote
from duly.worker.pump import Pump
from duly.worker.reports import Reports
from duly.worker.rescue import Rescue
from duly.worker.retention import Announce, Retention
from duly.worker.run import blocking
from duly.worker.schedules import Schedules
from duly.worker.shutdown import Shutdown, Stage
from duly.worker.source import AppLike
from duly.worker.suspects import Mode, Suspects
from duly.worker.sweep import Parked, Sweep
from duly.worker.threads import ThreadGroup
from duly.worker.usage import Observe
from duly.worker.watch import Watch

_SWEEP_EVERY: Final = 1.0
_PARKED_EVERY: Final = 5.0
_MEMORY_EVERY: Final = 1.0
_STANDS_STILL: Final = 1.0
_LINGER: Final = 5.0
"""A quarantine process waits this long for the next suspect before it ends."""


def records_for(options: WorkerOptions) -> int:
    """How many attempts the board of such a process must be able to show; a few too many cost nothing."""
    settings = resolve({})
    slots = (options.concurrency or settings.concurrency) + (options.threads or settings.threads)
    return slots + (options.isolated or settings.isolated or usable_cores()) + 2 * PREFETCH


class Engine:
    """One incarnation at work."""

    def __init__(
        self,
        app: AppLike,
        plan: Plan,
        incarnation: Incarnation,
        board: Board,
        registered_at: float,
        loop: asyncio.AbstractEventLoop,
        mode: Mode,
        prepare: Prepare,
        surroundings: Surroundings,
        hub: Hub,
    ) -> None:
        self.plan = plan
        self.store = store = app.store
        self.incarnation = incarnation
        self._board = board
        self._surroundings = surroundings
        cards = cards_of(app.tasks)
        fence = Fence(plan.lease, plan.heartbeat, board, registered_at)
        poll = plan.poll_every(store.capabilities.rings)
        self.floor = Floor(board, fence, app.around_functions)
        self.reports = reports = Reports(store, incarnation, fence, plan.heartbeat)
        self.suspects = Suspects(
            mode, plan.heartbeat, surroundings.suspects_wait, lambda: board.pulse().quarantine
        )
        self.fetch = Fetch(plan, cards, poll, app.queues)
        self.pump = Pump(store, incarnation, self.floor, self.fetch, self.reports, self.suspects, hub)
        self.loops = LoopGroup(self.floor, loop, plan.concurrency)
        self.threads = ThreadGroup(self.floor, plan.threads)
        self.isolated = IsolatedGroup(self.floor, plan.isolated, _isolation(plan, prepare), reports.steps)
        self.groups: tuple[Group, ...] = (self.loops, self.threads, self.isolated)
        self.payloads = Payloads(store, app.settings.max_payload)
        self.crew = Crew(
            incarnation, plan, self.floor, self.groups, self.payloads,
            self.pump, self.reports, surroundings, hub,
        )  # fmt: skip
        self.shutdown = Shutdown(self.crew, self.crew.cut, hub)
        self.promote = Promote(store.upkeep, poll, self.pump.ring, hub)
        self.batches = Batches(store.batches, self.pump.ring, self._soon)
        self.observe = Observe(self.reports.usage, store.control, hub, self._soon)
        self._idle_check = IdleCheck(self.pump, self.promote, self.suspects, self.batches)
        self.duties = Duties(self._duties(app, hub), hub)
        # On a thread of its own: a tick's source is a user's code and may take its time.
        self.schedules = Duties(self._scheduling(app, hub), hub)
        # And this one waits for other people's servers.
        self.alerts = Duties(self._alerting(app), hub)
        self.watch = Watch(plan, self.floor, self.groups, self.payloads, self.crew, hub)
        self.loop_thread = 0
        self._listener: Listener | None = None
        self._draining = False
        self._memory_at = 0.0
        self._idle_since: float | None = None
        self._over = False
        self._connect()
        self._warn(app, hub)

    def start(self, loop_thread: int) -> None:
        """Begin to claim. `loop_thread` is the identity of the thread that runs the loop, now or soon."""
        self.loop_thread = loop_thread
        for group in self.groups:
            group.start()
        self._listener = self.store.listen(self.pump.ring)
        self.pump.on_idle, self.pump.on_found = self._listener.idle, self._listener.found
        self.pump.start()
        self.duties.start()
        self.schedules.start()
        self.alerts.start()
        self.watch.start(loop_thread)

    def finish(self) -> None:
        """After a shutdown: end our threads. Blocks for seconds at most; does not retire the incarnation."""
        self.watch.stop()
        self.alerts.stop()
        self.schedules.stop()
        self.duties.stop()
        with suppress(Transient):
            # What the last handlers saw of their resources.
            self.observe.run(0.0)
        self.pump.stop()
        for group in self.groups:
            group.close()
        self.isolated.join(self.plan.patience)
        self.payloads.close()
        if self._listener is not None:
            self._listener.close()

    def ask_to_stop(self, reason: str, grace: float) -> None:
        """Begin a shutdown, or make one that has begun quicker. Called from any thread."""
        self.shutdown.ask(reason, grace, self.floor.clock())

    def is_idle(self) -> bool:
        """Nothing is held, due, ready or suspect. Ask again and again: it looks for what it does not know yet."""
        return self._idle_check.done()

    def _connect(self) -> None:
        self.reports.cards = self.pump.cards = self.fetch.cards
        self.reports.stop = self.crew.stop
        self.reports.nudge = self.pump.nudge
        self.pump.deliver = self._deliver
        self.pump.on_forget = self.payloads.release
        self.pump.on_batch_end = self.batches.soon
        self.payloads.deliver = self._distribute
        self.payloads.on_missing = self.crew.hand_back
        self.fetch.loop_turns = self._loop_turns
        self.floor.on_lapse = self.pump.nudge
        self.floor.on_follow = self._follow
        self.watch.parts = {
            "pump": self.pump, "event loop slots": self.loops, "threads": self.threads, "isolated slots": self.isolated,
            "duties": self.duties, "schedules": self.schedules, "alerts": self.alerts, "payload reader": self.payloads,
        }  # fmt: skip
        self.watch.hooks = [
            self._step_shutdown,
            self.crew.step_fence,
            self._look_at_wear,
            self._look_at_idleness,
        ]

    def _deliver(self, attempts: Sequence[Attempt]) -> None:
        """From the pump: large arguments, and what earlier runs have left, are read first."""
        unread = [attempt for attempt in attempts if must_be_read(attempt)]
        if unread:
            self.payloads.push(unread)
            attempts = [attempt for attempt in attempts if not must_be_read(attempt)]
        self._distribute(attempts)

    def _follow(self, attempt: Attempt) -> None:
        # No longer behind another one: from now on it waits for a slot of its own.
        attempt.wait_from = self.floor.clock()
        self._deliver([attempt])

    def _distribute(self, attempts: Sequence[Attempt]) -> None:
        mine: list[list[Attempt]] = [[] for _ in self.groups]
        for attempt in attempts:
            mine[attempt.card.kind].append(attempt)
        for group in self.groups:
            if mine[group.kind]:
                group.push(mine[group.kind])

    def _step_shutdown(self, now: float) -> None:
        if self.shutdown.stage is Stage.working or self._over or not self.shutdown.step(now):
            return
        self._over = True
        if self.crew.running():
            self.crew.leave_behind(self.shutdown.reason)
        else:
            self._surroundings.finished(self.shutdown.reason)

    def _look_at_wear(self, now: float) -> None:
        if self._draining or self.shutdown.stage is not Stage.working:
            return
        plan = self.plan
        reason = None
        if plan.max_jobs is not None and self.pump.ran >= plan.max_jobs:
            reason = f"it ran {self.pump.ran} jobs"
        elif plan.max_memory is not None and now >= self._memory_at:
            self._memory_at = now + _MEMORY_EVERY
            used = resident(0)
            if used > plan.max_memory:
                reason = f"it uses {used // 2**20} MiB"
        if self._board.pulse().draining:
            reason = "an operator asked for it"
        if reason is not None:
            self._draining = True
            self._surroundings.wants_to_drain(reason, urgent=False)

    def _look_at_idleness(self, now: float) -> None:
        if not (self.plan.until_idle or self.plan.quarantine) or self.shutdown.stage is not Stage.working:
            return
        if not self.is_idle():
            self._idle_since = None
            return
        if self._idle_since is None:
            self._idle_since = now
        if self.plan.until_idle or now - self._idle_since >= _LINGER:
            self.shutdown.ask("idle", 0.0, now)

    def _duties(self, app: AppLike, hub: Hub) -> list[Duty]:
        plan, upkeep = self.plan, self.store.upkeep
        if plan.quarantine:
            return [self.promote, self.batches]
        return [
            self.promote,
            self.batches,
            Rescue(self.store.leases, self.incarnation, plan.heartbeat, plan.poison, self._swept, hub),
            Sweep(
                upkeep, plan.poison, plan.lateness(), _SWEEP_EVERY, self._swept, hub, self._budget(app, hub)
            ),
            Parked(upkeep, self.fetch.cards, _PARKED_EVERY, self._parked),
            Lateness(self.store.pressing, hub),
            Retention(upkeep, app.queues, plan.keep, plan.keep_dead),
            Announce(upkeep, app.queues, plan.keep_dead, hub),
            Operations(self.store),
            *([self.observe] if self._watches(app) else []),
            *self._dead_breakers(app, hub),
            *([] if app.settings.blobs is None else [Blobs(app.settings.blobs, self.store)]),
        ]

    def _budget(self, app: AppLike, hub: Hub) -> StoreBudget | None:
        budget = app.settings.budget
        return (
            StoreBudget(self.store, budget, app.queues, self.plan.keep, self.plan.keep_dead, hub)
            if budget
            else None
        )

    def _dead_breakers(self, app: AppLike, hub: Hub) -> list[Duty]:
        declared = app.queues
        policies = {
            name: policy
            for name in self.plan.queues
            if name in declared and (policy := declared[name].dead_breaker) is not None
        }
        return [DeadBreakers(self.store, policies, hub)] if policies else []

    @staticmethod
    def _watches(app: AppLike) -> bool:
        return any(resource.breaker is not None for resource in app.client.registry.resources.values())

    def _scheduling(self, app: AppLike, hub: Hub) -> list[Duty]:
        if self.plan.quarantine:
            return []
        client = app.client
        return [Schedules(self.store, client.registry.schedules, hub, pressing=client.pressing)]

    def _alerting(self, app: AppLike) -> list[Duty]:
        if self.plan.quarantine or not self.store.capabilities.shared_by_processes:
            return []
        return [AlertWatch(app.client, stopping=lambda: self.shutdown.stage is not Stage.working)]

    def _loop_turns(self) -> bool:
        return self.floor.clock() - self._board.pulse().ticked_at < _STANDS_STILL

    def _warn(self, app: AppLike, hub: Hub) -> None:
        left_out = set(app.around_functions) - set(blocking(tuple(app.around_functions)))
        plain = [card.name for card in self.fetch.cards.values() if not card.is_async]
        for around in left_out if plain else ():
            name = getattr(around, "__name__", repr(around))
            text = f"is async and does not surround `def` handlers ({', '.join(sorted(set(plain))[:5])})"
            hub.emit(HandlerSaid(f"@around {name}", text))
        unwatched = app.client.registry.unwatched(watched=bool(app.settings.alerts))
        if unwatched and not self.plan.quarantine:
            hub.emit(QueuesUnwatched(unwatched))

    def _soon(self, duty: str) -> None:
        self.duties.soon(duty)

    def _swept(self) -> None:
        # What came back with a loss behind it is a suspect.
        self.suspects.look()
        self.pump.ring()

    def _parked(self, tasks: tuple[str, ...]) -> None:
        self.fetch.unparked = tasks
        if tasks:
            self.pump.ring()


def _isolation(plan: Plan, prepare: Prepare) -> Isolation:
    cut = min(plan.patience, LONGEST_CUT)
    return Isolation(prepare, plan.poison, plan.patience, cut, plan.max_jobs, plan.max_memory)
