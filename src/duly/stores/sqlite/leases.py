"""Worker incarnations: a worker row is a lease, and what its end does to the jobs held. The LeaseStore on SQLite."""

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from duly.core.job import Counters, Incarnation, JobId, WorkerInfo
from duly.core.leases import Beat
from duly.core.lifecycle import Event
from duly.stores.sqlite import ends
from duly.stores.sqlite.database import Database
from duly.stores.sqlite.ends import Held
from duly.stores.sqlite.followups import settle
from duly.stores.sqlite.moves import Moves
from duly.stores.sqlite.session import Session
from duly.stores.sqlite.times import span
from duly.stores.sqlite.transport import ids_text

_SECOND: Final = 1_000_000
_ALL: Final = -1


class SQLiteLeases:
    """See duly.stores.protocol.LeaseStore."""

    def __init__(self, database: Database, forget: Callable[[Iterable[int]], None]) -> None:
        self._database = database
        self._forget = forget

    def register(self, info: WorkerInfo) -> Incarnation:
        """The number comes from the one sequence, so that none is used twice."""
        with self._database.write() as session:
            incarnation = session.numbers(1)
            session.run(
                "insert_worker",
                incarnation=incarnation,
                now=session.now,
                lease=span(info.lease),
                heartbeat=span(info.heartbeat),
                host=info.host,
                pid=info.pid,
                supervisor=info.supervisor,
                queues=json.dumps(info.queues),
                tasks=json.dumps({name: span(timeout) for name, timeout in info.tasks.items()}),
                slots=info.slots,
                version=info.version,
            )
        return Incarnation(incarnation)

    def beat(self, incarnations: Sequence[Incarnation]) -> frozenset[Incarnation]:
        """One statement for all children of a supervisor."""
        with self._database.write() as session:
            rows = session.rows("update_beat", incarnations=ids_text([*incarnations]), now=session.now)
        return frozenset(Incarnation(incarnation) for (incarnation,) in rows)

    def beats(self) -> list[Beat]:
        """Ages by the store's clock."""
        with self._database.read() as session:
            rows = session.rows("select_beats", now=session.now)
        return [
            Beat(Incarnation(one), beat, lease / _SECOND, age / _SECOND) for one, beat, lease, age in rows
        ]

    def reap(self, overdue: Sequence[Beat], poison: int) -> int:
        """The worker row goes first, then what it held, in one transaction."""
        if not overdue:
            return 0
        moved = 0
        with self._database.write() as session:
            moves = Moves(session)
            for seen in overdue:
                if session.run("delete_overdue_worker", incarnation=seen.incarnation, beat=seen.beat) == 0:
                    continue
                held = _held_by(session, seen.incarnation)
                for attempt in held:
                    lose(moves, attempt, "its worker's lease lapsed", poison, witnessed=False)
                ends.release(session, held)
                moved += len(held)
            settle(session, moves)
        self._forget(seen.incarnation for seen in overdue)
        return moved

    def disown(
        self, incarnation: Incarnation, started: Sequence[tuple[JobId, int]], reason: str, poison: int
    ) -> int:
        """Started attempts are lost with a witness, the others interrupted."""
        return self._end(incarnation, frozenset(started), reason, poison)

    def retire(self, incarnation: Incarnation) -> int:
        """Everything still claimed was never started."""
        return self._end(incarnation, frozenset(), "its worker ended", 0)

    def _end(
        self, incarnation: Incarnation, started: frozenset[tuple[JobId, int]], reason: str, poison: int
    ) -> int:
        with self._database.write() as session:
            session.run("delete_worker", incarnation=incarnation)
            # Also without a row: whoever removed it left its jobs to the next sweep.
            held = _held_by(session, incarnation)
            moves = Moves(session)
            for attempt in held:
                if (attempt.subject.id, attempt.subject.run) in started:
                    lose(moves, attempt, reason, poison, witnessed=True)
                else:
                    interrupt(moves, attempt, reason)
            ends.release(session, held)
            settle(session, moves)
        self._forget([incarnation])
        return len(held)


def lose(moves: Moves, attempt: Held, reason: str, poison: int, *, witnessed: bool) -> None:
    """running -> ready in the suspects' lane; dead as poison when the evidence is against the job itself."""
    before = attempt.subject.counters
    counters = Counters(before.failed, before.lost + 1, 0, before.snoozed)
    subject = attempt.subject._replace(counters=counters, expires_at=None)
    poisoned = counters.lost >= poison and (witnessed or before.lost >= 1)
    text = f"poison: its worker was lost {counters.lost} times" if poisoned else reason
    moves.attempt(subject, Event.lose, attempt.incarnation, attempt.claimed_at, text)
    if poisoned:
        moves.dead(subject, incarnation=attempt.incarnation, started_at=attempt.claimed_at, reason=text)
    elif not ends.cancel_instead(moves, attempt, counters, attempt.claimed_at):
        moves.ready(subject)


def interrupt(moves: Moves, attempt: Held, reason: str) -> None:
    """running -> ready for an attempt that never began."""
    before = attempt.subject.counters
    counters = Counters(before.failed, before.lost, before.interrupted + 1, before.snoozed)
    subject = attempt.subject._replace(counters=counters)
    moves.attempt(subject, Event.interrupt, attempt.incarnation, None, reason)
    if not ends.cancel_instead(moves, attempt, counters, None):
        moves.ready(subject)


def _held_by(session: Session, incarnation: int) -> list[Held]:
    rows = session.rows("select_held_by", incarnation=incarnation, most=_ALL)
    return [Held(row) for row in rows]
