"""Forks: before one, threads of ours leave SQLite and close what they have open; both sides open anew.

A fork copies SQLite's mutexes and its list of the locks of this process. A mutex that another thread holds stays
locked in the child for ever, and of a lock the child believes that it has it itself. Knows nothing of tables.
"""

import os
import threading
import weakref
from typing import Final, Protocol

# Whoever is inside for longer waits for somebody's lock.
_PATIENCE: Final = 2.0


class Holder(Protocol):
    def before_fork(self) -> None:
        """Close what nobody uses at the moment."""

    def after_fork(self) -> None:
        """In the child: forget what is left, closing nothing."""


class _Gate:
    """Entered around every piece of work with SQLite."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._changed = threading.Condition(self._mutex)
        self._inside = 0
        self._closed = False

    def __enter__(self) -> None:
        with self._mutex:
            while self._closed:
                self._changed.wait()
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._mutex:
            self._inside -= 1
            if self._closed and self._inside == 0:
                self._changed.notify_all()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.wait_for(lambda: self._inside == 0, timeout=_PATIENCE)

    def open(self) -> None:
        with self._changed:
            self._closed = False
            self._changed.notify_all()

    def after_fork(self) -> None:
        # The other threads did not come along.
        self.__dict__.update(_Gate().__dict__)


GATE: Final = _Gate()
_KNOWN: Final["weakref.WeakSet[Holder]"] = weakref.WeakSet()


def tell(holder: Holder) -> None:
    """Let `holder` know of every fork, in the child, as long as it lives."""
    _KNOWN.add(holder)


def _before() -> None:
    GATE.close()
    for holder in list(_KNOWN):
        holder.before_fork()


def _after_in_child() -> None:
    GATE.after_fork()
    for holder in list(_KNOWN):
        holder.after_fork()


os.register_at_fork(before=_before, after_in_parent=GATE.open, after_in_child=_after_in_child)
