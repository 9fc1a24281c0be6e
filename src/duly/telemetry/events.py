"""The typed events of a worker's life, each with its weight and the sentence a person reads.

Plain data: knows neither who emits them nor who listens.
"""

from datetime import datetime, timedelta
from typing import ClassVar, Literal

from msgspec import Struct

from duly.core.durations import format_duration
from duly.core.why import resume_key_command

Level = Literal["debug", "info", "warning", "error"]


class Happening(Struct, frozen=True):
    """Base of all events."""

    level: ClassVar[Level] = "info"

    def sentence(self) -> str:
        """One line for a person."""
        return type(self).__name__


class WorkerStarted(Happening, frozen=True):
    store: str
    queues: tuple[str, ...]
    tasks: tuple[str, ...]
    slots: str
    cores: int
    processes: int

    def sentence(self) -> str:
        # The start block: what people compare when "nothing runs".
        return (
            f"duly worker on {self.store}\n"
            f"  queues  {', '.join(self.queues)}\n"
            f"  tasks   {', '.join(self.tasks) or 'none'}\n"
            f"  slots   {self.slots}\n"
            f"  cores   {self.cores}, processes {self.processes}"
        )


class ChildStarted(Happening, frozen=True):
    pid: int
    incarnation: int
    quarantine: bool = False

    def sentence(self) -> str:
        kind = "quarantine process" if self.quarantine else "process"
        return f"{kind} {self.pid} works as incarnation {self.incarnation}"


class ChildEnded(Happening, frozen=True):
    level: ClassVar[Level] = "info"
    pid: int
    incarnation: int | None
    reason: str
    moved: int = 0
    """Jobs that go back because of it, as soon as the store takes them."""

    def sentence(self) -> str:
        back = f"; {self.moved} jobs go back" if self.moved else ""
        return f"process {self.pid} ended: {self.reason}{back}"


class ChildDied(Happening, frozen=True):
    level: ClassVar[Level] = "error"
    pid: int
    incarnation: int | None
    reason: str
    started: tuple[int, ...] = ()
    """Jobs whose handlers ran in it."""

    def sentence(self) -> str:
        ran = f"; running in it: {_ids(self.started)}" if self.started else ""
        return f"process {self.pid} died: {self.reason}{ran}; it is replaced"


class ProcessesScaled(Happening, frozen=True):
    before: int
    after: int
    why: str

    def sentence(self) -> str:
        verb = "starting" if self.after > self.before else "stopping"
        number = abs(self.after - self.before)
        processes = "1 process" if number == 1 else f"{number} processes"
        return f"{verb} {processes}, {self.after} in all: {self.why}"


class AttemptEnded(Happening, frozen=True):
    level: ClassVar[Level] = "debug"
    id: int
    run: int
    queue: str
    task: str
    outcome: str
    to: str
    reason: str | None
    elapsed: float | None
    """Seconds."""
    attempt: int = 1
    tenant: str = ""
    correlation_id: str = ""

    def sentence(self) -> str:
        took = "" if self.elapsed is None else f" after {self.elapsed:.3f} s"
        why = "" if self.reason is None else f": {self.reason}"
        return f"job {self.id} ({self.task}) {self.outcome}{took}, now {self.to}{why}"


class JobDied(AttemptEnded, frozen=True):
    level: ClassVar[Level] = "warning"

    def sentence(self) -> str:
        return f"job {self.id} ({self.task} on {self.queue}) is dead: {self.reason}"


class KeyStopped(Happening, frozen=True):
    """The head of an ordering key died, and its queue lets nothing pass it."""

    level: ClassVar[Level] = "error"
    id: int
    queue: str
    tenant: str
    key: str

    def sentence(self) -> str:
        resume = resume_key_command(self.queue, self.tenant, self.key)
        return (
            f"ordering key {self.key} of {self.queue} stands still behind job {self.id}, which is dead. "
            f"Again: duly dead redrive {self.id}; on without it: {resume}"
        )


class GuardSaidNo(Happening, frozen=True):
    level: ClassVar[Level] = "debug"
    id: int
    queue: str
    task: str
    guard: str
    reason: str
    """As stored; it begins with the guard's name."""

    def sentence(self) -> str:
        return f"job {self.id} ({self.task}) was skipped: {self.reason}"


class LeaseWasLost(Happening, frozen=True):
    level: ClassVar[Level] = "warning"
    id: int
    run: int
    task: str
    outcome: str

    def sentence(self) -> str:
        return (
            f"job {self.id} ({self.task}) run {self.run} belongs to someone else by now; "
            f"its {self.outcome} was not stored"
        )


