"""Who in this process already holds a transaction on the file: a second one would wait for itself.

Knows only connections' `in_transaction`; opens and ends nothing.
"""

import sqlite3
import sys
import threading
from contextvars import ContextVar
from functools import cache

from duly.core.errors import UsageError
from duly.stores.connections import ambient
from duly.stores.sqlite import suspects


class Block:
    """One `transaction()` block; `open` until its end, whoever still carries the mark in a copied context."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.open = True


_BLOCKS: ContextVar[tuple[Block, ...]] = ContextVar("duly_sqlite_blocks", default=())


class Holding:
    """The marks of one file."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._joined = threading.local()

    def enter(self) -> Block:
        """Mark the running context (thread or task) as inside a block of ours."""
        block = Block(self._path)
        _BLOCKS.set((*(other for other in _BLOCKS.get() if other.open), block))
        return block

    def joined(self, connection: sqlite3.Connection) -> None:
        """Remember a caller's connection on which this thread enqueued, while its transaction is open."""
        known = self._connections()
        if not any(other is connection for other in known):
            known.append(connection)

    def refuse_block(self) -> None:
        """UsageError when this context would wait for a `transaction()` of its own."""
        if any(block.open and block.path == self._path for block in _BLOCKS.get()):
            raise UsageError(
                f"this code runs inside transaction() on {self._path} and would wait for itself; "
                f"pass connection= with the connection that transaction() gave{_here()}"
            )

    def refuse(self) -> None:
        """UsageError when this thread or task would wait for its own transaction."""
        self.refuse_block()
        if ambient.unjoined(f"sqlite:///{self._path}") is not None:
            raise self._own_transaction()
        known = self._connections()
        if not known:
            return
        # sqlite3.Connection takes no weak references: one that only this list knows was dropped by its owner.
        for number, references in enumerate(_references(known)):
            if references <= _alone():
                known[number].close()
        known[:] = [connection for connection in known if _in_transaction(connection)]
        # With autocommit=False a transaction is open at all times, and says nothing.
        if any(getattr(connection, "autocommit", None) is not False for connection in known):
            raise self._own_transaction()

    def refuse_unseen(self) -> None:
        """The file is locked: UsageError when by a transaction of this thread on a connection that was never passed."""
        if suspects.own_transaction(self._path):
            raise self._own_transaction()

    def _own_transaction(self) -> UsageError:
        return UsageError(
            f"a transaction of this thread is open on {self._path} and this call would wait for it; "
            f"pass connection= so that the job is stored within it, or commit first{_here()}"
        )

    def after_fork(self) -> bool:
        """In the child: forget all marks; whether a caller's transaction was open on the thread that forked."""
        inherited = any(_in_transaction(connection) for connection in self._connections())
        self._joined = threading.local()
        for block in _BLOCKS.get():
            block.open = False
        return inherited

    def _connections(self) -> list[sqlite3.Connection]:
        known: list[sqlite3.Connection] | None = getattr(self._joined, "connections", None)
        if known is None:
            known = self._joined.connections = []
        return known


def _here() -> str:
    line = suspects.users_line()
    return f" ({line})" if line else ""


def _in_transaction(connection: sqlite3.Connection) -> bool:
    try:
        return connection.in_transaction
    except sqlite3.ProgrammingError:
        return False


def _references(connections: list[sqlite3.Connection]) -> list[int]:
    return [sys.getrefcount(connection) for connection in connections]


@cache
def _alone() -> int:
    """What `_references` counts for a connection that nobody else knows; it refers to itself in some releases."""
    held = [sqlite3.connect(":memory:")]
    (count,) = _references(held)
    held[0].close()
    return count
