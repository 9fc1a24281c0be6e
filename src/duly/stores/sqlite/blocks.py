"""`transaction()` and `atransaction()`: a connection of ours for the length of a block. Knows no table."""

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial

from duly.stores.sqlite.database import Database


@contextmanager
def block(database: Database, *, kept: bool = False) -> Iterator[sqlite3.Connection]:
    """Hold the write lock for the whole block; commit at its end, roll back on an error.

    `kept`: with the connection of the last such block, which knows its statements already.
    """
    connection = database.open_block(kept=kept)
    mark = database.holding.enter()
    commit = False
    try:
        yield connection
        commit = True
    finally:
        mark.open = False
        database.close_block(connection, commit=commit, keep=kept)


@asynccontextmanager
async def ablock(database: Database) -> AsyncIterator[sqlite3.Connection]:
    """As `block`, waiting in a thread. Cancelled at any moment, it gives the lock back."""
    # Here, for the thread that waits does not know what this task holds.
    database.holding.refuse()
    loop = asyncio.get_running_loop()
    opening = _Opening(database)
    try:
        # Given to the executor at once: a task for it might be cancelled before it began.
        await asyncio.shield(loop.run_in_executor(None, opening.open))
    except BaseException:
        opening.abandon()
        raise
    connection = opening.connection()
    mark = database.holding.enter()
    commit = False
    try:
        yield connection
        commit = True
    finally:
        mark.open = False
        closing = partial(database.close_block, connection, commit=commit)
        await asyncio.shield(loop.run_in_executor(None, closing))


class _Opening:
    """A block that is being opened for someone who may not wait for it any more."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._mutex = threading.Lock()
        self._abandoned = False
        self._connection: sqlite3.Connection | None = None

    def open(self) -> None:
        connection = self._database.open_block()
        with self._mutex:
            self._connection = connection
            unwanted = self._abandoned
        if unwanted:
            self._database.close_block(connection, commit=False)

    def abandon(self) -> None:
        with self._mutex:
            self._abandoned = True
            connection = self._connection
        if connection is not None:
            self._database.close_block(connection, commit=False)

    def connection(self) -> sqlite3.Connection:
        if self._connection is None:
            raise RuntimeError("the block was not opened")
        return self._connection
