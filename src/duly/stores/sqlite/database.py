"""Connections, locks and transactions on one file, for all threads of a process. Knows no table but through schema.

Order of locks: the turn (threads of this process), the process queue (flock), then SQLite's write lock. Whoever
waits for SQLite holds the two others, so that writers of all duly processes are served in turn.
"""

import ctypes
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Final

from duly.core.errors import DulyError, UsageError
from duly.stores.sqlite import forking, migrating
from duly.stores.sqlite.connecting import Journal, connect, default_journal, set_journal, side_file_error
from duly.stores.sqlite.errors import FAILURES, Unreachable, is_busy, locked, translate
from duly.stores.sqlite.handles import Handles
from duly.stores.sqlite.holding import Holding
from duly.stores.sqlite.sequence import Ahead
from duly.stores.sqlite.session import Session
from duly.stores.sqlite.statements import check_prefix, load
from duly.stores.sqlite.times import to_micros
from duly.stores.sqlite.wake import WakeFile

BUSY_TIMEOUT: Final = 10.0
_IDLE_READERS: Final = 4
_COMMIT_PAUSE: Final = 0.005
_FIRST_WAIT: Final = 0.25
"""Seconds before we ask whether a transaction of the same thread is what we wait for."""


class Database:
    """One file. Nothing is opened before the first use; a forked child opens anew."""

    def __init__(
        self,
        path: str | Path,
        *,
        prefix: str = "duly",
        clock: Callable[[], datetime] | None = None,
        journal: Journal | None = None,
        busy_timeout: float = BUSY_TIMEOUT,
        durable: bool = True,
    ) -> None:
        self.path = str(Path(path).absolute())
        self.prefix = check_prefix(prefix)
        self.busy_timeout = busy_timeout
        self.wanted_journal: Journal = journal or default_journal()
        self.statements = load(self.prefix)
        self.wake = WakeFile(f"{self.path}-wake")
        self.holding = Holding(self.path)
        self.created = False
        """Whether this process has made the tables, in a file that had none."""
        self._clock = clock
        self._durable = durable
        self._handles = Handles(self.path, self.wake)
        self._when_forked: list[Callable[[], None]] = []
        self._unusable = False
        self._utf8 = True
        forking.tell(self)

    def now(self) -> int:
        """Microseconds since 1970 UTC by the store's clock."""
        return time.time_ns() // 1000 if self._clock is None else to_micros(self._clock())

    def write(self, *, checked: bool = False) -> "_Writing":
        """A transaction that holds the write lock; committed at the end of the block, rolled back by an error.

        `checked`: the caller knows that this thread would not wait for itself.
        """
        return _Writing(self, checked)

    @contextmanager
    def read(self, *, snapshot: bool = False) -> Iterator[Session]:
        """Statements outside a transaction, each with its own view; with `snapshot` all of them with one."""
        self.prepare()
        handles = self._handles
        with self._inside():
            connection = self._reader(handles)
            session = Session(connection, self.statements, self.now(), utf8=self._utf8)
            try:
                if snapshot:
                    session.text("begin")
                yield session
            finally:
                if connection.in_transaction:
                    session.text("rollback")
                session.close()
                self._give_back(handles, connection)

    def open_block(self, *, kept: bool = False) -> sqlite3.Connection:
        """Take the write lock and hand out a connection of its own inside a transaction; `close_block` must follow.

        `kept`: the one that a block before has left to be used again, if there is one.
        """
        self.holding.refuse()
        self.prepare()
        handles = self._enter_turn()
        connection = None
        try:
            with self._inside():
                if kept:
                    connection, handles.spare = handles.spare, None
                if connection is None:
                    connection = self._connect(writer=False)
                    set_journal(connection, self.wanted_journal)
                    self._wait_at_most(connection, _FIRST_WAIT)
                handles.blocks.append(connection)
                self._begin(connection).close()
                if not kept:
                    # For what a caller does with it; what is kept is ours, and waits as our writer does.
                    self._wait_at_most(connection, self.busy_timeout)
        except BaseException:
            try:
                if connection is not None:
                    self._roll_back(connection)
                    connection.close()
                    with suppress(ValueError):
                        handles.blocks.remove(connection)
            finally:
                self._leave_turn(handles)
            raise
        return connection

    def close_block(self, connection: sqlite3.Connection, *, commit: bool, keep: bool = False) -> None:
        """End what `open_block` began; `keep` the connection for another block, if this one ended well."""
        handles = self._handles
        try:
            with self._inside():
                try:
                    if commit and connection.in_transaction:
                        self._commit(connection)
                    keep = keep and commit and handles.spare is None
                except BaseException:
                    keep = False
                    raise
                finally:
                    self._roll_back(connection)
                    with suppress(ValueError):
                        handles.blocks.remove(connection)
                    if keep and not connection.in_transaction:
                        handles.spare = connection
                    else:
                        connection.close()
            self.wake.bump()
        finally:
            self._leave_turn(handles)
        self.wake.ring()

    def session_on(self, connection: sqlite3.Connection) -> Session:
        """A session inside the transaction that is open on a caller's connection."""
        return Session(connection, self.statements, self.now(), utf8=self._utf8)

    def prepare(self) -> None:
        """Make sure once per process that the file has our tables; creates and migrates them."""
        handles = self._handles
        if handles.ready:
            return
        if self._unusable:
            raise UsageError(
                f"this process was forked while its parent was inside a transaction on {self.path}, whose lock SQLite "
                "now takes for its own; fork outside of transaction(), or start the child with 'spawn'"
            )
        with handles.preparing:
            if handles.ready:
                return
            with self._inside():
                if not self._is_current():
                    self.migrate()
                self._utf8 = self._keeps_utf8()
            handles.ready = True

    def migrate(self) -> list[str]:
        """Apply what is missing; the names of the migrations applied."""
        with self._turn() as handles, self._inside():
            connection = self._writer(handles)
            session = None
            try:
                session = self._begin(connection)
                fresh = migrating.version_of(session) == 0
                applied = migrating.apply_missing(session, self.prefix, self.path)
                self._commit(connection)
                self.created = self.created or fresh
            except BaseException:
                self._roll_back(connection)
                raise
            finally:
                if session is not None:
                    session.close()
            return applied

    def version(self) -> int:
        """The schema version in the file; 0 without file or tables. Creates nothing."""
        if not Path(self.path).exists():
            return 0
        with self._inside():
            connection = self._connect(writer=False)
            try:
                session = Session(connection, self.statements, 0)
                return migrating.version_of(session)
            finally:
                connection.close()

    def _keeps_utf8(self) -> bool:
        connection = self._connect(writer=False)
        try:
            return bool(connection.execute("pragma encoding").fetchall()[0][0] == "UTF-8")
        finally:
            connection.close()

    @property
    def is_ready(self) -> bool:
        """Whether this process has seen our tables committed."""
        return self._handles.ready

    def journal(self) -> str:
        """The journal mode of our writing connection."""
        with self.read() as session:
            mode = str(session.value("pragma_journal_mode"))
        return "wal" if mode == "wal" else "truncate"

    def change_counter(self) -> tuple[Callable[[], int | None], Callable[[], None]]:
        """A reader of SQLite's own counter of commits by others, and the end of its connection."""
        opened: list[sqlite3.Connection] = []

        def read() -> int | None:
            watching = self._handles.watching
            try:
                with self._inside():
                    # A fork may have closed the one that was opened.
                    if not opened or opened[0] not in watching:
                        opened[:] = [self._connect(writer=False)]
                        watching.append(opened[0])
                    return int(opened[0].execute("pragma data_version").fetchall()[0][0])
            except (DulyError, sqlite3.Error):
                return None

        def forget() -> None:
            for connection in opened:
                with suppress(ValueError):
                    self._handles.watching.remove(connection)
                connection.close()

        return read, forget

    def close(self) -> None:
        handles, self._handles = self._handles, Handles(self.path, self.wake)
        # A writer at work ends first. Listeners and blocks end their own.
        ended = handles.turn.acquire(timeout=self.busy_timeout)
        if ended:
            handles.turn.release()
        handles.close_idle()
        handles.queue.close()
        self.wake.forget()

    def before_fork(self) -> None:
        """Leave nothing open that can be closed: the child would inherit SQLite's picture of our locks."""
        self._handles.close_idle()
        while self._handles.watching:
            self._handles.watching.pop().close()

    def after_fork(self) -> None:
        """In the child: forget what is left without closing it."""
        inherited = self._handles.left()
        for connection in inherited:
            # Closing, or collecting at exit, would end the parent's transaction.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))
        self._unusable = self.holding.after_fork() or self._unusable or bool(inherited)
        self._handles.queue.forget()
        self._handles = Handles(self.path, self.wake)
        for forget in self._when_forked:
            forget()

    def when_forked(self, forget: Callable[[], None]) -> None:
        """Call `forget` in every forked child, before anything else uses this object there."""
        self._when_forked.append(forget)

    def _is_current(self) -> bool:
        found, wanted = self.version(), migrating.wanted()
        if found > wanted:
            raise migrating.too_new(self.path, found)
        return found == wanted

    @contextmanager
    def _turn(self) -> Iterator[Handles]:
        handles = self._enter_turn()
        try:
            yield handles
        finally:
            self._leave_turn(handles)

    def _enter_turn(self) -> Handles:
        handles = self._handles
        deadline = time.monotonic() + self.busy_timeout
        if not handles.turn.acquire(timeout=self.busy_timeout):
            raise Unreachable(locked(self.path, self.busy_timeout))
        try:
            if not handles.queue.acquire(deadline):
                raise Unreachable(locked(self.path, self.busy_timeout))
        except OSError as error:
            handles.turn.release()
            raise side_file_error(error, self.path) from error
        except BaseException:
            # An interrupt may come after the lock was granted.
            self._leave_turn(handles)
            raise
        return handles

    def _leave_turn(self, handles: Handles) -> None:
        try:
            handles.queue.release()
        finally:
            handles.turn.release()

    def _writer(self, handles: Handles) -> sqlite3.Connection:
        if handles.writer is None:
            connection = self._connect(writer=True)
            try:
                set_journal(connection, self.wanted_journal)
                self._wait_at_most(connection, _FIRST_WAIT)
            except BaseException:
                connection.close()
                raise
            handles.writer, handles.ahead = connection, None
        return handles.writer

    def _connect(self, *, writer: bool) -> sqlite3.Connection:
        return connect(self.path, self.busy_timeout, writer=writer, durable=self._durable)

    def _reader(self, handles: Handles) -> sqlite3.Connection:
        with suppress(IndexError):
            return handles.readers.pop()
        return self._connect(writer=False)

    def _give_back(self, handles: Handles, connection: sqlite3.Connection) -> None:
        if handles is self._handles and len(handles.readers) < _IDLE_READERS:
            handles.readers.append(connection)
        else:
            connection.close()

    def _begin(self, connection: sqlite3.Connection, ahead: Ahead | None = None) -> Session:
        try:
            connection.execute("begin immediate")
        except sqlite3.OperationalError as error:
            if not is_busy(error):
                raise
            self.holding.refuse_unseen()
            self._begin_patiently(connection)
        return Session(connection, self.statements, self.now(), utf8=self._utf8, ahead=ahead)

    def _begin_patiently(self, connection: sqlite3.Connection) -> None:
        self._wait_at_most(connection, max(0.0, self.busy_timeout - _FIRST_WAIT))
        try:
            connection.execute("begin immediate")
        except sqlite3.OperationalError as error:
            if is_busy(error):
                raise Unreachable(locked(self.path, self.busy_timeout)) from error
            raise
        finally:
            self._wait_at_most(connection, _FIRST_WAIT)

    def _wait_at_most(self, connection: sqlite3.Connection, seconds: float) -> None:
        wait = min(seconds, self.busy_timeout)
        connection.execute(f"pragma busy_timeout = {int(wait * 1000)}").close()

    def _commit(self, connection: sqlite3.Connection) -> None:
        # In rollback mode a reader refuses the commit and leaves the transaction open: only COMMIT is repeated.
        deadline = time.monotonic() + self.busy_timeout
        while True:
            try:
                connection.execute("commit")
                return
            except sqlite3.OperationalError as error:
                if not is_busy(error):
                    raise translate(error, self.path, committing=True) or error from error
                if time.monotonic() >= deadline:
                    raise Unreachable(_READ_TOO_LONG.format(self.path, self.busy_timeout)) from error
            time.sleep(_COMMIT_PAUSE)

    @staticmethod
    def _roll_back(connection: sqlite3.Connection) -> None:
        if connection.in_transaction:
            with suppress(sqlite3.Error):
                connection.execute("rollback")

    def _inside(self) -> "_Inside":
        return _Inside(self.path)


