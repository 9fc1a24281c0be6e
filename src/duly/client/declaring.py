"""What an App declares: queues and tasks, and what surrounds every attempt. Opens nothing and reads no setting."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Concatenate, ParamSpec, TypeVar, overload

from duly.client.alert import Alert, read_alert
from duly.client.bounds import check_own, read_uses, refuse_bounds_of_first_ack
from duly.client.client import Client
from duly.client.dead_breaker import DeadBreaker
from duly.client.declaration import Ack, Declaration
from duly.client.handler import Handler
from duly.client.job import Job
from duly.client.lock import Lock
from duly.client.options import attempt_count, queue_name, switched, urgency
from duly.client.queue import Queue
from duly.client.registry import nearest
from duly.client.resource import Breaker, Resource
from duly.client.surroundings import AroundFunction, LifespanFunction, check_around, check_lifespan
from duly.client.task import Task, TaskDecorator
from duly.client.template import read_template
from duly.client.unique import UniqueTemplate
from duly.core.backoff import Backoff
from duly.core.bounds import read_bound, read_importance
from duly.core.classify import Rule, check_rules
from duly.core.control import Ordering, WhenFull, check_ordering, read_cap, read_rate, read_share, read_weight
from duly.core.defaults import IMPORTANCE, PRIORITY, QUEUE
from duly.core.durations import Duration, parse_duration
from duly.core.errors import NotFound, UsageError
from duly.core.keys import Unique
from duly.core.names import check_name
from duly.core.notification import Sink

P = ParamSpec("P")
T = TypeVar("T")
A = TypeVar("A", bound=AroundFunction)
L = TypeVar("L", bound=LifespanFunction)


class Declaring:
    """The part of `App` that registers."""

    client: Client
    around_functions: list[AroundFunction]
    lifespan_functions: list[LifespanFunction]

    def queue(
        self,
        name: str,
        *,
        owner: str | None = None,
        keep: Duration | None = None,
        keep_dead: Duration | None = None,
        wait_target: Duration | None = None,
        weight: int = 1,
        max_depth: int | None = None,
        max_age: Duration | None = None,
        when_full: WhenFull = "reject",
        importance: int = IMPORTANCE,
        max_running: int | None = None,
        rate: str | None = None,
        fair: bool = False,
        tenant_max_running: int | None = None,
        tenant_rate: str | None = None,
        reserve: str | None = None,
        ordering: Ordering = "wait",
        serialise: bool = False,
        dead_breaker: DeadBreaker | None = None,
        alert: Alert | str | Iterable[str] | None = None,
        encrypt: bool | None = None,
    ) -> Queue:
        """Declare a queue; `default` exists undeclared.

        Args:
            name: letters, digits and most signs; no comma, colon or blank.
            owner: whom its dead letters concern, as "growth@shop".
            keep: how long finished jobs are kept; "24h" unless DULY_KEEP says otherwise.
            keep_dead: how long dead letters are kept; "30d" unless DULY_KEEP_DEAD says otherwise.
            wait_target: how soon its jobs should start, as "30s".
            weight: how often a worker with more work than slots asks this queue first: one of 3 three times as often
                as one of 1. A queue without jobs passes its turn on.
            max_depth: how many jobs may be ready, to the arrivals of one second; jobs that are due later, blocked or
                running do not count.
            max_age: how long its oldest ready job may have waited.
            when_full: what a producer meets then: "reject" is QueueFull, "slow" a wait of up to a second in each
                enqueue, "shed" nothing, and the least urgent jobs are shed instead. In a caller's transaction jobs are
                stored whatever it says, with `over_limit`, unless `using(strict=True)`.
            importance: lower is more important; the least important give way first when the store is full.
            max_running: how many of its jobs may run at once, in the whole fleet.
            rate: how often its jobs may start, in the whole fleet, as "600/min" or "100/s burst 20"; without a burst,
                as many at once as one second allows.
            fair: go round the tenants that wait, and look at priority inside a tenant.
            tenant_max_running: how many jobs of one tenant may run at once, unless the tenant's plan says otherwise.
            tenant_rate: how often jobs of one tenant may start.
            reserve: the share of each worker's slots, as "10%", that is kept for tenants of which nothing runs.
            ordering: what the jobs behind a dead one of their ordering key do: "wait" for its redrive, "skip_dead", or
                "pause_key" until a person resumes the key.
            serialise: let concurrent enqueues of one ordering key wait for each other, so that they have an order, too.
            dead_breaker: when it stops itself, because too many of its jobs die: `DeadBreaker()`.
            alert: who is told of it, as the name of a sink, or an `Alert` with what else differs from the defaults.
            encrypt: store arguments, steps and results of its jobs encrypted, with DULY_KEYS.

        """
        self._refuse_elsewhere()
        queue = Queue(
            check_name("queue", name),
            owner=None if owner is None else check_name("actor", owner),
            keep=None if keep is None else parse_duration(keep, "keep"),
            keep_dead=None if keep_dead is None else parse_duration(keep_dead, "keep_dead", positive=True),
            wait_target=None
            if wait_target is None
            else parse_duration(wait_target, "wait_target", positive=True),
            weight=read_weight(weight),
            max_running=None if max_running is None else read_cap(max_running),
            rate=None if rate is None else read_rate(rate),
            fair=fair,
            tenant_max_running=None
            if tenant_max_running is None
            else read_cap(tenant_max_running, "tenant_max_running"),
            tenant_rate=None if tenant_rate is None else read_rate(tenant_rate, "tenant_rate"),
            ordering=check_ordering(ordering),
            serialise=serialise,
            reserve=0.0 if reserve is None else read_share(reserve, "reserve"),
            dead_breaker=None if dead_breaker is None else dead_breaker.policy,
            bound=read_bound(max_depth, max_age, when_full),
            importance=read_importance(importance),
            alert=None if alert is None else read_alert(alert),
            encrypt=None if encrypt is None else switched(encrypt, "encrypt"),
        ).checked()
        self.client.registry.add_queue(queue)
        return queue

    def alert(self, alert: Alert | str | Iterable[str]) -> None:
        """Say for all queues what differs from the defaults of alerts; a queue's own `alert=` goes before it."""
        self._refuse_elsewhere()
        self.client.registry.alert = read_alert(alert)

    def sink(self, name: str, sink: Sink | str) -> None:
        """Name a place for alerts: one of `duly.alerts`, a URL such as "slack+https://…", or anything with `send`.

        All workers and servers of a store should know the same names: any of them may send. DULY_ALERTS names more.
        """
        self._refuse_elsewhere()
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,39}", name):
            raise UsageError(
                f"sink {name!r:.60}: a name is up to 40 letters, digits, - and _, a letter first"
            )
        self.client.registry.sinks[name] = sink

    @overload
    def task(self, fn: Callable[Concatenate[Job, P], T], /) -> Task[P, T]: ...
    @overload
    def task(self, fn: Callable[P, T], /) -> Task[P, T]: ...
    @overload
    def task(
        self,
        *,
        name: str | None = None,
        aliases: Iterable[str] = (),
        queue: str | Queue = QUEUE,
        timeout: Duration | None = None,
        attempts: int | None = None,
        backoff: Backoff | None = None,
        permanent: Iterable[Rule] = (),
        transient: Iterable[Rule] = (),
        priority: int = PRIORITY,
        isolation: str = "auto",
        ack: Ack = "success",
        unique: str | Unique | None = None,
        ordering_key: str | None = None,
        tenant: str | None = None,
        max_running: int | None = None,
        rate: str | None = None,
        uses: Iterable[Resource] = (),
        expires: Duration | None = None,
        audit: bool = False,
        encrypt: bool | None = None,
    ) -> TaskDecorator: ...
    def task(
        self,
        fn: Callable[..., Any] | None = None,
        *,
        name: str | None = None,
        aliases: Iterable[str] = (),
        queue: str | Queue = QUEUE,
        timeout: Duration | None = None,
        attempts: int | None = None,
        backoff: Backoff | None = None,
        permanent: Iterable[Rule] = (),
        transient: Iterable[Rule] = (),
        priority: int = PRIORITY,
        isolation: str = "auto",
        ack: Ack = "success",
        unique: str | Unique | None = None,
        ordering_key: str | None = None,
        tenant: str | None = None,
        max_running: int | None = None,
        rate: str | None = None,
        uses: Iterable[Resource] = (),
        expires: Duration | None = None,
        audit: bool = False,
        encrypt: bool | None = None,
    ) -> Any:
        """Register a function as a task, as `@jobs.task` or `@jobs.task(queue=…)`; it stays callable.

        Args:
            name: what its jobs are stored under; the function's bare name unless given.
            aliases: former names, so that jobs stored before a renaming still run.
            queue: a declared queue.
            timeout: the longest one attempt may take.
            attempts: failed attempts before a job is dead; 1 means no retry.
            backoff: how long failed jobs wait.
            permanent: errors that no retry can help, as classes or functions of the error; the most specific wins.
            transient: errors worth another attempt.
            priority: lower is more urgent.
            isolation: "auto" is the event loop for `async def` and a thread for `def`; "process" is a killable child.
            ack: "success" runs a job at least once; "start" at most once: a lost attempt is not repeated.
            unique: at most one live job per key, a template over the arguments as "order:{order_id}": in the queue, or
                with Unique("order:{order_id}", scope="live") until it has ended.
            ordering_key: jobs of one key run one at a time, in the order in which they were enqueued, through retries:
                a template over the arguments, as "account:{account_id}".
            tenant: whose work it is, a template over the arguments, as "{tenant}".
            max_running: how many of its jobs may run at once, in the whole fleet.
            rate: how often its jobs may start, in the whole fleet, as "600/min" or "100/s burst 20".
            uses: resources that each of its jobs takes before it starts, all or none.
            expires: counted from the due time: not started by then, a job is skipped.
            audit: write into the audit who enqueued each of its jobs, in the same transaction, and how it ended.
            encrypt: store arguments, steps and results of its jobs encrypted, with DULY_KEYS; else as its queue says.

        """
        self._refuse_elsewhere()
        declare = self._declarer(
            name=name,
            aliases=aliases,
            queue=queue_name(queue),
            timeout=None if timeout is None else parse_duration(timeout, "timeout", positive=True),
            attempts=None if attempts is None else attempt_count(attempts),
            backoff=backoff,
            permanent=tuple(permanent),
            transient=tuple(transient),
            priority=urgency(priority),
            isolation=isolation,
            ack=ack,
            unique=unique,
            ordering_key=ordering_key,
            tenant=tenant,
            max_running=None if max_running is None else read_cap(max_running),
            rate=None if rate is None else read_rate(rate),
            uses=read_uses(uses),
            expires=None if expires is None else parse_duration(expires, "expires", positive=True),
            audit=switched(audit, "audit"),
            encrypt=None if encrypt is None else switched(encrypt, "encrypt"),
        )
        return declare if fn is None else declare(fn)

    def resource(
        self,
        name: str,
        *,
        max_running: int | None = None,
        rate: str | None = None,
        breaker: Breaker | None = None,
        ttl: Duration = "15m",
    ) -> Resource:
        """Declare a named thing outside, an API or a GPU, that the whole fleet shares.

        Args:
            name: letters, digits and most signs; no comma or blank.
            max_running: how many jobs or blocks may use it at once.
            rate: how often a use may begin, as "100/s burst 20".
            breaker: leave it alone while its calls fail.
            ttl: how long a `with` block outside of handlers counts at most; it is not renewed.

        """
        self._refuse_elsewhere()
        made = Resource(self.client, name, max_running=max_running, rate=rate, breaker=breaker, ttl=ttl)
        return self.client.registry.add_resource(made)

    def lock(self, name: str, *, ttl: Duration) -> Lock:
        """A lock of the whole fleet for code outside of handlers, `with` or `async with`; inside one use `job.lock`.

        Args:
            name: who holds it keeps all others of this name out, `job.lock(name)` included.
            ttl: how long one block may hold it; it is not renewed. LeaseLost at the end of a block that took longer.

        """
        return Lock(self.client, name, ttl)

    def around(self, fn: A) -> A:
        """Run a generator around every attempt: it takes the job, yields once, and sees the attempt's error there."""
        self.around_functions.append(check_around(fn))
        return fn

    def lifespan(self, fn: L) -> L:
        """Run a generator once in every process that runs handlers: before its first and after its last attempt."""
        self.lifespan_functions.append(check_lifespan(fn))
        return fn

    @property
    def tasks(self) -> Mapping[str, Task[..., Any]]:
        return self.client.registry.tasks

    @property
    def queues(self) -> Mapping[str, Queue]:
        return self.client.registry.queues

    def find_task(self, name: str) -> Task[..., Any]:
        """The task of this name or alias. NotFound names the nearest one."""
        task = self.client.registry.find(name)
        if task is None:
            raise NotFound(f"no task is named {name!r}{nearest(name, self.tasks)}", kind="task", name=name)
        return task

    def _refuse_elsewhere(self) -> None:
        if not self.client.main:
            raise UsageError("jobs.at(url) has the queues and tasks of jobs; declare them there")

    def _declarer(
        self,
        *,
        name: str | None,
        aliases: Iterable[str],
        isolation: str,
        unique: str | Unique | None,
        ordering_key: str | None,
        tenant: str | None,
        **policy: Any,
    ) -> Callable[..., Any]:
        if isinstance(aliases, str):
            raise UsageError(f"aliases={aliases!r} is one text; write aliases=[{aliases!r}]")
        former = tuple(check_name("task", alias) for alias in aliases)
        if policy["ack"] not in {"success", "start"}:
            raise UsageError(f"ack={policy['ack']!r} is neither 'success' nor 'start'")
        check_rules(policy["permanent"], policy["transient"])

        def declare(fn: Callable[..., Any]) -> Task[..., Any]:
            if isinstance(fn, Task):
                raise UsageError(f"{fn.name} is a task already; remove the second @jobs.task")
            handler = Handler(fn, self.client.blobs.read)
            named = handler.task_name(name)
            check_own(policy["uses"], self.client.registry, named)
            refuse_bounds_of_first_ack(named, ordering_key, **policy)
            declaration = Declaration(
                name=named,
                aliases=former,
                handler=handler,
                isolation=handler.isolation(isolation),
                unique=None if unique is None else UniqueTemplate.of(named, unique),
                ordering=read_template(named, "ordering key", "ordering_key", ordering_key, fn),
                tenant=read_template(named, "tenant", "tenant", tenant, fn),
                **policy,
            )
            task: Task[..., Any] = Task(self.client, declaration)
            self.client.registry.add_task(task)
            return task

        return declare
