"""What the tasks, the read model and the verbs of one App share: settings, the store of this process, threads.

Opens at first use, once per process: after a fork the child opens anew and leaves the parent's handles alone.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import os
import threading
import weakref
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

from duly.client.blobs import BlobFolder, home_of
from duly.client.blocking import be_strict, refuse_blocking
from duly.client.budget import BudgetGate
from duly.client.pressing import Pressing
from duly.client.registry import Registry
from duly.client.sealing import Sealing
from duly.client.settings import Settings, resolve, without_password
from duly.client.signing import Signing
from duly.core.backoff import Backoff
from duly.core.errors import AlreadyOpen, PayloadError, StoreFull, StoreUnreachable, UsageError
from duly.stores.connections import ambient
from duly.stores.faults import DataFault, Full, Transient
from duly.stores.open import open_store
from duly.stores.protocol import Clock, Store
from duly.telemetry.events import Happening
from duly.telemetry.hub import weight

if TYPE_CHECKING:
    from duly.client.marking import Tracer

P = ParamSpec("P")
T = TypeVar("T")

log: Final = logging.getLogger("duly.client")

_everyone: Final[weakref.WeakSet[Client]] = weakref.WeakSet()


class _Handles:
    """What one process has open. Threads start and the store connects at the first call of each."""

    def __init__(self, threads: int, pressing: Pressing) -> None:
        self.store: Store | None = None
        self.pressing = pressing
        self.threads = ThreadPoolExecutor(threads, thread_name_prefix="duly-client")


class Client:
    """One App's way to its store. Every method may be called from any thread."""

    def __init__(
        self,
        code: Mapping[str, object],
        backoff: Backoff,
        *,
        clock: Clock | None = None,
        registry: Registry | None = None,
    ) -> None:
        self.registry = registry or Registry()
        self.main = registry is None
        """Whether workers of this App work on this client's store; not so for one that `beside` made."""
        self.blobs = BlobFolder(lambda: self.settings.blobs, self._home_of_blobs)
        self.signing = Signing(self)
        self.sealing = Sealing(self)
        self.backoff = backoff
        self.clock = clock
        self.provider: Callable[[], Any] | None = None
        self.tell: Callable[[Happening], None] = _log
        """Where events of producers go; a worker has them among its own."""
        self.details = False
        """Whether `tell` wants to hear of every enqueue."""
        self.tracer: Tracer | None = None
        """A tracing library that sees each enqueue."""
        self._code: MutableMapping[str, object] = ChainMap(dict(code))
        self._settings: Settings | None = None
        self._handles: _Handles | None = None
        self._opener: Callable[[], Store] | None = None
        self._inherited: list[_Handles] = []
        self._lock = threading.RLock()
        _everyone.add(self)
        # Of transactions that were open before, no library tells afterwards.
        ambient.watch()

    def beside(self, url: str) -> Client:
        """The same declarations and options on another store; what is configured here later counts there, too."""
        made = Client({}, self.backoff, clock=self.clock, registry=self.registry)
        made._code = ChainMap({"url": url}, self._code)
        made.tracer = self.tracer
        return made

    @property
    def settings(self) -> Settings:
        """Resolved at first use and fixed from then on."""
        if self._settings is None:
            with self._lock:
                if self._settings is None:
                    self._settings = resolve(self._code)
                    be_strict(self._settings.debug)
        return self._settings

    def configure(self, code: Mapping[str, object], backoff: Backoff | None) -> None:
        """Replace what the constructor said. AlreadyOpen once anything was opened."""
        with self._lock:
            if self.is_open:
                raise AlreadyOpen(
                    f"this App is in use already, on {without_password(self.settings.url)}; "
                    "call configure() before its first enqueue, worker or inspect"
                )
            self._code.update({name: value for name, value in code.items() if value is not None})
            self._settings = None
            self.backoff = backoff or self.backoff

    def override(self, **flags: object) -> None:
        """Let what a command line said go before everything else. AlreadyOpen once anything was opened."""
        with self._lock:
            if self.is_open:
                raise AlreadyOpen("this App is in use already; its settings can no longer change")
            self._settings = self.settings.overridden(**flags)

    def refuse_blocking(self, call: str, instead: str) -> None:
        """Warn, or raise under the setting `debug`, when the caller's event loop is running."""
        _ = self.settings
        refuse_blocking(call, instead)

    @property
    def store(self) -> Store:
        """The store of this process. Connects nothing before its first call, unless it has to migrate by itself."""
        handles = self._handles
        if handles is not None and handles.store is not None:
            return handles.store
        with self._lock:
            opened = self._ready()
            if opened.store is None:
                opened.store = self._open()
            return opened.store

    @property
    def pressing(self) -> Pressing:
        """How full the queues of this store are, as this process knows. Asks nothing by itself."""
        handles = self._handles
        return self._ready().pressing if handles is None else handles.pressing

    @property
    def is_open(self) -> bool:
        return self._handles is not None and self._handles.store is not None

    def open_with(self, opener: Callable[[], Store]) -> None:
        """Use the store that `opener` opens, in this process and from now on. AlreadyOpen once anything was opened."""
        with self._lock:
            if self.is_open:
                raise AlreadyOpen("this App is in use already; its store can no longer be another one")
            self._opener = opener

    @contextmanager
    def standing_on(
        self, settings: Settings, clock: Clock | None, opener: Callable[[], Store]
    ) -> Iterator[None]:
        """Use the store that `opener` opens while the block lasts. What was open before is put back, untouched."""
        with self._lock:
            before = self._settings, self.clock, self._opener, self._handles
            self._settings, self.clock, self._opener, self._handles = settings, clock, opener, None
        try:
            yield
        finally:
            self.close()
            with self._lock:
                self._settings, self.clock, self._opener, self._handles = before

    def close(self) -> None:
        """Let go of the store and the threads; the next use opens anew."""
        with self._lock:
            handles, self._handles = self._handles, None
        if handles is not None:
            handles.threads.shutdown(wait=True)
            if handles.store is not None:
                handles.store.close()

    async def aclose(self) -> None:
        """As `close`, without blocking the loop."""
        await asyncio.to_thread(self.close)

    def call(self, act: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Do I/O in this thread; a store's faults become the errors that users catch."""
        # `reaching` for the hottest of calls, without its generator.
        try:
            return act(*args, **kwargs)
        except (Transient, DataFault) as fault:
            raise self._told(fault) from fault

    async def acall(self, act: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """As `call`, in a thread of this client. Cancelling the wait does not stop the act."""
        context = contextvars.copy_context()
        work = partial(context.run, self.call, act, *args, **kwargs)
        return await asyncio.get_running_loop().run_in_executor(self._ready().threads, work)

    def beside_caller(self, act: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Do I/O in a thread of this client, whose transactions the caller's are not."""
        return self._ready().threads.submit(act, *args, **kwargs)

    @contextmanager
    def reaching(self) -> Iterator[None]:
        """Translate the faults of the store boundary."""
        try:
            yield
        except (Transient, DataFault) as fault:
            raise self._told(fault) from fault

    def _told(self, fault: Transient | DataFault) -> StoreUnreachable | PayloadError:
        if isinstance(fault, DataFault):
            return PayloadError(f"the store cannot hold a value of this job: {fault}; nothing was stored")
        if isinstance(fault, Full):
            return StoreFull(f"{without_password(self.settings.url)}: {fault}")
        unknown = (
            " Whether the last write arrived is not known: look before repeating it."
            if fault.outcome_unknown
            else ""
        )
        return StoreUnreachable(f"{without_password(self.settings.url)}: {fault}.{unknown}")

    def _tell(self, event: Happening) -> None:
        self.tell(event)

    def _home_of_blobs(self) -> str:
        url = self.settings.url
        if url.startswith("memory:"):
            # All of these have one URL; the place by which its children know a store is its own.
            url = getattr(self.store, "url_for_children", url)
        return home_of(url, self.settings.schema)

    def _ready(self) -> _Handles:
        with self._lock:
            if self._handles is None:
                pressing = Pressing(self.registry, lambda: self.store.pressing, self._tell)
                if budget := self.settings.budget:
                    gate = BudgetGate(budget, self.registry, lambda: self.store.pressing, pressing)
                    pressing.on_look = gate.look
                self._handles = _Handles(self.settings.pool, pressing)
            return self._handles

    def _open(self) -> Store:
        if self._opener is not None:
            return self._opener()
        settings = self.settings
        if any(other._opener is not None for other in list(_everyone) if other.registry is self.registry):
            # A test has moved the App away from its own store, and would write into this one for real.
            raise UsageError(
                f"the App stands on a test's store, and its other store {without_password(settings.url)} does not; let "
                "that stand on one, too: with duly.testing.standing(jobs.at(url), 'sqlite:///…')"
            )
        store = open_store(
            settings.url,
            schema=settings.schema,
            clock=self.clock,
            pool=settings.pool,
            notify=settings.notify is not False,
        )
        # SQLite migrates by itself; a server's schema only when told to.
        if settings.migrate == "auto" and store.capabilities.shared_by_machines:
            self.call(store.schema.migrate)
        return store

    def _forked(self) -> None:
        # Never closed and never collected here: the parent uses these handles, and closing an inherited SQLite
        # file would drop the parent's locks on it.
        if self._handles is not None:
            self._inherited.append(self._handles)
            self._handles = None
        self._lock = threading.RLock()


def _log(event: Happening) -> None:
    log.log(weight(event.level), "%s", event.sentence())


def _renew_all() -> None:
    for client in list(_everyone):
        client._forked()


os.register_at_fork(after_in_child=_renew_all)
