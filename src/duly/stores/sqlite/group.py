"""Group commit: whoever leads stores what other threads have queued meanwhile, in one commit.

Knows nothing of jobs; a piece of work either does all of its writes or raises before its first one.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Generic, Protocol, TypeVar

from duly.core.errors import DulyError
from duly.stores.faults import DataFault, Transient
from duly.stores.sqlite.database import Database
from duly.stores.sqlite.session import Session

T = TypeVar("T")

_MOST_PIECES: Final = 256


class _Work(Protocol):
    done: bool
    error: BaseException | None
    woken: threading.Event | None
    arrived: float

    def run(self, session: Session) -> None: ...


class _Piece(Generic[T]):
    __slots__ = ("_result", "arrived", "done", "error", "woken", "work")

    def __init__(self, work: Callable[[Session], T]) -> None:
        self.work = work
        self.done = False
        self.error: BaseException | None = None
        self.arrived = time.monotonic()
        self.woken: threading.Event | None = None
        """Set when the work is done, or when this thread shall lead; None for one that leads from the start."""
        self._result: list[T] = []

    def run(self, session: Session) -> None:
        """Do the work in a transaction that is open; a refusal is this piece's own."""
        self._result.clear()
        try:
            self._result.append(self.work(session))
        except (DataFault, Transient):
            raise
        except DulyError as refusal:
            self.error = refusal

    def answer(self) -> T:
        if self.error is not None:
            raise self.error
        return self._result[0]


class GroupCommit:
    """The pieces waiting for the next transaction of one process. At most one thread leads; the others wait for it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: deque[_Work] = deque()
        self._mutex = threading.Lock()
        self._led = False
        database.when_forked(self.after_fork)

    def run(self, work: Callable[[Session], T]) -> T:
        """Do `work` in a transaction, perhaps together with others'; returns after the commit."""
        self._database.holding.refuse()
        piece = _Piece(work)
        leads = False
        try:
            with self._mutex:
                woken = piece.woken = threading.Event() if self._led else None
                self._waiting.append(piece)
                leads, self._led = not self._led, True
            if woken is not None:
                woken.wait()
            if not piece.done:
                self._lead(piece)
        except BaseException:
            self._leave(piece, leads)
            raise
        return piece.answer()

    def after_fork(self) -> None:
        """In the child: what others had queued is their process's business."""
        self._waiting.clear()
        self._mutex = threading.Lock()
        self._led = False

    def _lead(self, own: _Work) -> None:
        try:
            self._commit_all(own)
        finally:
            self._hand_over()

    def _hand_over(self) -> None:
        with self._mutex:
            if not self._waiting:
                self._led = False
            elif (next_one := self._waiting[0].woken) is not None:
                next_one.set()

    def _leave(self, piece: _Work, leads: bool) -> None:
        """This thread was interrupted while it waited."""
        with self._mutex:
            queued = piece in self._waiting
            if queued:
                self._waiting.remove(piece)
        if queued and (leads or (piece.woken is not None and piece.woken.is_set())):
            self._hand_over()

    def _commit_all(self, own: _Work) -> None:
        taken: list[_Work] = []
        try:
            with self._database.write(checked=True) as session:
                # Taken only now: while this thread waited for its turn, more have come.
                self._take(taken)
                for piece in taken:
                    piece.run(session)
        except DataFault:
            # One piece spoils the transaction of all: each for itself.
            try:
                for piece in taken:
                    self._alone(piece)
            finally:
                self._give_up([piece for piece in taken if not piece.done])
        except BaseException as error:
            if not taken:
                self._take_those_that_gave_up(own, taken)
            interrupted = not isinstance(error, Exception)
            for piece in taken:
                piece.error = _interrupted() if interrupted else error
            self._done(taken)
            if interrupted:
                raise
        else:
            self._done(taken)

    def _take(self, taken: list[_Work]) -> None:
        with self._mutex:
            while self._waiting and len(taken) < _MOST_PIECES:
                taken.append(self._waiting.popleft())

    def _take_those_that_gave_up(self, own: _Work, taken: list[_Work]) -> None:
        """The lock was not to be had: who has waited long learns it now too, not one leader after the other."""
        since = time.monotonic() - self._database.busy_timeout / 2
        with self._mutex:
            if own in self._waiting:
                self._waiting.remove(own)
            taken.append(own)
            while self._waiting and self._waiting[0].arrived <= since:
                taken.append(self._waiting.popleft())

    def _alone(self, piece: _Work) -> None:
        piece.error = _interrupted()
        try:
            with self._database.write(checked=True) as session:
                piece.run(session)
            piece.error = None
        except Exception as error:
            piece.error = error
        finally:
            self._done([piece])

    def _give_up(self, pieces: Sequence[_Work]) -> None:
        """This thread was interrupted before it came to them."""
        for piece in pieces:
            piece.error = _interrupted()
        self._done(pieces)

    @staticmethod
    def _done(pieces: Sequence[_Work]) -> None:
        for piece in pieces:
            piece.done = True
            if piece.woken is not None:
                piece.woken.set()


def _interrupted() -> Transient:
    return Transient(
        "the thread that stored this was interrupted; look whether it is there", outcome_unknown=True
    )
