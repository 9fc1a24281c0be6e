"""A registered function: still callable, and enqueueable with its own parameters.

Immutable; `using` returns a copy. Reads settings and opens the store at first use only.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime, timedelta
from functools import update_wrapper
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    ParamSpec,
    Protocol,
    Self,
    TypeVar,
    overload,
)

from duly.client.bounds import per_keys
from duly.client.client import Client
from duly.client.declaration import Ack, Declaration
from duly.client.draft import Draft
from duly.client.enqueue import aenqueue_one, enqueue_one
from duly.client.enqueued import Enqueued
from duly.client.followups import read_follow_ups
from duly.client.guards import Answer, Guard, with_guard
from duly.client.handler import Handler, Isolation
from duly.client.job import Job, local_job
from duly.client.lock import locks_of
from duly.client.options import NOTHING, Options, read_options
from duly.client.queue import Queue
from duly.client.resource import Resource
from duly.client.sealing import Sealing
from duly.client.twins import HasClient
from duly.core.backoff import Backoff
from duly.core.classify import Rule
from duly.core.control import Rate
from duly.core.durations import Duration, compact_duration
from duly.core.errors import UsageError
from duly.core.keys import Unique
from duly.core.payload import Arguments

P = ParamSpec("P")
T = TypeVar("T")
A = TypeVar("A", bound=Answer | Awaitable[Answer])

# What people who come from elsewhere type first.
_ELSEWHERE = {
    "delay": "enqueue(…) stores a job; using(delay='30s').enqueue(…) stores one for later",
    "apply_async": "enqueue(…) takes the arguments themselves; using(delay='30s', queue='…').enqueue(…) the options",
    "send": "enqueue(…) stores a job",
    "defer": "enqueue(…) stores a job",
    "s": "draft(…) describes a job that is not stored yet",
    "si": "draft(…) describes a job that is not stored yet",
    "signature": "draft(…) describes a job that is not stored yet",
}


class Task(Generic[P, T]):
    """One task of an App; T is what calling the function returns, the coroutine included."""

    __name__: str
    __qualname__: str

    def __init__(self, client: Client, declaration: Declaration) -> None:
        self._client = client
        self._declaration = declaration
        self._options: Options = NOTHING
        update_wrapper(self, declaration.handler.fn)
        if declaration.handler.is_async and sys.version_info >= (3, 12):
            # Frameworks ask inspect.iscoroutinefunction; Python 3.11 has no public mark.
            inspect.markcoroutinefunction(self)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run the function here and now, with a local Job where it takes one; stores nothing."""
        return self._run(*args, **kwargs)

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Enqueued[T]:
        """Store a job that runs this function later: - -> ready, or scheduled when due later; blocks.

        Without a connection it is committed on return. PayloadError when an argument cannot be stored; QueueFull when
        its queue is full and rejects, and it is in no transaction of yours.
        """
        return enqueue_one(self.draft(*args, **kwargs))

    async def aenqueue(self, *args: P.args, **kwargs: P.kwargs) -> Enqueued[T]:
        """As `enqueue`, without blocking the loop."""
        return await aenqueue_one(self.draft(*args, **kwargs))

    def draft(self, *args: P.args, **kwargs: P.kwargs) -> Draft[T]:
        """Describe a job without storing it: for `App.enqueue_many`, `then=` and `on_dead=`."""
        return Draft(self._options.client or self._client, self._declaration, self._options, args, kwargs)

    def using(
        self,
        *,
        connection: Any = None,
        queue: str | Queue | None = None,
        delay: Duration | None = None,
        run_at: datetime | None = None,
        expires: Duration | None = None,
        timeout: Duration | None = None,
        attempts: int | None = None,
        priority: int | None = None,
        tenant: str | None = None,
        ordering_key: str | None = None,
        unique_key: str | Unique | None = None,
        idempotency_key: str | None = None,
        version: int | None = None,
        correlation_id: str | None = None,
        tags: Iterable[str] | None = None,
        then: Iterable[Draft[Any]] | None = None,
        on_dead: Iterable[Draft[Any]] | None = None,
        strict: bool | None = None,
        app: HasClient | None = None,
    ) -> Self:
        """This task with other options for its next jobs; several calls merge, the last one wins.

        Args:
            connection: store the job in the transaction that is open on this connection: rolled back, it never was.
            queue: a declared queue instead of the task's own.
            delay: run that long after the enqueue; excludes run_at.
            run_at: run at this moment, with its time zone; a past one means at once.
            expires: counted from the due time: not started by then, it is skipped.
            timeout: the longest one attempt may take.
            attempts: failed attempts before it is dead; 1 means no retry.
            priority: lower is more urgent; 100 is the default.
            tenant: whose work it is.
            ordering_key: jobs of one key, in one queue and of one tenant, run one at a time in the order of their
                enqueues; literal, in place of the task's own template. A delay delays the whole key.
            unique_key: at most one live job of this task and tenant has it, as "order:7" or Unique("order:7",
                scope="live"); literal, in place of the task's own template.
            idempotency_key: names the request: for 30 days a repeat returns the first job, and is KeyReused with other
                arguments. After a broken connection the client repeats it by itself.
            version: with a unique key: skipped as stale once a job of the key with a higher version has completed.
            correlation_id: follows the work from job to job; inside a handler it is inherited.
            tags: words to find it by.
            then: drafts to store in the transaction that completes it; RESULT in their arguments becomes its result.
            on_dead: drafts to store in the transaction in which it goes dead.
            strict: rather QueueFull than a job above the bound of its queue, also in the caller's transaction, which
                it leaves as it was.
            app: store it there instead, as `jobs.at(url)`.

        """
        said = read_options(
            connection=connection,
            queue=queue,
            delay=delay,
            run_at=run_at,
            expires=expires,
            timeout=timeout,
            attempts=attempts,
            priority=priority,
            tenant=tenant,
            ordering_key=ordering_key,
            correlation_id=correlation_id,
            tags=tags,
            unique_key=unique_key,
            idempotency_key=idempotency_key,
            version=version,
            then=None if then is None else read_follow_ups(then, "then"),
            on_dead=None if on_dead is None else read_follow_ups(on_dead, "on_dead"),
            strict=strict,
            client=None if app is None else self._other(app),
        )
        # As copy.copy() does, in a fifth of the time.
        changed = object.__new__(type(self))
        changed.__dict__.update(self.__dict__)
        changed._options = self._options.merged(said)
        return changed

    # The form with a job must come first, as in TaskDecorator.
    @overload
    def guard(self, fn: Callable[Concatenate[Job, P], A], /) -> Callable[Concatenate[Job, P], A]: ...
    @overload
    def guard(self, fn: Callable[P, A], /) -> Callable[P, A]: ...
    def guard(self, fn: Callable[..., Any], /) -> Callable[..., Any]:
        """Ask this function first, in every attempt, with the arguments of the job; it stays callable.

        None or True go on to the next guard and then to the handler. Text or False stop: running -> skipped, with
        "guard NAME: TEXT" as the reason. It may raise Snooze or Skip; an error is a failed attempt. Guards are asked
        in order, inside the `around` functions and the time to run.
        """
        declaration = self._declaration
        if declaration.ack == "start":
            raise UsageError(
                f"task {self.name!r} is acknowledged before it starts: what a guard says could not be recorded; leave "
                "ack='start' out, or ask in the handler"
            )
        with_guard(declaration.guards, Guard(self.name, declaration.handler, fn))
        return fn

    @property
    def guards(self) -> tuple[Guard, ...]:
        """What is asked before the handler, in order."""
        return tuple(self._declaration.guards)

    @property
    def fn(self) -> Callable[..., T]:
        """The bare function."""
        return self._declaration.handler.fn

    @property
    def name(self) -> str:
        """What its jobs are stored under: the function's bare name unless told otherwise."""
        return self._declaration.name

    @property
    def aliases(self) -> tuple[str, ...]:
        """Former names; jobs stored under them still run."""
        return self._declaration.aliases

    @property
    def queue(self) -> str:
        return self._declaration.queue

    @property
    def timeout(self) -> timedelta:
        """Time to run of one attempt."""
        return self._declaration.timeout or self._client.settings.timeout

    @property
    def attempts(self) -> int:
        return self._declaration.attempts or self._client.settings.attempts

    @property
    def backoff(self) -> Backoff:
        return self._declaration.backoff or self._client.backoff

    @property
    def permanent(self) -> tuple[Rule, ...]:
        return self._declaration.permanent

    @property
    def transient(self) -> tuple[Rule, ...]:
        return self._declaration.transient

    @property
    def priority(self) -> int:
        return self._declaration.priority

    @property
    def unique(self) -> Unique | None:
        """At most one live job per key: a template over its arguments."""
        return None if self._declaration.unique is None else self._declaration.unique.unique

    def check_unique(self) -> None:
        """UsageError when the template names a parameter that the function does not take."""
        if self._declaration.unique is not None:
            self._declaration.unique.check(self.arguments)

    def check_bounds(self) -> None:
        """UsageError for templates, guards, limits and locks that do not fit the function. Reads its annotations."""
        declaration = self._declaration
        for template in (declaration.ordering, declaration.tenant):
            if template is not None:
                template.check(self.arguments)
        for guard in declaration.guards:
            guard.check()
        keys = per_keys(self)
        if keys and self.ack == "start":
            raise UsageError(
                f"task {self.name!r} is acknowledged before it starts, and a limit ends with its job; leave "
                f"ack='start' or the PerKey of '{next(iter(keys))}' out"
            )
        for variable, lock in locks_of(self.fn):
            if lock.ttl < self.timeout:
                raise UsageError(
                    f"task {self.name!r} uses {variable} = jobs.lock({lock.name!r}, …), which runs out after "
                    f"{compact_duration(lock.ttl)}, before its time to run of {compact_duration(self.timeout)}; inside "
                    f"a handler write job.lock({lock.name!r}), which lives as long as the attempt"
                )

    @property
    def max_running(self) -> int | None:
        """Of its jobs in the whole fleet."""
        return self._declaration.max_running

    @property
    def rate(self) -> Rate | None:
        """At which its jobs start, in the whole fleet."""
        return self._declaration.rate

    @property
    def uses(self) -> tuple[Resource, ...]:
        """What each of its jobs takes before it starts."""
        return self._declaration.uses

    @property
    def expires(self) -> timedelta | None:
        return self._declaration.expires

    @property
    def audit(self) -> bool:
        """Whether each of its jobs stands in the audit."""
        return self._declaration.audit

    @property
    def sealing(self) -> Sealing:
        """The keys of its App."""
        return self._client.sealing

    def encrypted(self, queue: str | None = None) -> bool:
        """Whether payloads of its jobs, in its own queue or in another one, are stored encrypted."""
        return self._client.sealing.wants(self._declaration.encrypt, queue or self.queue)

    @property
    def isolation(self) -> Isolation:
        """Where it runs: "loop", "thread" or "process"."""
        return self._declaration.isolation

    @property
    def ack(self) -> Ack:
        return self._declaration.ack

    @property
    def handler(self) -> Handler:
        """The function as inspected."""
        return self._declaration.handler

    @property
    def takes_job(self) -> bool:
        """Whether the function's first parameter is the Job."""
        return self._declaration.handler.takes_job

    @property
    def arguments(self) -> Arguments:
        """The types of its parameters and of its result, resolved at first use."""
        return self._declaration.handler.arguments

    def __repr__(self) -> str:
        return f"<Task {self.name} in {self.queue}, {self.handler.place}>"

    def _other(self, app: HasClient) -> Client:
        client = getattr(app, "client", None)
        if not isinstance(client, Client):
            raise UsageError(f"app={app!r:.80} is no App; write app=jobs.at(url)")
        if client.registry is not self._client.registry:
            raise UsageError(f"app={app!r} does not know the task {self.name!r}; write app=jobs.at(url)")
        return client

    def _run(self, *args: Any, **kwargs: Any) -> T:
        if not self.takes_job:
            return self.fn(*args, **kwargs)
        return self.fn(
            local_job(self.name, self.queue, self.timeout, self.handler.encode_result), *args, **kwargs
        )

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            # Asked by inspect.signature and help(); annotations are not read before.
            if name == "__signature__":
                return self.handler.callers_signature()
            hint = _ELSEWHERE.get(name, "it has enqueue, aenqueue, draft, using, fn and name")
            raise AttributeError(f"a task has no attribute {name!r}: {hint}", name=name, obj=self)


class TaskDecorator(Protocol):
    """What `App.task(...)` with options returns."""

    # The form with a job must come first: the other one fits every function.
    @overload
    def __call__(self, fn: Callable[Concatenate[Job, P], T], /) -> Task[P, T]: ...
    @overload
    def __call__(self, fn: Callable[P, T], /) -> Task[P, T]: ...
