"""The App: where queues and tasks are declared, and the one way from a program to its jobs.

Composition root. Nothing is opened, read or started by importing this module or by making an App.
"""

from __future__ import annotations

import importlib
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from types import TracebackType
from typing import Any, Self, TypeVar

from duly.client.batch import Batch, JobsBatch
from duly.client.blocking import refuse_blocking
from duly.client.check import Check, check
from duly.client.client import Client
from duly.client.declaring import Declaring
from duly.client.draft import Draft
from duly.client.enqueue import aenqueue_many, enqueue_many
from duly.client.enqueued import Enqueued
from duly.client.inspect import Inspect
from duly.client.job import Job
from duly.client.notices import Notifying
from duly.client.once import aonce, once
from duly.client.operate import Operate
from duly.client.provider import Provider, check_provider
from duly.client.reference import reference_of
from duly.client.scheduling import Scheduling
from duly.client.setting_types import url as read_url
from duly.client.settings import Settings
from duly.client.surroundings import AroundFunction, LifespanFunction
from duly.core.backoff import Backoff
from duly.core.durations import Duration, parse_duration, parse_size
from duly.core.errors import UsageError
from duly.core.names import check_name
from duly.core.plan import read_processes
from duly.stores.protocol import Store
from duly.stores.urls import parse_url
from duly.worker.options import WorkerOptions

T = TypeVar("T")


