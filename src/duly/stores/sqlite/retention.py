"""Retention: finished jobs and announced dead letters leave, oldest first, in short chunks. Touches no live job."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from duly.core.defaults import KEPT_RESULT, PURGE_NOTICE
from duly.stores.sqlite import keys
from duly.stores.sqlite.database import Database
from duly.stores.sqlite.releasing import Left, leave
from duly.stores.sqlite.session import Session
from duly.stores.sqlite.times import MICROSECOND, from_micros, span
from duly.stores.sqlite.transport import ids_text

# Deleting so many jobs with all that hangs on them holds the write lock for about 10 ms.
_CHUNK: Final = 500


def retain(
    database: Database,
    keep: Mapping[str, timedelta],
    keep_dead: Mapping[str, timedelta],
    default: timedelta,
    default_dead: timedelta,
    most: int,
) -> int:
    """Delete at most `most` jobs whose time is over; how many there were.

    A queue that the caller does not know is kept as long as its owner has declared.
    """
    with database.read() as session:
        declared, declared_dead = _declared(session)
        queues = session.rows("select_finished_queues")
        dead_queues = [queue for (queue,) in session.rows("select_dead_queues")]
    keep, keep_dead = declared | {**keep}, declared_dead | {**keep_dead}
    deleted = 0
    for key, queue in queues:
        kept = span(keep.get(queue, default))
        while deleted < most and (found := _retire(database, key, kept, min(_CHUNK, most - deleted))):
            deleted += found
    for queue in dead_queues:
        kept = span(keep_dead.get(queue, default_dead))
        while deleted < most and (found := _retire_dead(database, queue, kept, min(_CHUNK, most - deleted))):
            deleted += found
    more = keys.forget_old(database)
    return deleted or int(more)


def announce_dead(
    database: Database, keep_dead: Mapping[str, timedelta], default_dead: timedelta, ahead: timedelta
) -> list[tuple[str, int, datetime]]:
    """Per queue, how many dead letters go within `ahead` and from when; the first telling starts their notice."""
    told = []
    with database.read() as session:
        queues = [queue for (queue,) in session.rows("select_dead_queues")]
        keep_dead = _declared(session)[1] | {**keep_dead}
    for queue in queues:
        keep = span(keep_dead.get(queue, default_dead))
        with database.read() as session:
            before = session.now + span(ahead) - keep
            row = session.row(
                "select_doomed",
                queue=queue,
                before=before,
                keep=keep,
                now=session.now,
                notice=span(PURGE_NOTICE),
            )
        count, first, unannounced = row or (0, None, 0)
        if not count or first is None:
            continue
        if unannounced:
            with database.write() as session:
                session.run("update_announced", queue=queue, before=before, now=session.now)
        told.append((queue, int(count), from_micros(first)))
    return told


def forget(session: Session, ids: Sequence[int], *, dead: bool) -> None:
    """Delete everything about jobs that are finished, or dead; idempotency records keep how they ended."""
    text = ids_text([*ids])
    session.run("update_idempotency_answers", ids=text, most=KEPT_RESULT)
    rich = [id for (id,) in session.rows("select_extras", ids=text)]
    if rich and dead:
        leave(session, [Left(id, False) for id in rich])
    if rich:
        session.run("delete_follows", ids=ids_text(rich))
        session.run("delete_blobs", ids=ids_text(rich))
    for statement in (
        "delete_tags",
        "delete_jobs",
        "delete_finished",
        "delete_dead",
        "delete_results",
        "delete_attempts",
        "delete_steps",
        "delete_wishes",
        "delete_progress",
    ):
        session.run(statement, ids=text)


def _declared(session: Session) -> tuple[dict[str, timedelta], dict[str, timedelta]]:
    """How long the owners of queues keep finished jobs, and dead letters."""
    keep: dict[str, timedelta] = {}
    keep_dead: dict[str, timedelta] = {}
    for queue, _, finished, dead, *_ in session.rows("select_queue_policies"):
        if finished is not None:
            keep[queue] = finished * MICROSECOND
        if dead is not None:
            keep_dead[queue] = dead * MICROSECOND
    return keep, keep_dead


def _retire(database: Database, key: int, keep: int, most: int) -> int:
    # Looked up without a lock first: nearly every call finds nothing.
    with database.read() as session:
        if not session.rows("select_retired", queue_key=key, before=session.now - keep, most=1):
            return 0
    with database.write() as session:
        rows = session.rows("select_retired", queue_key=key, before=session.now - keep, most=most)
        forget(session, [id for (id,) in rows], dead=False)
    return len(rows)


def _retire_dead(database: Database, queue: str, keep: int, most: int) -> int:
    notice = span(PURGE_NOTICE)
    with database.read() as session:
        now = session.now
        if not session.rows(
            "select_retired_dead", queue=queue, before=now - keep, announced_before=now - notice, most=1
        ):
            return 0
    with database.write() as session:
        rows = session.rows(
            "select_retired_dead",
            queue=queue,
            before=session.now - keep,
            announced_before=session.now - notice,
            most=most,
        )
        forget(session, [id for (id,) in rows], dead=True)
    return len(rows)
