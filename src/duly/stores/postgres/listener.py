"""Hears the bell: one connection and one thread that call back when there may be work.

While its worker is idle the listener stands at the door (an exclusive advisory lock); only then do producers ring. It
knows nothing of jobs, reconnects by itself, and notices a deaf connection because it rings for itself.
"""

import os
import random
import select
import socket
import threading
import time
from collections.abc import Callable
from typing import Any, Final

import psycopg
from psycopg.pq import ExecStatus

from duly.stores.postgres.database import Database
from duly.stores.postgres.statements import statement

_PULSE: Final = 10.0
"""Seconds between two rings for oneself."""
_DEAF: Final = 8.0
"""Seconds until an answer counts as missing; pulse + deaf stay below half a minute."""
_LINGER: Final = 0.05
"""A worker that is busy for less keeps its place at the door."""
_COVERED: Final = 0.5
"""Seconds until the next try when another idle worker stands there."""
_CROWDED: Final = (0.02, 0.25)
"""The same while a producer's open transaction is in the way: poll meanwhile, slower and slower."""
_BACKOFF: Final = (0.1, 10.0)
_PATIENCE: Final = 2.0
"""Seconds that `close` waits: the thread may be connecting to a server that is away."""


class Silence:
    """The listener of a store that does not ring."""

    def idle(self, yes: bool) -> None:
        """Nobody asks."""

    def close(self) -> None:
        """Nothing was opened."""


class Deaf(Exception):
    """The connection stands, but nothing comes through it any more."""


