"""The handle a handler gets: who it is, how much time is left, and its words to the store through an AttemptPort.

Knows neither the worker nor a store. A direct call of a task gets a local handle that writes nothing.
"""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, Self, TypeVar, overload

from duly.client.blocking import refuse_blocking
from duly.client.steps import Journal, decode_step, each, encode_step, run_awaited, run_now
from duly.core.control import Permit, Refusal
from duly.core.durations import Duration, parse_duration
from duly.core.errors import UsageError
from duly.core.job import ClaimedJob, Incarnation, JobId, Steps, Token
from duly.core.secret import masked
from duly.core.trace import is_trace, traceparent_of

if TYPE_CHECKING:
    from duly.client.lock import JobLock

T = TypeVar("T")

log: Final = logging.getLogger("duly.job")

ResultEncoder = Callable[[object], tuple[bytes | None, str | None]]
"""From what a handler returned to (JSON, note); the note says why a value could not be stored."""


CallOutcome = Literal["done", "failed", "cut"]
"""How one use of a resource ended; "cut": it was cancelled in the middle."""


class AttemptPort(Protocol):
    """What a Job needs of whoever runs the attempt. Only completions, `keep_step`, `acquire` and `release` do I/O."""

    def now(self) -> float:
        """Monotonic seconds."""

    def deadline(self) -> float:
        """When this attempt's time to run is over, on the clock of `now`."""

    def should_stop(self) -> bool:
        """Whether a shutdown, a cancel, the deadline or a lapsing lease asks the handler to end."""

    def progress(self, done: int, of: int | None, note: str | None) -> None:
        """Keep the latest word; it rides on the heartbeat."""

    def extend(self, by: timedelta) -> None:
        """Move the deadline; LeaseLost when the attempt is over."""

    def steps(self) -> Steps:
        """What earlier runs have left; LeaseLost when the attempt is over."""

    def keep_step(self, name: str, value: bytes) -> None:
        """Store a finished step; LeaseLost when the token is not live, StoreUnreachable when nobody answers."""

    async def akeep_step(self, name: str, value: bytes) -> None:
        """As `keep_step`, without blocking the loop; a cancellation waits for the write."""

    def cursor(self, name: str, position: int) -> None:
        """Keep how many items are done; it rides on the heartbeat. LeaseLost when the attempt is over."""

    def acquire(self, name: str) -> Permit | Refusal:
        """Try to take a limit or a lock for this attempt; blocks. LeaseLost when the token is not live."""

    def release(self, permit: Permit) -> bool:
        """Give it back before the attempt ends; blocks. False when it was lost with the attempt."""

    def note_call(self, resource: str, outcome: CallOutcome) -> None:
        """A use of this resource is over: what its breaker counts."""

    def complete(self, result: bytes | None, note: str | None, connection: Any) -> None:
        """running -> completed on this connection (None: the store's own); LeaseLost when the token is not live."""

    async def acomplete(self, result: bytes | None, note: str | None, connection: Any) -> None:
        """As `complete`, without blocking the loop."""


