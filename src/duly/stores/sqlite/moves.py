"""Rows on their way from one state table to the next, collected and written with few statements.

Knows where a row goes and what it holds; decides nothing and deletes nothing from where it stood.
"""

import json
from functools import lru_cache
from typing import Final, NamedTuple

from duly.core.defaults import KEEP_VERSIONS
from duly.core.fingerprint import ErrorRecord
from duly.core.job import Counters
from duly.core.lifecycle import Event, State
from duly.core.names import key_of, suspect_key
from duly.stores.faults import DataFault
from duly.stores.sqlite import batches
from duly.stores.sqlite.releasing import Left, leave
from duly.stores.sqlite.session import Row, Session, Value
from duly.stores.sqlite.times import span
from duly.stores.sqlite.transport import ids_text

INLINE_RESULT: Final = 8 * 1024
UNTOUCHED: Final = Counters()

# What a job carries beside itself: bits of its `extras`. The kinds of follow-ups are the first two.
THEN: Final = 1
ON_DEAD: Final = 2
UNIQUE: Final = 4
VERSION: Final = 8
BLOB: Final = 16
KEYED: Final = 64
BATCH: Final = 128

_FOLLOWED: Final = {State.completed: THEN, State.dead: ON_DEAD}

_NO_ERROR: Final = (None, None, None, None)

Values = dict[str, Value]


class Subject(NamedTuple):
    """A job as every table needs it: who it is and what it went through."""

    id: int
    run: int
    queue: str
    task: str
    tenant: str
    correlation_id: str | None
    enqueued_at: int
    priority: int
    counters: Counters
    expires_at: int | None = None
    extras: int = 0
    lane_tenant: int = 0
    """The key of its tenant, where its queue goes round them."""

    def after(self, counters: Counters, expires_at: int | None) -> "Subject":
        """The same job after an attempt."""
        return Subject(*self[:8], counters, expires_at, self.extras, self.lane_tenant)


class Parent(NamedTuple):
    """A job that has ended so that others follow it."""

    id: int
    kind: int
    correlation_id: str | None
    result: bytes | None
    member: bool = False
    """Of a batch, which its followers join."""
    trigger: str | None = None


@lru_cache(maxsize=4096)
def lane_of(queue: str, suspect: bool) -> int:
    """The key of a queue's lane; jobs with a loss behind them stand apart."""
    return suspect_key(queue) if suspect else key_of(queue)


@lru_cache(maxsize=4096)
def task_key(name: str) -> int:
    return key_of(name)


@lru_cache(maxsize=4096)
def tenant_key(name: str) -> int:
    """The key of a tenant's lane in a queue that goes round them; 0 without one."""
    return key_of(name) if name else 0


