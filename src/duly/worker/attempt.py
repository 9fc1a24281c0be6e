"""One job that this process holds: its phase, its clock, why it must stop, and the handler's port to the store.

Mutable and shared by the slot that runs it, the watch and the pump; each field says in its comment who writes it.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Iterable
from datetime import timedelta
from enum import IntEnum
from typing import Any, Final, Literal, Protocol

import msgspec

from duly.client.job import CallOutcome
from duly.client.steps import StepInTransaction, StepNotKept
from duly.core.control import Permit, Refusal
from duly.core.decide import completed
from duly.core.durations import compact_duration
from duly.core.errors import DulyError, LeaseLost, StoreUnreachable, UsageError
from duly.core.job import ClaimedJob, Ended, Incarnation, Progress, Steps, Token
from duly.core.lifecycle import State
from duly.stores.faults import Transient
from duly.stores.protocol import Store
from duly.worker.board import boottime
from duly.worker.card import Card
from duly.worker.messages import StepKept

Why = Literal["timeout", "cancel", "shutdown", "lease"]


class Phase(IntEnum):
    """Where an attempt stands in this process."""

    waiting = 0
    running = 1
    given_up = 2
    """It was asked to stop and did not: its slot is free, its claimed row is kept until it ends or the process does."""
    ended = 3


# Reading a member from its class runs Python code before 3.12, and every job asks several times.
_WAITING: Final = Phase.waiting
_RUNNING: Final = Phase.running
_COMPLETED: Final = State.completed


class Desk(Protocol):
    """What all attempts of one incarnation share."""

    incarnation: Incarnation
    stopping: bool

    @property
    def store(self) -> Store: ...

    def stop_at(self) -> float:
        """When the lease forces handlers to end."""

    def note_progress(self, attempt: "Attempt", progress: Progress) -> None: ...

    def note_extension(self, attempt: "Attempt", by: timedelta) -> None: ...

    def note_cursor(self, attempt: "Attempt", name: str, position: int) -> None: ...

    def note_call(self, attempt: "Attempt", resource: str, outcome: CallOutcome) -> None:
        """How a use of a resource ended."""

    def forget(self, attempt: "Attempt") -> None:
        """Report nothing more of what it said."""

    def keep_step(self, attempt: "Attempt", name: str, value: bytes) -> StepKept:
        """Write it; blocks until the store has answered, or until the attempt must not wait any longer."""

    def akeep_step(self, attempt: "Attempt", name: str, value: bytes) -> Awaitable[StepKept]:
        """As `keep_step`, for the handler that runs on this loop and in this context; a cancellation waits for it."""


class Chain:
    """Jobs of one ordering key that were claimed together, and run one after another in one slot."""

    __slots__ = ("kind", "left", "waiting")

    def __init__(self, kind: int) -> None:
        self.kind = kind
        """Of slot, which the head was counted for."""
        self.waiting: deque[Attempt] = deque()
        """Those that have not begun, in order. A slot takes from the left; who hands them back, from the right."""
        self.left = 1
        """Members that the pump has not collected yet: the last one gives the slot free. The pump's thread alone."""


