"""Acts of a person: the OperatorStore on SQLite. Each act is one transaction per chunk of jobs."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec import json

from duly.core.filters import Filter
from duly.core.job import Incarnation, JobId
from duly.core.lifecycle import State
from duly.stores.audits import OPERATION_VERBS, operation_detail
from duly.stores.protocol import OperationRecord, Pause
from duly.stores.sqlite import batches
from duly.stores.sqlite.database import Database
from duly.stores.sqlite.ends import cancelled_by
from duly.stores.sqlite.enqueueing import hold_key, holder_of
from duly.stores.sqlite.followups import settle
from duly.stores.sqlite.moves import UNIQUE, UNTOUCHED, Moves, Subject, tenant_key
from duly.stores.sqlite.releasing import look_again, ordering_key
from duly.stores.sqlite.retention import forget
from duly.stores.sqlite.session import Session
from duly.stores.sqlite.times import span, to_micros
from duly.stores.sqlite.transport import ids_text
from duly.stores.sqlite.views import operation_of, pause_of
from duly.stores.sqlite.waiting import (
    BLOCKED,
    READY,
    SCHEDULED,
    enter_ready,
    jobs_of,
    named_in,
    row_of,
    subject_of,
    take,
)

_CHUNK: Final = 500


class SQLiteOperator:
    """See duly.stores.protocol.OperatorStore."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def cancel(self, ids: Sequence[JobId], by: str, reason: str) -> dict[JobId, State]:
        """With one writer the wish and its granting are one transaction."""
        answer: dict[JobId, State] = {}
        for chunk in _chunks(ids):
            with self._database.write() as session:
                answer |= _cancel(session, chunk, by, reason)
        return answer

    def redrive(self, ids: Sequence[JobId], by: str, reason: str, priority: int | None = None) -> list[JobId]:
        """dead, cancelled, skipped -> ready in the order given; an expiry of old holds no more, a unique key does."""
        moved: list[JobId] = []
        for chunk in _chunks(ids):
            with self._database.write() as session:
                moved += _redrive(session, chunk, by, reason, priority)
        return moved

    def purge(self, ids: Sequence[JobId], by: str, reason: str) -> list[JobId]:
        purged: list[JobId] = []
        for chunk in _chunks(ids):
            with self._database.write() as session:
                found = [JobId(id) for (id,) in session.rows("select_these_dead", ids=ids_text([*chunk]))]
                forget(session, found, dead=True)
                purged += found
                note_jobs(session, "purge", found, by, reason)
        return purged

    def run_now(self, ids: Sequence[JobId], by: str, reason: str) -> list[JobId]:
        """scheduled -> the tail of ready; a job that is ready keeps its place."""
        moved: list[JobId] = []
        for chunk in _chunks(ids):
            with self._database.write() as session:
                due = take(session, chunk, SCHEDULED)
                enter_ready(session, due)
                # Those that have just come are among them.
                moved += [JobId(one.id) for one in named_in(session, chunk, READY)]
                note_jobs(session, "run_now", chunk, by, reason)
        return moved

    def run_at(self, ids: Sequence[JobId], at: datetime, by: str, reason: str) -> list[JobId]:
        moved: list[JobId] = []
        for chunk in _chunks(ids):
            with self._database.write() as session:
                waiting = take(session, chunk, READY, SCHEDULED)
                session.many(
                    "insert_scheduled", [{**row_of(one), "run_at": to_micros(at)} for one in waiting]
                )
                look_again(session)
                # The new time may be earlier than the one that the promoter waits for.
                session.rings = session.rings or bool(waiting)
                moved += [JobId(one.id) for one in waiting]
                note_jobs(session, "run_at", chunk, by, reason)
        return moved

    def reprioritise(self, ids: Sequence[JobId], priority: int, by: str, reason: str) -> list[JobId]:
        """A ready job goes to the tail of its new lane; the others keep where and how long they wait."""
        moved: list[JobId] = []
        for chunk in _chunks(ids):
            with self._database.write() as session:
                scheduled = named_in(session, chunk, SCHEDULED)
                session.many(
                    "update_scheduled_priority", [{"id": one.id, "priority": priority} for one in scheduled]
                )
                blocked = named_in(session, chunk, BLOCKED)
                session.many(
                    "update_blocked_priority", [{"id": one.id, "priority": priority} for one in blocked]
                )
                ready = named_in(session, chunk, READY)
                first = session.numbers(len(ready))
                session.many(
                    "update_ready_lane",
                    [{"id": one.id, "priority": priority, "pos": first + at} for at, one in enumerate(ready)],
                )
                moved += [JobId(one.id) for one in (*scheduled, *blocked, *ready)]
                note_jobs(session, "reprioritise", chunk, by, reason)
        return moved

    def pause(self, target: str, lasting: timedelta | None, by: str, reason: str) -> Pause:
        with self._database.write() as session:
            until = None if lasting is None else session.now + span(lasting)
            session.run("upsert_pause", target=target, until=until, by=by, reason=reason, at=session.now)
            note_act(session, f"pause {target}", by, reason)
            return pause_of((target, until, by, reason, session.now))

    def resume(self, target: str, by: str, reason: str) -> bool:
        """Queues give their jobs again at once; jobs set aside for a task come back with the next sweep."""
        with self._database.write() as session:
            held = session.row("select_pause", target=target, now=session.now) is not None
            session.run("delete_pause", target=target)
            session.rings = held
            if held:
                note_act(session, f"resume {target}", by, reason)
            return held

    def drain_worker(self, incarnation: Incarnation, by: str, reason: str) -> bool:
        with self._database.write() as session:
            found = session.run("update_draining", incarnation=incarnation) == 1
            if found:
                enter(session, "drain", f"worker:{incarnation}", by, reason)
            return found

    def draining(self, incarnations: Sequence[Incarnation]) -> frozenset[Incarnation]:
        with self._database.read() as session:
            rows = session.rows("select_draining", incarnations=ids_text([*incarnations]))
        return frozenset(Incarnation(incarnation) for (incarnation,) in rows)

    def start_operation(
        self,
        verb: str,
        filter: Filter,
        rate: float | None,
        priority: int | None,
        total: int,
        by: str,
        reason: str,
    ) -> OperationRecord:
        with self._database.write() as session:
            id = session.value(
                "insert_operation",
                verb=verb,
                filter=filter.to_json().decode(),
                rate=rate,
                priority=priority,
                total=total,
                by=by,
                reason=reason,
                now=session.now,
                upto=session.last_number(),
            )
            enter(session, "start", f"operation:{id}", by, reason, operation_detail(verb, filter, total))
            return operation_of(session.rows("select_operation", id=id)[0])

    def set_operation(self, id: int, state: str, by: str, reason: str) -> OperationRecord | None:
        with self._database.write() as session:
            if session.run("update_operation_state", id=id, state=state, now=session.now) == 0:
                return None
            enter(session, OPERATION_VERBS[state], f"operation:{id}", by, reason)
            return operation_of(session.rows("select_operation", id=id)[0])

    def advance_operation(self, id: int, cursor: int, done: int, skipped: int, ended: bool) -> bool:
        """`done` and `skipped` are of this step."""
        with self._database.write() as session:
            step = {"cursor": cursor, "done": done, "skipped": skipped, "ended": ended}
            return session.run("update_operation_cursor", id=id, now=session.now, **step) == 1


