"""The wire between a process and the store: it may break before a call or swallow its reply; and it keeps the books.

What a call really did is compared with what it was allowed to do, before the caller hears of it or not.
"""

import random
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from duly.core.job import (
    ClaimRequest,
    Cursor,
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
from duly.core.lifecycle import FINAL, Outcome, State
from duly.core.registration import ScheduleRecord
from duly.stores.faults import Transient
from duly.stores.protocol import Store, Swept

Token = tuple[Incarnation, JobId, int]


class Books:
    """What every token was used for, whoever heard of it."""

    def __init__(self) -> None:
        self.jobs: set[JobId] = set()
        self.new: dict[JobId, NewJob] = {}
        """As they were asked for."""
        self.requests: dict[bytes, JobId] = {}
        """By idempotency key: the job that stands for it."""
        self.duplicates = 0
        self.newest: dict[bytes, int] = {}
        """By unique key: the highest version that has completed."""
        self.fired: set[str] = set()
        """Triggers of the due times that have become jobs."""
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
        self.draw = draw
        self._rate = fault_rate
        self.url = store.url
        self.capabilities = store.capabilities
        self.jobs = WiredJobs(self)
        self.leases = WiredLeases(self)
        self.upkeep = WiredUpkeep(self)
        self.inspection = store.inspection
        self.operator = WiredOperator(self)
        self.schedules = WiredSchedules(self)

    def before(self) -> None:
        if self.away or self.draw.random() < self._rate / 2:
            raise Transient("the connection broke before the call", outcome_unknown=self.draw.random() < 0.5)

    def after(self, *, changed: bool = False) -> None:
        self.books.changes += changed
        if self.draw.random() < self._rate / 2:
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
        for job, answer in zip(jobs, stored, strict=True):
            self._note(job, answer, alone=len(jobs) == 1)
        self._wire.after(changed=True)
        return stored

    def _note(self, job: NewJob, answer: Stored, *, alone: bool) -> None:
        books = self._wire.books
        if answer.outcome is Outcome.created:
            assert answer.id not in books.jobs, f"job {answer.id} was created twice"
            books.jobs.add(answer.id)
            books.new[answer.id] = job
        else:
            books.duplicates += 1
        if answer.outcome is Outcome.duplicate and alone and job.idempotency is None:
            row = self._wire.store.inspection.lookup([answer.id])[0]
            assert row is not None, f"job {answer.id} holds a key and is lost"
            assert row.state not in FINAL, f"job {answer.id} is {row.state} and holds a key"
        if job.idempotency is not None:
            first = books.requests.setdefault(job.idempotency, answer.id)
            assert first == answer.id, f"one request became the jobs {first} and {answer.id}"

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
                if end.to is State.completed:
                    self._note_version(end.id)

    def _note_version(self, id: JobId) -> None:
        books = self._wire.books
        new = books.new.get(id)
        if new is not None and new.unique is not None and new.version is not None:
            key = new.unique.digest
            books.newest[key] = max(new.version, books.newest.get(key, new.version))

    def _check_claims(self, incarnation: Incarnation, answer: Exchange) -> None:
        for job in answer.claimed:
            token = (incarnation, job.id, job.run)
            assert token not in self._wire.books.claimed, f"the token {token} was given out twice"
            self._wire.books.claimed[token] = False
            new = self._wire.books.new.get(job.id)
            if new is not None and new.unique is not None and new.version is not None:
                newest = self._wire.books.newest.get(new.unique.digest, new.version)
                assert new.version >= newest, f"job {job.id} runs, {newest - new.version} versions too old"

    def arguments(self, ids: Sequence[JobId]) -> dict[JobId, bytes]:
        self._wire.before()
        return self._real.arguments(ids)

    def extend(self, incarnation: Incarnation, id: JobId, run: int, by: timedelta) -> bool:
        self._wire.before()
        answer = self._real.extend(incarnation, id, run, by)
        self._wire.after()
        return answer

    def report(
        self, incarnation: Incarnation, progress: Sequence[Progress], cursors: Sequence[Cursor] = ()
    ) -> tuple[list[tuple[JobId, int]], list[JobId]]:
        self._wire.before()
        answer = self._real.report(incarnation, progress, cursors)
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


class WiredSchedules:
    """What the duty of schedules asks; what it is told may be old by the time it acts."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._real = wire.store.schedules
        self._told: tuple[datetime, list[ScheduleRecord], datetime | None] | None = None

    def due(self, most: int = 100) -> tuple[datetime, list[ScheduleRecord], datetime | None]:
        self._wire.before()
        if self._told is None or self._wire.draw.random() < 0.8:
            self._told = self._real.due(most)
        told, self._told = self._told, self._real.due(most)
        return told

    def fire(
        self,
        name: str,
        expected: datetime,
        next_at: datetime,
        last_at: datetime,
        jobs: Sequence[NewJob],
        missed: int,
    ) -> list[Stored] | None:
        self._wire.before()
        known = [record for record in self._real.all() if record.schedule.name == name]
        allowed = bool(known) and not known[0].paused and known[0].next_at == expected
        stored = self._real.fire(name, expected, next_at, last_at, jobs, missed)
        assert (stored is not None) == allowed, f"{name} {'fired' if stored is not None else 'did not fire'}"
        books = self._wire.books
        for job, answer in zip(jobs, stored or (), strict=stored is not None):
            assert job.trigger is not None
            assert job.trigger not in books.fired, f"{job.trigger} came twice"
            books.fired.add(job.trigger)
            books.jobs.add(answer.id)
            books.new[answer.id] = job
            self._wire.note(f"    {job.trigger} becomes job {answer.id}")
        self._wire.after(changed=stored is not None)
        return stored

    def fail(self, name: str, expected: datetime, failure: str) -> bool:
        self._wire.before()
        return self._real.fail(name, expected, failure)
