"""Work for workers that are no process of ours, as over HTTP: each reservation is an incarnation of its own.

Its lease is its time to run: who neither ends the job nor extends it by then has lost it. Blocks; knows no HTTP.
"""

from __future__ import annotations

import os
import random
import socket
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NoBase64
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from importlib.metadata import version
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from duly.client.client import Client
from duly.core import decide
from duly.core.classify import Verdict
from duly.core.defaults import MAX_INTERRUPTS
from duly.core.endings import Retry, Snooze
from duly.core.envelope import KeyNotHeld, NotOpened
from duly.core.errors import UsageError
from duly.core.fingerprint import ErrorRecord, describe
from duly.core.job import (
    ClaimedJob,
    ClaimRequest,
    Ended,
    Incarnation,
    JobId,
    JobRecord,
    QueueClaim,
    Token,
    WorkerInfo,
)
from duly.core.lifecycle import State
from duly.core.signing import KeyRing

PURPOSE: Final = "reservation"
SHORTEST_LEASE: Final = timedelta(seconds=5)
LONGEST_LEASE: Final = timedelta(hours=12)
MOST_CLAIMED: Final = 100
_TIMES_OF_HEARTBEAT: Final = 3


class Reserved(Struct, frozen=True):
    """A job that somebody outside holds now."""

    job: ClaimedJob
    token: str
    deadline: datetime


class Held(Struct, frozen=True):
    """An attempt that a token proves."""

    token: Token
    record: JobRecord


class Extended(Struct, frozen=True):
    id: JobId
    deadline: datetime
    cancel_wished: bool


Ending = Callable[["Outside", ClaimedJob, timedelta], Ended]


