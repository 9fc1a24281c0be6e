"""The wire between a process and the store: it may break before a call or swallow its reply; and it keeps the books.

What a call really did is compared with what it was allowed to do, before the caller hears of it or not.
"""

import random
from collections.abc import Callable, Sequence
from datetime import timedelta

from duly.core.job import (
    ClaimRequest,
    Ended,
    Exchange,
    Incarnation,
    JobId,
    JobRecord,
    NewJob,
    Progress,
    Stored,
    WorkerInfo,
)
from duly.core.leases import Beat
from duly.core.lifecycle import State
from duly.stores.faults import Transient
from duly.stores.protocol import Store, Swept

Token = tuple[Incarnation, JobId, int]


class Books:
    """What every token was used for, whoever heard of it."""

    def __init__(self) -> None:
        self.jobs: set[JobId] = set()
        self.claimed: dict[Token, bool] = {}
        """Every token ever given out, and whether it has been ended."""
        self.changes = 0
        """Calls after which the store may tell something else."""
        self.stale = 0
        """Ends refused because the lease was lost."""
        self.replies_lost = 0


class Wire:
    """A store as one process sees it. `away` breaks every call; otherwise faults are drawn."""

    def __init__(
        self,
        store: Store,
        books: Books,
        draw: random.Random,
        fault_rate: float,
        note: Callable[[str], None],
    ) -> None:
        self.store = store
        self.note = note
        self.books = books
        self.away = False
        self._draw = draw
        self._rate = fault_rate
        self.url = store.url
        self.capabilities = store.capabilities
        self.jobs = WiredJobs(self)
        self.leases = WiredLeases(self)
        self.upkeep = WiredUpkeep(self)
        self.inspection = store.inspection
        self.operator = WiredOperator(self)

    def before(self) -> None:
        if self.away or self._draw.random() < self._rate / 2:
            raise Transient("the connection broke before the call", outcome_unknown=self._draw.random() < 0.5)

    def after(self, *, changed: bool = False) -> None:
        self.books.changes += changed
        if self._draw.random() < self._rate / 2:
            self.books.replies_lost += 1
            self.note("    and the reply is lost")
            raise Transient("the reply was lost", outcome_unknown=True)


