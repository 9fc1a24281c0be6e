"""The inside of one isolated process: import the App, enter its lifespan, run one attempt after the other.

Holds no lease and makes no decision about time: its parent kills it. SIGTERM asks the handler to stop, SIGUSR2 says
that a shutdown has begun.
"""

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import msgspec

from duly.client import logs
from duly.client.job import CallOutcome, current
from duly.core.errors import DulyError
from duly.core.fingerprint import describe
from duly.core.job import Ended, Incarnation, Progress
from duly.core.lifecycle import Event
from duly.stores.protocol import Store
from duly.worker.attempt import Attempt, Phase
from duly.worker.board import boottime
from duly.worker.card import Card, cards_of
from duly.worker.channel import Channel
from duly.worker.lifespan import Lifespan
from duly.worker.messages import (
    Called,
    Done,
    Extended,
    IsolatedOrders,
    Prepare,
    Prepared,
    Progressed,
    Run,
    StepKept,
)
from duly.worker.parent import Parent
from duly.worker.process import die_with
from duly.worker.run import acall, call, handle_of, raised, read_arguments, returned
from duly.worker.source import AppLike, load_app


class RemoteDesk:
    """The desk of an attempt whose lease is held by the parent."""

    def __init__(self, parent: Parent, app: AppLike, incarnation: Incarnation) -> None:
        self.incarnation = incarnation
        self.stopping = False
        self._parent = parent
        self._app = app

    @property
    def store(self) -> Store:
        return self._app.store

    def stop_at(self) -> float:
        return float("inf")

    def note_progress(self, attempt: Attempt, progress: Progress) -> None:
        self._parent.tell(Progressed(progress))

    def note_extension(self, attempt: Attempt, by: timedelta) -> None:
        self._parent.tell(Extended(by))

    def note_cursor(self, attempt: Attempt, name: str, position: int) -> None:
        self._parent.moved(attempt.key, name, position)

    def note_call(self, attempt: Attempt, resource: str, outcome: CallOutcome) -> None:
        self._parent.tell(Called(resource, outcome))

    def forget(self, attempt: Attempt) -> None:
        self._parent.hands_over()

    def keep_step(self, attempt: Attempt, name: str, value: bytes) -> StepKept:
        return self._parent.keep_step(name, value)

    async def akeep_step(self, attempt: Attempt, name: str, value: bytes) -> StepKept:
        work = asyncio.get_running_loop().run_in_executor(None, self._parent.keep_step, name, value)
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            # What has run is written down before the handler ends.
            await asyncio.wait([work])
            raise


