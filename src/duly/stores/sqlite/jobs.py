"""Jobs in, jobs claimed, attempts ended: the JobStore on SQLite. Leases and upkeep live next door."""

import json
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Final

from duly.core.defaults import ENQUEUE_BATCH
from duly.core.errors import LeaseLost
from duly.core.job import (
    ClaimedJob,
    ClaimRequest,
    Ended,
    Exchange,
    Incarnation,
    JobId,
    NewJob,
    Progress,
    Stored,
)
from duly.core.lifecycle import Outcome
from duly.stores.sqlite import claims, ends
from duly.stores.sqlite.database import Database
from duly.stores.sqlite.group import GroupCommit
from duly.stores.sqlite.moves import ids_text, lane_of, task_key
from duly.stores.sqlite.session import Session, Value
from duly.stores.sqlite.times import from_micros, maybe_span, span, to_micros

_KNOWN_WORKERS: Final = 64
# How often an idle worker notes that it found nothing to do.
_PROGRESS_EVERY: Final = 5_000_000

Values = dict[str, Value]


class SQLiteJobs:
    """See duly.stores.protocol.JobStore."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.group = GroupCommit(database)
        self._tasks: OrderedDict[int, Mapping[int, int]] = OrderedDict()
        self._idle_noted: dict[int, int] = {}

    def enqueue(self, jobs: Sequence[NewJob]) -> list[Stored]:
        """- -> ready or scheduled, in one transaction that may be shared with other threads' enqueues."""
        return self.group.run(lambda session: enqueue_in(session, jobs)) if jobs else []

    def exchange(
        self, incarnation: Incarnation, ended: Sequence[Ended], request: ClaimRequest | None
    ) -> Exchange:
        """Apply ends and claim more in one transaction; one that would change nothing takes no lock."""
        if not ended:
            with self._database.read(snapshot=True) as session:
                wishes = _wishes(session, incarnation)
                if request is None or not self._worth(session, incarnation, request):
                    return Exchange(frozenset(), (), wishes)
        with self._database.write() as session:
            acked = ends.apply(session, incarnation, ended)
            claimed = self._claim(session, incarnation, request) if request is not None else []
            session.run("update_worker_progress", incarnation=incarnation, now=session.now)
            wishes = _wishes(session, incarnation)
        self._idle_noted[incarnation] = session.now
        return Exchange(acked, tuple(claimed), wishes)

    def arguments(self, ids: Sequence[JobId]) -> dict[JobId, bytes]:
        """One statement, nothing locked."""
        with self._database.read() as session:
            return dict(session.rows("select_arguments", ids=ids_text([*ids])))

    def extend(self, incarnation: Incarnation, id: JobId, run: int, by: timedelta) -> bool:
        """running stays running, with a later deadline."""
        with self._database.write() as session:
            return session.run("update_deadline", incarnation=incarnation, id=id, run=run, by=span(by)) == 1

    def report(
        self, incarnation: Incarnation, progress: Sequence[Progress]
    ) -> tuple[list[tuple[JobId, int]], list[JobId]]:
        """Writes only when there is progress to write."""
        if not progress:
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
            return _report(session, incarnation)

    def forget(self, incarnations: Iterable[int]) -> None:
        """Drop what is remembered of incarnations that have ended."""
        for incarnation in incarnations:
            self._tasks.pop(incarnation, None)
            self._idle_noted.pop(incarnation, None)

    def _claim(self, session: Session, incarnation: int, request: ClaimRequest) -> list[ClaimedJob]:
        tasks = self._tasks_of(session, incarnation)
        if tasks is None:
            return []
        return claims.Claim(session, incarnation, request, tasks, claims.pauses(session)).run()

    def _worth(self, session: Session, incarnation: int, request: ClaimRequest) -> bool:
        """Whether taking the write lock for this claim would change anything."""
        if session.row("select_worker_exists", incarnation=incarnation) is None:
            return False
        if session.now - self._idle_noted.get(incarnation, 0) >= _PROGRESS_EVERY:
            return True
        paused = claims.pauses(session)
        lanes = [
            lane_of(one.queue, request.suspects) for one in request.queues if one.queue not in paused.queues
        ]
        tasks = [key for key in map(task_key, request.unparked) if key not in paused.tasks]
        return bool(session.value("select_work", lanes=json.dumps(lanes), tasks=json.dumps(tasks)))

    def _tasks_of(self, session: Session, incarnation: int) -> Mapping[int, int] | None:
        """Task key -> time to run in microseconds; None when the incarnation's row is gone."""
        known = self._tasks.get(incarnation)
        if known is not None:
            return None if session.row("select_worker_exists", incarnation=incarnation) is None else known
        row = session.row("select_worker", incarnation=incarnation)
        if row is None:
            return None
        # A row's tasks never change, so that they are read once.
        known = {task_key(name): timeout for name, timeout in json.loads(row[0]).items()}
        self._tasks[incarnation] = known
        while len(self._tasks) > _KNOWN_WORKERS:
            self._tasks.popitem(last=False)
        return known