class WiredJobs:
    """JobStore over a wire."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._real = wire.store.jobs

    def enqueue(self, jobs: Sequence[NewJob]) -> list[Stored]:
        self._wire.before()
        stored = self._real.enqueue(jobs)
        self._wire.books.jobs.update(answer.id for answer in stored)
        self._wire.after(changed=True)
        return stored

    def exchange(
        self, incarnation: Incarnation, ended: Sequence[Ended], request: ClaimRequest | None
    ) -> Exchange:
        self._wire.before()
        before = self._wire.store.inspection.lookup([end.id for end in ended]) if ended else []
        answer = self._real.exchange(incarnation, ended, request)
        self._tell(incarnation, ended, answer)
        self._check_ends(incarnation, ended, before, answer)
        self._check_claims(incarnation, answer)
        self._wire.after(changed=bool(ended or answer.claimed))
        return answer

    def _tell(self, incarnation: Incarnation, ended: Sequence[Ended], answer: Exchange) -> None:
        ends = [f"{end.event} {(end.id, end.run)}" for end in ended]
        claims = [f"claim {(job.id, job.run)}" for job in answer.claimed]
        if ends or claims:
            self._wire.note(f"    {incarnation}: {', '.join(ends + claims)}")

    def _check_ends(
        self,
        incarnation: Incarnation,
        ended: Sequence[Ended],
        before: Sequence[JobRecord | None],
        answer: Exchange,
    ) -> None:
        books = self._wire.books
        told: set[Token] = set()
        for end, row in zip(ended, before, strict=True):
            token = (incarnation, end.id, end.run)
            if token in told:
                # Handed back twice after a lost reply: the store applies it once.
                continue
            told.add(token)
            live = row is not None and row.state is State.running
            live = live and row is not None and (row.incarnation, row.run) == (incarnation, end.run)
            acked = (end.id, end.run) in answer.acked
            assert not live or acked, f"the live token {token} was refused"
            if acked and not live:
                assert books.claimed.get(token), f"a stale end was accepted: {token} {end.event}"
            books.stale += not acked
            if live:
                assert not books.claimed[token], f"the token {token} ended twice"
                books.claimed[token] = True

    def _check_claims(self, incarnation: Incarnation, answer: Exchange) -> None:
        for job in answer.claimed:
            token = (incarnation, job.id, job.run)
            assert token not in self._wire.books.claimed, f"the token {token} was given out twice"
            self._wire.books.claimed[token] = False

    def arguments(self, ids: Sequence[JobId]) -> dict[JobId, bytes]:
        self._wire.before()
        return self._real.arguments(ids)

    def extend(self, incarnation: Incarnation, id: JobId, run: int, by: timedelta) -> bool:
        self._wire.before()
        answer = self._real.extend(incarnation, id, run, by)
        self._wire.after()
        return answer

    def report(
        self, incarnation: Incarnation, progress: Sequence[Progress]
    ) -> tuple[list[tuple[JobId, int]], list[JobId]]:
        self._wire.before()
        answer = self._real.report(incarnation, progress)
        self._wire.after()
        return answer


class WiredLeases:
    """LeaseStore over a wire."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._real = wire.store.leases

    def register(self, info: WorkerInfo) -> Incarnation:
        self._wire.before()
        return self._real.register(info)

    def beat(self, incarnations: Sequence[Incarnation]) -> frozenset[Incarnation]:
        self._wire.before()
        alive = self._real.beat(incarnations)
        self._wire.after()
        return alive

    def beats(self) -> list[Beat]:
        self._wire.before()
        return self._real.beats()

    def reap(self, overdue: Sequence[Beat], poison: int) -> int:
        self._wire.before()
        moved = self._real.reap(overdue, poison)
        self._wire.note(f"    reaps {[beat.incarnation for beat in overdue]}: {moved} jobs")
        self._wire.after(changed=moved > 0)
        return moved

    def disown(
        self, incarnation: Incarnation, started: Sequence[tuple[JobId, int]], reason: str, poison: int
    ) -> int:
        self._wire.before()
        moved = self._real.disown(incarnation, started, reason, poison)
        self._wire.note(f"    {incarnation} disowned, {list(started)} had started: {moved} jobs")
        self._wire.after(changed=moved > 0)
        return moved

    def retire(self, incarnation: Incarnation) -> int:
        self._wire.before()
        moved = self._real.retire(incarnation)
        self._wire.after(changed=moved > 0)
        return moved


class WiredUpkeep:
    """UpkeepStore over a wire, as far as the duties here use it."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._real = wire.store.upkeep

    def promote(self, most: int = 1000) -> tuple[int, timedelta | None]:
        self._wire.before()
        answer = self._real.promote(most)
        self._wire.after(changed=answer[0] > 0)
        return answer

    def sweep(self, unknown_after: timedelta, poison: int, grace: timedelta) -> Swept:
        self._wire.before()
        swept = self._real.sweep(unknown_after, poison, grace)
        if swept.orphans or swept.overdue:
            self._wire.note(f"    {swept}")
        moved = swept.expired + swept.orphans + swept.overdue + swept.abandoned + swept.unparked
        self._wire.after(changed=moved > 0)
        return swept

    def parked_tasks(self) -> tuple[str, ...]:
        self._wire.before()
        return self._real.parked_tasks()


class WiredOperator:
    """The one verb that a heart uses."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._real = wire.store.operator

    def draining(self, incarnations: Sequence[Incarnation]) -> frozenset[Incarnation]:
        self._wire.before()
        return self._real.draining(incarnations)