class App(Declaring, Scheduling, Notifying):
    """A set of tasks and the store their jobs stand in. Name it `jobs`.

    Args:
        url: `sqlite:///file.db`, `postgresql://…` or a SQLAlchemy URL object; None is DULY_URL, else
            `sqlite:///duly.db` in the working directory.
        include: modules that declare tasks, imported by workers and by `check`.
        schema: PostgreSQL's schema, SQLite's table prefix; "duly" unless DULY_SCHEMA says otherwise.
        connection: asked at each enqueue without a connection of its own, as `lambda: db.session`; None from it, or
            `using(connection=duly.OWN)`, means a transaction of its own.
        timeout: time to run of one attempt where a task says nothing; "15m" unless DULY_TIMEOUT says otherwise.
        attempts: failed attempts before a job is dead; 10 unless DULY_ATTEMPTS says otherwise.
        backoff: how long failed jobs wait.
        max_payload: the largest arguments of one job, encoded; "256KiB" unless DULY_MAX_PAYLOAD says otherwise.
        blobs: where the content of a `Blob` lies, as "file:///var/lib/duly/blobs": a folder that all producers and
            workers of this store share; none unless DULY_BLOBS says otherwise.

    """

    def __init__(
        self,
        url: object = None,
        *,
        include: Iterable[str] = (),
        schema: str | None = None,
        connection: Provider | None = None,
        timeout: Duration | None = None,
        attempts: int | None = None,
        backoff: Backoff | None = None,
        max_payload: str | None = None,
        blobs: str | None = None,
    ) -> None:
        code = _code(url, schema, timeout, attempts, max_payload, blobs)
        self.include = _modules(include)
        self.client = Client(code, backoff or Backoff())
        self.client.provider = check_provider(connection)
        self.around_functions: list[AroundFunction] = []
        self.lifespan_functions: list[LifespanFunction] = []
        self._others: dict[str, App] = {}

    def configure(
        self,
        url: object = None,
        *,
        include: Iterable[str] = (),
        schema: str | None = None,
        connection: Provider | None = None,
        timeout: Duration | None = None,
        attempts: int | None = None,
        backoff: Backoff | None = None,
        max_payload: str | None = None,
        blobs: str | None = None,
    ) -> None:
        """Say later what the constructor did not, for `create_app()` factories and tests; AlreadyOpen once used."""
        self.client.configure(_code(url, schema, timeout, attempts, max_payload, blobs), backoff)
        self.client.provider = check_provider(connection) or self.client.provider
        self.include = tuple(dict.fromkeys((*self.include, *_modules(include))))

    def enqueue_many(self, drafts: Iterable[Draft[T]], *, connection: Any = None) -> list[Enqueued[T]]:
        """Store many jobs in one transaction, all or none; blocks for one round trip per 1,000.

        Takes a generator, too. One answer per position. A bad draft stores nothing; its error names the position.
        """
        return enqueue_many(self.client, drafts, connection)

    async def aenqueue_many(self, drafts: Iterable[Draft[T]], *, connection: Any = None) -> list[Enqueued[T]]:
        """As `enqueue_many`, without blocking the loop."""
        return await aenqueue_many(self.client, drafts, connection)

    def batch(
        self,
        name: str | None = None,
        *,
        then: Iterable[Draft[Any]] = (),
        on_dead: Iterable[Draft[Any]] = (),
        connection: Any = None,
    ) -> Batch:
        """Group jobs: `with jobs.batch("nightly", then=[report.draft()]) as batch: batch.add(…)`, or `async with`.

        It closes at the block's end; an exception inside cancels it. `then` is enqueued once, when every job has
        ended and none is dead; `on_dead` once, at the first death.
        """
        return Batch(self.client, name, then, on_dead, connection)

    def batch_of(self, job: Job) -> JobsBatch:
        """In a handler: the batch of its own job, to add more to it."""
        return JobsBatch(self.client, job)

    def at(self, url: object) -> App:
        """The same tasks and queues on another store, as a shard: `send.using(app=jobs.at(url)).enqueue(…)`.

        The same url gives the same App; it closes with this one. Its jobs are run by workers that are told so:
        `duly worker MODULE --url URL`.
        """
        where = read_url(url, "at(url)")
        if where not in self._others:
            other = App(include=self.include)
            other.client = self.client.beside(where)
            other.around_functions, other.lifespan_functions = self.around_functions, self.lifespan_functions
            other._others = self._others
            self._others.setdefault(where, other)
        return self._others[where]

    def once(self, key: str, *, connection: Any, keep: Duration = "30d") -> bool:
        """True the first time within `keep`, for code that must take effect once; blocks.

        In the transaction that is open on `connection` it is true only if that commits: roll back, and the key is
        free again; another transaction's uncommitted key is waited for. None is a transaction of its own.
        """
        self.client.refuse_blocking("jobs.once()", "await jobs.aonce()")
        return once(self.client, key, connection, keep)

    async def aonce(self, key: str, *, connection: Any, keep: Duration = "30d") -> bool:
        """As `once`, for async code and async connections."""
        return await aonce(self.client, key, connection, keep)

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        """A connection of the store in a transaction that commits at the block's end, for `connection=`; blocks."""
        self.client.refuse_blocking("jobs.transaction()", "async with jobs.atransaction()")
        with self.client.reaching(), self.client.store.transaction() as connection:
            yield connection

    @asynccontextmanager
    async def atransaction(self) -> AsyncIterator[Any]:
        """As `transaction`, for async code."""
        with self.client.reaching():
            async with self.client.store.atransaction() as connection:
                yield connection

    @property
    def inspect(self) -> Inspect:
        """The read model: queues, jobs, dead letters, workers, operations."""
        return Inspect(self.client)

    @property
    def operate(self) -> Operate:
        """The verbs of a person: cancel, pause, redrive, purge and the rest."""
        return Operate(self.client)

    def check(self) -> Check:
        """Look at settings, declarations and store before a worker starts: findings, each with its fix; blocks."""
        # Not through the client: a wrong setting is a finding, too.
        refuse_blocking("jobs.check()", "await jobs.acheck()")
        return check(self.client, self.load)

    async def acheck(self) -> Check:
        """As `check`, without blocking the loop."""
        return await self.client.acall(check, self.client, self.load)

    def run_worker(
        self,
        *,
        queues: Mapping[str, int | None] | Iterable[str] | None = None,
        except_queues: Iterable[str] = (),
        concurrency: int | None = None,
        threads: int | None = None,
        isolated: int | None = None,
        processes: int | str | None = None,
        grace: Duration | None = None,
        max_jobs: int | None = None,
        max_memory: str | None = None,
        until_idle: bool = False,
    ) -> int:
        """Work until SIGTERM or SIGINT, exactly as `duly worker` does; blocks, and returns the exit code.

        On memory:// the handlers run in this very process.

        Args:
            queues: which ones, as names or as name -> slots of its own; all declared ones unless given.
            except_queues: which ones not.
            concurrency: async handlers at once in one process.
            threads: `def` handlers at once in one process.
            isolated: killable child processes of one process.
            processes: how many processes; "1..8" starts and stops them by how long jobs wait.
            grace: how long running jobs may go on after SIGTERM.
            max_jobs: replace a process after so many jobs.
            max_memory: replace a process beyond this resident memory, as "1GiB".
            until_idle: end when nothing is ready.

        """
        from duly.worker import supervisor

        self.client.refuse_blocking("jobs.run_worker()", "async with jobs.working()")
        self._refuse_work()
        options = _worker_options(
            queues,
            except_queues,
            concurrency,
            threads,
            isolated,
            processes,
            grace,
            max_jobs,
            max_memory,
            until_idle,
        )
        if parse_url(self.settings.url).kind == "memory":
            from duly.worker.inside import run_inside

            self.load()
            return run_inside(self, options)
        return supervisor.run(reference_of(self), options)

    @asynccontextmanager
    async def working(
        self,
        *,
        queues: Mapping[str, int | None] | Iterable[str] | None = None,
        except_queues: Iterable[str] = (),
        concurrency: int | None = None,
        threads: int | None = None,
        isolated: int | None = None,
    ) -> AsyncIterator[None]:
        """Run jobs inside this process while the block lasts: for development, where a second process is a nuisance.

        A handler that blocks or crashes here takes the program with it; run `duly worker` in production.
        """
        from duly.worker.embedded import Embedded

        self._refuse_work()
        options = _worker_options(queues, except_queues, concurrency, threads, isolated)
        self.load()
        async with Embedded(self, options):
            yield

    def asgi(
        self,
        *,
        without_tokens: bool = False,
        public_url: str | None = None,
        rate: str | None = "1000/s burst 2000",
        prefix: str = "/",
    ) -> Any:
        """The HTTP API, tickets and health as an ASGI application, to be mounted or served; needs the extra `web`.

        Args:
            without_tokens: answer this machine without any, for development; others are refused.
            public_url: where clients reach it, for links; None: DULY_PUBLIC_URL, else as each request says.
            rate: how often one token may ask, as "600/min burst 100"; None: as often as it likes.
            prefix: the path before every path; a mount brings its own.

        """
        # What stands above this module is asked for by name, when it is wanted.
        try:
            server = importlib.import_module("duly.web.server")
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] == "duly":
                raise
            raise UsageError(f"{error.name} is not installed: pip install 'duly[web]'") from error
        options = server.WebOptions(open=without_tokens, public_url=public_url, rate=rate)
        return server.build(self, options, prefix=prefix)

    @property
    def settings(self) -> Settings:
        """Every setting in force, resolved at first use."""
        return self.client.settings

    @property
    def store(self) -> Store:
        """The store, as this process has it open."""
        return self.client.store

    def load(self) -> None:
        """Import what `include` names, then check that all declarations fit together. UsageError says what does not."""
        for module in self.include:
            _import(module)
        for task in self.tasks.values():
            self.client.registry.check_queue(task.queue, f"task {task.name!r} ({task.handler.place})")

    def open(self) -> None:
        """Check settings, declarations and the store now instead of at first use; blocks for one round trip.

        StoreUnreachable or MigrationNeeded when the store cannot be used.
        """
        self.load()
        self.client.call(self._look)

    def close(self) -> None:
        """Let go of the store's connections and threads, those of `at` included. The next use opens anew."""
        for client in self._clients():
            client.close()

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        self.load()
        await self.client.acall(self._look)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for client in self._clients():
            await client.aclose()

    def _refuse_work(self) -> None:
        if not self.client.main:
            raise UsageError("jobs.at(url) runs nothing; start a worker with `duly worker MODULE --url URL`")

    def _clients(self) -> list[Client]:
        others = self._others.values() if self.client.main else ()
        return [self.client, *(other.client for other in others)]

    def _look(self) -> None:
        self.client.store.schema.declared()

    def __repr__(self) -> str:
        return f"<App {len(self.tasks)} tasks, {len(self.queues)} queues>"


