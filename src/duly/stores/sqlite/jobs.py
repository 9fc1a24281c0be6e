"""Jobs in, jobs claimed, attempts ended: the JobStore on SQLite. Leases and upkeep live next door."""

import json
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Final

from duly.core.job import (
    ClaimedJob,
    ClaimRequest,
    Cursor,
    Ended,
    Exchange,
    Incarnation,
    JobId,
    NewJob,
    Progress,
    Stored,
)
from duly.stores.sqlite import claims, ends
from duly.stores.sqlite.database import Database
from duly.stores.sqlite.followups import enqueue, settle_batches
from duly.stores.sqlite.group import GroupCommit
from duly.stores.sqlite.moves import Values, lane_of, task_key
from duly.stores.sqlite.session import Session
from duly.stores.sqlite.steps import keep_cursors
from duly.stores.sqlite.times import maybe_duration, span
from duly.stores.sqlite.transport import ids_text

_KNOWN_WORKERS: Final = 64
# How often an idle worker notes that it found nothing to do.
_PROGRESS_EVERY: Final = 5_000_000


class SQLiteJobs:
    """See duly.stores.protocol.JobStore."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.group = GroupCommit(database)
        self._tasks: OrderedDict[int, Mapping[int, int]] = OrderedDict()
        self._idle_noted: dict[int, int] = {}
        self._memory = claims.Memory()

    def enqueue(self, jobs: Sequence[NewJob]) -> list[Stored]:
        """- -> ready or scheduled, in one transaction that may be shared with other threads' enqueues."""
        return self.group.run(lambda session: enqueue(session, jobs)) if jobs else []

    def exchange(
        self, incarnation: Incarnation, ended: Sequence[Ended], request: ClaimRequest | None
    ) -> Exchange:
        """Apply ends and claim more in one transaction; one that would change nothing takes no lock."""
        if not ended:
            with self._database.read(snapshot=True) as session:
                wishes = _wishes(session, incarnation)
                if request is None:
                    return Exchange(frozenset(), (), wishes)
                paused = claims.pauses(session)
                if not self._worth(session, incarnation, request, paused):
                    wait = None if paused.look_at is None else paused.look_at - session.now
                    return Exchange(frozenset(), (), wishes, maybe_duration(wait))
        answer, now = self.group.run(lambda session: self._exchanged(session, incarnation, ended, request))
        self._idle_noted[incarnation] = now
        return answer

    def _exchanged(
        self,
        session: Session,
        incarnation: Incarnation,
        ended: Sequence[Ended],
        request: ClaimRequest | None,
    ) -> tuple[Exchange, int]:
        acked = ends.apply(session, incarnation, ended)
        lives = session.run("update_worker_progress", incarnation=incarnation, now=session.now) == 1
        claimed: list[ClaimedJob] = []
        again = None
        if lives and request is not None:
            claim = self._claim(session, incarnation, request)
            claimed, again = claim.run(), claim.again()
        # Jobs that the claim found to be expired or stale.
        if session.batches:
            settle_batches(session)
        return Exchange(acked, tuple(claimed), _wishes(session, incarnation), again), session.now

    def arguments(self, ids: Sequence[JobId]) -> dict[JobId, bytes]:
        """One statement, nothing locked."""
        with self._database.read() as session:
            return dict(session.rows("select_arguments", ids=ids_text([*ids])))

    def extend(self, incarnation: Incarnation, id: JobId, run: int, by: timedelta) -> bool:
        """running stays running, with a later deadline."""
        with self._database.write() as session:
            return session.run("update_deadline", incarnation=incarnation, id=id, run=run, by=span(by)) == 1

    def report(
        self, incarnation: Incarnation, progress: Sequence[Progress], cursors: Sequence[Cursor] = ()
    ) -> tuple[list[tuple[JobId, int]], list[JobId]]:
        """Writes only when there is something to write."""
        if not progress and not cursors:
            with self._database.read(snapshot=True) as session:
                return _report(session, incarnation)
        with self._database.write() as session:
            rows: list[Values] = [
                {
                    "incarnation": incarnation,
                    "id": one.id,
                    "run": one.run,
                    "done": one.done,
                    "of": one.of,
                    "note": one.note,
                    "at": session.now,
                }
                for one in progress
            ]
            session.many("upsert_progress", rows)
            keep_cursors(session, incarnation, cursors)
            return _report(session, incarnation)

    def forget(self, incarnations: Iterable[int]) -> None:
        """Drop what is remembered of incarnations that have ended."""
        for incarnation in incarnations:
            self._tasks.pop(incarnation, None)
            self._idle_noted.pop(incarnation, None)

    def _claim(self, session: Session, incarnation: int, request: ClaimRequest) -> claims.Claim:
        tasks, paused = self._tasks_of(session, incarnation), claims.pauses(session)
        return claims.Claim(session, incarnation, request, tasks, paused, self._memory)

    def _worth(
        self, session: Session, incarnation: int, request: ClaimRequest, paused: claims.Pauses
    ) -> bool:
        """Whether taking the write lock for this claim would change anything."""
        if session.row("select_worker_exists", incarnation=incarnation) is None:
            return False
        if session.now - self._idle_noted.get(incarnation, 0) >= _PROGRESS_EVERY:
            return True
        if paused.look_at is not None and paused.look_at <= session.now:
            return True
        lanes: dict[bool, list[int]] = {False: [], True: []}
        for one in request.queues:
            if one.queue not in paused.queues:
                lanes[one.fair].append(lane_of(one.queue, request.suspects))
        tasks = [key for key in map(task_key, request.unparked) if key not in paused.tasks]
        return bool(
            session.value(
                "select_work", lanes=ids_text(lanes[False]), fair=ids_text(lanes[True]), tasks=ids_text(tasks)
            )
        )

    def _tasks_of(self, session: Session, incarnation: int) -> Mapping[int, int]:
        """Task key -> time to run in microseconds, of an incarnation whose row is there."""
        known = self._tasks.get(incarnation)
        if known is not None:
            return known
        # A row's tasks never change, so that they are read once.
        (tasks, _draining), *_ = session.rows("select_worker", incarnation=incarnation)
        known = {task_key(name): timeout for name, timeout in json.loads(tasks).items()}
        self._tasks[incarnation] = known
        while len(self._tasks) > _KNOWN_WORKERS:
            self._tasks.popitem(last=False)
        return known


def _wishes(session: Session, incarnation: int) -> tuple[JobId, ...]:
    return tuple(id for (id,) in session.rows("select_wishes", incarnation=incarnation))


def _report(session: Session, incarnation: int) -> tuple[list[tuple[JobId, int]], list[JobId]]:
    held = [(JobId(id), int(run)) for id, run in session.rows("select_claimed", incarnation=incarnation)]
    return held, [*_wishes(session, incarnation)]


def complete_in(session: Session, incarnation: Incarnation, ended: Ended) -> bool:
    """Apply one end in the caller's open transaction; False when its token is not live."""
    return bool(ends.apply(session, incarnation, [ended], again=False))
