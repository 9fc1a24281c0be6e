"""Ordering keys at a claim: whose turn it is, and which jobs follow at once. Runs inside an open transaction.

What an end does to a key is told next door.
"""

from duly.core.defaults import INLINE_PAYLOAD
from duly.stores.sqlite.moves import lane_of
from duly.stores.sqlite.releasing import enthrone, go_on, ordering_key
from duly.stores.sqlite.session import Row, Session

# Places in a row of `select_ready` and its kin, which claims and their parts share.
LANE, PRIORITY, POS, TASK, RUN, LOST, EXPIRES = 1, 2, 3, 4, 5, 7, 10
QUEUE, ARGS, OWNER, TIMEOUT, EXTRAS = 11, 13, 14, 18, 20
ORDERING, TENANT, SINCE = 22, 23, 24
PLACE = 25
IN_READY = 1


class Keys:
    """The ordering keys that one claim meets."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._heads: dict[int, int | None] = {}
        """Whom a key lets run; None for a paused one."""
        self._owners: list[tuple[int, int]] = []
        """New ones, that may wait behind their own key."""

    @staticmethod
    def of(row: Row) -> int:
        return ordering_key(row[QUEUE], row[OWNER], row[ORDERING])

    def lets(self, row: Row) -> bool:
        """Whether it is the job's turn."""
        key = self.of(row)
        if key not in self._heads:
            self._heads[key] = self._head(key, row)
        return bool(self._heads[key] == row[0])

    def followers(self, row: Row, most: int) -> list[Row]:
        """The jobs of its key right behind a head, as rows with their place; up to the first that cannot follow."""
        rows = self._session.rows("select_chain", key=self.of(row), inline=INLINE_PAYLOAD, most=most + 1)
        rows.sort(key=lambda one: one[0])
        if not rows or rows[0][0] != row[0]:
            # One that came before it was committed late, or redriven.
            return []
        found: list[Row] = []
        for follower in rows[1:]:
            if follower[PLACE] is None:
                break
            found.append(follower)
        return found

    def go_on(self) -> None:
        """Let new owners go on. Not while rows of a lane are looked at: these are deleted up to the last one."""
        for key, id in self._owners:
            go_on(self._session, key, id)
        self._owners.clear()

    def _head(self, key: int, row: Row) -> int | None:
        known = self._session.row("select_key_head", key=key)
        id, paused, live, dead, policy = known or (None, 0, 0, 0, "wait")
        if id is None or not (live or (dead and (paused or policy != "skip_dead"))):
            # A job that a stranger put back may have lost its place.
            self._session.run("insert_keyed", key=key, id=row[0])
            if known is None:
                policy = str(self._session.value("select_ordering", queue=row[QUEUE]) or "wait")
            id = enthrone(self._session, key, lane_of(row[QUEUE], False), policy, paused=bool(paused))
            if id is not None and not paused and id != row[0]:
                self._owners.append((key, id))
        return None if paused else id
