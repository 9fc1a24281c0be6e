"""What goes to the store beside ends and claims: progress, cursors, extensions, and the comparison of what is held.

Also the desk of every attempt. Its round rides on the pump, at most once a second, at least once a heartbeat.
"""

import asyncio
import threading
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Final

from duly.client.job import CallOutcome
from duly.core.job import ClaimedJob, Cursor, Incarnation, JobId, JobRecord, Progress
from duly.core.lifecycle import State
from duly.stores.protocol import Store
from duly.worker.attempt import Attempt, Phase, Why
from duly.worker.board import boottime
from duly.worker.card import Card
from duly.worker.heartbeat import Fence
from duly.worker.held import Held
from duly.worker.messages import StepKept
from duly.worker.run import handed_back
from duly.worker.steps import StepWriter
from duly.worker.usage import Usage, failed

_AT_MOST_EVERY: Final = 1.0
NEVER_HEARD: Final = "its claim was answered into the void"

Stopper = Callable[[Attempt, Why, str], None]


class Reports:
    """The desk that attempts share, and the pump's report round."""

    def __init__(
        self,
        store: Store,
        incarnation: Incarnation,
        fence: Fence,
        every: float,
        clock: Callable[[], float] = boottime,
    ) -> None:
        self.store = store
        self.incarnation = incarnation
        self.steps = StepWriter(store, incarnation)
        self.held = Held()
        self.usage = Usage()
        self.stopping = False
        """A shutdown has begun: handlers see `should_stop`."""
        self.must_report = False
        """A statement's outcome is unknown: compare before anything new is claimed."""
        self.cards: Mapping[str, Card] = {}
        self.stop: Stopper = _unstoppable
        self.nudge: Callable[[], None] = _nobody
        """Wakes the pump: there is something to say."""
        self._fence = fence
        self._every = every
        self._clock = clock
        self._lock = threading.Lock()
        self._progress: dict[tuple[int, int], Progress] = {}
        self._cursors: dict[tuple[JobId, int, str], int] = {}
        self._extensions: dict[Attempt, timedelta] = {}
        self._next_at = clock() + every
        self._last_at = 0.0

    # The desk:

    def stop_at(self) -> float:
        return self._fence.stop_at

    def note_progress(self, attempt: Attempt, progress: Progress) -> None:
        if attempt.phase is not Phase.running:
            return
        first = not self._progress
        self._progress[attempt.key] = progress
        if first:
            self.nudge()

    def note_extension(self, attempt: Attempt, by: timedelta) -> None:
        with self._lock:
            self._extensions[attempt] = self._extensions.get(attempt, timedelta(0)) + by
        self.nudge()

    def note_cursor(self, attempt: Attempt, name: str, position: int) -> None:
        first = not self._cursors
        self._cursors[attempt.job.id, attempt.job.run, name] = position
        if first:
            self.nudge()

    def keep_step(self, attempt: Attempt, name: str, value: bytes) -> StepKept:
        return self.steps.keep(attempt, name, value)

    def akeep_step(self, attempt: Attempt, name: str, value: bytes) -> asyncio.Future[StepKept]:
        return self.steps.akeep(attempt, name, value)

    def note_call(self, attempt: Attempt, resource: str, outcome: CallOutcome) -> None:
        failure = failed(outcome, attempt.why)
        if failure is not None:
            self.usage.note(resource, 1, int(failure))

    def forget(self, attempt: Attempt) -> None:
        """It is over; what it said last no longer matters."""
        if self._progress:
            self._progress.pop(attempt.key, None)
        if self._cursors:
            for name in list(attempt.cursors):
                self._cursors.pop((attempt.job.id, attempt.job.run, name), None)

    # The pump's thread:

    def due(self, now: float) -> bool:
        return self.due_in(now) <= 0

    def due_in(self, now: float) -> float:
        if self.must_report or self._extensions:
            return 0.0
        said = self._progress or self._cursors
        next_at = min(self._next_at, self._last_at + _AT_MOST_EVERY) if said else self._next_at
        return max(0.0, next_at - now)

    def round(self, now: float) -> tuple[list[JobId], list[Attempt]]:
        """One round: (jobs with a cancel wish, claims never heard of, ready to be handed back). Raises Transient."""
        self._extend()
        progress, cursors = self._said()
        try:
            held, wishes = self.store.jobs.report(self.incarnation, progress, cursors)
        except BaseException:
            for word in progress:
                self._progress.setdefault((word.id, word.run), word)
            for cursor in cursors:
                self._cursors.setdefault((cursor.id, cursor.run, cursor.name), cursor.position)
            raise
        self.must_report = False
        self._last_at = now
        unknown, lost = self.held.compare(held)
        # A stranger seen once is looked at again soon: the reply of its claim may still be on its way.
        self._next_at = now + (_AT_MOST_EVERY if self.held.suspects_anything else self._every)
        for attempt in lost:
            self.stop(attempt, "lease", "its lease was taken")
        return wishes, self._strangers(unknown)

    def _said(self) -> tuple[list[Progress], list[Cursor]]:
        """What live attempts have said since the last round."""
        said, self._progress = self._progress, {}
        moved, self._cursors = self._cursors, {}
        # Lists, because a handler's thread may still be writing into the old ones.
        progress = [word for key, word in list(said.items()) if self._is_live(key)]
        cursors = [
            Cursor(id, run, name, position)
            for (id, run, name), position in list(moved.items())
            if self._is_live((id, run))
        ]
        return progress, cursors

    def _extend(self) -> None:
        with self._lock:
            extensions, self._extensions = self._extensions, {}
        for attempt, by in list(extensions.items()):
            if attempt.phase is Phase.ended:
                del extensions[attempt]
                continue
            try:
                live = self.store.jobs.extend(self.incarnation, attempt.job.id, attempt.job.run, by)
            except BaseException:
                with self._lock:
                    for left, more in extensions.items():
                        self._extensions[left] = self._extensions.get(left, timedelta(0)) + more
                raise
            del extensions[attempt]
            if not live and attempt.phase is Phase.running:
                self.stop(attempt, "lease", "its lease was taken")

    def _is_live(self, key: tuple[int, int]) -> bool:
        attempt = self.held.find(key[0])
        return attempt is not None and attempt.key == key and attempt.phase is Phase.running

    def _strangers(self, pairs: list[tuple[int, int]]) -> list[Attempt]:
        if not pairs:
            return []
        records = self.store.inspection.lookup([JobId(id) for id, _ in pairs])
        found = []
        for (id, run), record in zip(pairs, records, strict=True):
            if record is None or record.state is not State.running or record.run != run:
                continue
            if self.held.find(id) is not None or record.task not in self.cards:
                continue
            attempt = Attempt(_as_claimed(record), self.cards[record.task], self, self._clock())
            attempt.phase, attempt.released = Phase.ended, True
            attempt.ended = handed_back(attempt, NEVER_HEARD)
            found.append(attempt)
        return found


def _as_claimed(record: JobRecord) -> ClaimedJob:
    started = record.started_at or record.enqueued_at
    return ClaimedJob(
        record.id, record.run, record.queue, record.task, record.args, record.priority, record.tenant, record.tags,
        record.correlation_id, record.counters, record.attempts, record.timeout, record.enqueued_at, started,
    )  # fmt: skip


def _nobody() -> None:
    pass


def _unstoppable(_: Attempt, why: Why, reason: str) -> None:
    raise RuntimeError(f"nobody can stop handlers yet ({why}: {reason})")
