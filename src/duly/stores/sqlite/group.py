"""Group commit: whoever gets the writer next stores what other threads have queued meanwhile, in one commit.

Knows nothing of jobs; a piece of work either does all of its writes or raises before its first one.
"""

import threading
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

    def run(self, session: Session) -> None: ...


class _Piece(Generic[T]):
    def __init__(self, work: Callable[[Session], T]) -> None:
        self.work = work
        self.done = False
        self.error: BaseException | None = None
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
    """The pieces waiting for the next transaction of one process."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: deque[_Work] = deque()
        self._lead = threading.Lock()

    def run(self, work: Callable[[Session], T]) -> T:
        """Do `work` in a transaction, perhaps together with others'; returns after the commit."""
        self._database.holding.refuse()
        piece = _Piece(work)
        self._waiting.append(piece)
        with self._lead:
            if not piece.done:
                self._commit_all()
        return piece.answer()

    def after_fork(self) -> None:
        """In the child: what others had queued is their process's business."""
        self._waiting.clear()
        self._lead = threading.Lock()

    def _commit_all(self) -> None:
        pieces: list[_Work] = []
        while self._waiting and len(pieces) < _MOST_PIECES:
            pieces.append(self._waiting.popleft())
        try:
            self._commit(pieces)
        except DataFault:
            # One piece spoils the transaction of all: each for itself.
            for piece in pieces:
                self._alone(piece)
        except BaseException as error:
            interrupted = not isinstance(error, Exception)
            for piece in pieces:
                piece.error = (
                    Transient("the thread that stored this for you was interrupted", outcome_unknown=True)
                    if interrupted
                    else error
                )
                piece.done = True
            if interrupted:
                raise

    def _alone(self, piece: _Work) -> None:
        try:
            self._commit([piece])
        except Exception as error:
            piece.error = error
            piece.done = True

    def _commit(self, pieces: Sequence[_Work]) -> None:
        with self._database.write() as session:
            for piece in pieces:
                piece.run(session)
        for piece in pieces:
            piece.done = True
