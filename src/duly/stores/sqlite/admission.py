"""Whether a job that a claim has picked may run now: its ordering key, blocks, its limits, in this order.

Decides one job at a time, in the order in which they are met; moves none.
"""

import json
from typing import NamedTuple

from duly.core.names import key_of
from duly.stores.sqlite.bounds import Block, Bounds
from duly.stores.sqlite.limiting import Limits
from duly.stores.sqlite.moves import KEYED
from duly.stores.sqlite.ordering import ARGS, EXTRAS, ORDERING, OWNER, QUEUE, TASK, Keys
from duly.stores.sqlite.session import Row, Session
from duly.stores.sqlite.times import from_micros
from duly.stores.sqlite.transport import ids_text
from duly.stores.sqlite.usage import name_them
from duly.stores.sqlite.waiting import BEHIND_KEY, BEHIND_LIMIT


class Gate(NamedTuple):
    """What holds a job back."""

    cause: int
    key: int


class Admission:
    """Of one claim."""

    def __init__(self, session: Session, incarnation: int, bounds: Bounds) -> None:
        self._session = session
        self._bounds = bounds
        self.keys = Keys(session)
        self.limits = Limits(session, incarnation, bounds, self._arguments)
        self._blocks: dict[str, list[Block]] = {}
        self.opens_at: int | None = None
        """The earliest time at which something lets a job go on that it held back."""

    def controls(self, row: Row) -> bool:
        """Whether anything but its place in the queue may hold the job back."""
        return bool(row[EXTRAS] & KEYED or row[TASK] in self._bounds.takes or self.blocks(row))

    def gate(self, row: Row) -> Gate | None:
        """What holds the job back; None: it has taken all that it takes, and runs."""
        if row[EXTRAS] & KEYED and not self.keys.lets(row):
            return Gate(BEHIND_KEY, self.keys.of(row))
        return self._block(row) or self._limited(row)

    def follows(self, row: Row) -> bool:
        """As `gate`, for a job whose turn comes right after that of one before it here."""
        return self._block(row) is None and self._limited(row) is None

    def wait_until(self, at: int | None) -> None:
        """Something opens then."""
        if at is not None and (self.opens_at is None or at < self.opens_at):
            self.opens_at = at

    def _limited(self, row: Row) -> Gate | None:
        if row[TASK] not in self._bounds.takes:
            return None
        wait = self.limits.take(row)
        if wait is None:
            return None
        self.wait_until(wait.at)
        return Gate(BEHIND_LIMIT, wait.gate)

    def _block(self, row: Row) -> Gate | None:
        for block in self.blocks(row):
            if block.filter.matches(self._record(row)):
                name = f"block:{block.id}"
                name_them(self._session, [name])
                return Gate(BEHIND_LIMIT, key_of(name))
        return None

    def blocks(self, row: Row) -> list[Block]:
        """What blocks jobs of its queue."""
        queue = row[QUEUE]
        if queue not in self._blocks:
            self._blocks[queue] = self._bounds.blocks(queue, self._session.now)
        return self._blocks[queue]

    def _record(self, row: Row) -> dict[str, object]:
        """What a filter looks at."""
        id, tags, correlation, enqueued_at = row[0], row[15], row[16], row[19]
        return {
            "queue": row[QUEUE],
            "task": row[12],
            "tenant": row[OWNER],
            "tags": tuple(json.loads(tags)) if tags else (),
            "correlation_id": correlation or str(id),
            "enqueued_at": from_micros(enqueued_at),
            "args": self._arguments(row) if row[ARGS] is None else row[ARGS],
            "ordering_key": row[ORDERING],
        }

    def _arguments(self, row: Row) -> bytes:
        ((_, args),) = self._session.rows("select_arguments", ids=ids_text([row[0]]))
        return bytes(args)
