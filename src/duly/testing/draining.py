"""Draining: a stepped worker runs what is ready until nothing is, on the caller's thread or loop; nothing sleeps.

The order of things is one generator; `run` and `arun` only differ in how they call a handler.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, TypeVar

from duly.app import App
from duly.core.errors import DulyError, UsageError
from duly.core.job import JobId
from duly.core.lifecycle import Event, State
from duly.stores.faults import Transient
from duly.testing.clock import FakeClock
from duly.testing.performing import Performed, Ran, aperform, perform
from duly.testing.stepped import SteppedWorker
from duly.testing.tap import Killed, Tapped
from duly.worker.attempt import Attempt
from duly.worker.floor import Slot
from duly.worker.lifespan import Lifespan
from duly.worker.registration import declare
from duly.worker.run import Around

T = TypeVar("T")

MOST_ATTEMPTS: Final = 10_000
_MOST_LOOKS: Final = 1000


@dataclass(frozen=True, slots=True)
class Perform:
    """What a script asks its driver to run."""

    attempt: Attempt
    slot: Slot
    arounds: Sequence[Around]


Script = Generator[Perform, Performed, T]


@dataclass(slots=True)
class Drainer:
    """One test's way of draining. `ran` grows with every attempt."""

    app: App
    clock: FakeClock
    tapped: Tapped
    ran: list[Ran] = field(default_factory=list)
    twice: bool = False
    """Each job that completes is delivered once more."""
    active: bool = False
    _again: set[JobId] = field(default_factory=set)
    _declared: bool = False

    def script(self, queues: Sequence[str] | None, *, scheduled: bool, raising: bool) -> Script[list[Ran]]:
        """Run until nothing is ready; with `scheduled` move the clock on to whatever is due next, too."""
        if not self._declared:
            self.app.client.call(declare, self.app)
            self._declared = True
        began = len(self.ran)
        worker = self._worker(queues)
        try:
            looks = 0
            while True:
                attempt = worker.look()
                if worker.troubles and raising:
                    raise AssertionError("; ".join(worker.troubles))
                if attempt is None:
                    looks += 1
                    if looks > _MOST_LOOKS:
                        raise DulyError(
                            f"nothing is ready to run, and something still waits, after {looks} looks"
                        )
                    if not worker.is_idle() or (scheduled and self._move_on()):
                        continue
                    break
                looks = 0
                slot = worker.begin(attempt)
                if slot is None:
                    continue
                done = yield Perform(attempt, slot, worker.arounds)
                if self._is_delivered_again(done):
                    self._keep(done, Event.lose, State.ready)
                    worker.die("its worker was killed before the end of the attempt was stored")
                    worker = self._worker(queues)
                else:
                    worker.end(attempt, done.ended, done.slot)
                    self._note(done, raising=raising)
                if len(self.ran) - began >= MOST_ATTEMPTS:
                    raise DulyError(
                        f"{MOST_ATTEMPTS:,} attempts have run and there is still work: does a job enqueue or snooze "
                        "itself for ever?"
                    )
        except Killed:
            # The dead are not heard any more; what follows is their supervisor's.
            self.tapped.ears.clear()
            worker.die("killed")
            raise
        except BaseException:
            with suppress(Transient):
                worker.retire()
            raise
        worker.retire()
        return self.ran[began:]

    def run(self, script: Callable[[], Script[T]]) -> T:
        """Drive it on this thread. UsageError inside a running event loop."""
        self._enter("drain()", "await adrain()")
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            pass
        else:
            self.active = False
            raise UsageError("an event loop runs here; write await adrain()")
        lifespan = Lifespan(self.app.lifespan_functions)
        try:
            with asyncio.Runner() as runner:
                runner.run(lifespan.enter())
                try:
                    return self._drive(script(), runner)
                finally:
                    runner.run(lifespan.leave())
        finally:
            self.active = False

    async def arun(self, script: Callable[[], Script[T]]) -> T:
        """Drive it on the running loop."""
        self._enter("adrain()", "")
        lifespan = Lifespan(self.app.lifespan_functions)
        try:
            await lifespan.enter()
            try:
                return await self._adrive(script())
            finally:
                await lifespan.leave()
        finally:
            self.active = False

    @staticmethod
    def _drive(script: Script[T], runner: asyncio.Runner) -> T:
        try:
            wanted = next(script)
            while True:
                try:
                    done = perform(wanted.attempt, wanted.slot, wanted.arounds, runner.run)
                except BaseException as error:
                    wanted = script.throw(error)
                else:
                    wanted = script.send(done)
        except StopIteration as end:
            result: T = end.value
            return result

    @staticmethod
    async def _adrive(script: Script[T]) -> T:
        try:
            wanted = next(script)
            while True:
                try:
                    done = await aperform(wanted.attempt, wanted.slot, wanted.arounds)
                except BaseException as error:
                    wanted = script.throw(error)
                else:
                    wanted = script.send(done)
        except StopIteration as end:
            result: T = end.value
            return result

    def _enter(self, call: str, instead: str) -> None:
        if self.active:
            raise UsageError(
                f"{call} inside a handler that is being drained: the running drain takes whatever it enqueues"
            )
        self.active = True

    def _worker(self, queues: Sequence[str] | None) -> SteppedWorker:
        return self.app.client.call(SteppedWorker, self.app, self.tapped, queues)

    def _move_on(self) -> bool:
        """Let the clock go to the next due job; False when none waits."""
        moved, wait = self.app.store.upkeep.promote()
        if moved:
            return True
        if wait is None:
            return False
        self.clock.advance(max(wait, timedelta(microseconds=1)))
        return True

    def _is_delivered_again(self, done: Performed) -> bool:
        id = done.attempt.job.id
        if not self.twice or done.ended.event is not Event.complete or id in self._again:
            return False
        if done.attempt.committed is not None or done.attempt.acked_first:
            # Its end was stored before the worker could die.
            return False
        self._again.add(id)
        return True

    def _note(self, done: Performed, *, raising: bool) -> None:
        event, state = done.ended.event, done.ended.to
        if done.attempt.handed_over:
            # Written in the user's own transaction: only the store knows whether that committed.
            record = self.app.store.inspection.lookup([done.attempt.job.id])[0]
            if record is not None and record.state is State.completed:
                self._keep(done, Event.complete, State.completed)
                return
        self._keep(done, event, state)
        trouble = done.trouble()
        if raising and trouble is not None:
            raise trouble

    def _keep(self, done: Performed, event: Event, state: State) -> None:
        job = done.attempt.job
        self.ran.append(
            Ran(
                task=job.task,
                arguments=done.arguments,
                job_id=job.id,
                attempt=1 + job.counters.failed + job.counters.lost,
                ending=event,
                state=state,
                result=done.result,
                error=done.error,
            )
        )
