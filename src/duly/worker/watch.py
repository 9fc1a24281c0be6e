"""The watch: ten times a second it looks at the lease, at every attempt's clock, at the loop's pulse and our threads.

Runs apart from the event loop, so that a handler which blocks it is still seen. Decides; the engine acts.
"""

import asyncio
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from duly.core.fingerprint import ErrorRecord
from duly.telemetry.events import DutyFailed
from duly.telemetry.hub import Hub
from duly.worker.attempt import Attempt, Phase, Why
from duly.worker.board import boottime
from duly.worker.card import LOOP, PROCESS, THREAD
from duly.worker.floor import NOT_STARTED, Floor, Group
from duly.worker.loops import LoopGroup
from duly.worker.options import Plan
from duly.worker.payloads import Payloads

_EVERY: Final = 0.1
_SHORTEST: Final = 0.005


class Acts(Protocol):
    """What the watch has done to attempts and to the process."""

    def stop(self, attempt: Attempt, why: Why, reason: str) -> None: ...

    def give_up(self, attempt: Attempt) -> None:
        """It did not stop when asked."""

    def hand_back(self, attempt: Attempt) -> None:
        """No slot has taken it."""

    def break_chain(self, attempt: Attempt) -> None:
        """What was claimed to run behind it goes back."""

    def fence(self, reason: str) -> None:
        """The lease is over, or nearly."""

    def hung(self, culprit: Attempt | None, stuck_for: float, stack: str) -> None:
        """The loop does not turn."""

    def broken(self, part: str, failure: BaseException) -> None:
        """A thread or coroutine of our own died."""


class Part(Protocol):
    """A part of the worker with a thread or coroutine of its own."""

    failure: BaseException | None


class Watch:
    """`round` does one look; the thread repeats it."""

    def __init__(
        self,
        plan: Plan,
        floor: Floor,
        groups: Sequence[Group],
        payloads: Payloads,
        acts: Acts,
        hub: Hub,
        clock: Callable[[], float] = boottime,
    ) -> None:
        self.parts: dict[str, Part] = {}
        self.hooks: list[Callable[[float], None]] = []
        """Looked at in every round: orders of the supervisor, a shutdown under way."""
        self._plan = plan
        self._floor = floor
        self._groups = groups
        self._payloads = payloads
        self._acts = acts
        self._hub = hub
        self._clock = clock
        self._loops = next((group for group in groups if isinstance(group, LoopGroup)), None)
        self._loop_thread = threading.get_ident()
        self._fenced = False
        self._stopping = False
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._run, name="duly-watch", daemon=True)

    def start(self, loop_thread: int) -> None:
        """`loop_thread` is the identity of the thread that runs the event loop."""
        self._loop_thread = loop_thread
        self._thread.start()

    def stop(self) -> None:
        self._stopping = True
        self._wake.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(timeout=5)

    def round(self) -> float:
        """One look; the seconds until the next is worth while."""
        now = self._clock()
        for hook in self.hooks:
            hook(now)
        for name, part in self.parts.items():
            if part.failure is not None:
                self._acts.broken(name, part.failure)
        if not self._floor.fence.refresh(now):
            if not self._fenced:
                self._fenced = True
                gone = self._floor.fence.gone
                self._acts.fence(
                    "its worker row is gone" if gone else "the lease could not be renewed in time"
                )
            return _EVERY
        nearest = now + _EVERY
        for group in self._groups:
            for slot in list(group.slots):
                attempt = slot.attempt
                if attempt is not None and attempt.phase is Phase.running:
                    nearest = min(nearest, self._look_at(attempt, now))
        self._look_at_unstarted(now)
        self._look_at_loop(now)
        return min(_EVERY, max(_SHORTEST, nearest - now))

    def _run(self) -> None:
        while not self._stopping:
            try:
                pause = self.round()
            except Exception as failure:
                # Nobody watches the watch: it goes on whatever happens.
                self._hub.emit(DutyFailed("watch", f"{type(failure).__name__}: {failure}"))
                pause = _EVERY
            self._wake.wait(pause)

    def _look_at(self, attempt: Attempt, now: float) -> float:
        """Its next moment of interest."""
        chain = attempt.chain
        if chain is not None and chain.waiting and now - attempt.started_at >= self._plan.unstarted:
            # Behind a long one the rest of its key would stand here unstarted.
            self._acts.break_chain(attempt)
        if attempt.why is None:
            if now < attempt.deadline_at:
                return attempt.deadline_at
            self._acts.stop(attempt, "timeout", attempt.timeout_text())
            return now + _EVERY
        # Isolated ones are killed by their slot; a fence or a shutdown has its own clock.
        if attempt.card.kind == PROCESS or attempt.why not in {"timeout", "cancel"}:
            return now + _EVERY
        limit = attempt.asked_at + self._plan.patience
        if attempt.card.kind == THREAD and attempt.why == "cancel":
            limit = max(limit, attempt.deadline_at + self._plan.patience)
        if now < limit:
            return limit
        if attempt.card.kind != LOOP or self._turned_since(attempt.asked_at):
            self._acts.give_up(attempt)
        return now + _EVERY

    def _turned_since(self, moment: float) -> bool:
        """A loop that stands still cannot deliver a cancellation: its other handlers are not to blame."""
        return self._floor.board.pulse().ticked_at > moment

    def _look_at_unstarted(self, now: float) -> None:
        places: list[Group | Payloads] = [*self._groups, self._payloads]
        for waiting in places:
            for attempt in waiting.unstarted():
                late = now - attempt.wait_from >= self._plan.unstarted and not attempt.acked_first
                if late and waiting.take_back(attempt):
                    attempt.reason = attempt.reason or NOT_STARTED
                    self._acts.hand_back(attempt)

    def _look_at_loop(self, now: float) -> None:
        loops = self._loops
        if loops is None:
            return
        still_for = now - self._floor.board.pulse().ticked_at
        if still_for < self._plan.patience:
            return
        running = [slot.attempt for slot in loops.slots if slot.attempt is not None]
        culprit = loops.running_now()
        if culprit is not None:
            hung = culprit.why is not None and now >= culprit.asked_at + self._plan.patience
        else:
            # Code outside any slot holds the loop: it has as long as the most patient of those that it holds up.
            limits = [attempt.card.time_to_run(attempt.job) for attempt in running]
            hung = bool(limits) and still_for > max(limits) + self._plan.patience
        if hung:
            self._acts.hung(culprit, still_for, self._stack())

    def _stack(self) -> str:
        frame = sys._current_frames().get(self._loop_thread)
        return "".join(traceback.format_stack(frame)[-20:]) if frame is not None else "(no stack)"


def where(stack: str) -> ErrorRecord:
    """A stack as the place where a timeout found its handler."""
    return ErrorRecord("Timeout", "the event loop did not turn", stack[-8000:], "timeout")


def stop_loop(loop: asyncio.AbstractEventLoop) -> None:
    """From any thread."""
    loop.call_soon_threadsafe(loop.stop)
