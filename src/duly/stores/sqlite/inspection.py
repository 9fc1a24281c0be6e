"""What can be read: the InspectionStore on SQLite. Writes nothing; fetches whole and briefly."""

import sqlite3
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Final, NamedTuple

from duly.core.control import queue_limit
from duly.core.dead_breaker import AUTHOR, Outcomes
from duly.core.filters import Filter
from duly.core.job import AttemptRecord, JobId, JobRecord
from duly.core.lifecycle import State
from duly.core.names import key_of
from duly.core.share import DatabaseLoad
from duly.core.why import MOST_AHEAD, JobFacts
from duly.stores.protocol import DeadGroup, OperationRecord, Page, Pause, QueueCount, WorkerRecord
from duly.stores.sqlite import depths, migrating, sampling
from duly.stores.sqlite.connecting import wal_is_safe
from duly.stores.sqlite.database import Database
from duly.stores.sqlite.facts import facts_in
from duly.stores.sqlite.session import Session
from duly.stores.sqlite.times import MICROSECOND, from_micros, to_micros
from duly.stores.sqlite.transport import ids_text
from duly.stores.sqlite.views import attempt_of, job_of, operation_of, pause_of, worker_of

_OPERATIONS: Final = 200
_LARGE_WAL: Final = 256 * 1024 * 1024
# A page reads on for so long, then answers with what it has and where to go on.
_PAGE_SECONDS: Final = 0.15
_PAGE_STEP: Final = 250
_PASSED: Final = 20_000
"""Finished jobs of another status that one statement passes, in a few milliseconds."""


class _Walk(NamedTuple):
    """One index to walk: the statements for newest and oldest first."""

    newest: str
    oldest: str
    newest_step: str | None = None
    """Of an index that passes what does not fit: how far one statement may go, since none of it may fit."""
    oldest_step: str | None = None


_JOBS: Final = _Walk("select_jobs_before", "select_jobs_after")
_TAGGED: Final = _Walk("select_tagged_before", "select_tagged_after")
_CORRELATED: Final = _Walk("select_correlated_before", "select_correlated_after")
_FINISHED: Final = _Walk(
    "select_finished_ids_before",
    "select_finished_ids_after",
    "select_finished_step_before",
    "select_finished_step_after",
)
_BY_ERROR: Final = _Walk("select_dead_error_ids_before", "select_dead_error_ids_after")
_BY_STATE: Final = {
    State.ready: _Walk("select_ready_ids_before", "select_ready_ids_after"),
    State.scheduled: _Walk("select_scheduled_ids_before", "select_scheduled_ids_after"),
    State.blocked: _Walk("select_blocked_ids_before", "select_blocked_ids_after"),
    State.running: _Walk("select_running_ids_before", "select_running_ids_after"),
    State.dead: _Walk("select_dead_ids_before", "select_dead_ids_after"),
}


