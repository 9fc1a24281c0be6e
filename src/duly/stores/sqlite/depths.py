"""How many jobs of each queue wait: counted for every look while they are few, else as they were counted last.

Whoever keeps the samples counts the many, in parts: while one statement reads, nobody's commit gets on in a rollback
journal. Decides nothing about a job.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from duly.stores.sqlite.database import Database
from duly.stores.sqlite.session import Session, Value

EXACT: Final = 20_000
"""Jobs of one state that are counted for every look; beyond that a queue of more than half as many is estimated."""
FRESH: Final = 120_000_000
"""Microseconds for which a count is taken for an estimate; an older one is of another time."""
_EVERY: Final = 30_000_000
_PART: Final = 10_000
_BEFORE_ALL: Final = -(2**63)
_STATES: Final = ("ready", "scheduled", "blocked", "dead")
_DUE: Final = 1_000
_LEFT: Final = 5 * EXACT
"""Jobs of small queues that one look counts."""


class Depth(NamedTuple):
    """One queue in one waiting state."""

    state: str
    queue: str
    jobs: int
    extreme: int | None = None
    """When the oldest became ready, or the first is due."""
    estimated: bool = False


def depths(session: Session) -> Iterator[Depth]:
    """Every queue with waiting jobs, once per lane. Counts that are estimates say so; ages are exact."""
    large = _large(session)
    known: dict[str, dict[str, _Known]] = {state: {} for state in large}
    for state, queue, count, extreme, at in (
        session.rows("select_depths", since=session.now - FRESH) if large else ()
    ):
        if state in known and at <= session.now:
            known[state][queue] = _Known(count, extreme)
    for state in _STATES:
        found = known.get(state)
        if found:
            yield from _ESTIMATES[state](session, found)
            continue
        # Few, or nobody keeps samples: then whoever looks counts them all.
        for queue, count, extreme in session.rows(f"select_{state}_counts"):
            if queue is not None:
                yield Depth(state, queue, count, extreme)


def keep(database: Database, ready: Mapping[str, int]) -> None:
    """Count what is too much to count for every look, if nobody did so lately; `ready` is counted already."""
    with database.read() as session:
        large = _large(session)
        if not large:
            return
        kept = {state: at for state, _, _, _, at in session.rows("select_depths", since=session.now - FRESH)}
        due = [state for state in large if not 0 <= session.now - kept.get(state, _BEFORE_ALL) < _EVERY]
        counted = [
            one for state in due for one in (_of(ready) if state == "ready" else _COUNTS[state](session))
        ]
    if not due:
        return
    with database.write() as session:
        for state in due:
            session.run("delete_depths", state=state)
        session.many("insert_depth", [_row(one, session.now) for one in counted])


class _Known(NamedTuple):
    jobs: int
    extreme: int | None


def _large(session: Session) -> list[str]:
    sizes = session.row("select_depth_sizes", most=EXACT + 1) or (0,) * len(_STATES)
    return [state for state, size in zip(_STATES, sizes, strict=True) if size > EXACT]


def _row(one: Depth, now: int) -> dict[str, Value]:
    return {"state": one.state, "queue": one.queue, "count": one.jobs, "extreme": one.extreme, "at": now}


def _of(ready: Mapping[str, int]) -> Iterator[Depth]:
    return (Depth("ready", queue, count) for queue, count in ready.items())


def _walked(session: Session, state: str) -> Iterator[Depth]:
    """Scheduled or blocked jobs by id."""
    after = _BEFORE_ALL
    total: dict[str, _Known] = {}
    while rows := session.rows(f"select_{state}_part", after=after, most=_PART):
        for queue, count, extreme, last in rows:
            after = max(after, last)
            if queue is not None:
                before = total.get(queue, _Known(0, extreme))
                total[queue] = _Known(before.jobs + count, _earlier(before.extreme, extreme))
    return (Depth(state, queue, known.jobs, known.extreme) for queue, known in total.items())


def _walked_scheduled(session: Session) -> Iterator[Depth]:
    return _walked(session, "scheduled")


def _walked_blocked(session: Session) -> Iterator[Depth]:
    return _walked(session, "blocked")


def _walked_dead(session: Session) -> Iterator[Depth]:
    for (queue,) in session.rows("select_dead_queues"):
        at, id, count = _BEFORE_ALL, _BEFORE_ALL, 0
        while step := session.row("select_dead_step", queue=queue, at=at, id=id, most=_PART):
            (at, id), count = step, count + _PART
        yield Depth("dead", queue, count + session.value("select_dead_rest", queue=queue, at=at, id=id))


def _ready(session: Session, known: Mapping[str, _Known]) -> Iterator[Depth]:
    """Every lane that has ready jobs now; small queues are counted."""
    told: set[str] = set()
    left = _LEFT
    for lane, queue, oldest in session.rows("select_ready_heads"):
        if queue is None:
            continue
        jobs = known[queue].jobs if queue in known else 0
        if jobs <= min(EXACT // 2, max(left, 0)):
            jobs = session.value("select_ready_size", queue=lane, most=EXACT + 1)
            left -= jobs
            yield Depth("ready", queue, jobs, oldest, estimated=jobs > EXACT)
        else:
            # Of all its lanes together: those of suspects are told once.
            yield Depth("ready", queue, 0 if queue in told else jobs, oldest, estimated=True)
            told.add(queue)


def _scheduled(session: Session, known: Mapping[str, _Known]) -> Iterator[Depth]:
    due: dict[str, int] = {}
    for name, at in session.rows("select_due_heads", most=_DUE):
        if name is not None:
            due[name] = min(at, due.get(name, at))
    for queue in sorted({*known, *due}):
        found = known.get(queue, _Known(1, None))
        # What was the first when they were counted may have gone since: then nobody knows the next until they are
        # counted again.
        first = found.extreme if found.extreme is not None and found.extreme > session.now else None
        yield Depth("scheduled", queue, found.jobs, due.get(queue, first), estimated=True)


def _blocked(session: Session, known: Mapping[str, _Known]) -> Iterator[Depth]:
    del session
    return (Depth("blocked", queue, found.jobs, estimated=True) for queue, found in known.items())


def _dead(session: Session, known: Mapping[str, _Known]) -> Iterator[Depth]:
    left = _LEFT
    for (queue,) in session.rows("select_dead_queues"):
        jobs = known[queue].jobs if queue in known else 0
        if jobs <= min(EXACT // 2, max(left, 0)):
            jobs = session.value("select_dead_size", queue=queue, most=EXACT + 1)
            left -= jobs
            yield Depth("dead", queue, jobs, estimated=jobs > EXACT)
        else:
            yield Depth("dead", queue, jobs, estimated=True)


def _earlier(one: int | None, other: int | None) -> int | None:
    return min((at for at in (one, other) if at is not None), default=None)


_Estimate = Callable[[Session, Mapping[str, _Known]], Iterator[Depth]]
_ESTIMATES: Final[dict[str, _Estimate]] = {
    "ready": _ready,
    "scheduled": _scheduled,
    "blocked": _blocked,
    "dead": _dead,
}
_COUNTS: Final[dict[str, Callable[[Session], Iterator[Depth]]]] = {
    "scheduled": _walked_scheduled,
    "blocked": _walked_blocked,
    "dead": _walked_dead,
}
