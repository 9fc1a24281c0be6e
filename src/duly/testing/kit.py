"""`DulyTest`: what a test asks of duly: its clock, what waits, draining, and the accidents that jobs must survive.

Puts the parts together for one test; the fixture in plugin.py makes one.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

from duly.app import App
from duly.client.draft import Draft
from duly.client.effects import heard
from duly.client.job import current
from duly.client.task import Task
from duly.core.errors import UsageError
from duly.testing.clock import FakeClock
from duly.testing.draining import Drainer
from duly.testing.killing import deaths, refuse_repetitions
from duly.testing.performing import Drained, Ran
from duly.testing.place import place_of
from duly.testing.tap import Tapped
from duly.testing.waiting import WaitingJob, Wanted, committed, found, matching, told
from duly.worker.registration import declare


class DulyTest:
    """One test's duly: an App on a store of its own, with a clock that only the test moves."""

    def __init__(self, app: App, clock: FakeClock, tapped: Tapped, url: str) -> None:
        self.app = app
        self.clock = clock
        """What the store and everything that waits goes by; `advance("2d")` moves it."""
        self.url = url
        """Where the jobs of this test are."""
        self._tapped = tapped
        self._drainer = Drainer(app, clock, tapped)

    def drain(
        self, *, queues: Sequence[str] | None = None, scheduled: bool = False, raising: bool = True
    ) -> Drained:
        """Run what is ready, in this thread, until nothing is; what is due later stays.

        Args:
            queues: only these; all declared ones unless given.
            scheduled: move the clock on to whatever is due next, until nothing waits.
            raising: raise the first error of a handler, once its end is stored.

        """
        return Drained.of(
            self._drainer.run(
                lambda: self._drainer.script(_names(queues), scheduled=scheduled, raising=raising)
            )
        )

    async def adrain(
        self, *, queues: Sequence[str] | None = None, scheduled: bool = False, raising: bool = True
    ) -> Drained:
        """As `drain`, with async handlers on the running loop and others in threads."""
        return Drained.of(
            await self._drainer.arun(
                lambda: self._drainer.script(_names(queues), scheduled=scheduled, raising=raising)
            )
        )

    def ran(self, task: Task[..., Any] | None = None) -> list[Ran]:
        """The attempts that drains have run in this test, in order: arguments, endings, results, errors."""
        names = None if task is None else {task.name, *task.aliases}
        return [one for one in self._drainer.ran if names is None or one.task in names]

    def enqueued(
        self, wanted: Wanted | None = None, part: Mapping[str, Any] | None = None, *, connection: Any = None
    ) -> list[WaitingJob]:
        """The jobs that wait, oldest first: all, those of a task, or those that equal a draft.

        Args:
            wanted: a task, or a draft with all arguments and whatever options matter.
            part: some arguments of the task.
            connection: look as its open transaction does, which sees what is not committed yet.

        """
        return matching(self._waiting(connection), wanted, part)

    async def aenqueued(
        self, wanted: Wanted | None = None, part: Mapping[str, Any] | None = None, *, connection: Any = None
    ) -> list[WaitingJob]:
        """As `enqueued`, for an async connection."""
        return matching(await self._awaiting(connection), wanted, part)

    def assert_enqueued(
        self,
        wanted: Wanted,
        part: Mapping[str, Any] | None = None,
        *,
        times: int | None = None,
        connection: Any = None,
    ) -> None:
        """AssertionError, with what waits, unless such a job waits: at least one, or exactly `times`."""
        _assert(wanted, part, times, self._waiting(connection))

    async def aassert_enqueued(
        self,
        wanted: Wanted,
        part: Mapping[str, Any] | None = None,
        *,
        times: int | None = None,
        connection: Any = None,
    ) -> None:
        """As `assert_enqueued`, for an async connection."""
        _assert(wanted, part, times, await self._awaiting(connection))

    def refute_enqueued(
        self, wanted: Wanted, part: Mapping[str, Any] | None = None, *, connection: Any = None
    ) -> None:
        """AssertionError when such a job waits."""
        _assert(wanted, part, 0, self._waiting(connection))

    async def arefute_enqueued(
        self, wanted: Wanted, part: Mapping[str, Any] | None = None, *, connection: Any = None
    ) -> None:
        """As `refute_enqueued`, for an async connection."""
        _assert(wanted, part, 0, await self._awaiting(connection))

    def inline(self) -> Inline:
        """`with` or `async with`: run each job as soon as it is stored, before its enqueue returns.

        It is still encoded, stored, claimed, decoded and acknowledged. What is enqueued in a transaction of yours
        runs at the next enqueue after the commit, or at the end of the block.
        """
        return Inline(self, self._tapped, self._drainer)

    @contextmanager
    def deliver_twice(self) -> Iterator[None]:
        """Deliver each job that completes once more, as when its worker dies before the end is stored.

        AssertionError at the end of the block when an effect that `effect(…)` marks happened twice.
        """
        self._drainer.twice = True
        try:
            with heard() as marks:
                yield
        finally:
            self._drainer.twice = False
        refuse_repetitions(marks, "as its job was delivered twice")

    def kill_at_every_step(
        self,
        draft: Draft[Any],
        invariant: Callable[[], object],
        *,
        before: Callable[[], object] = lambda: None,
    ) -> int:
        """Run a job once for each moment before and after a store call, and let its process die there.

        After each death, and again when another worker has brought the job to its end, `invariant` must hold: it
        returns something true, or None after assertions of its own. An effect that `effect(…)` marks must happen as
        often as without a death, and once. The number of moments.

        Args:
            draft: what to run; each time it is enqueued anew.
            invariant: what must never be broken.
            before: puts the test's own data back, before each run.

        """
        return self._drainer.run(lambda: deaths(self._drainer, draft, invariant, before))

    async def akill_at_every_step(
        self,
        draft: Draft[Any],
        invariant: Callable[[], object],
        *,
        before: Callable[[], object] = lambda: None,
    ) -> int:
        """As `kill_at_every_step`, with async handlers on the running loop."""
        return await self._drainer.arun(lambda: deaths(self._drainer, draft, invariant, before))

    def _waiting(self, connection: Any) -> list[WaitingJob]:
        store, ids = self.app.store, self._ids()
        if connection is None:
            records = self.app.client.call(store.inspection.lookup, ids)
        else:
            records = self.app.client.call(store.lookup_on, connection, ids)
        return found(records, self.app.tasks)

    async def _awaiting(self, connection: Any) -> list[WaitingJob]:
        if connection is None:
            return self._waiting(None)
        with self.app.client.reaching():
            records = await self.app.store.alookup_on(connection, self._ids())
        return found(records, self.app.tasks)

    def _ids(self) -> list[Any]:
        """All that may wait: what is committed, and what this process has stored in transactions still open."""
        return sorted({*committed(self.app.store), *self._tapped.ids})


