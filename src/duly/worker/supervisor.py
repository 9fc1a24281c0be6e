"""The supervisor: starts worker processes, beats for them, replaces them, settles what they leave; runs no user code.

One main thread for processes and signals, one for heartbeats, one for settling. A dead child never ends it.
"""

import os
import socket
import sys
from typing import Final, Protocol

from duly.client.settings import resolve
from duly.core.errors import DulyError, MigrationNeeded, StoreUnreachable, UsageError
from duly.core.plan import Processes
from duly.stores.open import open_store
from duly.stores.protocol import Store
from duly.telemetry.events import ChildDied, ChildEnded, ChildStarted, StopAsked, WorkerStarted
from duly.telemetry.hub import Hub
from duly.telemetry.logs import Log
from duly.telemetry.totals import Counted
from duly.worker.board import boottime
from duly.worker.engine import records_for
from duly.worker.family import ChildProcess, Estate
from duly.worker.guard import Guard
from duly.worker.heartbeat import BoardPatient, Heart
from duly.worker.messages import Registered, Work
from duly.worker.options import WorkerOptions, usable_cores
from duly.worker.restarts import Restarts
from duly.worker.scaling import Scaler
from duly.worker.settler import Settler
from duly.worker.shutdown import WRITE
from duly.worker.signals import Signals
from duly.worker.vitals import HealthPlace, Vitals

_LOOK: Final = 0.1
_AFTER_GRACE: Final = WRITE + 8.0
"""A child that stops has this long after its grace to write its last ends and go."""
_PLANNED: Final = 24 * 3600.0
"""A planned replacement waits for running jobs as long as any may take."""
_SETTLE_AT_END: Final = 15.0


class Opener(Protocol):
    """Opens the store on which the supervisor beats and settles."""

    def __call__(self, url: str, *, schema: str, pool: int, notify: bool) -> Store: ...


def run(
    app_reference: str,
    options: WorkerOptions,
    health: HealthPlace | None = None,
    *,
    opener: Opener = open_store,
    restarts: Restarts | None = None,
) -> int:
    """Work on the App that `MODULE[:NAME]` means, until a signal or, with `until_idle`, until nothing is left.

    The exit code: 0 after a signal or when idle. UsageError, MigrationNeeded or StoreUnreachable when no worker
    process can start; once one has, only a signal ends it. With `health` it listens there for probes and metrics.
    `opener` and `restarts` are for those who want to see it suffer.
    """
    if options.until_idle and options.processes_most is not None:
        raise UsageError("a worker that ends when idle has nothing to scale; give --processes one number")
    supervisor = Supervisor(app_reference, options, health, opener, restarts)
    try:
        return supervisor.run()
    finally:
        supervisor.close()


