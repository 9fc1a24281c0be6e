"""An embedded worker: one incarnation inside this process, with a heart of its own instead of a supervisor.

For development, tests and drains. A handler that blocks the GIL for a lease, or crashes, takes this process along.
"""

import asyncio
import os
import socket
import sys
import threading
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Final, Self

from duly.client.reference import reference_of
from duly.core.errors import DulyError, StoreUnreachable
from duly.core.job import Ended, Incarnation
from duly.stores.faults import Transient
from duly.telemetry.hub import Hub
from duly.telemetry.logs import Log
from duly.worker.board import Board, boottime
from duly.worker.engine import Engine, records_for
from duly.worker.heartbeat import BoardPatient, Heart
from duly.worker.lifespan import Lifespan
from duly.worker.messages import BROKEN, FENCED, Prepare
from duly.worker.options import Plan, WorkerOptions, plan
from duly.worker.registration import declare, info_of
from duly.worker.source import AppLike

_LOOK: Final = 0.01
_FIRST_PAUSE: Final = 0.2
_LONGEST_PAUSE: Final = 5.0


class Embedded:
    """`with` runs handlers on an event loop in a thread of its own, `async with` on the running one.

    Leaving the block gives running jobs the grace and hands the rest back. Not to be entered twice.
    """

    def __init__(self, app: AppLike, options: WorkerOptions | None = None) -> None:
        self._app = app
        self._options = options or WorkerOptions()
        self._hub = Hub()
        self._engine: Engine | None = None
        self._heart: Heart | None = None
        self._board: Board | None = None
        self._log: Log | None = None
        self._lifespan = Lifespan(app.lifespan_functions)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._loop_thread: threading.Thread | None = None
        self._done = threading.Event()
        self._ending = threading.Event()
        self._restart: threading.Thread | None = None
        self._failure: str | None = None
        self._ran_before = 0

    # Blocking:

    def __enter__(self) -> Self:
        loop = self._loop = asyncio.new_event_loop()
        self._loop_thread = threading.Thread(target=_turn, args=(loop,), name="duly-loop", daemon=True)
        self._loop_thread.start()
        try:
            asyncio.run_coroutine_threadsafe(self._lifespan.enter(), loop).result()
            self._begin(loop, self._loop_thread.ident or 0)
        except BaseException:
            self._end_loop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._end()
            if self._loop is not None:
                asyncio.run_coroutine_threadsafe(self._lifespan.leave(), self._loop).result()
        finally:
            self._end_loop()

    def until_idle(self, timeout: float = 60.0) -> int:
        """Work until nothing is ready, due, running or suspect; the attempts run so far. Blocks.

        TimeoutError after `timeout` seconds.
        """
        ends = time.monotonic() + timeout
        pause = threading.Event()
        while not self._is_idle():
            if time.monotonic() >= ends:
                raise TimeoutError(f"the worker still had work after {timeout:g} s")
            pause.wait(_LOOK)
        return self.ran

    # Async:

    async def __aenter__(self) -> Self:
        loop = self._loop = asyncio.get_running_loop()
        await self._lifespan.enter()
        ident = threading.get_ident()
        await asyncio.to_thread(self._begin, loop, ident)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await asyncio.to_thread(self._end)
        finally:
            await self._lifespan.leave()

    async def auntil_idle(self, timeout: float = 60.0) -> int:
        """As `until_idle`, while the running loop turns."""
        return await asyncio.to_thread(self.until_idle, timeout)

    @property
    def engine(self) -> Engine:
        """The incarnation at work."""
        if self._engine is None:
            raise DulyError("this embedded worker is not running; use it in a with block")
        return self._engine

    @property
    def is_over(self) -> bool:
        """Whether it has stopped by itself or was asked to and has; DulyError when it broke."""
        if self._failure is not None:
            raise DulyError(f"the embedded worker ended: {self._failure}")
        return self._done.is_set()

    @property
    def ran(self) -> int:
        """Attempts that have ended here."""
        return self._ran_before + (self._engine.pump.ran if self._engine is not None else 0)

    # The surroundings of the engine:

    def will(self, ends: Sequence[Ended], reason: str) -> None:
        """The process goes on, so that this is written at once, if the store answers."""
        if not ends:
            return
        try:
            self.engine.store.jobs.exchange(self.engine.incarnation, ends, None)
        except Transient:
            # The lease brings them back.
            return

    def suspects_wait(self) -> None:
        """They are run here, alone, when nothing else runs."""

    def wants_to_drain(self, reason: str, *, urgent: bool) -> None:
        """There is nobody to replace this process."""

    def leave(self, code: int, reason: str) -> None:
        if code == FENCED:
            if self._ending.is_set():
                self._done.set()
                return
            # A laptop that slept, a debugger, an outage: start anew under another incarnation.
            self._restart = threading.Thread(target=self._begin_anew, name="duly-restart", daemon=True)
            self._restart.start()
        elif code == BROKEN:
            self._failure = reason
            self._done.set()
        elif code == 0:
            self._done.set()

    def finished(self, reason: str) -> None:
        self._done.set()

    def _is_idle(self) -> bool:
        if self.is_over:
            return True
        engine = self._engine
        if engine is None:
            return False
        # Due now means now: the poll of the duty would be waited for in vain.
        engine.duties.soon(engine.promote.name)
        return engine.is_idle()

    def _begin(self, loop: asyncio.AbstractEventLoop, loop_thread: int) -> None:
        app = self._app
        made = plan(self._options, app.settings, app.queues)
        store = app.store
        settings = app.settings
        # Inside a program its own news is enough; only what went wrong is worth a line there.
        least = "warning" if settings.log_level == "info" else settings.log_level
        self._log = Log(settings.log, least)
        self._hub.listen(self._log)
        app.client.call(declare, app, self._hub)
        self._heart = Heart(store.leases, store.operator, made.heartbeat, self._hub)
        self._incarnate(made, loop, loop_thread)
        self._heart.start()

    def _incarnate(self, made: Plan, loop: asyncio.AbstractEventLoop, loop_thread: int) -> None:
        app = self._app
        board = self._board = Board.create(records_for(self._options))
        registered_at = boottime()
        incarnation: Incarnation = app.client.call(
            app.store.leases.register, info_of(app, made, f"{socket.gethostname()}:{os.getpid()}")
        )
        board.renew(registered_at)
        # Children load the module anew, where `configure()` of this process may not have happened; and of a store of
        # this process alone nobody else is told where it is.
        url = getattr(app.store, "url_for_children", app.settings.url)
        prepare = Prepare(self._reference(), url, tuple(sys.path))
        self._engine = Engine(
            app, made, incarnation, board, registered_at, loop, "alone", prepare, self, self._hub
        )
        if self._heart is not None:
            self._heart.add(incarnation, BoardPatient(board))
        self._engine.start(loop_thread)

    def _reference(self) -> str:
        """Only isolated handlers need the App to be importable."""
        needed = any(task.isolation == "process" for task in self._app.tasks.values())
        return reference_of(self._app) if needed else ""

    def _begin_anew(self) -> None:
        old, loop = self._engine, self._loop
        if old is None or loop is None or self._ending.is_set():
            return
        self._close(old)
        self._engine = None
        self._ran_before += old.pump.ran
        thread = self._loop_thread.ident if self._loop_thread is not None else None
        pause = _FIRST_PAUSE
        while not self._ending.is_set():
            try:
                self._incarnate(old.plan, loop, thread or old.loop_thread)
                return
            except StoreUnreachable:
                # The outage that cost the lease goes on.
                self._ending.wait(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
            except DulyError as error:
                self._failure = str(error)
                return

    def _end(self) -> None:
        self._ending.set()
        if self._restart is not None:
            self._restart.join()
        engine = self._engine
        if engine is not None:
            engine.ask_to_stop("the program leaves the worker", engine.plan.grace)
            self._done.wait(engine.plan.grace + 30)
            self._close(engine)
        if self._heart is not None:
            self._heart.stop()

    def _close(self, engine: Engine) -> None:
        engine.finish()
        if self._heart is not None:
            self._heart.remove(engine.incarnation)
        try:
            engine.store.leases.retire(engine.incarnation)
        except Transient:
            # Its lease ends by itself.
            pass

    def _end_loop(self) -> None:
        loop, thread = self._loop, self._loop_thread
        if loop is None or thread is None:
            return
        loop.call_soon_threadsafe(loop.stop)
        thread.join(timeout=5)
        if not thread.is_alive():
            loop.close()


def _turn(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    while True:
        try:
            loop.run_forever()
            return
        except (SystemExit, KeyboardInterrupt):
            # A handler's own child task raised it through the loop.
            continue
