"""A few connections of one process, last used first, each with the marks that its claims have set.

Knows how to keep, check and drop connections, not what runs on them. A forked child opens its own and never touches
those it inherited; one broken connection makes all idle ones suspect, so that they are dropped with it.
"""

import os
import select
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Final

import psycopg

from duly.stores.faults import Transient
from duly.stores.postgres.direct import Direct
from duly.stores.postgres.marks import Marks
from duly.stores.postgres.patience import PatientConnection

PATIENCE: Final = 30.0
"""Seconds that a call waits for a free connection."""

# A child that collected an inherited connection would end its parent's session.
_inherited: list[object] = []


class Link:
    """One connection and what is known only as long as it lives."""

    def __init__(self, connection: PatientConnection) -> None:
        self.connection = connection
        self.direct = Direct(connection)
        self.marks = Marks()
        self.due_mark: datetime | None = None
        self.due_met = 0
        self.due_full_at = 0.0

    @property
    def broken(self) -> bool:
        return self.connection.closed

    def alive(self) -> bool:
        """No round trip: a server that went away has made the idle socket readable."""
        if self.broken:
            return False
        poll = select.poll()
        poll.register(self.connection.fileno(), select.POLLIN)
        if not poll.poll(0):
            return True
        try:
            self.connection.pgconn.consume_input()
        except psycopg.Error:
            return False
        return not self.connection.closed and not poll.poll(0)


class Pool:
    """At most `size` connections, opened when needed."""

    def __init__(self, connect: Callable[[], PatientConnection], size: int) -> None:
        self._connect = connect
        self._size = size
        self._pid = os.getpid()
        self._changed = threading.Condition()
        self._idle: list[Link] = []
        self._open = 0
        self._closed = False

    @contextmanager
    def link(self) -> Iterator[Link]:
        """A connection of one's own, outside any transaction. Transient when none gets free."""
        link = self._take()
        try:
            yield link
        finally:
            self._give_back(link)

    def resize(self, by: int) -> None:
        """Make room for a connection that lives elsewhere, or take the room back."""
        with self._changed:
            self._size += by

    def close(self) -> None:
        """Close what is idle; links in use are closed when they come back."""
        if self._pid != os.getpid():
            return
        with self._changed:
            idle, self._idle = self._idle, []
            self._open -= len(idle)
            self._closed = True
        for link in idle:
            link.connection.close()

    def _take(self) -> Link:
        if self._pid != os.getpid():
            self._start_anew()
        until = time.monotonic() + PATIENCE
        with self._changed:
            while True:
                if self._idle:
                    link = self._idle.pop()
                    if link.alive():
                        return link
                    self._discard(link)
                elif self._open < max(self._size, 1):
                    self._open += 1
                    break
                elif not self._changed.wait(until - time.monotonic()):
                    raise Transient(f"none of {self._size} connections got free within {PATIENCE:g} s")
        try:
            return Link(self._connect())
        except BaseException:
            with self._changed:
                self._open -= 1
                self._changed.notify()
            raise

    def _give_back(self, link: Link) -> None:
        if self._pid != os.getpid():
            return
        with self._changed:
            if (
                link.broken
                or self._closed
                or self._open > max(self._size, 1)
                or link.connection.pgconn.transaction_status
            ):
                self._discard(link)
                if link.broken:
                    for idle in self._idle:
                        self._discard(idle)
                    self._idle.clear()
            else:
                self._idle.append(link)
            self._changed.notify()

    def _discard(self, link: Link) -> None:
        self._open -= 1
        link.connection.close()

    def _start_anew(self) -> None:
        _inherited.append(self._idle)
        self._changed = threading.Condition()
        self._idle = []
        self._open = 0
        self._pid = os.getpid()
