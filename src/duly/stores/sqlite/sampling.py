"""Samples of the file's size and of queues, from which `counts` tells how fast they fill. Counts only what is new."""

from typing import Final, NamedTuple

from duly.core.names import key_of
from duly.stores.sqlite import depths
from duly.stores.sqlite.database import Database
from duly.stores.sqlite.measuring import measure
from duly.stores.sqlite.session import Session

_NAME: Final = "sample"
_EVERY: Final = 10_000_000
_KEPT: Final = 2 * 3600 * 1_000_000
_ACTS_KEPT: Final = 90 * 24 * 3600 * 1_000_000
# Rows that one statement counts: while it reads, nobody's commit gets on in a rollback journal.
_PART = 10_000
_BEFORE_ALL: Final = -(2**63)
_AFTER_ALL: Final = 2**63 - 1
# What `counts` looks back on.
_WINDOW: Final = 5 * 60 * 1_000_000
_SECOND: Final = 1_000_000


class Rates(NamedTuple):
    """Jobs per second."""

    incoming: float
    outgoing: float
    slope: float


def sample(database: Database) -> None:
    """Keep a sample of every queue, at most once per ten seconds for all workers together."""
    # Without a snapshot: what is counted in parts is a few milliseconds apart.
    with database.read() as session:
        row = session.row("select_sweep", name=_NAME)
        last_at = None if row is None else row[0]
        if last_at is not None and 0 <= session.now - last_at < _EVERY:
            return
        ready = _ready(session)
        now, rows, use = session.now, _measure(session, ready), measure(session, database.path)
    depths.keep(database, ready)
    with database.write() as session:
        if session.run("upsert_sweep", name=_NAME, now=now, position=0, seen=last_at) == 0:
            return
        session.many("insert_sample", rows)
        session.run("delete_samples", before=now - _KEPT)
        session.run("insert_store_use", at=now, used=use.bytes, free_disk=use.free_disk)
        session.run("delete_store_uses", before=now - _KEPT)
        session.run("delete_acts", before=now - _ACTS_KEPT)


def _measure(session: Session, ready: dict[str, int]) -> list[dict[str, str | int | float | bytes | None]]:
    latest = {queue: (at, finished) for queue, at, _, finished in session.rows("select_latest_samples")}
    names = {queue for _, queue in session.rows("select_finished_queues")} | ready.keys() | latest.keys()
    rows: list[dict[str, str | int | float | bytes | None]] = []
    for queue in sorted(name for name in names if name):
        # A queue's first sample counts from nothing: what came before is not this queue's speed.
        since, finished = latest.get(queue, (session.now, 0))
        rows.append(
            {
                "queue": queue,
                "at": session.now,
                "ready": ready.get(queue, 0),
                "finished": finished + _ended(session, queue, since),
            }
        )
    return rows


def _ready(session: Session) -> dict[str, int]:
    """How many jobs of each queue are ready."""
    ready: dict[str, int] = {}
    lane = session.row("select_ready_lane_after", after=_BEFORE_ALL)
    while lane is not None:
        key, queue = lane
        place, count = (_BEFORE_ALL,) * 3, 0
        while step := session.row("select_ready_step", queue=key, most=_PART, **_place(place)):
            place, count = step, count + _PART
        count += int(session.value("select_ready_rest", queue=key, **_place(place)))
        ready[queue] = ready.get(queue, 0) + count
        lane = session.row("select_ready_lane_after", after=key)
    return ready


def _place(place: tuple[int, int, int]) -> dict[str, int]:
    tenant, priority, pos = place
    return {"tenant": tenant, "priority": priority, "pos": pos}


def _ended(session: Session, queue: str, since: int) -> int:
    """How many of its jobs have ended since then."""
    key, now = key_of(queue), session.now
    at, id, count = since, _AFTER_ALL, 0
    while step := session.row("select_finished_step", queue_key=key, since=at, id=id, now=now, most=_PART):
        (at, id), count = step, count + _PART
    rest = session.value(
        "select_finished_since", queue_key=key, queue=queue, since=at, id=id, died_since=since, now=now
    )
    return count + int(rest)


def rates(session: Session) -> dict[str, Rates]:
    """Per queue, over the last minutes; absent with fewer than two samples."""
    first: dict[str, tuple[int, int, int]] = {}
    last: dict[str, tuple[int, int, int]] = {}
    for queue, at, ready, finished in session.rows("select_samples", since=session.now - _WINDOW):
        first.setdefault(queue, (at, ready, finished))
        last[queue] = (at, ready, finished)
    found = {}
    for queue, (at, ready, finished) in last.items():
        began, ready_then, finished_then = first[queue]
        if at <= began:
            continue
        seconds = (at - began) / _SECOND
        slope, outgoing = (ready - ready_then) / seconds, (finished - finished_then) / seconds
        found[queue] = Rates(max(0.0, slope + outgoing), outgoing, slope)
    return found
