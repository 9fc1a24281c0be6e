"""Batches as a caller writes them: a block that groups jobs, closes at its end and is cancelled by an exception.

Knows no counts: what a batch comes to is the store's to say.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from duly.client.authorship import author
from duly.client.client import Client
from duly.client.draft import Draft
from duly.client.encoding import abatch_follow_ups, batch_follow_ups
from duly.client.enqueue import aenqueue_many, enqueue_many
from duly.client.enqueued import Enqueued
from duly.client.followups import read_follow_ups
from duly.client.job import Job
from duly.client.provider import OWN, connection_for
from duly.core.batch import BatchAct, CancelBatch, CloseBatch, OpenBatch
from duly.core.errors import UsageError
from duly.core.job import JobId

T = TypeVar("T")

_MOST_NAME: Final = 200


class Batch:
    """Jobs that are counted together; `with` or `async with`.

    `then` is enqueued once, when the block has ended, every job has ended too and none is dead: skipped, cancelled and
    shed jobs count as ended. `on_dead` is enqueued once, at the first death; `then` waits until the dead jobs were
    redriven and completed. What follows a job of the batch (`then=`, `on_dead=` of a draft) belongs to it, too.
    """

    def __init__(
        self,
        client: Client,
        name: str | None,
        then: Iterable[Draft[Any]],
        on_dead: Iterable[Draft[Any]],
        connection: Any,
        parent: int | None = None,
    ) -> None:
        self._client = client
        self._name = _checked(name)
        self._then = read_follow_ups(then, "then")
        self._on_dead = read_follow_ups(on_dead, "on_dead")
        self._connection = connection
        self._parent = parent
        self._id: int | None = None
        self._ended = False

    @property
    def id(self) -> int:
        """As `inspect.batch` takes it. Only from the block's beginning on."""
        if self._id is None:
            raise UsageError(
                "a batch has an id from the beginning of its block: write `with jobs.batch(…) as batch:`"
            )
        return self._id

    def __repr__(self) -> str:
        return f"<Batch {'not made yet' if self._id is None else self._id} {self._name!r}>"

    def add(self, *drafts: Draft[T]) -> list[Enqueued[T]]:
        """- -> ready or scheduled, all or none; blocks for one round trip per 1,000. They may run at once.

        A draft whose key another job holds answers `duplicate`, and that job does not become one of the batch.
        """
        return enqueue_many(self._client, drafts, self._into(), batch=self._open())

    async def aadd(self, *drafts: Draft[T]) -> list[Enqueued[T]]:
        """As `add`, without blocking the loop."""
        return await aenqueue_many(self._client, drafts, self._into(), batch=self._open())

    def batch(
        self, name: str | None = None, *, then: Iterable[Draft[Any]] = (), on_dead: Iterable[Draft[Any]] = ()
    ) -> Batch:
        """A batch inside this one, in the same transaction where that has one: it counts as one member.

        It has completed when its own `then` was enqueued, and is a death once all its jobs have ended and one is dead.
        """
        return Batch(self._client, name, then, on_dead, self._connection, self._open())

    def __enter__(self) -> Self:
        self._client.refuse_blocking("with jobs.batch()", "async with jobs.batch()")
        self._begin()
        then = batch_follow_ups(self._then, "then", self._client)
        on_dead = batch_follow_ups(self._on_dead, "on_dead", self._client)
        self._id = self._client.call(self._apply, OpenBatch(self._name, then, on_dead, self._parent))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended = True
        act = self._last(error)
        try:
            self._client.call(self._apply, act)
        except Exception as failure:
            self._failed(error, failure)

    async def __aenter__(self) -> Self:
        self._begin()
        then = await abatch_follow_ups(self._then, "then", self._client)
        on_dead = await abatch_follow_ups(self._on_dead, "on_dead", self._client)
        self._id = await self._aapply(OpenBatch(self._name, then, on_dead, self._parent))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended = True
        act = self._last(error)
        try:
            await self._aapply(act)
        except Exception as failure:
            self._failed(error, failure)

    def _into(self) -> Any:
        return OWN if self._connection is None else self._connection

    def _begin(self) -> None:
        if self._id is not None:
            raise UsageError(f"{self!r} was made before; write jobs.batch(…) anew for each block")
        self._connection = connection_for(self._client, self._connection)

    def _open(self) -> int:
        if self._ended:
            raise UsageError(
                f"the block of {self!r} has ended; add inside it, or from a handler of one of its jobs with "
                "jobs.batch_of(job).add(…)"
            )
        return self.id

    def _last(self, error: BaseException | None) -> BatchAct:
        if error is None:
            return CloseBatch(self.id)
        reason = f"{type(error).__name__} inside the block that made it"
        return CancelBatch(self.id, author(self._client.settings), reason)

    def _failed(self, error: BaseException | None, failure: Exception) -> None:
        """The batch stays open; the error inside the block is what the caller has to see."""
        if error is None:
            raise failure
        error.add_note(
            f"{self!r} could not be cancelled, and stays open: {type(failure).__name__}: {failure}"
        )

    def _apply(self, act: BatchAct) -> int:
        if self._connection is None:
            return self._client.store.batches.apply(act)
        return self._client.store.batch_on(self._connection, act)

    async def _aapply(self, act: BatchAct) -> int:
        if self._connection is None:
            return await self._client.acall(self._client.store.batches.apply, act)
        with self._client.reaching():
            return await self._client.store.abatch_on(self._connection, act)


class JobsBatch:
    """The batch of a running job, which may bring more jobs into it."""

    def __init__(self, client: Client, job: Job) -> None:
        self._client = client
        self._job = job

    def add(self, *drafts: Draft[T]) -> list[Enqueued[T]]:
        """- -> ready or scheduled, while this attempt is live; blocks. UsageError when the job is in no batch."""
        batch = self._client.call(self._find)
        return enqueue_many(self._client, drafts, OWN, batch=batch)

    async def aadd(self, *drafts: Draft[T]) -> list[Enqueued[T]]:
        """As `add`, without blocking the loop."""
        batch = await self._client.acall(self._find)
        return await aenqueue_many(self._client, drafts, OWN, batch=batch)

    def _find(self) -> int:
        id = JobId(int(self._job.id))
        found = self._client.store.batches.of([id]).get(id)
        if found is None:
            raise UsageError(f"job {id} ({self._job.task}) is in no batch; enqueue its work without one")
        return found


def _checked(name: str | None) -> str:
    if name is None:
        return ""
    if not name.strip() or len(name) > _MOST_NAME or "\0" in name:
        raise UsageError(
            f"batch name {name!r:.60} is a text of 1 to {_MOST_NAME} characters; or leave it out"
        )
    return name