class SQLiteInspection:
    """See duly.stores.protocol.InspectionStore."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def lookup(self, ids: Sequence[JobId]) -> list[JobRecord | None]:
        with self._database.read() as session:
            return lookup_in(session, ids)

    def facts(self, id: JobId) -> JobFacts | None:
        with self._database.read(snapshot=True) as session:
            return facts_in(session, id)

    def outcomes(self, queue: str, since: datetime, least: int, share: float) -> Outcomes:
        with self._database.read(snapshot=True) as session:
            row = session.row(
                "select_outcomes",
                queue=queue,
                queue_key=key_of(queue),
                target=queue_limit(queue),
                by=AUTHOR,
                since=to_micros(since),
                least=least,
                share=share,
                most=MOST_AHEAD,
            )
        return Outcomes(*row) if row else Outcomes(0, 0)

    def attempts(self, id: JobId) -> list[AttemptRecord]:
        with self._database.read() as session:
            return [attempt_of(row) for row in session.rows("select_attempts", id=id)]

    def page(
        self, filter: Filter, *, before: int | None = None, after: int | None = None, limit: int = 50
    ) -> Page:
        """Walks the narrowest index that the filter allows, in statements of a few milliseconds each."""
        walk, value = _source(filter)
        newest = after is None
        statement, step = (walk.newest, walk.newest_step) if newest else (walk.oldest, walk.oldest_step)
        edge = after if after is not None else before if before is not None else 2**63 - 1
        indexed = _indexed(filter)
        found: list[JobRecord] = []
        give_up = time.monotonic() + _PAGE_SECONDS
        while True:
            most = max(limit - len(found) + 1, _PAGE_STEP if found or filter.parts() else limit + 1)
            with self._database.read() as session:
                until = None if step is None else session.value(step, edge=edge, most=_PASSED)
                limits = {} if step is None else {"until": _end(newest) if until is None else until}
                rows = session.rows(statement, edge=edge, value=value, most=most, **limits)
                ids = [JobId(id) for (id,) in rows]
                records = _records(session, ids)
            for id in ids:
                record = records.get(id)
                if record is not None and indexed.matches(record):
                    if len(found) == limit:
                        return Page(tuple(found), edge)
                    found.append(record)
                edge = id
            if len(ids) < most:
                if until is None:
                    return Page(tuple(found), None)
                edge = until
            if time.monotonic() >= give_up:
                return Page(tuple(found), edge)

    def counts(self) -> list[QueueCount]:
        with self._database.read(snapshot=True) as session:
            rows = session.rows("select_counts", now=session.now)
            waiting = [*depths.depths(session)]
            rates = sampling.rates(session)
            now = session.now
        queues: dict[str, _Tally] = {}
        for kind, queue, count, extreme in rows:
            if queue is not None:
                queues.setdefault(queue, _Tally()).add(kind, count, extreme)
        for one in waiting:
            tally = queues.setdefault(one.queue, _Tally())
            tally.add(one.state, one.jobs, one.extreme)
            if one.estimated:
                tally.estimated.add(one.state)
        return [queues[queue].told(queue, now, rates.get(queue)) for queue in sorted(queues)]

    def waiting(self) -> int:
        """Jobs that wait, for a bound on them."""
        with self._database.read() as session:
            return int(session.value("select_waiting_count"))

    def workers(self) -> list[WorkerRecord]:
        with self._database.read() as session:
            return [worker_of(row, session.now) for row in session.rows("select_workers")]

    def dead_groups(self, filter: Filter) -> list[DeadGroup]:
        if filter.state not in {None, State.dead}:
            return []
        with self._database.read(snapshot=True) as session:
            rows = session.rows("select_dead_groups", **dead_terms(filter))
            return [_group(session, *row) for row in rows]

    def pauses(self) -> list[Pause]:
        with self._database.read() as session:
            return [pause_of(row) for row in session.rows("select_pauses", now=session.now)]

    def operations(self) -> list[OperationRecord]:
        with self._database.read() as session:
            return [operation_of(row) for row in session.rows("select_operations", most=_OPERATIONS)]

    def now(self) -> datetime:
        return from_micros(self._database.now())

    def load(self) -> DatabaseLoad | None:
        """Nobody counts what a file is used for."""
        return None

    def describe(self) -> dict[str, str]:
        with self._database.read() as session:
            version = migrating.version_of(session)
        where = self._database.path
        return {
            "store": "SQLite",
            "where": f"{where} (just created)" if self._database.created else where,
            "server": f"SQLite {sqlite3.sqlite_version}",
            "journal": self._database.journal(),
            "sync": "full",
            "schema": f"version {version}, tables {self._database.prefix}_*",
        }

    def warnings(self) -> list[str]:
        journal, path = self._database.journal(), self._database.path
        found = []
        safe = wal_is_safe(sqlite3.sqlite_version_info)
        if journal == "wal" and not safe:
            found.append(
                f"{path} is in WAL mode and SQLite {sqlite3.sqlite_version} can lose commits there when two "
                "connections write (fixed in 3.51.3, 3.50.7 and 3.44.6): use a Python that links a fixed SQLite, or "
                'stop everything and run: sqlite3 FILE "pragma journal_mode=delete"'
            )
        elif journal != "wal" and not safe:
            found.append(
                f"{path} uses the rollback journal, because SQLite {sqlite3.sqlite_version} has a fault in WAL mode: "
                "about a third of the speed, and every reader holds up writers. Use a Python that links SQLite 3.51.3 "
                "or later"
            )
        size = _size(f"{path}-wal")
        if size > _LARGE_WAL:
            found.append(
                f"{path}-wal has grown to {size // 2**20} MiB: some reader keeps its transaction open; end it and the "
                "file shrinks to 32 MiB"
            )
        return found


class _Tally:
    """One queue's numbers while they come in."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.estimated: set[str] = set()
        self.oldest: int | None = None
        self.next_due: int | None = None
        self.paused = False
        self.paused_until: int | None = None

    def add(self, kind: str, count: int, extreme: int | None) -> None:
        if kind == "pause":
            self.paused, self.paused_until = True, extreme
            return
        self.counts[kind] = self.counts.get(kind, 0) + count
        if extreme is not None and kind == "ready":
            self.oldest = extreme if self.oldest is None else min(self.oldest, extreme)
        if extreme is not None and kind == "scheduled":
            self.next_due = extreme if self.next_due is None else min(self.next_due, extreme)

    def told(self, queue: str, now: int, rates: sampling.Rates | None) -> QueueCount:
        return QueueCount(
            queue=queue,
            ready=self.counts.get("ready", 0),
            scheduled=self.counts.get("scheduled", 0),
            blocked=self.counts.get("blocked", 0),
            running=self.counts.get("running", 0),
            dead=self.counts.get("dead", 0),
            oldest_ready=None if self.oldest is None else (now - self.oldest) * MICROSECOND,
            next_due=None if self.next_due is None else from_micros(self.next_due),
            paused=self.paused,
            paused_until=None if self.paused_until is None else from_micros(self.paused_until),
            in_per_s=None if rates is None else rates.incoming,
            out_per_s=None if rates is None else rates.outgoing,
            slope_per_s=None if rates is None else rates.slope,
            estimated=tuple(sorted(self.estimated)),
        )


