"""The dominating end of an attempt: completed at the first try by jobs that carry nothing beside themselves.

A batch of them is a single statement. What does not fit is left to the ends next door, which know every kind.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from duly.core.job import Ended, JobId
from duly.core.lifecycle import Event, State
from duly.stores.sqlite.moves import INLINE_RESULT, UNTOUCHED
from duly.stores.sqlite.releasing import give_back
from duly.stores.sqlite.session import Session
from duly.stores.sqlite.times import span
from duly.stores.sqlite.transport import as_text, ids_text

_FIRST: Final = 1
# Reading a member from its class runs Python code before 3.12.
_COMPLETE: Final = Event.complete
_COMPLETED: Final = State.completed


def complete(session: Session, incarnation: int, ended: Sequence[Ended]) -> set[tuple[JobId, int]]:
    """Apply the ends of this kind whose tokens are live: their (id, run) pairs. The others stay as they are."""
    now = session.now
    asked: dict[JobId, str] = {}
    for end in ended:
        if (result := _plain_result(end)) is not None and (session.utf8 or not result):
            asked[end.id] = f" {result}" if end.elapsed is None else f"{now - span(end.elapsed)} {result}"
    if not asked:
        return set()
    text = msgspec.json.encode(asked).decode()
    applied = session.run("insert_completed", ended=text, incarnation=incarnation, now=now, live=False)
    keyed, ids = 0, [*asked]
    if applied < len(ids):
        keyed = session.run("insert_completed", ended=text, incarnation=incarnation, now=now, live=True)
    if applied + keyed < len(ids):
        # Only then: to have the insertion itself return them costs as much again.
        rows = session.rows("select_completed", ids=ids_text(ids), incarnation=incarnation)
        ids = [id for (id,) in rows]
    if ids:
        release(session, incarnation, ids, keyed=keyed > 0)
    return {(id, _FIRST) for id in ids}


def release(session: Session, incarnation: int, ids: Sequence[int], *, keyed: bool = False) -> None:
    """Delete the claimed rows of jobs and what hangs on them; with `keyed` also the unique keys that they have."""
    text = ids_text(ids)
    session.run("delete_claimed", incarnation=incarnation, ids=text)
    wishes, progress, holds = session.rows("select_hangers")[0]
    if wishes:
        session.run("delete_wishes", ids=text)
    if progress:
        session.run("delete_progress", ids=text)
    if keyed:
        session.run("delete_unique_keys", ids=text)
    if holds:
        give_back(session, incarnation, text)


def _plain_result(end: Ended) -> str | None:
    """The result of such an end, "" without one; None for an end of another kind."""
    if (
        end.run != _FIRST
        or end.event is not _COMPLETE
        or end.to is not _COMPLETED
        or end.counters != UNTOUCHED
        or end.reason is not None
        or end.note is not None
    ):
        return None
    if end.result is None:
        return ""
    return as_text(end.result) if 0 < len(end.result) <= INLINE_RESULT else None
