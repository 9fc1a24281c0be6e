"""Hears the bell: one connection and one thread that call back when there may be work.

While its worker is idle the listener stands at the door (an exclusive advisory lock); only then do producers ring. When
they stand in each other's way it goes round instead: it looks every few milliseconds, and nobody rings. Knows no jobs,
reconnects by itself, and notices a deaf connection because it rings for itself.
"""

import os
import random
import select
import socket
import threading
import time
from collections import deque
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
_COVERED: Final = 1.0
"""Seconds until the next try when another idle worker stands there, or goes round; who leaves says so."""
_CROWDED: Final = (0.02, 0.25)
"""Seconds between rounds that find nothing, while a producer's open transaction keeps the door: slower and slower."""
_ROUND: Final = 0.005
"""Seconds between two rounds that find something."""
_DRY: Final = 0.1
"""Seconds without a job after which the door is tried again."""
_ROUNDS: Final = (0.1, 2.0)
"""Seconds of going round before the door is tried all the same: longer each time a rush comes back at once."""
_CALM: Final = 1.0
"""Seconds at the door without a rush after which the next one counts as new."""
_SUSPICION: Final = (0.1, 0.02)
"""Two producers that ring within so many seconds may have met; and how often that is looked into."""
_RUSH: Final = 3
"""So many commits that wait with their ring, in three looks together, are a rush."""
_BACKOFF: Final = (0.1, 10.0)
_PATIENCE: Final = 2.0
"""Seconds that `close` waits: the thread may be connecting to a server that is away."""


