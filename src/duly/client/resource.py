"""Resources: named things outside, an API or a GPU, with a cap, a rate and a breaker that the whole fleet shares.

The store counts who uses one; knows no worker.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Final, Self

from duly.client.authorship import author, reason_given
from duly.client.blocking import refuse_blocking
from duly.client.client import Client
from duly.client.job import CallOutcome, Job, port_of
from duly.client.permits import (
    Entered,
    JobTaker,
    PlainTaker,
    Taker,
    agive_back,
    await_for,
    running_job,
    wait_for,
)
from duly.core.classify import classify
from duly.core.control import (
    BreakerPolicy,
    Calls,
    LimitPolicy,
    Permit,
    Rate,
    read_cap,
    read_rate,
    resource_limit,
)
from duly.core.durations import Duration, parse_duration
from duly.core.endings import Ending, Retry
from duly.core.errors import UsageError
from duly.core.names import check_name

log: Final = logging.getLogger("duly.resource")


class Breaker:
    """When a resource is left alone: its calls fail too often.

    Args:
        failures: the share of failed calls that opens it, above 0 and at most 1.
        min_calls: fewer calls than that open nothing: two failures at night are no outage.
        window: the calls that are counted together.
        cool_down: it stays open for so long; then one job tries.

    """

    def __init__(
        self,
        *,
        failures: float = 0.5,
        min_calls: int = 20,
        window: Duration = "1m",
        cool_down: Duration = "30s",
    ) -> None:
        share: object = failures
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
            raise UsageError(
                f"Breaker(failures={failures!r:.60}) is no share; write one such as failures=0.5"
            )
        self.policy = BreakerPolicy(
            float(failures),
            read_cap(min_calls, "min_calls"),
            parse_duration(window, "window", positive=True),
            parse_duration(cool_down, "cool_down", positive=True),
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Breaker) and other.policy == self.policy

    def __hash__(self) -> int:
        return hash(self.policy)

    def __repr__(self) -> str:
        share = self.policy.failures
        return f"<Breaker at {share:.0%} of {self.policy.min_calls} calls or more>"


class _Share:
    """What one attempt has of a resource: its blocks share one permit."""

    def __init__(self) -> None:
        self.blocks = 0
        self.permits: list[Permit] = []


class _Entry:
    """One block."""

    def __init__(self, taker: Taker, job: Job | None, permit: Permit | None) -> None:
        self.taker = taker
        self.job = job
        self.permit = permit


class Resource:
    """Made by `App.resource`. On a task, `uses=[stripe]`: its jobs wait for it without a slot and without an attempt.

    In code, `with stripe:` or `async with stripe:` waits for a permit where it stands, and what is raised inside counts
    for the breaker. In a handler the permit ends with the attempt at the latest; all blocks of one attempt share one,
    and a job whose task `uses` it has it already. Elsewhere it ends after `ttl` at the latest, and is not renewed.
    """

    def __init__(
        self,
        client: Client,
        name: str,
        *,
        max_running: int | None = None,
        rate: str | None = None,
        breaker: Breaker | None = None,
        ttl: Duration = "15m",
    ) -> None:
        self.name = check_name("resource", name)
        if breaker is not None and not isinstance(breaker, Breaker):
            raise UsageError(f"breaker={breaker!r:.60} is no Breaker; write breaker=Breaker()")
        self.max_running = None if max_running is None else read_cap(max_running)
        self.rate: Rate | None = None if rate is None else read_rate(rate)
        self.breaker = breaker
        self.ttl: timedelta = parse_duration(ttl, "ttl", positive=True)
        self._client = client
        self._entered: Entered[_Entry] = Entered()
        self._shares: dict[object, _Share] = {}
        self._lock = threading.Lock()

    @property
    def client(self) -> Client:
        return self._client

    @property
    def limit(self) -> str:
        """What stores, `why` and the command line call it: `resource:NAME`."""
        return resource_limit(self.name)

    @property
    def policy(self) -> LimitPolicy:
        """As stores take it."""
        breaker = None if self.breaker is None else self.breaker.policy
        return LimitPolicy(self.limit, self.max_running, self.rate, breaker)

    def hold(self, wait: Duration, reason: str = "") -> datetime:
        """Let nobody in the fleet begin to use it for so long, as after a 429; until when. Blocks.

        Who uses it already goes on: raise Snooze yourself. An earlier, longer hold stays.
        """
        self._client.refuse_blocking("resource.hold()", "await resource.ahold()")
        return self._hold(wait, reason)

    async def ahold(self, wait: Duration, reason: str = "") -> datetime:
        """As `hold`, without blocking the loop."""
        return await self._client.acall(self._hold, wait, reason)

    def __enter__(self) -> Self:
        refuse_blocking("with resource", "async with resource")
        job, taker = self._who()
        share = self._begin(job)
        try:
            permit = wait_for(taker, self.limit)
        except BaseException:
            for kept in self._end(job, share):
                taker.give_back(kept)
            raise
        self._keep(taker, job, share, permit)
        return self

    async def __aenter__(self) -> Self:
        job, taker = self._who()
        share = self._begin(job)
        try:
            permit = await await_for(taker, self.limit)
        except BaseException:
            for kept in self._end(job, share):
                await agive_back(taker, kept)
            raise
        self._keep(taker, job, share, permit)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        entry = self._entered.pop()
        for permit in self._end(entry.job, self._share_of(entry.job), entry.permit):
            self._look(entry.taker.give_back(permit))
        self._told(entry.job, error)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        entry = self._entered.pop()
        for permit in self._end(entry.job, self._share_of(entry.job), entry.permit):
            self._look(await agive_back(entry.taker, permit))
        if entry.job is None:
            await self._client.acall(self._told, None, error)
        else:
            self._told(entry.job, error)

    def __repr__(self) -> str:
        return f"<Resource {self.name!r}>"

    def same_as(self, other: Resource) -> bool:
        """Whether both say the same of one thing."""
        return self.policy == other.policy and self.ttl == other.ttl

    def _hold(self, wait: Duration, reason: str) -> datetime:
        client = self._client
        pause = parse_duration(wait, "hold(wait)", positive=True)
        job = running_job(client)
        by = author(client.settings) if job is None else f"task:{job.task}"
        return client.call(client.store.control.hold, self.limit, pause, by, reason_given(reason))

    def _who(self) -> tuple[Job | None, Taker]:
        job = running_job(self._client)
        return job, PlainTaker(self._client, self.ttl) if job is None else JobTaker(job)

    def _begin(self, job: Job | None) -> _Share | None:
        # Counted before it is taken: another block that ends meanwhile must leave the permit to this one.
        if job is None:
            return None
        with self._lock:
            share = self._shares.setdefault(job.token, _Share())
            share.blocks += 1
            return share

    def _keep(self, taker: Taker, job: Job | None, share: _Share | None, permit: Permit) -> None:
        if share is not None:
            share.permits.append(permit)
        self._entered.push(_Entry(taker, job, permit if share is None else None))

    def _share_of(self, job: Job | None) -> _Share | None:
        return None if job is None else self._shares.get(job.token)

    def _end(self, job: Job | None, share: _Share | None, own: Permit | None = None) -> list[Permit]:
        """What is to be given back now that one block is over."""
        if job is None or share is None:
            return [] if own is None else [own]
        with self._lock:
            share.blocks -= 1
            if share.blocks:
                return []
            self._shares.pop(job.token, None)
            # The permit of a block that found it taken by its own job names nothing.
            return [permit for permit in share.permits if permit.names]

    def _look(self, in_time: bool) -> None:
        if not in_time:
            log.warning(
                "%s: its permit had run out before its block ended; the cap may have been exceeded", self
            )

    def _told(self, job: Job | None, error: BaseException | None) -> None:
        if self.breaker is None:
            return
        outcome = self._outcome(job, error)
        if outcome is None:
            return
        if job is not None:
            port_of(job).note_call(self.limit, outcome)
        elif outcome != "cut":
            calls = [Calls(self.limit, 1, int(outcome == "failed"))]
            self._client.call(self._client.store.control.observe, calls)

    def _outcome(self, job: Job | None, error: BaseException | None) -> CallOutcome | None:
        """What a block says of the resource; None: nothing."""
        if error is None:
            return "done"
        if isinstance(error, asyncio.CancelledError):
            return "cut"
        if isinstance(error, Ending) or not isinstance(error, Exception):
            return "failed" if isinstance(error, Retry) else None
        task = None if job is None else self._client.registry.find(job.task)
        permanent, transient = ((), ()) if task is None else (task.permanent, task.transient)
        verdict = classify(error, permanent=permanent, transient=transient, now=datetime.now(UTC))
        return "done" if verdict.kind == "permanent" else "failed"