def enqueue_in(session: Session, jobs: Sequence[NewJob]) -> list[Stored]:
    """Store jobs in the open transaction; LeaseLost before anything is written."""
    _check_holders(session, jobs)
    stored: list[Stored] = []
    for start in range(0, len(jobs), ENQUEUE_BATCH):
        stored += _store(session, jobs[start : start + ENQUEUE_BATCH])
    return stored


def _check_holders(session: Session, jobs: Sequence[NewJob]) -> None:
    for holder in {job.holder for job in jobs if job.holder is not None}:
        if session.row("select_token", incarnation=holder.incarnation, id=holder.job, run=holder.run) is None:
            raise LeaseLost(
                f"job {holder.job} no longer belongs to this attempt; nothing was enqueued", job_id=holder.job
            )


def _store(session: Session, jobs: Sequence[NewJob]) -> list[Stored]:
    first = session.numbers(len(jobs))
    stored: list[Stored] = []
    rows: list[Values] = []
    ready: list[Values] = []
    scheduled: list[Values] = []
    tags: list[Values] = []
    for id, job in enumerate(jobs, first):
        run_at = _due(session.now, job)
        due = session.now if run_at is None else run_at
        expires_at = None if job.expires is None else due + span(job.expires)
        rows.append(_job_row(id, job, expires_at, session.now))
        tags.extend({"tag": tag, "id": id} for tag in job.tags)
        waiting: Values = {
            "id": id,
            "queue": lane_of(job.queue, False),
            "task": task_key(job.task),
            "priority": job.priority,
            "run": 0,
            "failed": 0,
            "lost": 0,
            "interrupted": 0,
            "snoozed": 0,
            "expires_at": expires_at,
        }
        if run_at is None:
            # A new job's position is its id: one number of the sequence serves both.
            ready.append({**waiting, "pos": id, "ready_at": session.now})
        else:
            scheduled.append({**waiting, "run_at": run_at})
        stored.append(Stored(JobId(id), Outcome.created, None if run_at is None else from_micros(run_at)))
    session.many("insert_job", rows)
    session.many("insert_tag", tags)
    session.many("insert_ready", ready)
    session.many("insert_scheduled", scheduled)
    # A new due time may be earlier than the one that the promoter waits for.
    session.rings = True
    return stored


def _job_row(id: int, job: NewJob, expires_at: int | None, now: int) -> Values:
    return {
        "id": id,
        "queue": job.queue,
        "task": job.task,
        "args": job.args,
        "priority": job.priority,
        "tenant": job.tenant,
        "tags": json.dumps(job.tags, ensure_ascii=False) if job.tags else None,
        "correlation_id": job.correlation_id,
        "attempts": job.attempts,
        "timeout": maybe_span(job.timeout),
        "expires_at": expires_at,
        "enqueued_at": now,
    }


def _due(now: int, job: NewJob) -> int | None:
    """When the job is due; None when that is now."""
    if job.delay is not None:
        run_at = now + span(job.delay)
    elif job.run_at is not None:
        run_at = to_micros(job.run_at)
    else:
        return None
    return run_at if run_at > now else None


def _wishes(session: Session, incarnation: int) -> tuple[JobId, ...]:
    return tuple(id for (id,) in session.rows("select_wishes", incarnation=incarnation))


def _report(session: Session, incarnation: int) -> tuple[list[tuple[JobId, int]], list[JobId]]:
    held = [(JobId(id), int(run)) for id, run in session.rows("select_claimed", incarnation=incarnation)]
    return held, [*_wishes(session, incarnation)]


def complete_in(session: Session, incarnation: Incarnation, ended: Ended) -> bool:
    """Apply one end in the caller's open transaction; False when its token is not live."""
    return bool(ends.apply(session, incarnation, [ended], again=False))
