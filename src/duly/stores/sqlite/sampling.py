"""Samples of the file's size and of queues, from which `counts` tells how fast they fill. Counts only what is new."""

from typing import Final, NamedTuple

from duly.core.names import key_of
from duly.stores.sqlite.database import Database
from duly.stores.sqlite.measuring import measure
from duly.stores.sqlite.session import Session

_NAME: Final = "sample"
_EVERY: Final = 10_000_000
_KEPT: Final = 2 * 3600 * 1_000_000
_ACTS_KEPT: Final = 90 * 24 * 3600 * 1_000_000
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
    with database.read(snapshot=True) as session:
        row = session.row("select_sweep", name=_NAME)
        last_at = None if row is None else row[0]
        if last_at is not None and 0 <= session.now - last_at < _EVERY:
            return
        now, rows, use = session.now, _measure(session), measure(session, database.path)
    with database.write() as session:
        if session.run("upsert_sweep", name=_NAME, now=now, position=0, seen=last_at) == 0:
            return
        session.many("insert_sample", rows)
        session.run("delete_samples", before=now - _KEPT)
        session.run("insert_store_use", at=now, used=use.bytes, free_disk=use.free_disk)
        session.run("delete_store_uses", before=now - _KEPT)
        session.run("delete_acts", before=now - _ACTS_KEPT)


def _measure(session: Session) -> list[dict[str, str | int | float | bytes | None]]:
    ready: dict[str, int] = {}
    for queue, count in session.rows("select_ready_counts"):
        ready[queue] = ready.get(queue, 0) + count
    latest = {queue: (at, finished) for queue, at, _, finished in session.rows("select_latest_samples")}
    names = {queue for _, queue in session.rows("select_finished_queues")} | ready.keys() | latest.keys()
    rows: list[dict[str, str | int | float | bytes | None]] = []
    for queue in sorted(name for name in names if name):
        # A queue's first sample counts from nothing: what came before is not this queue's speed.
        since, finished = latest.get(queue, (session.now, 0))
        key = key_of(queue)
        new = session.value("select_finished_since", queue_key=key, queue=queue, since=since, now=session.now)
        rows.append(
            {"queue": queue, "at": session.now, "ready": ready.get(queue, 0), "finished": finished + int(new)}
        )
    return rows


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
