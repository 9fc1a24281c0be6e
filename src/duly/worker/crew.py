"""What is done to attempts and to the process when the watch, the store or a shutdown says so.

Knows the slots, the pump and the few words of `Surroundings`; looks at no clock of its own accord.
"""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Final, Protocol

from duly.core.job import Ended, Incarnation
from duly.telemetry.events import Fenced, LoopDied, LoopHung, Overrun
from duly.telemetry.hub import Hub
from duly.worker.attempt import Attempt, Phase, Why
from duly.worker.floor import Floor, Group
from duly.worker.messages import BROKEN, FENCED, HUNG
from duly.worker.options import Plan
from duly.worker.payloads import Payloads
from duly.worker.pump import Pump
from duly.worker.reports import Reports
from duly.worker.run import stopped
from duly.worker.watch import where

KIND_WORDS: Final = ("event loop slot", "thread", "process")
LONGEST_CUT: Final = 2.0
"""Seconds between asking handlers to end at once and ending without them."""


class Surroundings(Protocol):
    """What a worker asks of the process it lives in. Called from the watch's or the pump's thread."""

    def will(self, ends: Sequence[Ended], reason: str) -> None:
        """What to write for handlers that still run, once this process is gone."""

    def suspects_wait(self) -> None:
        """There are jobs that must run alone."""

    def wants_to_drain(self, reason: str, *, urgent: bool) -> None:
        """Replace this process when it suits."""

    def leave(self, code: int, reason: str) -> None:
        """End the process now, whatever runs in it."""

    def finished(self, reason: str) -> None:
        """A shutdown is over and no handler runs: leave cleanly."""


class Crew:
    """Of one incarnation."""

    def __init__(
        self,
        incarnation: Incarnation,
        plan: Plan,
        floor: Floor,
        groups: Sequence[Group],
        payloads: Payloads,
        pump: Pump,
        reports: Reports,
        surroundings: Surroundings,
        hub: Hub,
    ) -> None:
        self.cut = min(plan.patience, LONGEST_CUT)
        self._incarnation = incarnation
        self._plan = plan
        self._floor = floor
        self._groups = groups
        self._payloads = payloads
        self._pump = pump
        self._reports = reports
        self._surroundings = surroundings
        self._hub = hub
        self._stuck = 0
        self._told_hung = False
        self._told_broken = False
        self._fence_ends: float | None = None

    # Asked by the watch and the pump:

    def stop(self, attempt: Attempt, why: Why, reason: str) -> None:
        """Ask a handler to end, and make it, as far as its kind can be made to."""
        now = self._floor.clock()
        if attempt.phase is Phase.waiting and self._taken_back(attempt):
            attempt.ask(why, reason, now)
            self.hand_back(attempt)
        elif attempt.ask(why, reason, now):
            self._group(attempt).stop(attempt)

    def give_up(self, attempt: Attempt) -> None:
        now = self._floor.clock()
        attempt.verdict = stopped(attempt, now, note="it did not stop when asked; its process was replaced")
        attempt.phase = Phase.given_up
        self._stuck += 1
        self._group(attempt).give_up(attempt)
        self._pump.free(attempt)
        # The row is kept while the handler runs on, so that nobody else starts the job meanwhile.
        self._reports.note_extension(attempt, timedelta(seconds=2 * self._plan.grace + self._plan.lease))
        kind = KIND_WORDS[attempt.card.kind]
        self._hub.emit(Overrun(attempt.job.id, attempt.job.task, kind, self._stuck))
        self._surroundings.will([attempt.verdict], f"job {attempt.job.id} did not stop")
        self._surroundings.wants_to_drain(
            f"job {attempt.job.id} ({attempt.job.task}) did not stop", urgent=True
        )

    def break_chain(self, attempt: Attempt) -> None:
        self._pump.break_chain(attempt)

    def hand_back(self, attempt: Attempt) -> None:
        self._payloads.release(attempt)
        self._pump.ended(attempt)

    def fence(self, reason: str) -> None:
        """End everything before the lease lapses; what cannot be written goes into the will."""
        running = self.running()
        self._pump.claiming = False
        self._hub.emit(Fenced(self._incarnation, reason, tuple(attempt.job.id for attempt in running)))
        for attempt in (*self._unstarted(), *running):
            self.stop(attempt, "lease", reason)
        self._fence_ends = self._floor.clock() + min(self.cut, self._plan.heartbeat / 2)

    def step_fence(self, now: float) -> None:
        """After `fence`: leave as soon as nothing runs, at the latest after the cut."""
        if self._fence_ends is None or (now < self._fence_ends and self.running()):
            return
        self._fence_ends = None
        self._leave(FENCED, "the lease is over")

    def hung(self, culprit: Attempt | None, stuck_for: float, stack: str) -> None:
        if self._told_hung:
            return
        self._told_hung = True
        job = culprit.job if culprit is not None else None
        self._hub.emit(LoopHung(job.id if job else None, job.task if job else None, stuck_for, stack))
        if culprit is not None:
            note = "it did not let the event loop turn; its process was replaced"
            culprit.verdict = stopped(culprit, self._floor.clock(), where(stack), note)
        self._leave(HUNG, "the event loop did not turn", spare_running=True)

    def broken(self, part: str, failure: BaseException) -> None:
        if self._told_broken:
            return
        self._told_broken = True
        self._hub.emit(LoopDied(part, f"{type(failure).__name__}: {failure}"))
        self._leave(BROKEN, f"its {part} died")

    # Asked by a shutdown:

    def stop_claiming(self) -> None:
        self._pump.claiming = False
        self._reports.stopping = True
        for attempt in self.running():
            self._pump.break_chain(attempt)
        for attempt in self._unstarted():
            # What was acknowledged before its run would never come back.
            if not attempt.acked_first and self._taken_back(attempt):
                attempt.reason = "shutdown"
                self.hand_back(attempt)
        self._pump.nudge()

    def running(self) -> list[Attempt]:
        """Attempts whose handlers run, given-up ones included."""
        return self._pump.held.live()

    def unwritten(self) -> list[Attempt]:
        return self._pump.unwritten()

    def holds_nothing(self) -> bool:
        return not len(self._pump.held)

    def leave_behind(self, reason: str) -> None:
        """The shutdown is over and some handlers still run: they end with the process."""
        now = self._floor.clock()
        for attempt in self.running():
            attempt.ask("shutdown", reason, now)
            attempt.verdict = attempt.verdict or stopped(attempt, now)
        self._leave(0, reason)

    def _leave(self, code: int, reason: str, *, spare_running: bool = False) -> None:
        """Write the will and end the process. `spare_running`: those without a verdict count as lost."""
        now = self._floor.clock()
        ends: list[Ended] = [attempt.ended for attempt in self._pump.unwritten() if attempt.ended is not None]
        for attempt in self.running():
            if attempt.verdict is None and not spare_running and attempt.why is not None:
                attempt.verdict = stopped(attempt, now)
            if attempt.verdict is not None:
                ends.append(attempt.verdict)
        self._surroundings.will(ends, reason)
        self._surroundings.leave(code, reason)

    def _unstarted(self) -> list[Attempt]:
        return [attempt for place in self._places() for attempt in place.unstarted()]

    def _taken_back(self, attempt: Attempt) -> bool:
        return any(place.take_back(attempt) for place in self._places())

    def _places(self) -> Iterable[Group | Payloads]:
        return (*self._groups, self._payloads)

    def _group(self, attempt: Attempt) -> Group:
        return next(group for group in self._groups if group.kind == attempt.card.kind)