class Job:
    """One attempt, as its handler sees it. Valid until the handler ends; do not keep it.

    Only steps and completions do I/O; everything else answers from memory or rides on the heartbeat.
    """

    __slots__ = (
        "_encode",
        "_journal",
        "_port",
        "_proof",
        "attempt",
        "correlation_id",
        "enqueued_at",
        "id",
        "queue",
        "tags",
        "task",
        "tenant",
        "traceparent",
        "trigger",
    )

    def __init__(
        self,
        *,
        id: JobId | str,
        task: str,
        queue: str,
        port: AttemptPort,
        encode: ResultEncoder,
        attempt: int = 1,
        tenant: str = "",
        tags: tuple[str, ...] = (),
        correlation_id: str = "",
        enqueued_at: datetime | None = None,
        token: Token | None = None,
        trigger: str | None = None,
    ) -> None:
        self.id = id
        self.task = task
        self.queue = queue
        self.attempt = attempt
        """1 at first; failures and losses raise it, snoozes and interrupts do not."""
        self.tenant = tenant
        self.tags = tags
        self.correlation_id = correlation_id
        self.enqueued_at = enqueued_at
        self.trigger = trigger
        """What caused it, as "schedule:NAME@2030-05-01T09:00:00Z"; None for a plain enqueue."""
        self.traceparent: str | None = None
        """The span that enqueued it, as W3C Trace Context writes it; None where nobody traced that."""
        self._proof: tuple[Incarnation, JobId, int] | None = token
        self._port = port
        self._encode = encode
        self._journal: Journal | None = None

    @classmethod
    def claimed(
        cls, job: ClaimedJob, incarnation: Incarnation, port: AttemptPort, encode: ResultEncoder
    ) -> Self:
        """The handle of an attempt that a worker starts."""
        # One per job, on the hottest path of the worker: without the keyword arguments it takes half the time.
        made = cls.__new__(cls)
        made.id = job.id
        made.task = job.task
        made.queue = job.queue
        counters = job.counters
        made.attempt = 1 + counters.failed + counters.lost
        made.tenant = job.tenant
        made.tags = job.tags
        made.correlation_id = job.correlation_id
        made.enqueued_at = job.enqueued_at
        made._proof = (incarnation, job.id, job.run)
        trigger = job.trigger
        made.traceparent = None
        if trigger is not None and is_trace(trigger):
            made.traceparent, trigger = traceparent_of(trigger), None
        made.trigger = trigger
        made._port = port
        made._encode = encode
        made._journal = None
        return made

    def __repr__(self) -> str:
        return f"<Job {self.id} {self.task} attempt {self.attempt}>"

    @property
    def token(self) -> Token | None:
        """Proof of this attempt; None in a direct call."""
        return None if self._proof is None else Token(*self._proof)

    @property
    def should_stop(self) -> bool:
        """Whether to end soon: shutdown, cancel, deadline or a lease that lapses. Ask it in loops."""
        return self._port.should_stop()

    @property
    def deadline(self) -> datetime:
        """When this attempt's time to run is over, by this machine's clock."""
        return datetime.now(UTC) + self.time_left()

    def time_left(self) -> timedelta:
        """What is left of this attempt's time to run; zero when it is over."""
        return timedelta(seconds=max(0.0, self._port.deadline() - self._port.now()))

    def effect_key(self, name: str = "") -> str:
        """The same text through all retries and redrives of this job: hand it on as an idempotency key."""
        return f"duly-{self.id}-{name}" if name else f"duly-{self.id}"

    def progress(self, done: int, of: int | None = None, note: str | None = None) -> None:
        """Say how far the work is. Cheap: only the latest word of each second is written."""
        if not _counts(done):
            raise UsageError(f"progress(done={done!r}) counts whole steps from 0")
        if of is not None and not _counts(of):
            raise UsageError(f"progress(of={of!r}) is the whole number of steps, or None when unknown")
        self._port.progress(done, of, masked(note) if isinstance(note, str) else note)

    def extend(self, by: Duration) -> None:
        """Give this attempt that much more time to run. LeaseLost when it is over already."""
        self._port.extend(parse_duration(by, "extend(by)", positive=True))

    def step(self, name: str, fn: Callable[[], T]) -> T:
        """Run `fn` once in the life of this job and keep what it returns; a later attempt gets that back. Blocks.

        Kept in a transaction of its own when `fn` has returned: a crash before runs it again. The value is JSON; it
        comes back as the return annotation of `fn` says. LeaseLost when this attempt no longer owns the job;
        PayloadError for a value that cannot be kept; UsageError for a name that stands for something else already.
        """
        refuse_blocking("job.step()", "await job.astep()")
        journal = self._open_journal()
        kept = journal.begin(name, fn)
        if kept is not None:
            return decode_step(name, fn, kept)
        try:
            value = run_now(name, fn)
            data = encode_step(name, fn, value)
            self._port.keep_step(name, data)
        except BaseException:
            journal.failed(name)
            raise
        journal.finished(name, data)
        return value

    # The form with an awaitable must come first: the other one fits every function.
    @overload
    async def astep(self, name: str, fn: Callable[[], Awaitable[T]]) -> T: ...
    @overload
    async def astep(self, name: str, fn: Callable[[], T]) -> T: ...
    async def astep(self, name: str, fn: Callable[[], Any]) -> Any:
        """As `step`, for async handlers. `fn` is called on the loop, and what it returns is awaited where it can be."""
        journal = self._open_journal()
        kept = journal.begin(name, fn)
        if kept is not None:
            return decode_step(name, fn, kept)
        try:
            value = await run_awaited(fn)
            data = encode_step(name, fn, value)
            await self._port.akeep_step(name, data)
        except BaseException:
            journal.failed(name)
            raise
        journal.finished(name, data)
        return value

    def each(self, name: str, items: Iterable[T]) -> Iterator[T]:
        """Go through `items`, in a later attempt from where this one stops. An item is done when the next is asked for.

        `items` must have the same order in each attempt. The position is written about once a second and when the
        attempt ends: a crash repeats the items since then. UsageError for a name that is used twice in one attempt;
        the loop ends with LeaseLost when this attempt no longer owns the job.
        """
        done = self._open_journal().begin_loop(name, items)
        return each(items, done, partial(self._port.cursor, name))

    def lock(self, name: str) -> JobLock:
        """A lock for `with` or `async with`: its block is entered when nobody else in the fleet holds the name.

        It lives with the lease: given back at the end of the block, or with the attempt however that ends. Asked to
        stop while it waits, the job is snoozed at no cost. LeaseLost when this attempt no longer owns the job, also at
        the end of the block.
        """
        from duly.client.lock import JobLock

        return JobLock(self, name)

    def complete(self, result: object = None, *, connection: Any = None) -> None:
        """running -> completed, in the transaction on `connection` or in one of its own; blocks.

        In your own transaction your rows and the completion commit together or not at all. LeaseLost when this
        attempt no longer owns the job: roll back. What the handler returns afterwards is not stored.
        """
        refuse_blocking("job.complete()", "await job.acomplete()")
        data, note = self._encode(result)
        self._port.complete(data, note, connection)

    async def acomplete(self, result: object = None, *, connection: Any = None) -> None:
        """As `complete`, for async handlers and async connections."""
        data, note = self._encode(result)
        await self._port.acomplete(data, note, connection)

    def _open_journal(self) -> Journal:
        # Asked every time: whoever lost the job must not begin another step.
        left = self._port.steps()
        if self._journal is None:
            self._journal = Journal(left)
        return self._journal