def _code(
    url: object,
    schema: str | None,
    timeout: Duration | None,
    attempts: int | None,
    max_payload: str | None,
    blobs: str | None,
) -> dict[str, object]:
    return {
        "url": url,
        "schema": schema,
        "timeout": timeout,
        "attempts": attempts,
        "max_payload": max_payload,
        "blobs": blobs,
    }


def _modules(include: Iterable[str]) -> tuple[str, ...]:
    if isinstance(include, str):
        raise UsageError(f"include={include!r} is one text; write include=[{include!r}]")
    return tuple(include)


def _import(module: str) -> None:
    try:
        importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise
        raise UsageError(
            f"include names {module!r}, which is not there ({error}); check the name and the working directory"
        ) from error


def _worker_options(
    queues: Mapping[str, int | None] | Iterable[str] | None,
    except_queues: Iterable[str],
    concurrency: int | None,
    threads: int | None,
    isolated: int | None,
    processes: int | str | None = None,
    grace: Duration | None = None,
    max_jobs: int | None = None,
    max_memory: str | None = None,
    until_idle: bool = False,
) -> WorkerOptions:
    """What Python said, as the worker reads it. UsageError for a value without its unit."""
    if isinstance(queues, str) or isinstance(except_queues, str):
        raise UsageError("queues and except_queues are lists of names; write queues=['mail']")
    if queues is not None and not isinstance(queues, Mapping):
        queues = dict.fromkeys(queues)
    least, most = (None, None) if processes is None else read_processes(processes)
    return WorkerOptions(
        queues=None
        if queues is None
        else {check_name("queue", name): slots for name, slots in queues.items()},
        except_queues=tuple(except_queues),
        concurrency=concurrency,
        threads=threads,
        isolated=isolated,
        processes=least,
        processes_most=most,
        grace=None if grace is None else parse_duration(grace, "grace"),
        max_jobs=max_jobs,
        max_memory=None if max_memory is None else parse_size(max_memory, "max_memory"),
        until_idle=until_idle,
    )