class Inline:
    """A block in which jobs run as they are enqueued."""

    def __init__(self, kit: DulyTest, tapped: Tapped, drainer: Drainer) -> None:
        self._kit = kit
        self._tapped = tapped
        self._drainer = drainer
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = 0
        self._turn = asyncio.Lock()

    def __enter__(self) -> Self:
        self._loop, self._thread = _running_loop(), threading.get_ident()
        self._tapped.on_stored = self._stored
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._tapped.forget_listener()
        if kind is None and self._loop is None:
            self._kit.drain()

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._tapped.forget_listener()
        if kind is None:
            await self._kit.adrain()

    def _stored(self) -> None:
        if current.get() is not None:
            # A handler's own enqueue: the drain that runs it takes it next.
            return
        if self._loop is None:
            if not self._drainer.active:
                self._kit.drain()
        elif threading.get_ident() == self._thread:
            raise UsageError(
                "a blocking enqueue inside inline() holds the loop that its job needs; await aenqueue()"
            )
        else:
            asyncio.run_coroutine_threadsafe(self._adrain(), self._loop).result()

    async def _adrain(self) -> None:
        """Tasks of the test may enqueue at once; their jobs run one after the other."""
        async with self._turn:
            await self._kit.adrain()


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _names(queues: Sequence[str] | None) -> Sequence[str] | None:
    if isinstance(queues, str):
        raise UsageError(f"queues={queues!r} is one text; write queues=[{queues!r}]")
    return queues


def _assert(
    wanted: Wanted, part: Mapping[str, Any] | None, times: int | None, waiting: list[WaitingJob]
) -> None:
    count = len(matching(waiting, wanted, part))
    if count == times or (times is None and count):
        return
    what = str(wanted) if isinstance(wanted, Draft) else f"{wanted.name}({_shown(part)})"
    expected = "at least one" if times is None else str(times) if times else "none"
    raise AssertionError(f"{count} jobs {what} wait, expected {expected}; {told(waiting)}")


def _shown(part: Mapping[str, Any] | None) -> str:
    return ", ".join([*(f"{name}={value!r}" for name, value in (part or {}).items()), "…"])


@contextmanager
def standing(app: App, url: str) -> Iterator[DulyTest]:
    """Let `app` stand on an empty store at `url` while the block lasts, by a clock that starts now and stands still."""
    clock, tapped = FakeClock(datetime.now(UTC)), Tapped()
    app.load()
    own = app.settings
    place = place_of(own, url)
    place.prepare()
    with app.client.standing_on(place.settings(own), clock, place.opener(clock, tapped.tap)):
        # The tables must be there before a test's own transaction locks the file.
        _ = app.store
        if app.client.registry.schedules:
            # From now on, as after `duly migrate APP`, and not from the first drain.
            app.client.call(declare, app)
        yield DulyTest(app, clock, tapped, place.url)
