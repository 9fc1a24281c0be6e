"""The entry of one worker process: import the App, enter its lifespan, register, run the engine, leave.

Holds user code; its supervisor beats for it, replaces it and settles what it leaves behind.
"""

import asyncio
import faulthandler
import gc
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.util import find_spec
from typing import Final

from duly.alerts.watch import sinks_of
from duly.client import logs
from duly.client.settings import without_password
from duly.core.errors import DulyError, MigrationNeeded, UsageError
from duly.core.job import Ended, Incarnation
from duly.stores.faults import Transient
from duly.stores.protocol import Store
from duly.telemetry.hub import Hub
from duly.telemetry.logs import Log
from duly.telemetry.totals import Totals
from duly.worker.board import Board, boottime
from duly.worker.channel import Channel
from duly.worker.engine import Engine
from duly.worker.lifespan import Lifespan
from duly.worker.messages import (
    Draining,
    Left,
    Orders,
    Prepare,
    Refused,
    Registered,
    Stop,
    SuspectsWait,
    Will,
    Work,
)
from duly.worker.options import Plan, plan
from duly.worker.process import die_with
from duly.worker.registration import declare, info_of
from duly.worker.source import AppLike, load_app
from duly.worker.suspects import Mode

_COUNT_EVERY: Final = 1.0
_LEAVING: Final = 10.0
_COLLECT_AFTER: Final = 20_000
_SWITCH_AFTER: Final = 0.001
_FIRST_PAUSE: Final = 0.2
_LONGEST_PAUSE: Final = 5.0