class Silence:
    """The listener of a store that does not ring."""

    def idle(self, yes: bool) -> None:
        """Nobody asks."""

    def found(self) -> None:
        """Nobody looks more often for it."""

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
        self._found_at = 0.0
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

    def found(self) -> None:
        self._found_at = time.monotonic()

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
        if self._busy_since is not None and (session.at_door or session.going_round):
            turns.append(self._busy_since + _LINGER)
        return max(0.0, min(turns) - now)

    def _mind_the_door(self, session: "_Session") -> None:
        now = time.monotonic()
        busy_since = self._busy_since
        if busy_since is not None:
            if (session.at_door or session.going_round) and now >= busy_since + _LINGER:
                session.hand_over()
            session.next_try = now + _ROUND if session.going_round else now
        elif session.at_door:
            if session.rushed():
                session.go_round()
        elif now >= session.next_try:
            if session.going_round:
                session.try_to_stand(dry=now - self._found_at > _DRY)
                self._on_work()
            elif session.try_door():
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
        self._rounds = _ROUNDS[0]
        self._rounds_until = 0.0
        self._rounds_first = False
        self._rushes: deque[int] = deque(maxlen=3)
        self._suspicious = False
        self._looked_at = 0.0
        self._ringer, self._rung_at = 0, 0.0
        self._stands_since = 0.0
        self.at_door = False
        self.going_round = False
        self.next_try = 0.0
        self.next_pulse = time.monotonic()
        # What a crash loses of our rings is no loss, and nobody should wait until the disk has it.
        self._ask(b"set synchronous_commit to off")
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
        """Take the place at the door if it is free, else go round if nobody does; whether one must look for work now.

        One must: a job that was committed before the door was taken has not rung, nor will one whose producer holds the
        door open with its transaction.
        """
        stand = (
            b"" if self._rounds_first else b" when pg_try_advisory_lock(" + self._door + b", 1) then 'stand'"
        )
        self._rounds_first = False
        place = self._ask(
            b"select case when exists (select from pg_locks where locktype = 'advisory' and mode = 'ExclusiveLock'"
            b" and granted and objsubid = 2 and objid in (1, 2) and classid = ((("
            + self._door
            + b")::bigint + 4294967296) % 4294967296)::oid"
            + b" and database = (select oid from pg_database where datname = current_database())) then 'covered'"
            + stand
            + b" when pg_try_advisory_lock("
            + self._door
            + b", 2) then 'round' else 'covered' end"
        )
        now = time.monotonic()
        if place == b"stand":
            self._stand(now)
        elif place == b"round":
            self._start_rounds(now)
        else:
            self.next_try = now + _COVERED
        return place != b"covered"

    def rushed(self) -> bool:
        """Whether producers wait for each other: who rings holds one lock of the server until its commit is done."""
        now = time.monotonic()
        span, pause = _SUSPICION
        if not self._suspicious or now < self._looked_at + pause:
            return False
        if now > self._looked_at + span:
            self._rushes.clear()
        self._suspicious, self._looked_at = False, now
        # The lock of NOTIFY: on no database (0) in particular.
        found = self._ask(
            b"select count(*) from pg_locks where locktype = 'object' and database = 0 and classid = 1262 and objid = 0"
            b" and mode = 'AccessExclusiveLock' and not granted"
        )
        self._rushes.append(int(found or 0))
        return sum(self._rushes) >= _RUSH

    def go_round(self) -> None:
        """From the door."""
        now = time.monotonic()
        self._rounds = _ROUNDS[0] if now > self._stands_since + _CALM else min(2 * self._rounds, _ROUNDS[1])
        # Others must not find the place empty in between.
        taken = self._ask(
            b"select pg_try_advisory_lock(" + self._door + b", 2), pg_advisory_unlock(" + self._door + b", 1)"
        )
        self.at_door = False
        if taken == b"t":
            self._start_rounds(now)
        else:
            self.next_try = now + _COVERED

    def try_to_stand(self, *, dry: bool) -> None:
        """Go on with the rounds, or stand at the door again: when they find nothing, and from time to time.

        The door can be had only while no producer is inside, so that a rush does not end because somebody tries.
        """
        now = time.monotonic()
        if not dry:
            self._crowd = _CROWDED[0]
        if dry or now >= self._rounds_until:
            if self._ask(b"select pg_try_advisory_lock(" + self._door + b", 1)") == b"t":
                self._ask(b"select pg_advisory_unlock(" + self._door + b", 2)")
                self.going_round = False
                self._stand(now)
                return
            self._rounds_until = now + _ROUNDS[0]
        self.next_try = now + (self._crowd if dry else _ROUND)
        if dry:
            self._crowd = min(2 * self._crowd, _CROWDED[1])

    def hand_over(self) -> None:
        """Leave the place to another idle worker."""
        number, told = (b"2", b"round") if self.going_round else (b"1", b"door")
        self._rounds_first = self.going_round
        self.at_door = self.going_round = False
        self._ask(
            b"select pg_advisory_unlock(" + self._door + b", " + number + b"),"
            b" pg_notify('" + self._channel + b"', '" + told + b"')"
        )

    def _stand(self, now: float) -> None:
        self.at_door, self._stands_since = True, now
        self._suspicious = False
        self._rushes.clear()

    def _start_rounds(self, now: float) -> None:
        self.going_round = True
        self._crowd = _CROWDED[0]
        self._rounds_until = now + self._rounds
        self.next_try = now + _ROUND

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
        connection = self._connection.pgconn
        while (notify := connection.notifies()) is not None:
            if notify.relname == self._own:
                self._heard = True
            elif notify.be_pid == connection.backend_pid:
                pass  # what one has told the others
            elif notify.extra:
                self._rounds_first = notify.extra == b"round"
                self.next_try = 0.0
            else:
                self._rung = True
                self._note(notify.be_pid)

    def _note(self, ringer: int) -> None:
        now = time.monotonic()
        if ringer != self._ringer and now < self._rung_at + _SUSPICION[0]:
            self._suspicious = True
        self._ringer, self._rung_at = ringer, now


def _readable(descriptors: list[int], seconds: float) -> set[int]:
    """Those that have something to read, or have failed, within the time."""
    # poll and not select: a web server that embeds a worker may have more than 1,024 files open.
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    return {found for found, _ in poll.poll(max(0.0, seconds) * 1000)}