class _Writing:
    """One transaction of `Database.write`."""

    # Not a generator: this stands around every enqueue and every exchange.
    __slots__ = ("_ahead", "_checked", "_connection", "_database", "_handles", "_inside", "_session")

    def __init__(self, database: Database, checked: bool) -> None:
        self._database = database
        self._checked = checked

    def __enter__(self) -> Session:
        database = self._database
        if not self._checked:
            database.holding.refuse()
        database.prepare()
        handles = self._handles = database._enter_turn()
        try:
            inside = self._inside = database._inside()
            inside.__enter__()
            connection = None
            try:
                connection = self._connection = database._writer(handles)
                # Put back after the commit: what a transaction takes that fails is taken again.
                self._ahead, handles.ahead = handles.ahead or Ahead(), None
                session = self._session = database._begin(connection, self._ahead)
            except BaseException as error:
                try:
                    if connection is not None:
                        database._roll_back(connection)
                finally:
                    inside.__exit__(None, error, None)
                raise
        except BaseException:
            database._leave_turn(handles)
            raise
        return session

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        database, handles, session = self._database, self._handles, self._session
        failure = error
        try:
            try:
                if failure is None:
                    database._commit(self._connection)
                    handles.ahead = self._ahead
            except BaseException as failed:
                failure = failed
                raise
            finally:
                if failure is not None:
                    database._roll_back(self._connection)
                session.close()
                self._inside.__exit__(None, failure, None)
            if session.rings and failure is None:
                database.wake.bump()
        finally:
            database._leave_turn(handles)
        if session.rings and failure is None:
            # Who wakes now finds the lock free.
            database.wake.ring()


class _Inside:
    """Inside SQLite: its errors in duly's words, and no fork meanwhile."""

    # Not a generator: this stands around every statement of a worker.
    __slots__ = ("_path",)

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        forking.GATE.__enter__()

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        forking.GATE.__exit__()
        if isinstance(error, FAILURES):
            meant = translate(error, self._path)
            if meant is not None:
                raise meant from error


_READ_TOO_LONG: Final = (
    "{} could not be written for {:g} s because a reader keeps it open; fetch query results whole and end the "
    "reading transaction (in rollback mode every reader holds up writers)"
)