class Outside:
    """Claims for others, and what becomes of it. One per process."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def open(
        self, queues: Sequence[str], tasks: Iterable[str] | None, lease: timedelta, worker: str, most: int
    ) -> Incarnation:
        """Register a reservation; `tasks` None: all that anybody has registered. To be closed if it claims nothing."""
        store = self._client.store
        _, known = store.schema.declared()
        names = {*known, *self._client.registry.tasks} if tasks is None else {*tasks}
        return store.leases.register(
            WorkerInfo(
                host=socket.gethostname(),
                pid=os.getpid(),
                supervisor=worker,
                queues=tuple(queues),
                tasks=dict.fromkeys(sorted(names), lease),
                lease=lease,
                heartbeat=lease / _TIMES_OF_HEARTBEAT,
                slots=most,
                version=version("duly"),
            )
        )

    def parked(self, tasks: Iterable[str] | None) -> tuple[str, ...]:
        """Tasks of these that workers have set aside, as they know them not."""
        parked = self._client.store.upkeep.parked_tasks()
        return parked if tasks is None else tuple(name for name in parked if name in {*tasks})

    def beat(self, incarnation: Incarnation) -> None:
        """Keep a reservation that waits for work: once in a third of its lease."""
        self._client.store.leases.beat([incarnation])

    def take(
        self,
        incarnation: Incarnation,
        queues: Sequence[str],
        most: int,
        unparked: tuple[str, ...],
        *,
        suspects: bool,
    ) -> list[Reserved]:
        """ready -> running for at most so many. With `suspects` first one that was lost before, which comes alone: it
        convicts only itself."""
        registry = self._client.registry
        claims = tuple(
            QueueClaim(name, most, fair=name in registry.queues and registry.queues[name].fair)
            for name in queues
        )
        store = self._client.store
        claimed: tuple[ClaimedJob, ...] = ()
        if suspects:
            alone = ClaimRequest(tuple(claim._replace(most=1) for claim in claims), 1, suspects=True)
            claimed = store.jobs.exchange(incarnation, [], alone).claimed
        if not claimed:
            claimed = store.jobs.exchange(
                incarnation, [], ClaimRequest(claims, most, unparked=unparked)
            ).claimed
        if not claimed:
            return []
        return self._reserved(incarnation, claimed)

    def close(self, incarnation: Incarnation) -> None:
        """The row goes; what it holds goes back at once, and at no cost."""
        self._client.store.leases.retire(incarnation)

    def held(self, texts: Sequence[str]) -> list[Held | None]:
        """The attempts that these tokens prove; None for one that is no token, or of an attempt that has ended."""
        tokens = [self._read(text) for text in texts]
        ids = list(dict.fromkeys(token.job for token in tokens if token is not None))
        records = dict(zip(ids, self._client.store.inspection.lookup(ids), strict=True)) if ids else {}
        return [None if token is None else _proved(token, records[token.job]) for token in tokens]

    def end(self, held: Sequence[Held], endings: Sequence[Ending]) -> list[bool]:
        """Apply one end each, fenced by the tokens; False: somebody else has the job by now, and nothing changed."""
        store = self._client.store
        now = store.inspection.now()
        by_owner: dict[Incarnation, list[Ended]] = {}
        for one, ending in zip(held, endings, strict=True):
            elapsed = max(timedelta(0), now - (one.record.started_at or now))
            by_owner.setdefault(one.token.incarnation, []).append(ending(self, _claimed(one.record), elapsed))
        acked: set[tuple[Incarnation, JobId, int]] = set()
        for owner, ends in by_owner.items():
            exchange = store.jobs.exchange(owner, ends, None)
            acked.update((owner, id, run) for id, run in exchange.acked)
            if exchange.batches:
                store.batches.finish()
            if not store.jobs.report(owner, [])[0]:
                store.leases.retire(owner)
        return [tuple(one.token) in acked for one in held]

    def extend(self, held: Sequence[Held], lease: timedelta) -> list[Extended | None]:
        """Hold these for a lease more, from now; None: the job is somebody else's by now."""
        store = self._client.store
        now = store.inspection.now()
        alive = store.leases.beat(list({one.token.incarnation for one in held}))
        told: list[Extended | None] = []
        for one in held:
            incarnation, id, run = one.token
            deadline = one.record.deadline or now
            more = now + lease - deadline
            if incarnation not in alive or (
                more > timedelta(0) and not store.jobs.extend(incarnation, id, run, more)
            ):
                told.append(None)
            else:
                told.append(Extended(id, max(deadline, now + lease), one.record.cancel_wished))
        return told

    def holds(self, worker: str) -> list[Held]:
        """Everything that reservations under this name hold."""
        store = self._client.store
        found: list[Token] = []
        for row in store.inspection.workers():
            if row.supervisor == worker:
                pairs, _ = store.jobs.report(row.incarnation, [])
                found += [Token(row.incarnation, id, run) for id, run in pairs]
        records = store.inspection.lookup([token.job for token in found]) if found else []
        proved = [_proved(token, record) for token, record in zip(found, records, strict=True)]
        return [one for one in proved if one is not None]

    def policy(self, job: ClaimedJob) -> decide.Policy:
        """Of the task where the App knows it, else of the settings."""
        task = self._client.registry.find(job.task)
        if task is None:
            return decide.Policy(self._client.settings.attempts, self._client.backoff, MAX_INTERRUPTS)
        return decide.Policy(task.attempts, task.backoff, MAX_INTERRUPTS)

    def stored_result(self, job: ClaimedJob, result: bytes | None) -> bytes | None:
        """Encrypted where the job's task or queue is."""
        task, sealing = self._client.registry.find(job.task), self._client.sealing
        wanted = task.encrypted(job.queue) if task is not None else sealing.wants(None, job.queue)
        return sealing.seal_result(job.id, result) if wanted and result is not None else result

    def _readable(self, incarnation: Incarnation, claimed: Sequence[ClaimedJob]) -> list[ClaimedJob]:
        """Those whose arguments can be handed out, in clear; the others go back unspent, as in a worker of ours."""
        found: list[ClaimedJob] = []
        ends: list[Ended] = []
        for job in claimed:
            try:
                opened = self._client.sealing.open_arguments(
                    job.queue, job.task, job.tenant, job.args or b"{}"
                )
            except KeyNotHeld as error:
                ending = Snooze("1m", f"this job cannot be read here: {error}")
                ends.append(
                    decide.raised(
                        job, ending, self.policy(job), random.random(), describe(ending), timedelta(0)
                    )
                )
            except NotOpened as error:
                ends.append(decide.undecodable(job, describe(error)))
            else:
                found.append(job if opened is job.args else replace(job, args=opened))
        if ends:
            self._client.store.jobs.exchange(incarnation, ends, None)
        return found

    def _reserved(self, incarnation: Incarnation, claimed: Sequence[ClaimedJob]) -> list[Reserved]:
        store = self._client.store
        large = [job.id for job in claimed if job.args is None]
        arguments = store.jobs.arguments(large) if large else {}
        whole = [job if job.args is not None else replace(job, args=arguments.get(job.id)) for job in claimed]
        whole = self._readable(incarnation, whole)
        records = store.inspection.lookup([job.id for job in whole])
        return [
            Reserved(
                job,
                self._written(Token(incarnation, job.id, job.run)),
                job.claimed_at if record is None or record.deadline is None else record.deadline,
            )
            for job, record in zip(whole, records, strict=True)
        ]

    def _written(self, token: Token) -> str:
        ring = self._client.signing.ring(PURPOSE)
        content = b"%d.%d.%d" % token
        return urlsafe_b64encode(ring.key_id + ring.mac(content) + content).rstrip(b"=").decode()

    def _read(self, text: str) -> Token | None:
        try:
            data = urlsafe_b64decode(text.encode("ascii") + b"==")
        except (NoBase64, ValueError):
            return None
        key, mac, content = data[:4], data[4:20], data[20:]
        ring: KeyRing | None = self._client.signing.ring(PURPOSE)
        if ring is not None and not ring.knows(key):
            # Another server, started since, may sign with a key that was added.
            ring = self._client.signing.renewed(PURPOSE)
        if ring is None or not ring.verifies(key, content, mac):
            return None
        incarnation, job, run = map(int, content.split(b"."))
        return Token(Incarnation(incarnation), JobId(job), run)