class Moves:
    """Rows to insert in one transaction."""

    def __init__(self, session: Session) -> None:
        self._session = session
        # Each as the columns of its statement.
        self._ready: list[Subject] = []
        self._scheduled: list[Row] = []
        self._finished: list[Row] = []
        self._results: list[Row] = []
        self._dead: list[Row] = []
        self._attempts: list[Row] = []
        self._freed: list[int] = []
        self._versions: list[Values] = []
        self._parents: list[Parent] = []
        self._left: list[Left] = []
        self._members: dict[int, State] = {}

    def ready(self, job: Subject) -> None:
        """To the tail of its lane; the position is drawn when written."""
        self._ready.append(job)

    def scheduled(self, job: Subject, run_at: int) -> None:
        self._scheduled.append(
            (job.id, run_at, _lane(job), task_key(job.task), job.priority, *_waiting(job), job.lane_tenant)
        )

    def finished(
        self,
        job: Subject,
        status: State,
        *,
        incarnation: int | None = None,
        started_at: int | None = None,
        reason: str | None = None,
        note: str | None = None,
        result: bytes | None = None,
    ) -> None:
        if job.extras:
            self._note_extras(job, status, result)
        inline = result
        if result is not None and len(result) > INLINE_RESULT:
            self._results.append((job.id, result))
            inline = None
        self._finished.append(
            (
                job.id,
                job.queue,
                lane_of(job.queue, False),
                job.task,
                job.tenant,
                status.value,
                job.run,
                *_counted(job.counters),
                incarnation,
                job.enqueued_at,
                started_at,
                self._session.now,
                _readable(reason),
                _readable(note),
                inline,
                job.correlation_id,
            )
        )

    def dead(
        self,
        job: Subject,
        *,
        incarnation: int | None = None,
        started_at: int | None = None,
        reason: str | None = None,
        note: str | None = None,
        error: ErrorRecord | None = None,
    ) -> None:
        if job.extras:
            self._note_extras(job, State.dead, None)
        self._dead.append(
            (
                job.id,
                job.queue,
                job.task,
                job.tenant,
                job.run,
                *_counted(job.counters),
                incarnation,
                job.enqueued_at,
                started_at,
                self._session.now,
                _readable(reason),
                _readable(note),
                *_error(error),
            )
        )

    def attempt(
        self,
        job: Subject,
        event: Event,
        incarnation: int,
        started_at: int | None,
        reason: str | None = None,
        error: ErrorRecord | None = None,
    ) -> None:
        self._attempts.append(
            (
                job.id,
                job.run,
                event.value,
                incarnation,
                started_at,
                self._session.now,
                _readable(reason),
                *_error(error),
            )
        )

    def flush(self) -> list[Parent]:
        """Write everything collected; ready rows get fresh positions in the order they came. Who has followers."""
        session = self._session
        if self._ready:
            first = session.numbers(len(self._ready))
            rows = [
                (
                    _lane(job),
                    job.priority,
                    first + offset,
                    job.id,
                    task_key(job.task),
                    *_waiting(job),
                    session.now,
                    job.lane_tenant,
                )
                for offset, job in enumerate(self._ready)
            ]
            session.tuples("insert_ready", rows)
            session.rings = True
        session.tuples("insert_scheduled", self._scheduled)
        session.tuples("insert_finished", self._finished)
        session.tuples("insert_result", self._results)
        session.tuples("insert_dead", self._dead)
        session.tuples("insert_attempt", self._attempts)
        self._ready.clear()
        for written in (self._scheduled, self._finished, self._results, self._dead, self._attempts):
            written.clear()
        if self._freed:
            session.run("delete_unique_keys", ids=ids_text(self._freed))
            self._freed.clear()
        if self._left:
            # Only now: who may go on is told by where these stand.
            leave(session, self._left)
            self._left.clear()
        if self._members:
            batches.count_ends(session, self._members)
            self._members.clear()
        session.many("upsert_newest", self._versions)
        self._versions.clear()
        parents, self._parents = self._parents, []
        return parents

    def _note_extras(self, job: Subject, status: State, result: bytes | None) -> None:
        if job.extras & UNIQUE:
            self._freed.append(job.id)
        if job.extras & KEYED:
            self._left.append(Left(job.id, status is State.dead))
        if job.extras & BATCH:
            self._members[job.id] = status
        if job.extras & VERSION and status is State.completed:
            now = self._session.now
            self._versions.append({"id": job.id, "now": now, "until": now + span(KEEP_VERSIONS)})
        kind = _FOLLOWED.get(status, 0)
        if job.extras & kind:
            self._parents.append(Parent(job.id, kind, job.correlation_id, result, job.extras & BATCH > 0))


def _lane(job: Subject) -> int:
    return lane_of(job.queue, job.counters.lost > 0)


def _waiting(job: Subject) -> Row:
    """(run, failed, lost, interrupted, snoozed, expires_at), which all waiting tables have in this order."""
    return (job.run, *_counted(job.counters), job.expires_at)


def _counted(counters: Counters) -> tuple[int, int, int, int]:
    return (counters.failed, counters.lost, counters.interrupted, counters.snoozed)


def _error(error: ErrorRecord | None) -> Row:
    """(error_type, error_message, error_traceback, fingerprint)."""
    if error is None:
        return _NO_ERROR
    return (_readable(error.type), _readable(error.message), _readable(error.traceback), error.fingerprint)


def _readable(text: str | None) -> str | None:
    # SQLite would take it; PostgreSQL refuses it, and a job must not end differently there.
    if text is not None and "\0" in text:
        raise DataFault("a text to store holds a NUL character")
    return text


def pairs(tokens: list[tuple[int, int]]) -> str:
    """(id, run) pairs as the statements take them."""
    return json.dumps(tokens)


def texts(values: list[str]) -> str:
    return json.dumps(values)