class Child:
    """One worker process. Also the surroundings of its engine."""

    def __init__(self, channel: Channel[Orders], board: Board, work: Work) -> None:
        self._channel = channel
        self._board = board
        self._work = work
        self._hub = Hub()
        self._engine: Engine | None = None
        self._loop = _new_loop()
        self._stop: Stop | None = None
        self._totals: Totals | None = None
        self._count_at = 0.0

    def run(self) -> int:
        """The whole life; the exit code."""
        try:
            app = self._app()
            made = plan(self._work.options, app.settings, app.queues, quarantine=self._work.quarantine)
            # A sink that cannot be read is told before anything starts.
            sinks_of(app.client)
            self._log(app)
            lifespan = Lifespan(app.lifespan_functions)
            asyncio.set_event_loop(self._loop)
            store = self._ready_store(app)
            self._loop.run_until_complete(lifespan.enter())
            # Only now: the App's own code has had its chance to configure logging.
            logs.install(app.settings.log, app.settings.log_level)
            engine = self._register(app, made, store)
        except Exception as error:
            self._refuse(error)
            return 1
        signal.signal(signal.SIGTERM, lambda *_: engine.ask_to_stop("SIGTERM", made.grace))
        # What stands so far lives as long as the process; the collector need not look at it again and again.
        gc.collect()
        gc.freeze()
        # Handlers that compute would else keep the store's answers and other handlers waiting 5 ms at every step.
        sys.setswitchinterval(_SWITCH_AFTER)
        # Each job leaves some dozens of objects and no cycles: the default of 700 would collect after every thirty.
        gc.set_threshold(_COLLECT_AFTER, 20, 20)
        engine.start(threading.get_ident())
        self._turn()
        self._leave_cleanly(app, engine, lifespan)
        return 0

    # The surroundings of the engine:

    def will(self, ends: Sequence[Ended], reason: str) -> None:
        self._channel.send(Will(tuple(ends), reason))

    def suspects_wait(self) -> None:
        self._channel.send(SuspectsWait())

    def wants_to_drain(self, reason: str, *, urgent: bool) -> None:
        self._channel.send(Draining(reason, urgent))

    def leave(self, code: int, reason: str) -> None:
        ran = self._engine.pump.ran if self._engine is not None else 0
        self._say_counts()
        self._channel.send(Left(reason, ran, retired=False))
        # Handlers still run, perhaps in the main thread: nothing gentler ends them.
        os._exit(code)

    def finished(self, reason: str) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)

    def _app(self) -> AppLike:
        sys.path[:] = self._work.path
        app = load_app(self._work.app)
        if self._work.options.url is not None:
            app.client.override(url=self._work.options.url)
        return app

    def _log(self, app: AppLike) -> None:
        settings = app.settings
        self._hub.listen(Log(settings.log, settings.log_level), details=settings.log_level == "debug")
        if self._work.options.counts:
            self._totals = Totals()
            self._hub.listen(self._totals, ends=True)

    def _ready_store(self, app: AppLike) -> Store:
        """Reach the store, and tell it what is declared here. A later child waits for it as long as it takes."""
        store = app.store
        if not store.capabilities.shared_by_processes:
            raise UsageError(
                f"{store.url} lives inside one process, and a worker process would see nothing of it; use "
                "`async with jobs.working()` or jobs.run_worker() in the process that enqueues, or write "
                "sqlite:///duly.db"
            )
        self._patiently(store.inspection.now)
        self._patiently(lambda: declare(app, self._hub))
        return store

    def _patiently(self, act: Callable[[], object]) -> None:
        pause = _FIRST_PAUSE
        while True:
            try:
                act()
                return
            except Transient:
                if not self._work.may_wait or self._told_to_stop():
                    raise
                time.sleep(pause)
                pause = min(pause * 2, _LONGEST_PAUSE)

    def _told_to_stop(self) -> bool:
        """Whether the supervisor wants us gone before we began."""
        for order in self._channel.pending():
            if isinstance(order, Stop):
                self._stop = order
        return self._stop is not None or self._channel.closed

    def _register(self, app: AppLike, made: Plan, store: Store) -> Engine:
        info = info_of(app, made, self._work.supervisor)
        registered_at = boottime()
        incarnation = Incarnation(0)

        def register() -> None:
            nonlocal registered_at, incarnation
            registered_at = boottime()
            incarnation = store.leases.register(info)

        # What its handlers meet at full queues belongs into the worker's log.
        app.client.tell, app.client.details = self._hub.emit, self._hub.details
        self._patiently(register)
        self._board.renew(registered_at)
        # From here on the supervisor looks at the pulse.
        self._board.tick(0, boottime())
        self._channel.send(self._introduction(app, made, incarnation, registered_at))
        prepare = Prepare(self._work.app, self._work.options.url, self._work.path)
        mode: Mode = "quarantine" if made.quarantine else "report"
        self._engine = engine = Engine(
            app, made, incarnation, self._board, registered_at, self._loop, mode, prepare, self, self._hub
        )
        engine.watch.hooks.insert(0, self._look_at_orders)
        if self._totals is not None:
            engine.watch.hooks.append(self._look_at_counts)
        return engine

    def _introduction(self, app: AppLike, made: Plan, incarnation: Incarnation, at: float) -> Registered:
        settings, facts = app.settings, app.store.inspection.describe()
        return Registered(
            incarnation,
            at,
            made,
            settings.url,
            settings.schema,
            facts.get("where") or without_password(settings.url),
            tuple(name if slots is None else f"{name}:{slots}" for name, slots in made.queues.items()),
            tuple(sorted(task.name for task in app.tasks.values())),
        )

    def _look_at_orders(self, now: float) -> None:
        orders = self._channel.pending()
        if self._stop is not None:
            orders.append(self._stop)
            self._stop = None
        for order in orders:
            if isinstance(order, Stop) and self._engine is not None:
                self._engine.ask_to_stop(order.reason, order.grace)
        if self._channel.closed:
            # Nobody beats for us any more.
            os._exit(1)

    def _look_at_counts(self, now: float) -> None:
        if now >= self._count_at:
            self._count_at = now + _COUNT_EVERY
            self._say_counts()

    def _say_counts(self) -> None:
        counted = None if self._totals is None else self._totals.take()
        if counted:
            self._channel.send(counted)

    def _turn(self) -> None:
        """Run the loop until `finished`. A child task of a handler may raise SystemExit through it."""
        done = False
        while not done:
            try:
                self._loop.run_forever()
                done = True
            except (SystemExit, KeyboardInterrupt):
                continue

    def _leave_cleanly(self, app: AppLike, engine: Engine, lifespan: Lifespan) -> None:
        # Whatever hangs from here on must not keep a process that holds nothing.
        guard = threading.Timer(_LEAVING, os._exit, (0,))
        guard.daemon = True
        guard.start()
        engine.finish()
        retired = True
        try:
            engine.store.leases.retire(engine.incarnation)
        except Transient:
            retired = False
        with suppress(Exception):
            self._loop.run_until_complete(lifespan.leave())
        self._say_counts()
        self._channel.send(Left(engine.shutdown.reason, engine.pump.ran, retired))
        app.close()
        sys.stdout.flush()
        # Threads that handlers left behind must not keep the process either.
        os._exit(0)

    def _refuse(self, error: Exception) -> None:
        match error:
            case Transient():
                self._channel.send(Refused("unreachable", f"the store does not answer: {error}"))
            case MigrationNeeded():
                self._channel.send(Refused("migration", str(error)))
            case DulyError():
                self._channel.send(Refused("usage", str(error)))
            case _:
                # A fault of the user's own code: a lifespan function, most likely.
                traceback.print_exception(error)
                self._channel.send(
                    Refused("failed", f"a worker process could not start: {type(error).__name__}: {error}")
                )


def _new_loop() -> asyncio.AbstractEventLoop:
    if find_spec("uvloop") is not None:
        import uvloop

        return uvloop.new_event_loop()
    return asyncio.new_event_loop()


def main() -> None:
    """`python -m duly.worker.child PARENT CHANNEL BOARD`."""
    die_with(int(sys.argv[1]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # For a process whose GIL is held: the supervisor asks for all stacks before it kills.
    faulthandler.register(signal.SIGUSR1, file=os.dup(2), all_threads=True)
    channel: Channel[Orders] = Channel.inherited(int(sys.argv[2]), Orders)
    work = channel.receive(None)
    if not isinstance(work, Work):
        os._exit(1)
    board = Board(int(sys.argv[3]), work.records)
    child = Child(channel, board, work)
    sys.exit(child.run())


if __name__ == "__main__":
    main()