class PostgresListener:
    """See `duly.stores.protocol.Listener`."""

    def __init__(self, database: Database, on_work: Callable[[], None]) -> None:
        self._database = database
        self._on_work = on_work
        self._idle_since: float | None = None
        self._busy_since: float | None = 0.0
        self._closing = False
        # Ours is one of the connections that a process may have.
        database.pool.resize(-1)
        self._wake_out, self._wake_in = socket.socketpair()
        self._wake_in.setblocking(False)
        self._wake_out.setblocking(False)
        self.reconnects = 0
        """How often the connection was made anew."""
        self._thread = threading.Thread(target=self._run, name="duly-listener", daemon=True)
        self._thread.start()

    @property
    def running(self) -> bool:
        """Whether it listens, or tries to."""
        return self._thread.is_alive()

    def idle(self, yes: bool) -> None:
        if yes == (self._idle_since is not None):
            return
        now = time.monotonic()
        self._idle_since, self._busy_since = (now, None) if yes else (None, now)
        self._wake()

    def close(self) -> None:
        """Ends the thread and its connection; waits a little for both."""
        self._closing = True
        self._wake()
        if self._thread is not threading.current_thread():
            self._thread.join(_PATIENCE)
            self._database.pool.resize(1)
        if not self._thread.is_alive():
            self._wake_in.close()
            self._wake_out.close()

    def _wake(self) -> None:
        try:
            self._wake_in.send(b"x")
        except OSError:
            pass  # a full pipe wakes as well, a closed one has nobody to wake

    def _run(self) -> None:
        wait = _BACKOFF[0]
        while not self._closing:
            began = time.monotonic()
            try:
                self._listen()
            except Exception:  # whatever it was: the worker polls meanwhile
                self.reconnects += 1
                wait = _BACKOFF[0] if time.monotonic() - began > _PULSE else min(2 * wait, _BACKOFF[1])
                self._pause(wait * random.uniform(0.5, 1.0))

    def _pause(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while not self._closing and (left := until - time.monotonic()) > 0:
            _readable([self._wake_out.fileno()], left)
            self._drain()

    def _listen(self) -> None:
        connection = self._database.connect()
        if self._database.pooled:
            # Neither the bell nor the door survives a pooler: everyone polls, `check` says so.
            connection.close()
            self._closing = True
            return
        try:
            session = _Session(connection, self._database, self._wake_out)
            # What was enqueued while nobody listened.
            self._on_work()
            while not self._closing:
                if session.wait(self._next_turn(session)):
                    self._on_work()
                self._drain()
                if session.pulse_due():
                    session.pulse()
                self._mind_the_door(session)
        finally:
            connection.close()

    def _next_turn(self, session: "_Session") -> float:
        now = time.monotonic()
        turns = [session.next_pulse]
        if self._idle_since is not None and not session.at_door:
            turns.append(session.next_try)
        if self._busy_since is not None and session.at_door:
            turns.append(self._busy_since + _LINGER)
        return max(0.0, min(turns) - now)

    def _mind_the_door(self, session: "_Session") -> None:
        now = time.monotonic()
        busy_since = self._busy_since
        if busy_since is not None:
            if session.at_door and now >= busy_since + _LINGER:
                session.leave_door()
            session.next_try = now
            return
        if session.at_door or now < session.next_try:
            return
        if session.try_door():
            self._on_work()

    def _drain(self) -> None:
        try:
            while self._wake_out.recv(4096):
                pass
        except OSError:
            pass  # nothing more to read


class _Session:
    """One connection of the listener. No statement waits longer than the socket may be deaf."""

    def __init__(self, connection: psycopg.Connection[Any], database: Database, wake: socket.socket) -> None:
        self._connection = connection
        self._wake = wake
        # The server must notice, too, when we are gone: a door that nobody leaves makes every producer ring.
        for setting in (
            b"tcp_keepalives_idle to 10",
            b"tcp_keepalives_interval to 5",
            b"tcp_keepalives_count to 3",
        ):
            connection.execute(b"set " + setting)
        door, number = connection.execute(statement("read_door", database.schema)).fetchone() or (0, 0)
        self._channel = f"duly_{number}".encode()
        self._own = f"duly_pulse_{os.getpid()}_{random.getrandbits(32):08x}".encode()
        self._door = str(door).encode()
        self._crowd = _CROWDED[0]
        self._rung = False
        self._heard = True
        self.at_door = False
        self.next_try = 0.0
        self.next_pulse = time.monotonic()
        self._ask(b'listen "' + self._channel + b'"')
        self._ask(b'listen "' + self._own + b'"')

    def wait(self, seconds: float) -> bool:
        """Until a bell, a wake-up or the time; whether somebody rang."""
        if not self._rung:
            server = self._connection.fileno()
            if server in _readable([server, self._wake.fileno()], seconds):
                self._connection.pgconn.consume_input()
                self._take_in()
        rung, self._rung = self._rung, False
        return rung

    def pulse_due(self) -> bool:
        return time.monotonic() >= self.next_pulse

    def pulse(self) -> None:
        """Ring for oneself. Deaf when the last pulse was never heard."""
        if not self._heard:
            raise Deaf
        self._heard = False
        self._ask(b"select pg_notify('" + self._own + b"', '')")
        self._take_in()
        self.next_pulse = time.monotonic() + (_PULSE if self._heard else _DEAF)

    def try_door(self) -> bool:
        """Take the place at the door if it is free; whether one must look for work now.

        One must: a job that was committed before the door was taken has not rung, nor will one whose producer holds the
        door open with its transaction.
        """
        if self._ask(b"select pg_try_advisory_lock(" + self._door + b", 1)") == b"t":
            self.at_door = True
            self._crowd = _CROWDED[0]
            return True
        covered = self._ask(
            b"select exists (select from pg_locks where locktype = 'advisory' and mode = 'ExclusiveLock' and granted"
            b" and objsubid = 2 and objid = 1 and classid = ((("
            + self._door
            + b")::bigint + 4294967296) % 4294967296)::oid)"
        )
        if covered == b"t":
            self.next_try = time.monotonic() + _COVERED
            return False
        self.next_try = time.monotonic() + self._crowd
        self._crowd = min(2 * self._crowd, _CROWDED[1])
        return True

    def leave_door(self) -> None:
        self._ask(b"select pg_advisory_unlock(" + self._door + b", 1)")
        self.at_door = False

    def _ask(self, text: bytes) -> bytes | None:
        """Run one statement and return its only value; Deaf when no answer comes."""
        connection = self._connection.pgconn
        connection.send_query(text)
        until = time.monotonic() + _DEAF
        value: bytes | None = None
        connection.flush()
        while True:
            while connection.is_busy():
                left = until - time.monotonic()
                if left <= 0 or not select.select([connection.socket], [], [], left)[0]:
                    raise Deaf
                connection.consume_input()
            result = connection.get_result()
            if result is None:
                self._take_in()
                return value
            if result.status == ExecStatus.FATAL_ERROR:
                raise psycopg.OperationalError(result.error_message.decode(errors="replace"))
            if result.ntuples:
                value = result.get_value(0, 0)

    def _take_in(self) -> None:
        while (notify := self._connection.pgconn.notifies()) is not None:
            if notify.relname == self._own:
                self._heard = True
            else:
                self._rung = True


def _readable(descriptors: list[int], seconds: float) -> set[int]:
    """Those that have something to read, or have failed, within the time."""
    # poll and not select: a web server that embeds a worker may have more than 1,024 files open.
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    return {found for found, _ in poll.poll(max(0.0, seconds) * 1000)}
