"""What some worker must do from time to time: the UpkeepStore on SQLite, but for retention, which has its own file.

Looks before it locks: a round without work takes no write lock, and one with work takes it for short chunks.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from duly.core.durations import format_duration
from duly.core.lifecycle import State
from duly.stores.protocol import Swept
from duly.stores.sqlite import claims, ends, pressing, retention, sampling
from duly.stores.sqlite.batching import SQLiteBatches
from duly.stores.sqlite.bounds import bounds_of
from duly.stores.sqlite.database import Database
from duly.stores.sqlite.ends import Held
from duly.stores.sqlite.followups import settle, settle_batches
from duly.stores.sqlite.healing import Healing
from duly.stores.sqlite.keys import LeftKeys
from duly.stores.sqlite.leases import lose
from duly.stores.sqlite.moves import Moves
from duly.stores.sqlite.rekeying import rekey
from duly.stores.sqlite.releasing import open_due
from duly.stores.sqlite.session import Session
from duly.stores.sqlite.times import MICROSECOND, span
from duly.stores.sqlite.waiting import (
    BLOCKED,
    PAUSED,
    READY,
    SCHEDULED,
    UNKNOWN,
    Table,
    Waiting,
    enter_ready,
    expire,
    jobs_of,
    subject_of,
    waiting_of,
)

# A chunk of so many moves holds the write lock for about 10 ms.
_CHUNK: Final = 500
_SWEEP: Final = "sweep"
_EVERY: Final = 1_000_000
# A sweep may take one twentieth of the time.
_SHARE: Final = 20
# However long it took: the next one comes within a minute.
_MOST_COST: Final = 3_000_000

Step = Callable[[Session], int]


class SQLiteUpkeep:
    """See duly.stores.protocol.UpkeepStore."""

    def __init__(self, database: Database, duties: Sequence[Callable[[], object]] = ()) -> None:
        """`duties` are done by whoever has swept, each in transactions of its own."""
        self._database = database
        self._duties = duties
        self._left_keys = LeftKeys(database)
        self._batches = SQLiteBatches(database)
        self._healing = Healing(database)

    def promote(self, most: int = 1000) -> tuple[int, timedelta | None]:
        """scheduled -> ready for what is due, blocked -> ready for what time has opened, in chunks."""
        moved = opened = 0
        while True:
            with self._database.read() as session:
                due, opens = session.row("select_next_due") or (None, None)
                now = session.now
            promotes = due is not None and due <= now and moved < most
            looks = opens is not None and opens <= now and opened < most
            if not promotes and not looks:
                times = [at for at in (due, opens) if at is not None]
                return moved, (min(times) - now) * MICROSECOND if times else None
            with self._database.write() as session:
                if promotes:
                    moved += _promote(session, min(_CHUNK, most - moved))
                if looks:
                    opened += max(open_due(session, bounds_of(session)), 1)

    def sweep(self, unknown_after: timedelta, poison: int, grace: timedelta) -> Swept:
        """One round, at most once a second for all workers together."""
        if not self._take_turn():
            return Swept(ran=False)
        # Of this thread alone: what it waits for others costs nobody anything.
        started = time.thread_time()
        rekey(self._database)
        late = span(grace)
        with self._database.read() as session:
            row = session.row("select_upkeep", now=session.now, before=session.now - late) or ()
            orphaned, overdue, ready, scheduled, blocked, pauses = map(bool, row)
        swept = Swept(
            orphans=self._in_chunks(orphaned, lambda session: _lose_orphans(session, poison)),
            overdue=self._in_chunks(overdue, lambda session: _lose_overdue(session, late, poison)),
            expired=self._in_chunks(ready, partial(_expire, table=READY))
            + self._in_chunks(scheduled, partial(_expire, table=SCHEDULED))
            + self._in_chunks(blocked, partial(_expire, table=BLOCKED)),
            unparked=self._unpark(pauses),
            abandoned=self._abandon(unknown_after),
            shed=pressing.shed(self._database),
        )
        self._left_keys.free()
        self._healing.heal()
        self._batches.finish()
        sampling.sample(self._database)
        for duty in self._duties:
            duty()
        self._note_cost(time.thread_time() - started)
        return swept

    def parked_tasks(self) -> tuple[str, ...]:
        with self._database.read() as session:
            return tuple(name for _, name in session.rows("select_parked_tasks", cause=UNKNOWN) if name)

    def retain(
        self,
        keep: Mapping[str, timedelta],
        keep_dead: Mapping[str, timedelta],
        default: timedelta,
        default_dead: timedelta,
        most: int = 2000,
    ) -> int:
        return retention.retain(self._database, keep, keep_dead, default, default_dead, most)

    def announce_dead(
        self, keep_dead: Mapping[str, timedelta], default_dead: timedelta, ahead: timedelta
    ) -> list[tuple[str, int, datetime]]:
        return retention.announce_dead(self._database, keep_dead, default_dead, ahead)

    def _take_turn(self) -> bool:
        with self._database.read() as session:
            row = session.row("select_sweep", name=_SWEEP)
        last_at, cost = row or (None, 0)
        # A time to come was written under another clock.
        if last_at is not None and 0 <= session.now - last_at < max(_EVERY, _SHARE * cost):
            return False
        with self._database.write() as session:
            return session.run("upsert_sweep", name=_SWEEP, now=session.now, position=0, seen=last_at) == 1

    def _note_cost(self, seconds: float) -> None:
        cost = min(int(seconds * 1_000_000), _MOST_COST)
        if cost * _SHARE > _EVERY:
            with self._database.write() as session:
                session.run("update_sweep_position", name=_SWEEP, position=cost)

    def _in_chunks(self, needed: bool, step: Step) -> int:
        moved = 0
        while needed:
            with self._database.write() as session:
                found = step(session)
            moved += found
            needed = found == _CHUNK
        return moved

    def _unpark(self, lapsed: bool) -> int:
        """blocked -> ready for tasks that are paused no more."""
        if lapsed:
            with self._database.write() as session:
                session.run("delete_lapsed_pauses", now=session.now)
        with self._database.read() as session:
            paused = claims.pauses(session).tasks
            tasks = [
                task for task, _ in session.rows("select_parked_tasks", cause=PAUSED) if task not in paused
            ]
        return sum(self._in_chunks(True, partial(_resume, task=task)) for task in tasks)

    def _abandon(self, unknown_after: timedelta) -> int:
        """blocked -> dead for tasks that no live worker knows."""
        with self._database.read() as session:
            parked = session.rows("select_parked_tasks", cause=UNKNOWN)
            if not parked:
                return 0
            known = {name for (tasks,) in session.rows("select_known_tasks") for name in json.loads(tasks)}
        waited = span(unknown_after)
        told = format_duration(unknown_after)
        return sum(
            self._in_chunks(True, partial(_bury, task=task, name=name, waited=waited, told=told))
            for task, name in parked
            if name not in known
        )


def _promote(session: Session, most: int) -> int:
    rows = session.rows("select_due", now=session.now, most=most)
    due: list[Waiting] = []
    expired: list[Waiting] = []
    wished: dict[int, tuple[str, str]] = {}
    for *row, by, reason in rows:
        waiting = waiting_of(tuple(row))
        if reason is not None:
            wished[waiting.id] = (by, reason)
        if waiting.expires_at is not None and waiting.expires_at <= session.now:
            expired.append(waiting)
        elif reason is None:
            due.append(waiting)
    session.many("delete_scheduled", [{"id": row[0]} for row in rows])
    enter_ready(session, due)
    expire(session, expired)
    settle_batches(session)
    gone = {one.id for one in expired}
    _cancel(
        session, [waiting_of(row[:12]) for row in rows if row[0] in wished and row[0] not in gone], wished
    )
    return len(rows)


def _cancel(session: Session, waiting: list[Waiting], wished: Mapping[int, tuple[str, str]]) -> None:
    if not wished:
        return
    stored = jobs_of(session, [one.id for one in waiting])
    moves = Moves(session)
    for one in waiting:
        by, reason = wished[one.id]
        moves.finished(
            subject_of(one, stored[one.id]), State.cancelled, reason=reason, note=ends.cancelled_by(by)
        )
    settle(session, moves)
    session.run("delete_wishes", ids=json.dumps([*wished]))


def _lose_orphans(session: Session, poison: int) -> int:
    held = [Held(row) for row in session.rows("select_orphans", most=_CHUNK)]
    return _lose(session, held, "its worker is gone", poison)


def _lose_overdue(session: Session, late: int, poison: int) -> int:
    held = [Held(row) for row in session.rows("select_overdue", before=session.now - late, most=_CHUNK)]
    return _lose(session, held, "it ran past its deadline", poison)


def _lose(session: Session, held: list[Held], reason: str, poison: int) -> int:
    moves = Moves(session)
    for attempt in held:
        lose(moves, attempt, reason, poison, witnessed=False)
    ends.release(session, held)
    settle(session, moves)
    return len(held)


def _expire(session: Session, table: Table) -> int:
    waiting = [waiting_of(row) for row in session.rows(table.expired, now=session.now, most=_CHUNK)]
    session.many(table.delete, [{"id": one.id} for one in waiting])
    expired = expire(session, waiting)
    settle_batches(session)
    return expired


def _resume(session: Session, task: int) -> int:
    waiting = [waiting_of(row) for row in session.rows("select_paused", task=task, most=_CHUNK)]
    session.many("delete_blocked", [{"id": one.id} for one in waiting])
    enter_ready(session, waiting)
    return len(waiting)


def _bury(session: Session, task: int, name: str, waited: int, told: str) -> int:
    rows = session.rows("select_parked_since", task=task, before=session.now - waited, most=_CHUNK)
    waiting = [waiting_of(row) for row in rows]
    if not waiting:
        return 0
    stored = jobs_of(session, [one.id for one in waiting])
    moves = Moves(session)
    for one in waiting:
        moves.dead(
            subject_of(one, stored[one.id]), reason=f"no worker has known the task {name!r} for {told}"
        )
    session.many("delete_blocked", [{"id": one.id} for one in waiting])
    settle(session, moves)
    return len(waiting)
