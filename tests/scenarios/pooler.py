"""A pooler in transaction mode, as PgBouncer is one, but mean: each transaction gets a connection chosen at random.

Speaks just enough of PostgreSQL's protocol for that. Session state (LISTEN, session locks, prepared statements, SET)
thus stays behind on some connection; notifications reach nobody.
"""

import random
import socket
import struct
import threading
from contextlib import suppress
from typing import Final

_SSL: Final = 80877103
_GSS: Final = 80877104
_CANCEL: Final = 80877102


KEY: Final = b"K" + struct.pack("!iii", 12, 2_000_000_000, 1)


class Closed(Exception):
    """The other side is gone."""


class Pooler:
    """Listens on 127.0.0.1 and shares at most `size` connections to the server on `port` among all its clients."""

    def __init__(self, port: int, size: int = 4, seed: int = 1) -> None:
        self._target = port
        self._size = size
        self._chance = random.Random(seed)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._free: list[socket.socket] = []
        self._opened: list[socket.socket] = []
        self._clients: list[socket.socket] = []
        self._changed = threading.Condition()
        self._greeting = b""
        self.switches = 0
        """How often a client got another connection than for its transaction before."""
        self._thread = threading.Thread(target=self._accept, name="pooler", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for one in [*self._clients, *self._opened]:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        self._thread.join(timeout=5)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._clients.append(client)
                threading.Thread(target=self._serve, args=(client,), name="pooled", daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        server: socket.socket | None = None
        last: socket.socket | None = None
        try:
            startup = _startup(client)
            if startup is None:
                return
            self._welcome(client, startup)
            while True:
                kind, message = _message(client)
                if kind == b"X":
                    return
                if server is None:
                    server = self._take()
                    self.switches += last is not None and last is not server
                    last = server
                server.sendall(message)
                if kind in {b"Q", b"S", b"F"} and _answer(server, client):
                    self._give_back(server)
                    server = None
        except (Closed, OSError):
            pass
        finally:
            client.close()
            if server is not None:
                # In the middle of a transaction: PgBouncer closes such a connection, too.
                self._drop(server)

    def _welcome(self, client: socket.socket, startup: bytes) -> None:
        with self._changed:
            if not self._greeting:
                server = self._connect()
                server.sendall(startup)
                self._greeting = _until_ready(server)
                self._startup = startup
                self._opened.append(server)
                self._free.append(server)
        client.sendall(self._greeting)

    def _take(self) -> socket.socket:
        with self._changed:
            if len(self._opened) < self._size:
                server = self._connect()
                server.sendall(self._startup)
                _until_ready(server)
                self._opened.append(server)
                return server
            while not self._free:
                self._changed.wait()
            return self._free.pop(self._chance.randrange(len(self._free)))

    def _connect(self) -> socket.socket:
        server = socket.create_connection(("127.0.0.1", self._target))
        server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return server

    def _give_back(self, server: socket.socket) -> None:
        with self._changed:
            self._free.append(server)
            self._changed.notify()

    def _drop(self, server: socket.socket) -> None:
        with self._changed:
            self._opened.remove(server)
            self._changed.notify()
        server.close()


def _startup(client: socket.socket) -> bytes | None:
    """The client's first real message; encryption is declined, a cancel request is ignored."""
    while True:
        head = _exactly(client, 8)
        length, code = struct.unpack("!ii", head)
        rest = _exactly(client, length - 8)
        if code in {_SSL, _GSS}:
            client.sendall(b"N")
        elif code == _CANCEL:
            return None
        else:
            return head + rest


def _until_ready(server: socket.socket) -> bytes:
    said = b""
    while True:
        kind, message = _message(server)
        # A pooler has cancel keys of its own, and no backend that it could name.
        said += KEY if kind == b"K" else message
        if kind == b"E":
            raise Closed(said.decode(errors="replace"))
        if kind == b"Z":
            return said


def _answer(server: socket.socket, client: socket.socket) -> bool:
    """Pass on everything up to the end of the statement; whether the transaction is over, too."""
    while True:
        kind, message = _message(server)
        if kind != b"A":
            client.sendall(message)
        if kind == b"Z":
            return message[-1:] == b"I"


def _message(source: socket.socket) -> tuple[bytes, bytes]:
    head = _exactly(source, 5)
    (length,) = struct.unpack("!i", head[1:])
    return head[:1], head + _exactly(source, length - 4)


def _exactly(source: socket.socket, count: int) -> bytes:
    got = b""
    while len(got) < count:
        part = source.recv(count - len(got))
        if not part:
            raise Closed
        got += part
    return got
