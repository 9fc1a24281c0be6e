"""What one process has open on a file: its turn, its place in the queue of processes, connections. Runs no SQL."""

import sqlite3
import threading

from duly.stores.sqlite.locks import FileQueue
from duly.stores.sqlite.sequence import Ahead
from duly.stores.sqlite.wake import WakeFile


class Handles:
    """What one process has open."""

    def __init__(self, path: str, wake: WakeFile) -> None:
        self.turn = threading.Lock()
        self.preparing = threading.Lock()
        self.queue = FileQueue(f"{path}-lock", wake)
        self.writer: sqlite3.Connection | None = None
        self.ahead: Ahead | None = None
        """Of the writer; None while a transaction is open that has taken numbers."""
        self.readers: list[sqlite3.Connection] = []
        self.watching: list[sqlite3.Connection] = []
        self.blocks: list[sqlite3.Connection] = []
        self.spare: sqlite3.Connection | None = None
        """Of the last block that left its own as it was; taken and put back by whoever has the turn."""
        self.ready = False

    def close_idle(self) -> None:
        """Close what nobody uses: readers in the pool and, between two transactions, what writes."""
        while self.readers:
            self.readers.pop().close()
        if self.turn.acquire(blocking=False):
            for connection in self._writing():
                connection.close()
            self.writer = self.spare = None
            self.turn.release()

    def left(self) -> list[sqlite3.Connection]:
        return [*self.readers, *self.watching, *self.blocks, *self._writing()]

    def _writing(self) -> list[sqlite3.Connection]:
        return [one for one in (self.writer, self.spare) if one is not None]