def completed(result: bytes | None) -> Ending:
    """running -> completed."""

    def ending(outside: Outside, job: ClaimedJob, elapsed: timedelta) -> Ended:
        return decide.completed(job, outside.stored_result(job, result), elapsed)

    return ending


def failed(error: ErrorRecord, *, permanent: bool, after: timedelta | None) -> Ending:
    """running -> scheduled after the task's backoff, or exactly `after`; dead when permanent or at the last attempt."""

    def ending(outside: Outside, job: ClaimedJob, elapsed: timedelta) -> Ended:
        policy = outside.policy(job)
        if after is not None and not permanent:
            ending = Retry(after, error.message)
            return decide.raised(job, ending, policy, random.random(), error, elapsed)
        verdict = Verdict("permanent" if permanent else "transient")
        return decide.failed(job, verdict, policy, random.random(), error, elapsed)

    return ending


def read_lease(lease: timedelta) -> timedelta:
    """UsageError beyond what a reservation may last."""
    if not SHORTEST_LEASE <= lease <= LONGEST_LEASE:
        raise UsageError("a lease lasts from 5s to 12h; extend a job that takes longer")
    return lease


def _proved(token: Token, record: JobRecord | None) -> Held | None:
    if record is None or record.state is not State.running:
        return None
    same = record.incarnation == token.incarnation and record.run == token.run
    return Held(token, record) if same else None


def _claimed(record: JobRecord) -> ClaimedJob:
    """As it was claimed, as far as its end is decided by it."""
    return ClaimedJob(
        id=record.id,
        run=record.run,
        queue=record.queue,
        task=record.task,
        args=None,
        priority=record.priority,
        tenant=record.tenant,
        tags=record.tags,
        correlation_id=record.correlation_id,
        counters=record.counters,
        attempts=record.attempts,
        timeout=record.timeout,
        enqueued_at=record.enqueued_at,
        claimed_at=record.started_at or record.enqueued_at,
    )