def _end(newest: bool) -> int:
    return 0 if newest else 2**63 - 1


def dead_terms(filter: Filter) -> dict[str, str | int | None]:
    """What a statement over the dead letters that fit is given."""
    return {
        "queue": filter.queue,
        "task": filter.task,
        "tenant": filter.tenant,
        "correlation": filter.correlation,
        "fingerprint": filter.fingerprint,
        "tag": filter.tag,
        "since": None if filter.since is None else to_micros(filter.since),
        "until": None if filter.until is None else to_micros(filter.until),
    }


def lookup_in(session: Session, ids: Sequence[JobId]) -> list[JobRecord | None]:
    """As SQLiteInspection.lookup, as the session's connection sees it."""
    found = _records(session, ids)
    return [found.get(id) for id in ids]


def _records(session: Session, ids: Sequence[JobId]) -> dict[JobId, JobRecord]:
    wanted = ids_text([*dict.fromkeys(ids)])
    return {record.id: record for record in map(job_of, session.rows("select_job_records", ids=wanted))}


def _source(filter: Filter) -> tuple[_Walk, str | None]:
    """The index to walk, and its value: the narrowest first."""
    if filter.correlation is not None:
        return _CORRELATED, filter.correlation
    if filter.tag is not None:
        return _TAGGED, filter.tag
    if filter.fingerprint is not None:
        # Letters of several errors no index has in one order.
        return (_BY_ERROR, filter.fingerprint) if filter.names_one_error else (_BY_STATE[State.dead], None)
    if filter.state is None:
        return _JOBS, None
    return _BY_STATE.get(filter.state, _FINISHED), filter.state.value


def _indexed(filter: Filter) -> Filter:
    """Without `where`, which is the caller's."""
    return Filter(
        queue=filter.queue,
        task=filter.task,
        tenant=filter.tenant,
        state=filter.state,
        tag=filter.tag,
        correlation=filter.correlation,
        fingerprint=filter.fingerprint,
        since=filter.since,
        until=filter.until,
    )


def _group(
    session: Session,
    fingerprint: str | None,
    queue: str,
    task: str,
    count: int,
    first: int,
    last: int,
    edited: int,
) -> DeadGroup:
    latest = session.row("select_latest_dead", fingerprint=fingerprint, queue=queue, task=task, died_at=last)
    kind, message, reason = latest or (None, None, None)
    told = f"{kind}: {message}" if kind and message else kind or reason or ""
    times = from_micros(first), from_micros(last)
    return DeadGroup(fingerprint or "", queue, task, count, *times, told, edited)


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except FileNotFoundError:
        return 0