class OutcomeAltered(Happening, frozen=True):
    level: ClassVar[Level] = "warning"
    id: int
    task: str
    note: str

    def sentence(self) -> str:
        return f"job {self.id} ({self.task}): {self.note}"


class Fenced(Happening, frozen=True):
    level: ClassVar[Level] = "error"
    incarnation: int
    reason: str
    jobs: tuple[int, ...]

    def sentence(self) -> str:
        return f"incarnation {self.incarnation} stops its handlers: {self.reason}; they ran {_ids(self.jobs)}"


class StoreAway(Happening, frozen=True):
    level: ClassVar[Level] = "warning"
    during: str
    error: str

    def sentence(self) -> str:
        return f"the store does not answer ({self.during}): {self.error}; trying again"


class StoreBack(Happening, frozen=True):
    during: str
    after: float

    def sentence(self) -> str:
        return f"the store answers again ({self.during}) after {self.after:.1f} s"


class LoopHung(Happening, frozen=True):
    level: ClassVar[Level] = "error"
    id: int | None
    task: str | None
    stuck_for: float
    stack: str

    def sentence(self) -> str:
        who = f"job {self.id} ({self.task})" if self.id is not None else "a handler"
        return (
            f"{who} has not let the event loop turn for {self.stuck_for:.1f} s; its process is replaced. "
            f"It stands here:\n{self.stack}"
        )


class Overrun(Happening, frozen=True):
    level: ClassVar[Level] = "error"
    id: int
    task: str
    kind: str
    stuck: int
    """Handlers of this process that did not stop so far."""

    def sentence(self) -> str:
        remedy = "; isolation='process' makes such handlers killable" if self.kind == "thread" else ""
        return (
            f"job {self.id} ({self.task}) did not stop when asked; its {self.kind} is given up and the process is "
            f"drained and replaced, {self.stuck} stuck so far{remedy}"
        )


class StopAsked(Happening, frozen=True):
    reason: str
    grace: float
    running: int | None = None

    def sentence(self) -> str:
        running = "" if self.running is None else f", {self.running} running"
        return (
            f"stopping ({self.reason}): nothing new is claimed, running jobs have {self.grace:g} s{running}"
        )


class GraceOver(Happening, frozen=True):
    level: ClassVar[Level] = "warning"
    jobs: tuple[int, ...]

    def sentence(self) -> str:
        return f"the grace is over; handed back without spending an attempt: {_ids(self.jobs)}"


class AcksUnwritten(Happening, frozen=True):
    level: ClassVar[Level] = "error"
    jobs: tuple[int, ...]
    error: str

    def sentence(self) -> str:
        return f"the ends of {_ids(self.jobs)} could not be written ({self.error}); their leases will bring them back"


class EndsRefused(Happening, frozen=True):
    level: ClassVar[Level] = "warning"
    jobs: tuple[int, ...]
    pid: int
    """The process that had run them."""

    def sentence(self) -> str:
        return (
            f"the ends of {_ids(self.jobs)} in process {self.pid} came too late: others have run them since"
        )


class DutyFailed(Happening, frozen=True):
    level: ClassVar[Level] = "error"
    duty: str
    error: str

    def sentence(self) -> str:
        return f"{self.duty} failed: {self.error}; it is tried again"


class LoopDied(Happening, frozen=True):
    level: ClassVar[Level] = "error"
    part: str
    error: str

    def sentence(self) -> str:
        return f"the worker's own {self.part} died: {self.error}; the process ends and is replaced"


class Recovered(Happening, frozen=True):
    level: ClassVar[Level] = "warning"
    jobs: int
    how: str

    def sentence(self) -> str:
        return f"{self.jobs} jobs went back: {self.how}"


class JobsShed(Happening, frozen=True):
    level: ClassVar[Level] = "warning"
    jobs: int
    why: str = "their queues held more than max_depth, and the least urgent went first"

    def sentence(self) -> str:
        jobs = "1 job was" if self.jobs == 1 else f"{self.jobs} jobs were"
        return f"{jobs} shed: {self.why}; look at them: duly jobs --state shed"


class StoreFilling(Happening, frozen=True):
    level: ClassVar[Level] = "warning"
    why: str
    refused: tuple[str, ...]

    def sentence(self) -> str:
        if not self.refused:
            return f"the store has room again for every queue: {self.why}"
        return f"{self.why}; its producers are refused for now: {', '.join(self.refused)}"


class RecordsDropped(Happening, frozen=True):
    level: ClassVar[Level] = "warning"
    jobs: int

    def sentence(self) -> str:
        return (
            f"{self.jobs} finished jobs of refused queues went before their time, to make room in the store"
        )