class Supervisor:
    """One `duly worker`."""

    def __init__(
        self,
        app_reference: str,
        options: WorkerOptions,
        health: HealthPlace | None = None,
        opener: Opener = open_store,
        restarts: Restarts | None = None,
    ) -> None:
        settings = resolve({})
        self._opener = opener
        self._app = app_reference
        self._options = options
        # What was said goes before the setting as a whole.
        said = (
            Processes(options.processes, options.processes_most) if options.processes else settings.processes
        )
        self._target = said.least
        self._most = None if options.until_idle else said.most
        self._name = f"{socket.gethostname()}:{os.getpid()}"
        self._hub = Hub()
        self._log = Log(settings.log, settings.log_level)
        self._hub.listen(self._log)
        self._vitals = (
            None if health is None else Vitals(health, settings.health_token or (), self._name, self._hub)
        )
        self._children: list[ChildProcess] = []
        self._restarts = restarts or Restarts()
        self._signals = Signals()
        self._guard = Guard(self._hub)
        self._store: Store | None = None
        self._heart: Heart | None = None
        self._settler: Settler | None = None
        self._scaler: Scaler | None = None
        self._first: Registered | None = None
        self._queues_for_a_lock = False
        self._heard_signals = 0
        self._stopping = False
        self._quarantine_wanted = False
        self._idle_children = 0
        self._look_again = False
        self._problem: DulyError | None = None

    def run(self) -> int:
        """Until it is over; the exit code."""
        self._signals.install()
        while not self._step(boottime()):
            self._signals.wait(_LOOK, [child.channel.fileno() for child in self._children])
        if self._problem is not None:
            raise self._problem
        return 0

    def close(self) -> None:
        """Whatever happened: leave no process behind and restore the signals."""
        for child in self._children:
            child.kill("its supervisor ended")
            child.close()
        if self._scaler is not None:
            self._scaler.stop()
        if self._settler is not None:
            self._settler.stop(_SETTLE_AT_END)
        if self._heart is not None:
            self._heart.stop()
        if self._store is not None:
            self._store.close()
        if self._vitals is not None:
            self._vitals.close()
        self._signals.restore()
        self._log.close()

    def _step(self, now: float) -> bool:
        """One look at everything. True when the supervisor's work is over."""
        self._obey_signals(now)
        if self._heart is not None and self._first is not None and self._queues_for_a_lock:
            self._heart.bridge(self._first.plan.lease)
        for child in list(self._children):
            self._look_at(child, now)
        if self._vitals is not None:
            self._vitals.look(self._children, now, stopping=self._stopping)
        if self._problem is not None:
            return True
        if self._stopping:
            return not self._children
        self._scale()
        self._replace_draining(now)
        self._start_missing(now)
        return self._is_idle()

    def _obey_signals(self, now: float) -> None:
        while self._heard_signals < len(self._signals.seen):
            name = self._signals.seen[self._heard_signals]
            self._heard_signals += 1
            grace = self._grace() if not self._stopping else 0.0
            self._hub.emit(StopAsked(name if not self._stopping else f"second {name}", grace))
            self._stopping = True
            for child in self._children:
                child.order_stop(name, grace, _AFTER_GRACE)

    def _grace(self) -> float:
        if self._first is not None:
            return self._first.plan.grace
        return 0.0

    def _look_at(self, child: ChildProcess, now: float) -> None:
        known, code = child.registered is not None, child.process.poll()
        child.hear()
        self._count(child)
        if child.registered is not None and not known:
            self._introduce(child, child.registered)
        if child.suspects_wait:
            child.suspects_wait = False
            self._quarantine_wanted = True
        if code is not None:
            self._bury(child, code, now)
        elif now >= child.kill_at:
            child.kill("it did not end in time after it was told to stop")
        elif child.registered is not None:
            self._guard.look_at(child, now)

    def _count(self, child: ChildProcess) -> None:
        if self._vitals is not None and child.counted:
            counted, child.counted = child.counted, Counted()
            self._vitals.totals.add(counted)

    def _introduce(self, child: ChildProcess, registered: Registered) -> None:
        plan = registered.plan
        if self._heart is None:
            self._first = registered
            most = self._most
            pool = 2 if most is None else 3
            self._store = store = self._opener(
                registered.url, schema=registered.schema, pool=pool, notify=False
            )
            self._heart = Heart(store.leases, store.operator, plan.heartbeat, self._hub)
            self._queues_for_a_lock = not store.capabilities.shared_by_machines
            self._heart.start()
            self._settler = Settler(store, self._hub, self._settled)
            if most is not None:
                self._scaler = Scaler(store, plan.queues, self._target, most, self._hub, self._options.tempo)
                self._scaler.start()
            where, queues, tasks = registered.store, registered.queues, registered.tasks
            slots = plan.describe_slots()
            self._hub.emit(WorkerStarted(where, queues, tasks, slots, usable_cores(), self._target))
        self._heart.add(registered.incarnation, BoardPatient(child.board))
        self._hub.emit(ChildStarted(child.pid, registered.incarnation, child.is_quarantine))

    def _bury(self, child: ChildProcess, code: int, now: float) -> None:
        """It is gone: settle what it held, and remember how it went."""
        child.hear()
        self._count(child)
        self._children.remove(child)
        reason = child.how_it_ended(code)
        estate = child.estate(reason)
        clean = child.left is not None and code == 0
        if child.refused is not None and self._first is None:
            self._problem = _problem(child)
        elif clean or child.stop_sent is not None:
            moved = 0 if estate is None else len(estate.ends)
            self._hub.emit(ChildEnded(child.pid, child.incarnation, reason, moved))
        else:
            ran = tuple(id for id, _ in estate.started) if estate is not None else ()
            self._hub.emit(ChildDied(child.pid, child.incarnation, reason, ran))
            self._restarts.died(now, now - child.started_at)
        self._after(child, clean=clean)
        if estate is not None and self._settler is not None:
            # Beaten for until it is settled: nobody else shall reap it meanwhile and call everything lost.
            self._settler.settle(estate)
        elif self._heart is not None and child.incarnation is not None:
            self._heart.remove(child.incarnation)
        child.close()

    def _after(self, child: ChildProcess, *, clean: bool) -> None:
        left = child.left
        if not clean or left is None or left.reason != "idle":
            return
        if child.is_quarantine:
            # What it ran may have brought work for the others.
            self._look_again = self._look_again or left.ran > 0
        elif self._options.until_idle:
            self._idle_children += 1

    def _settled(self, estate: Estate, done: bool) -> None:
        """From the settler's thread."""
        if self._heart is not None:
            self._heart.remove(estate.incarnation)
        if done and estate.started:
            self._quarantine_wanted = True

    def _scale(self) -> None:
        """Run as many as the scaler wants; those that are too many end when their jobs have."""
        if self._scaler is None:
            return
        self._target = self._scaler.wanted
        for child in self._staying()[self._target :]:
            child.surplus = True
            child.order_stop("fewer processes are needed", _PLANNED, _AFTER_GRACE)

    def _replace_draining(self, now: float) -> None:
        """One child at a time: first its replacement works, then it is told to stop."""
        if any(child.stop_sent is not None and not child.surplus for child in self._children):
            return
        asking = [child for child in self._children if child.drain is not None and not child.is_quarantine]
        asking.sort(key=lambda child: child.drain is None or not child.drain.urgent)
        if not asking or asking[0].drain is None:
            return
        child, drain = asking[0], asking[0].drain
        if drain.urgent:
            child.order_stop(drain.reason, self._grace(), _AFTER_GRACE)
        elif self._fit() > self._target - 1 or self._options.until_idle:
            child.order_stop(drain.reason, _PLANNED, _AFTER_GRACE)

    def _fit(self) -> int:
        """Children that work and are not about to go."""
        return sum(1 for child in self._staying() if child.registered is not None)

    def _staying(self) -> list[ChildProcess]:
        return [
            child
            for child in self._children
            if not child.is_quarantine and child.stop_sent is None and child.drain is None
        ]

    def _start_missing(self, now: float) -> None:
        quarantine = any(child.is_quarantine for child in self._children)
        if self._quarantine_wanted:
            self._quarantine_wanted = False
            if not quarantine:
                self._start(quarantine=True)
                quarantine = True
        for child in self._children:
            child.board.mark_quarantine(quarantine)
        if self._look_again and not self._children:
            self._look_again, self._idle_children = False, self._target - 1
        wanted = self._target - self._idle_children
        for _ in range(wanted - len(self._staying())):
            if not self._restarts.allowed(now):
                return
            self._start(quarantine=False)

    def _start(self, *, quarantine: bool) -> None:
        work = Work(
            app=self._app,
            options=self._options,
            path=tuple(sys.path),
            supervisor=self._name,
            records=records_for(self._options),
            quarantine=quarantine,
            may_wait=self._first is not None,
        )
        self._children.append(ChildProcess(work))

    def _is_idle(self) -> bool:
        if not self._options.until_idle or self._children or self._quarantine_wanted or self._look_again:
            return False
        settled = self._settler is None or self._settler.idle
        return settled and self._idle_children >= self._target


def _problem(child: ChildProcess) -> DulyError:
    refused = child.refused
    if refused is None:
        return DulyError("a worker process could not start")
    match refused.kind:
        case "unreachable":
            return StoreUnreachable(refused.text)
        case "migration":
            return MigrationNeeded(refused.text)
        case "usage":
            return UsageError(refused.text)
        case _:
            return DulyError(refused.text)
