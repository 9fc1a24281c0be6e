"""The pump: one exchange with the store in flight, in a thread of its own; what ended meanwhile forms the next.

Writes ends, takes claims and hands them to the slots. There is no flush timer: an idle pump sends at once, a busy one
batches by itself. Knows no kind of handler.
"""

import random
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Final

from duly.core.decide import cancelled, completed
from duly.core.job import ClaimedJob, ClaimRequest, Ended, Exchange, Incarnation, JobId
from duly.core.lifecycle import Event, State
from duly.stores.faults import DataFault, Transient
from duly.stores.protocol import Store
from duly.telemetry.events import StoreAway, StoreBack
from duly.telemetry.hub import Hub
from duly.worker.attempt import Attempt, Phase
from duly.worker.badrows import find_bad, poorer
from duly.worker.card import Card
from duly.worker.fetch import Fetch
from duly.worker.floor import Floor
from duly.worker.held import Held
from duly.worker.news import News
from duly.worker.reports import Reports
from duly.worker.run import handed_back
from duly.worker.suspects import Suspects

_BATCH: Final = 1000
_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 5.0
_LONG: Final = 60.0

# Reading a member from its class runs Python code before 3.12, and every job ends so.
_COMPLETE: Final = Event.complete
_LOSE: Final = Event.lose
_READY: Final = State.ready

BEHIND: Final = "the job before it of its ordering key has not ended well here"
_AT_ONCE: Final = timedelta(0)

Deliver = Callable[[Sequence[Attempt]], None]