def cancel_in(session: Session, ids: Sequence[JobId], by: str, reason: str) -> dict[JobId, State]:
    """As SQLiteOperator.cancel, all of them in the open transaction."""
    return _cancel(session, list(dict.fromkeys(ids)), by, reason)


def _cancel(session: Session, ids: Sequence[JobId], by: str, reason: str) -> dict[JobId, State]:
    waiting = take(session, ids, READY, SCHEDULED, BLOCKED)
    stored = jobs_of(session, [one.id for one in waiting])
    moves = Moves(session)
    for one in waiting:
        moves.finished(subject_of(one, stored[one.id]), State.cancelled, reason=reason, note=cancelled_by(by))
    settle(session, moves)
    look_again(session)
    running = [JobId(id) for (id,) in session.rows("select_running", ids=ids_text([*ids]))]
    session.many("insert_wish", [{"id": id, "by": by, "reason": reason, "at": session.now} for id in running])
    note_jobs(session, "cancel", ids, by, reason)
    return {JobId(one.id): State.cancelled for one in waiting} | dict.fromkeys(running, State.running)


def _redrive(
    session: Session, ids: Sequence[JobId], by: str, reason: str, priority: int | None
) -> list[JobId]:
    """Those whose unique key belongs to another job by now stay where they are."""
    moves = Moves(session)
    moved: list[JobId] = []
    keys: set[bytes] = set()
    for row in session.rows("select_redrivable", ids=ids_text([*ids])):
        id, run, queue, task, tenant, correlation_id, enqueued_at, own_priority, extras, *rest = row
        key, live, name, fair = rest
        if extras & UNIQUE:
            if key in keys or holder_of(session, key) is not None:
                continue
            keys.add(key)
            hold_key(session, key, id, live)
        if name is not None:
            session.run("insert_keyed", key=ordering_key(queue, tenant, name), id=id)
        chosen = own_priority if priority is None else priority
        lane = tenant_key(tenant) if fair else 0
        subject = Subject(id, run, queue, task, tenant, correlation_id, enqueued_at, chosen, UNTOUCHED)
        moves.ready(subject._replace(lane_tenant=lane))
        moved.append(JobId(id))
    found = ids_text([*moved])
    batches.count_again(session, found)
    session.run("delete_finished", ids=found)
    session.run("delete_dead", ids=found)
    settle(session, moves)
    note_jobs(session, "redrive", moved, by, reason)
    return moved


def _chunks(ids: Sequence[JobId]) -> Iterator[Sequence[JobId]]:
    """Each chunk is a transaction of its own, so that no act holds the write lock for long."""
    named = list(dict.fromkeys(ids))
    for start in range(0, len(named), _CHUNK):
        yield named[start : start + _CHUNK]


def note_act(session: Session, verb: str, by: str, reason: str) -> None:
    """Keep who did what, and why. What stands behind the first space of `verb` is what it was done to."""
    word, _, target = verb.partition(" ")
    enter(session, word, target, by, reason)


def note_jobs(session: Session, verb: str, ids: Sequence[JobId], by: str, reason: str) -> None:
    """Keep who did what to these jobs, if there are any."""
    if ids:
        detail = json.encode({"jobs": len(ids), "ids": ids}).decode()
        enter(session, verb, f"job:{ids[0]}" if len(ids) == 1 else "", by, reason, detail)


def enter(session: Session, verb: str, target: str, by: str, reason: str, detail: str = "{}") -> int:
    """Write one entry of the audit; its id."""
    entry = {"actor": by, "verb": verb, "target": target, "reason": reason, "detail": detail}
    return int(session.value("insert_audit_entry", at=session.now, **entry))