class Runner:
    """Runs attempts in the main thread, where signals arrive."""

    def __init__(self, app: AppLike, channel: Channel[IsolatedOrders]) -> None:
        self._app = app
        self._channel = channel
        self._cards: dict[str, Card] = cards_of(app.tasks)
        self._arounds = tuple(app.around_functions)
        self._loop = asyncio.new_event_loop()
        self._lifespan = Lifespan(app.lifespan_functions)
        self._attempt: Attempt | None = None
        self._desk: RemoteDesk | None = None
        self._task: asyncio.Task[Any] | None = None
        signal.signal(signal.SIGTERM, self._asked_to_stop)
        signal.signal(signal.SIGUSR2, self._asked_to_end_soon)

    def start(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._lifespan.enter())

    def close(self) -> None:
        self._loop.run_until_complete(self._lifespan.leave())
        self._loop.close()

    def run(self, order: Run) -> Done:
        card = self._cards[order.job.task]
        parent = Parent(self._channel)
        desk = self._desk = RemoteDesk(parent, self._app, order.incarnation)
        attempt = Attempt(order.job, card, desk, boottime())
        attempt.left, attempt.acked_first = order.left, order.acked_first
        attempt.begin(boottime())
        attempt.deadline_at = attempt.started_at + order.timeout
        kwargs = read_arguments(attempt)
        if isinstance(kwargs, Ended):
            return Done(kwargs, "ending")
        self._attempt = attempt
        try:
            done = self._done(attempt, kwargs)
        finally:
            self._attempt = None
        # Threads that the handler left behind may say nothing more in its name.
        attempt.phase = Phase.ended
        parent.close()
        return msgspec.structs.replace(done, ended=attempt.carrying(done.ended))

    def _done(self, attempt: Attempt, kwargs: dict[str, Any]) -> Done:
        try:
            result = self._call(attempt, kwargs)
        except BaseException as error:
            return _done_with_error(attempt, error)
        how = "settled" if attempt.committed is not None else "returned"
        return Done(returned(attempt, result, boottime()), how)

    def _call(self, attempt: Attempt, kwargs: dict[str, Any]) -> Any:
        job = handle_of(attempt)
        with _current(job):
            if not attempt.card.is_async:
                return call(attempt, job, kwargs, self._arounds)
            return self._await(acall(attempt, job, kwargs, self._arounds))

    def _await(self, work: Coroutine[Any, Any, Any]) -> Any:
        self._task = self._loop.create_task(work)
        try:
            return self._loop.run_until_complete(self._task)
        except (SystemExit, KeyboardInterrupt):
            # These leave the loop at once; the task that raised them is over.
            if not self._task.done():
                self._task.cancel()
            raise
        finally:
            self._task = None

    def _asked_to_stop(self, *_: object) -> None:
        if self._attempt is None:
            return
        self._attempt.ask("cancel", "asked to stop", boottime())
        if self._task is not None:
            self._loop.call_soon_threadsafe(self._task.cancel)

    def _asked_to_end_soon(self, *_: object) -> None:
        """A shutdown has begun: `job.should_stop` is true, nothing is cancelled."""
        if self._desk is not None:
            self._desk.stopping = True


def _done_with_error(attempt: Attempt, error: BaseException) -> Done:
    now = boottime()
    asked = attempt.why is not None
    # The parent knows why it asked; here only the handler's own word counts.
    attempt.why = None
    ended = raised(attempt, error, now)
    if attempt.committed is not None:
        return Done(ended, "settled")
    if asked and isinstance(error, asyncio.CancelledError):
        return Done(ended, "stopped", describe(error))
    how = "error" if ended.error is not None and ended.event is Event.fail else "ending"
    return Done(ended, how, ended.error)


@contextmanager
def _current(job: Any) -> Iterator[None]:
    token = current.set(job)
    try:
        yield
    finally:
        current.reset(token)


def _serve(channel: Channel[IsolatedOrders]) -> None:
    first = channel.receive(None)
    if not isinstance(first, Prepare):
        return
    sys.path[:] = first.path
    try:
        app = load_app(first.app)
        if first.url is not None:
            app.client.override(url=first.url)
        runner = Runner(app, channel)
        runner.start()
        logs.install(app.client.settings.log, app.client.settings.log_level)
    except DulyError as error:
        channel.send(Prepared(str(error)))
        return
    except BaseException as error:
        channel.send(Prepared(f"{type(error).__name__}: {error}"))
        return
    channel.send(Prepared())
    pid = os.getpid()
    while (order := channel.receive(None)) is not None:
        if not isinstance(order, Run):
            continue
        done = runner.run(order)
        if os.getpid() != pid:
            # A handler forked and let the copy come back here.
            os._exit(0)
        channel.send(done)
    runner.close()


def main() -> None:
    """`python -m duly.worker.isolated_child PARENT DESCRIPTOR`."""
    die_with(int(sys.argv[1]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    channel: Channel[IsolatedOrders] = Channel.inherited(int(sys.argv[2]), IsolatedOrders)
    _serve(channel)
    sys.stdout.flush()
    # Threads that a handler left behind must not keep the process.
    if threading.active_count() > 1:
        os._exit(0)


if __name__ == "__main__":
    main()
