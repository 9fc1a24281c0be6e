"""What keys remember beside the jobs: the KeyStore on SQLite, and the end of keys and records.

How an enqueue treats keys is told next door.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from duly.core.job import JobId, KeptAnswer
from duly.core.lifecycle import State
from duly.stores.sqlite.database import Database
from duly.stores.sqlite.moves import texts
from duly.stores.sqlite.session import Session
from duly.stores.sqlite.times import from_micros, span
from duly.stores.sqlite.transport import ids_text

# Looking at so many keys takes about 5 ms.
_LOOKED_AT: Final = 1_000
_CHUNK: Final = 1_000
_RECORDS: Final = ("delete_old_idempotency", "delete_old_newest", "delete_old_once")


class SQLiteKeys:
    """See duly.stores.protocol.KeyStore."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def answer(self, id: JobId) -> KeptAnswer | None:
        with self._database.read() as session:
            row = session.row("select_answer", id=id, now=session.now)
        if row is None:
            return None
        id, status, ended_at, result, reason = row
        return KeptAnswer(JobId(id), State(status), from_micros(ended_at), result, reason)

    def once(self, digest: bytes, keep: timedelta) -> bool:
        with self._database.write() as session:
            return once_in(session, digest, keep)

    def unused_blobs(self, references: Sequence[str]) -> list[str]:
        """In the order asked."""
        with self._database.read() as session:
            rows = session.rows("select_unused_blobs", references=texts([*dict.fromkeys(references)]))
        return [reference for (reference,) in rows]


class LeftKeys:
    """Walks the unique keys, some with each sweep, for those whose jobs have ended or been claimed.

    Only a release that knew no keys leaves any behind; until they are found they count as free.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._after = 0

    def free(self) -> None:
        with self._database.read() as session:
            rows = session.rows("select_left_keys", after=self._after, most=_LOOKED_AT)
        self._after = rows[-1][0] if len(rows) == _LOOKED_AT else 0
        left = [id for id, held in rows if not held]
        if left:
            with self._database.write() as session:
                session.run("delete_left_keys", ids=ids_text(left))


def once_in(session: Session, digest: bytes, keep: timedelta) -> bool:
    """Take the key in the open transaction; False when it is taken."""
    return session.run("upsert_once", key=digest, until=session.now + span(keep), now=session.now) == 1


def forget_old(database: Database) -> bool:
    """Delete one chunk of records whose time is over; True when more may be left."""
    with database.read() as session:
        if not session.value("select_old_keys", now=session.now):
            return False
    with database.write() as session:
        deleted = [session.run(statement, now=session.now, most=_CHUNK) for statement in _RECORDS]
    return max(deleted) == _CHUNK