class Pump:
    """`round` does one step; the thread repeats it. Every other public method may be called from any thread."""

    def __init__(
        self,
        store: Store,
        incarnation: Incarnation,
        floor: Floor,
        fetch: Fetch,
        reports: Reports,
        suspects: Suspects,
        hub: Hub,
    ) -> None:
        self.held: Held = reports.held
        self.fetch = fetch
        self.reports = reports
        self.suspects = suspects
        self.claiming = True
        self.quiet_at = -1.0
        """When the last claim was sent that found nothing while nothing was held."""
        self.worked_at = -1.0
        """When something was last claimed or settled."""
        self.ran = 0
        """Attempts that started and whose end was settled."""
        self.failure: BaseException | None = None
        self.deliver: Deliver = _undelivered
        self.on_forget: Callable[[Attempt], None] = _ignored
        self.on_batch_end: Callable[[], None] = _unmoved
        """The end of a job of a batch has been stored."""
        self.on_idle: Callable[[bool], None] = _unheard
        """Whether there are free slots and nothing to put into them: producers ring only then."""
        self.on_found: Callable[[], None] = _unseen
        """A claim has brought jobs."""
        self.cards: Mapping[str, Card] = {}
        self._store = store
        self._incarnation = incarnation
        self._floor = floor
        self._hub = hub
        self._news = News(hub, fetch.ordering)
        self._outbox: deque[Attempt] = deque()
        self._freed: deque[Attempt] = deque()
        self._unsent: list[Attempt] = []
        self._bell = threading.Event()
        self._asleep = False
        self._stopping = False
        self._retry_at = 0.0
        self._pause = _FIRST_PAUSE
        self._away_since: float | None = None
        self._exchanges = 0
        self._told_idle: bool | None = None
        self._thread = threading.Thread(target=self._run, name="duly-pump", daemon=True)
        floor.on_end = self.ended

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread after the round in flight; what is not written by then stays unwritten."""
        self._stopping = True
        self._bell.set()
        if self._thread.is_alive():
            self._thread.join(timeout=10)

    def ring(self) -> None:
        """There may be work in the store."""
        self.fetch.wake()
        self._bell.set()

    def nudge(self) -> None:
        """Something here changed: do a round now."""
        self._bell.set()

    def ended(self, attempt: Attempt) -> None:
        """A slot is done with an attempt; without an end it never started."""
        self._outbox.append(attempt)
        if self._asleep:
            self._bell.set()

    def free(self, attempt: Attempt) -> None:
        """Its slot has been replaced: it no longer counts against what may be claimed."""
        self._freed.append(attempt)
        self._bell.set()

    def break_chain(self, attempt: Attempt) -> None:
        """Hand back the jobs that wait behind it for their ordering key, at no cost. Called from any thread."""
        chain = attempt.chain
        while chain is not None and chain.waiting:
            try:
                last = chain.waiting.pop()
            except IndexError:
                # Its slot was faster.
                return
            last.reason = last.reason or BEHIND
            self.ended(last)

    def unwritten(self) -> list[Attempt]:
        """Ends that the store has not confirmed."""
        return [*self._unsent, *self._outbox]

    def round(self) -> float:
        """One round trip at most. The seconds to wait before the next, 0 for none."""
        floor, now = self._floor, self._floor.clock()
        if floor.fence.lapsed(now) and not floor.fence.refresh(now) and floor.fence.lapsed(now):
            self._abandon("the lease is over")
            return _LONG
        self._collect(now)
        if now < self._retry_at:
            return self._retry_at - now
        if not self._report(now):
            return max(0.0, self._retry_at - now)
        request = self._request(now)
        if request is None and not self._unsent:
            # With full slots a claim is not due before something ends, which rings.
            until_claim = self.fetch.due_in(now) if self._may_claim(now) else _LONG
            return max(0.001, min(until_claim or _LONG, self.reports.due_in(now), self.suspects.due_in(now)))
        self._exchange(request)
        return max(0.0, self._retry_at - now)

    def _run(self) -> None:
        try:
            while not self._stopping:
                pause = self.round()
                if pause > 0:
                    self._sleep(pause)
        except BaseException as error:
            # Without its pump a process only holds jobs: whoever watches ends it.
            self.failure = error

    def _sleep(self, pause: float) -> None:
        self._asleep = True
        if not self._outbox:
            self._bell.wait(pause)
        self._asleep = False
        self._bell.clear()

    def _may_claim(self, now: float) -> bool:
        return self.claiming and not self._stopping and self._floor.fence.may_claim(now)

    def _request(self, now: float) -> ClaimRequest | None:
        if not self._may_claim(now) or self.suspects.running_alone(self.held):
            return None
        if self.suspects.due(now, self.fetch.outstanding):
            return self.fetch.suspects()
        return self.fetch.request(now, riding=bool(self._unsent))

    def _collect(self, now: float) -> None:
        outbox, freed, released, unsent = self._outbox, self._freed, self.fetch.released, self._unsent
        while freed:
            released(freed.popleft(), now)
        while outbox and len(unsent) < _BATCH:
            attempt = outbox.popleft()
            released(attempt, now)
            if attempt.acked_first:
                # Its end was stored before it ran.
                self._forget(attempt)
                continue
            if attempt.ended is None:
                attempt.phase = Phase.ended
                attempt.ended = (
                    cancelled(attempt.job, attempt.reason, None)
                    if attempt.why == "cancel"
                    else handed_back(attempt, attempt.reason or "it was not started")
                )
            unsent.append(attempt)
            if attempt.chain is not None and not attempt.is_complete:
                self.break_chain(attempt)

    def _exchange(self, request: ClaimRequest | None) -> None:
        batch = self._unsent[:_BATCH]
        sent_at = self._floor.clock()
        try:
            answer = self._store.jobs.exchange(self._incarnation, _ends(batch), request)
        except Transient as fault:
            self._away("exchange", fault)
            return
        except DataFault as fault:
            self._find_bad(batch, fault)
            return
        self._answered()
        self._settle(batch, answer)
        if request is not None:
            self._took(request, answer.claimed, answer.again, sent_at)
        if answer.batches:
            self.on_batch_end()
        self._wish(answer.wishes)

    def _answered(self) -> None:
        now = self._floor.clock()
        self._exchanges += 1
        self._floor.board.exchanged(self._exchanges, now, len(self.held))
        self._retry_at, self._pause = 0.0, _FIRST_PAUSE
        if self._away_since is not None:
            self._hub.emit(StoreBack("exchange", now - self._away_since))
            self._away_since = None

    def _away(self, during: str, fault: Transient) -> None:
        now = self._floor.clock()
        if self._away_since is None:
            self._away_since = now
            self._hub.emit(StoreAway(during, str(fault)))
        if fault.outcome_unknown:
            self.reports.must_report = True
        self._retry_at = now + self._pause * random.uniform(0.5, 1.5)
        self._pause = min(self._pause * 2, _LONGEST_PAUSE)

    def _settle(self, batch: Sequence[Attempt], answer: Exchange) -> None:
        del self._unsent[: len(batch)]
        acked = answer.acked
        if batch:
            self.worked_at = self._floor.clock()
        confirmed: list[Attempt] = []
        for attempt in batch:
            job = attempt.job
            if (job.id, job.run) not in acked:
                self._news.refused(attempt)
                self.fetch.released(attempt, self._floor.clock())
                self._forget(attempt)
            elif attempt.card.ack_first and not attempt.started_at and _is_completion(attempt.ended):
                attempt.acked_first, attempt.ended, attempt.phase = True, None, Phase.waiting
                attempt.wait_from = self._floor.clock()
                confirmed.append(attempt)
            else:
                self._stored(attempt)
                self._forget(attempt)
        if confirmed:
            self.deliver(confirmed)

    def _took(
        self, request: ClaimRequest, claimed: Sequence[ClaimedJob], again: timedelta | None, sent_at: float
    ) -> None:
        now = self._floor.clock()
        if claimed:
            self.worked_at = now
            self.on_found()
            if self._hub.details:
                self._news.claimed(claimed)
        if request.suspects:
            self.suspects.answered(len(claimed), sent_at, now)
        if not request.suspects or self.suspects.mode == "quarantine":
            self.fetch.answered(request, len(claimed), now, again)
            self._tell_idle(self.fetch.dry)
            if not claimed and not self.held and again != _AT_ONCE:
                self.quiet_at = sent_at
        self._take(claimed, now, suspects=request.suspects)

    def _tell_idle(self, idle: bool) -> None:
        if idle != self._told_idle:
            self._told_idle = idle
            self.on_idle(idle)

    def _take(self, claimed: Iterable[ClaimedJob], now: float, *, suspects: bool) -> None:
        ready: list[Attempt] = []
        cards, held, desk, admit = self.cards, self.held, self.reports, self.fetch.admit
        before: Attempt | None = None
        for job in claimed:
            attempt = Attempt(job, cards[job.task], desk, now)
            if not held.add(attempt):
                self._back(attempt, "an earlier run of it has not ended here")
            elif not self.claiming:
                self._back(attempt, "shutdown")
            elif suspects and not self.suspects.take(attempt):
                self._back(attempt, "it waits for a process of its own")
            elif job.follows and self.fetch.follow(attempt, before):
                # Its slot comes to it when the one before has completed.
                before = attempt
                continue
            elif job.follows or not admit(attempt, now):
                self._back(attempt, BEHIND if job.follows else "every slot for it was taken")
            elif attempt.card.ack_first:
                attempt.ended = completed(job, None, timedelta(0))
                self._unsent.append(attempt)
            else:
                ready.append(attempt)
            before = None if attempt.ended is not None else attempt
        if ready:
            self.deliver(ready)

    def _back(self, attempt: Attempt, reason: str) -> None:
        attempt.released = True
        attempt.phase = Phase.ended
        attempt.ended = handed_back(attempt, reason)
        self._unsent.append(attempt)

    def _wish(self, ids: Iterable[JobId]) -> None:
        for id in ids:
            attempt = self.held.find(id)
            if attempt is not None and attempt.phase is not Phase.ended:
                self.reports.stop(attempt, "cancel", "cancelled on request")

    def _report(self, now: float) -> bool:
        """Progress, extensions and the comparison of what is held. False: the store did not answer."""
        if not self.reports.due(now):
            return True
        try:
            wishes, strange = self.reports.round(now)
        except Transient as fault:
            self._away("report", fault)
            return False
        self._answered()
        self._wish(wishes)
        for attempt in strange:
            self._unsent.append(attempt)
        return True

    def _find_bad(self, batch: Sequence[Attempt], fault: DataFault) -> None:
        try:
            find_bad(batch, fault, self._write_alone, self._weaken)
        except Transient as away:
            self._away("exchange", away)

    def _write_alone(self, attempts: Sequence[Attempt]) -> None:
        """Ends without a claim."""
        answer = self._store.jobs.exchange(self._incarnation, _ends(attempts), None)
        self._unsent = [*attempts, *(attempt for attempt in self._unsent if attempt not in attempts)]
        self._settle(attempts, answer)

    def _weaken(self, attempt: Attempt, fault: DataFault) -> None:
        less = poorer(attempt.ended, str(fault))
        if less is not None:
            attempt.ended = less
            self._news.weakened(attempt, str(fault))
            return
        self._unsent.remove(attempt)
        self._forget(attempt)
        self._news.unwritten([attempt], str(fault))

    def _forget(self, attempt: Attempt) -> None:
        if attempt.started_at:
            self.ran += 1
        self._floor.settled(attempt)
        self.reports.forget(attempt)
        if attempt.bytes:
            self.on_forget(attempt)
        if attempt.job.in_batch:
            self.on_batch_end()
        self.held.drop(attempt)

    def _stored(self, attempt: Attempt) -> None:
        ended = attempt.ended
        if ended is None or (ended.event is _COMPLETE and not self._hub.ends):
            # What nearly all of them are, and there is nothing to say of it.
            return
        if ended.event is _LOSE and ended.to is _READY:
            self.suspects.made(self._floor.clock())
        self._news.stored(attempt, ended)

    def _abandon(self, why: str) -> None:
        self._collect(self._floor.clock())
        self._news.unwritten(self._unsent, why)
        for attempt in self._unsent:
            self._forget(attempt)
        self._unsent = []
        self.claiming = False


def _ends(attempts: Iterable[Attempt]) -> list[Ended]:
    return [attempt.ended for attempt in attempts if attempt.ended is not None]


def _is_completion(ended: Ended | None) -> bool:
    return ended is not None and ended.event is _COMPLETE


def _ignored(_: Attempt) -> None:
    pass


def _unmoved() -> None:
    pass


def _unheard(_: bool) -> None:
    pass


def _unseen() -> None:
    pass


def _undelivered(_: Sequence[Attempt]) -> None:
    raise RuntimeError("the pump is not connected to any slots")