def port_of(job: Job) -> AttemptPort:
    """Whoever runs its attempt."""
    return job._port


current: ContextVar[Job | None] = ContextVar("duly_job", default=None)
"""The job whose handler runs here, set by the worker; enqueues inherit its correlation id and its token."""


class LocalPort:
    """The attempt of a direct call: nothing is stored, and only the time to run passes."""

    def __init__(self, name: str, timeout: timedelta) -> None:
        self._name = name
        self._deadline = time.monotonic() + timeout.total_seconds()

    def now(self) -> float:
        return time.monotonic()

    def deadline(self) -> float:
        return self._deadline

    def should_stop(self) -> bool:
        return self.now() >= self._deadline

    def progress(self, done: int, of: int | None, note: str | None) -> None:
        log.debug("%s: %s of %s %s", self._name, done, "?" if of is None else of, note or "")

    def extend(self, by: timedelta) -> None:
        self._deadline += by.total_seconds()

    def steps(self) -> Steps:
        return _NO_STEPS

    def keep_step(self, name: str, value: bytes) -> None:
        log.debug("%s: step %s is not kept in a direct call: %r", self._name, name, value)

    async def akeep_step(self, name: str, value: bytes) -> None:
        self.keep_step(name, value)

    def cursor(self, name: str, position: int) -> None:
        log.debug("%s: %s of %s", self._name, position, name)

    def acquire(self, name: str) -> Permit | Refusal:
        log.debug("%s: %s is not taken in a direct call", self._name, name)
        return Permit((name,), 0, 0, None)

    def release(self, permit: Permit) -> bool:
        return True

    def note_call(self, resource: str, outcome: CallOutcome) -> None:
        log.debug("%s: a call of %s: %s", self._name, resource, outcome)

    def complete(self, result: bytes | None, note: str | None, connection: Any) -> None:
        log.debug(
            "%s: nothing is written in a direct call: %r %s %r", self._name, result, note or "", connection
        )

    async def acomplete(self, result: bytes | None, note: str | None, connection: Any) -> None:
        self.complete(result, note, connection)


_numbers = itertools.count(1)
_NO_STEPS: Final = Steps()


def _counts(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def local_job(task: str, queue: str, timeout: timedelta, encode: ResultEncoder) -> Job:
    """The handle of a direct call; inside a handler it keeps the correlation id of the running job."""
    name = f"local-{next(_numbers)}"
    around = current.get()
    return Job(
        id=name,
        task=task,
        queue=queue,
        port=LocalPort(name, timeout),
        encode=encode,
        correlation_id=around.correlation_id if around is not None else name,
        tenant=around.tenant if around is not None else "",
    )
