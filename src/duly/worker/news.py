"""What is said of attempts whose end was stored, refused, weakened or never written."""

from collections.abc import Callable, Sequence

from duly.core.control import Ordering
from duly.core.defaults import MANY_SNOOZES
from duly.core.job import ClaimedJob, Ended
from duly.core.lifecycle import Event, State
from duly.telemetry.events import (
    AcksUnwritten,
    AttemptEnded,
    GuardSaidNo,
    HandlerSaid,
    JobDied,
    KeyStopped,
    LeaseWasLost,
    OutcomeAltered,
)
from duly.telemetry.hub import Hub
from duly.telemetry.moves import JobClaimed
from duly.worker.attempt import ROLLED_BACK, Attempt


class News:
    """Words for a Hub. `stored` runs once per job: it says little and asks first."""

    def __init__(self, hub: Hub, ordering: Callable[[str], Ordering]) -> None:
        self._hub = hub
        self._ordering = ordering
        """Of a queue: what the jobs behind a dead one of their key do."""

    def claimed(self, jobs: Sequence[ClaimedJob]) -> None:
        """Only for a hub that wants details."""
        for job in jobs:
            self._hub.emit(JobClaimed(job.id, job.run, job.queue, job.task, job.attempt))

    def stored(self, attempt: Attempt, ended: Ended) -> None:
        if ended.to is State.dead:
            self._hub.emit(_told(JobDied, attempt, ended))
            key = attempt.job.ordering_key
            if key is not None and self._ordering(attempt.job.queue) != "skip_dead":
                self._hub.emit(KeyStopped(attempt.job.id, attempt.job.queue, attempt.job.tenant, key))
        elif self._hub.ends:
            self._hub.emit(_told(AttemptEnded, attempt, ended))
        if ended.guard is not None:
            job = attempt.job
            self._hub.emit(GuardSaidNo(job.id, job.queue, job.task, ended.guard, ended.reason or ""))
        if ended.event is Event.snooze and ended.counters.snoozed == MANY_SNOOZES:
            text = (
                f"job {attempt.job.id} was snoozed {MANY_SNOOZES:,} times: it may wait for what never comes"
            )
            self._hub.emit(HandlerSaid(attempt.job.task, text))

    def refused(self, attempt: Attempt) -> None:
        """Its handler has ended it in its own transaction, or its lease was lost."""
        ended = attempt.ended
        if attempt.handed_over:
            self._after_its_own_end(attempt, ended)
            return
        event = ended.event if ended is not None else "end"
        self._hub.emit(LeaseWasLost(attempt.job.id, attempt.job.run, attempt.job.task, event))

    def _after_its_own_end(self, attempt: Attempt, ended: Ended | None) -> None:
        # The store refuses the "rolled back" of an attempt whose completion was committed: all is well.
        error = None if ended is None else ended.error
        if ended is None or (error is not None and error.message == ROLLED_BACK):
            return
        what = str(ended.event) if error is None else f"{error.type}: {error.message}"
        text = f"what came after the commit of its completion was not recorded: {what}"
        self._hub.emit(OutcomeAltered(attempt.job.id, attempt.job.task, text))

    def weakened(self, attempt: Attempt, why: str) -> None:
        text = f"its outcome could not be stored: {why}"
        self._hub.emit(OutcomeAltered(attempt.job.id, attempt.job.task, text))

    def unwritten(self, attempts: Sequence[Attempt], why: str) -> None:
        """Nobody will write their ends; their leases bring them back."""
        if attempts:
            self._hub.emit(AcksUnwritten(tuple(attempt.job.id for attempt in attempts), why))


def _told(kind: type[AttemptEnded], attempt: Attempt, ended: Ended) -> AttemptEnded:
    job = attempt.job
    elapsed = None if ended.elapsed is None else ended.elapsed.total_seconds()
    return kind(
        job.id, job.run, job.queue, job.task, ended.event, ended.to, ended.reason, elapsed,
        job.attempt, job.tenant, job.correlation_id,
    )  # fmt: skip