class QueueWasFull(Happening, frozen=True):
    level: ClassVar[Level] = "warning"
    queue: str
    answer: str
    """What its producers met: "refused", "slowed" or "stored"."""
    jobs: int
    why: str

    def sentence(self) -> str:
        met = {"slowed": "stored after a wait", "stored": "stored above its bound"}.get(
            self.answer, self.answer
        )
        jobs = "1 job was" if self.jobs == 1 else f"{self.jobs} jobs were"
        return f"queue {self.queue} is full, {jobs} {met}: {self.why}"


class QueueStopped(Happening, frozen=True):
    level: ClassVar[Level] = "error"
    queue: str
    why: str
    until: datetime

    def sentence(self) -> str:
        return (
            f"queue {self.queue} stopped itself: {self.why}; one job tries at {self.until:%H:%M:%S} UTC. "
            f"Look: duly dead groups --queue {self.queue}; start at once: duly resume {self.queue}"
        )


class QueueGoesOn(Happening, frozen=True):
    level: ClassVar[Level] = "warning"
    queue: str

    def sentence(self) -> str:
        return f"queue {self.queue} goes on: the job that tried has completed"


class QueueLate(Happening, frozen=True):
    """Once for each time that it becomes so."""

    level: ClassVar[Level] = "warning"
    queue: str
    wait_target: timedelta
    oldest: timedelta
    """How long the job that is ready longest has waited."""

    def sentence(self) -> str:
        waited = format_duration(timedelta(seconds=round(self.oldest.total_seconds())))
        return (
            f"queue {self.queue} is late: its oldest ready job has waited {waited}, above "
            f"wait_target={format_duration(self.wait_target)}. Look: duly why {self.queue}"
        )


class QueueInTime(Happening, frozen=True):
    """After it was late."""

    queue: str

    def sentence(self) -> str:
        return f"queue {self.queue} is in time again"


class DeadLettersExpire(Happening, frozen=True):
    level: ClassVar[Level] = "warning"
    queue: str
    owner: str | None
    count: int
    since: datetime

    def sentence(self) -> str:
        owner = f" of {self.owner}" if self.owner else ""
        return (
            f"{self.count} dead letters{owner} on queue {self.queue} will be purged from "
            f"{self.since:%Y-%m-%d %H:%M} UTC; look at them: duly dead list --queue {self.queue}"
        )


class BreakerChanged(Happening, frozen=True):
    level: ClassVar[Level] = "warning"
    resource: str
    """The limit's name, `resource:NAME`."""
    state: str
    until: datetime | None

    def sentence(self) -> str:
        if self.state == "closed":
            return f"{self.resource} answers again: its breaker is closed"
        until = "" if self.until is None else f" until {self.until:%H:%M:%S} UTC"
        return f"the breaker of {self.resource} is {self.state}{until}: too many calls failed, its jobs wait"


class AlertChanged(Happening, frozen=True):
    level: ClassVar[Level] = "warning"
    title: str
    """Such as "FIRING late queue:mail"."""
    text: str
    owner: str | None
    id: str

    def sentence(self) -> str:
        owner = "" if self.owner is None else f" (owner: {self.owner})"
        return f"alert {self.title}: {self.text}{owner}"


class AlertNotSent(Happening, frozen=True):
    level: ClassVar[Level] = "error"
    sink: str
    error: str
    final: bool
    """Nobody will try again."""

    def sentence(self) -> str:
        again = "it is given up" if self.final else "it is tried again"
        return (
            f"the sink {self.sink} did not take an alert: {self.error}; {again}. "
            f"Try it: duly alerts test {self.sink}"
        )


class QueuesUnwatched(Happening, frozen=True):
    level: ClassVar[Level] = "warning"
    queues: tuple[str, ...]

    def sentence(self) -> str:
        return (
            f"nobody owns, and no alert watches, {', '.join(self.queues)}: jobs.queue(…, owner='…', alert='…'), or "
            "DULY_ALERTS for all"
        )


class HandlerSaid(Happening, frozen=True):
    level: ClassVar[Level] = "warning"
    task: str
    text: str

    def sentence(self) -> str:
        return f"{self.task}: {self.text}"


def _ids(ids: tuple[int, ...]) -> str:
    shown = ", ".join(map(str, ids[:20])) or "none"
    more = f" and {len(ids) - 20} more" if len(ids) > 20 else ""
    return f"jobs {shown}{more}" if len(ids) != 1 else f"job {shown}"