class Attempt:
    """One claimed job. Also the AttemptPort of its Job."""

    __slots__ = (
        "acked_first", "asked_at", "bytes", "called", "card", "chain", "committed", "cursors", "deadline_at", "desk",
        "ended", "handed_over", "held_at", "job", "left", "phase", "reason", "record", "released", "seals", "slot",
        "started_at", "verdict", "wait_from", "why",
    )  # fmt: skip

    def __init__(self, job: ClaimedJob, card: Card, desk: Desk, held_at: float) -> None:
        self.job = job
        self.card = card
        self.desk = desk
        self.held_at = held_at
        self.wait_from = held_at
        """Unstarted since; moves on while its arguments are read."""
        self.phase: Phase = _WAITING
        self.started_at = 0.0
        self.deadline_at = 0.0
        self.why: Why | None = None
        """Why it must stop. The first reason stays."""
        self.reason = ""
        self.asked_at = 0.0
        self.record = -1
        self.ended: Ended | None = None
        self.verdict: Ended | None = None
        """Decided when it was given up; whatever its handler says later comes too late."""
        self.committed: Ended | None = None
        """What `complete` wrote in a transaction of our own."""
        self.handed_over = False
        """`complete` was written into the user's transaction: only the store knows whether it committed."""
        self.acked_first = False
        self.released = False
        """The pump no longer counts it against its slots."""
        self.seals = False
        """What it stores is encrypted. Written when its arguments are read."""
        self.slot: object = None
        self.bytes = 0
        self.left = _NOTHING
        """What earlier runs have left; read before it starts, where the claim says that there is something."""
        self.cursors: dict[str, int] = {}
        """Loop name -> items done, of those that moved in this attempt. Written by the handler's thread."""
        self.called: frozenset[str] = _NONE
        """Resources of which its blocks have spoken: its end says nothing more of them."""
        self.chain: Chain | None = None
        """The jobs of its ordering key that were claimed with it."""

    @property
    def key(self) -> tuple[int, int]:
        return (self.job.id, self.job.run)

    @property
    def is_complete(self) -> bool:
        """It ended here as completed."""
        return self.ended is not None and self.ended.to is _COMPLETED

    def begin(self, now: float) -> None:
        """waiting -> running."""
        timeout = self.job.timeout
        self.started_at = now
        self.deadline_at = now + (self.card.timeout if timeout is None else timeout.total_seconds())
        self.phase = _RUNNING

    def ask(self, why: Why, reason: str, now: float) -> bool:
        """Ask the handler to stop; False when it was asked before."""
        if self.why is not None:
            return False
        self.reason = reason
        self.asked_at = now
        self.why = why
        return True

    def elapsed(self, now: float) -> timedelta:
        # From whole microseconds: five times as fast as from a float.
        return timedelta(0, 0, int((now - self.started_at) * 1_000_000))

    def timeout_text(self) -> str:
        limit = timedelta(seconds=round(self.deadline_at - self.started_at, 3))
        return f"timeout: ran longer than {compact_duration(limit)}"

    def carrying(self, ended: Ended) -> Ended:
        """`ended` with how far the loops came, where the job may run again."""
        if not self.cursors or ended.to is _COMPLETED:
            return ended
        return msgspec.structs.replace(ended, cursors=tuple(self.cursors.items()))

    def heard(self, cursors: Iterable[tuple[str, int]]) -> None:
        """How far its loops came in another process."""
        self.cursors.update(cursors)

    # The port of client.job.Job:

    def now(self) -> float:
        return boottime()

    def deadline(self) -> float:
        return self.deadline_at

    def should_stop(self) -> bool:
        if self.why is not None or self.desk.stopping:
            return True
        now = boottime()
        return now >= self.deadline_at or now >= self.desk.stop_at()

    def progress(self, done: int, of: int | None, note: str | None) -> None:
        if not self.handed_over:
            self.desk.note_progress(self, Progress(self.job.id, self.job.run, done, of, note))

    def extend(self, by: timedelta) -> None:
        self._check_live()
        self.deadline_at += by.total_seconds()
        self.desk.note_extension(self, by)

    def steps(self) -> Steps:
        if self.handed_over or self.committed is not None:
            raise UsageError(
                f"job {self.job.id} ({self.job.task}) has written its completion: nothing comes after job.complete(); "
                "run its steps and loops before"
            )
        if not self.acked_first:
            self._check_live()
        return self.left

    def keep_step(self, name: str, value: bytes) -> None:
        if self.acked_first:
            # It is never run again: nobody would read it.
            return
        self._check_live()
        self._check_kept(name, self.desk.keep_step(self, name, self._step(name, value)))

    async def akeep_step(self, name: str, value: bytes) -> None:
        if self.acked_first:
            return
        self._check_live()
        # Asked to stop, the write tries once and no longer.
        self._check_kept(name, await self.desk.akeep_step(self, name, self._step(name, value)))

    def cursor(self, name: str, position: int) -> None:
        if self.acked_first or self.handed_over:
            return
        self._check_live()
        self.cursors[name] = position
        self.desk.note_cursor(self, name, position)

    def encode(self, value: object) -> tuple[bytes | None, str | None]:
        """A result as it is stored, or a note why it cannot be."""
        data, note = self.card.encode(value)
        if self.seals and data is not None:
            data = self.card.sealing.seal_result(self.job.id, data)
        return data, note

    def _step(self, name: str, value: bytes) -> bytes:
        return self.card.sealing.seal_step(self.job.id, name, value) if self.seals else value

    def acquire(self, name: str) -> Permit | Refusal:
        if self.acked_first:
            raise UsageError(
                f"job {self.job.id} ({self.job.task}) was acknowledged before it started: no lease would end what it "
                f"holds ({name}); take it outside, with jobs.lock(…, ttl=) for a lock, or leave ack='start' out"
            )
        self._check_live()
        token = Token(self.desk.incarnation, self.job.id, self.job.run)
        try:
            return self.desk.store.control.acquire([name], token, None)
        except Transient as fault:
            raise StoreUnreachable(f"{name} could not be taken: {fault}") from fault

    def release(self, permit: Permit) -> bool:
        if self.committed is not None or self.handed_over:
            # Given back with the end that the handler itself has written.
            return True
        try:
            return self.desk.store.control.release(permit)
        except Transient as fault:
            raise StoreUnreachable(f"{', '.join(permit.names)} could not be given back: {fault}") from fault

    def note_call(self, resource: str, outcome: CallOutcome) -> None:
        self.called |= {resource}
        self.desk.note_call(self, resource, outcome)

    def complete(self, result: bytes | None, note: str | None, connection: Any) -> None:
        ended = self._completion(result, note)
        desk = self.desk
        # What is reported of a row that the handler's transaction holds would wait for that transaction.
        desk.forget(self)
        if connection is None:
            answer = desk.store.jobs.exchange(desk.incarnation, [ended], None)
            if self.key not in answer.acked:
                raise self._lost()
            self.committed = ended
            return
        if not desk.store.complete_on(connection, desk.incarnation, ended):
            raise self._lost()
        self.handed_over = True

    async def acomplete(self, result: bytes | None, note: str | None, connection: Any) -> None:
        if connection is None:
            # Shielded: a cancelled wait must not leave open whether the completion is known here.
            work = asyncio.get_running_loop().run_in_executor(None, self.complete, result, note, None)
            await asyncio.shield(work)
            return
        ended = self._completion(result, note)
        self.desk.forget(self)
        if not await self.desk.store.acomplete_on(connection, self.desk.incarnation, ended):
            raise self._lost()
        self.handed_over = True

    def _completion(self, result: bytes | None, note: str | None) -> Ended:
        self._check_live()
        return completed(self.job, result, self.elapsed(boottime()), note)

    def _check_kept(self, name: str, kept: StepKept) -> None:
        if kept.fault:
            raise _step_fault(name, kept)
        if not kept.live:
            raise self._lost()

    def _check_live(self) -> None:
        if self.phase is not _RUNNING or self.why == "lease" or self.acked_first:
            raise self._lost()

    def _lost(self) -> LeaseLost:
        return LeaseLost(
            f"this attempt of job {self.job.id} ({self.job.task}) is over: its lease was lost or its end is stored; "
            "roll back and write nothing more",
            job_id=self.job.id,
        )


def must_be_read(attempt: Attempt) -> bool:
    """Whether its claim has not brought along all that it needs."""
    return attempt.job.args is None or attempt.job.has_steps


def _step_fault(name: str, kept: StepKept) -> DulyError:
    if kept.why == "unfit":
        return StepNotKept(f"step {name!r} has run, but the store cannot hold its value: {kept.fault}")
    if kept.why == "inside":
        return StepInTransaction(
            f"step {name!r} has run, but its write would wait for the transaction around it: call job.step outside of "
            "your transaction, or do its work there and end it with job.complete(connection=)"
        )
    return StoreUnreachable(
        f"step {name!r} has run, but it could not be written down, so that the next attempt runs it again: {kept.fault}"
    )


ROLLED_BACK: Final = "completion was rolled back"
_NOTHING: Final = Steps()
_NONE: Final[frozenset[str]] = frozenset()
