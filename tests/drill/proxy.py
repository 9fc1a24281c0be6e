"""A TCP proxy on 127.0.0.1 that can fall silent: bytes neither pass nor is anything closed, as behind a dead switch."""

import selectors
import socket
import threading
from contextlib import suppress


class Proxy:
    """Forwards every connection to `port`, in one thread, until closed."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ, None)
        self._silent: set[socket.socket] = set()
        self._pairs: dict[socket.socket, socket.socket] = {}
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="proxy", daemon=True)
        self._thread.start()

    def hang(self) -> int:
        """Let every connection that is open now fall silent for good; new ones work. How many fell silent."""
        with self._lock:
            fresh = set(self._pairs) - self._silent
            self._silent |= fresh
            return len(fresh) // 2

    def end_hang(self) -> None:
        """Close the silent connections, as a firewall does that forgot them."""
        with self._lock:
            silent, self._silent = self._silent, set()
        for one in silent:
            self._drop(one)

    def close(self) -> None:
        """Stop forwarding and close everything."""
        self._closed.set()
        self._thread.join(timeout=5)
        for one in [*self._pairs, self._listener]:
            with suppress(OSError):
                one.close()

    def _run(self) -> None:
        while not self._closed.is_set():
            for key, _ in self._selector.select(timeout=0.05):
                if key.fileobj is self._listener:
                    self._accept()
                elif isinstance(key.fileobj, socket.socket):
                    self._forward(key.fileobj)

    def _accept(self) -> None:
        client, _ = self._listener.accept()
        try:
            server = socket.create_connection(("127.0.0.1", self._target), timeout=2)
        except OSError:
            client.close()
            return
        with self._lock:
            self._pairs[client], self._pairs[server] = server, client
        for one in (client, server):
            one.setblocking(True)
            self._selector.register(one, selectors.EVENT_READ, None)

    def _forward(self, source: socket.socket) -> None:
        with self._lock:
            silent = source in self._silent
            target = self._pairs.get(source)
        if target is None:
            return
        try:
            data = source.recv(65536)
            if silent and data:
                return
            if data:
                target.sendall(data)
                return
        except OSError:
            pass
        self._drop(source)

    def _drop(self, one: socket.socket) -> None:
        with self._lock:
            other = self._pairs.pop(one, None)
            if other is not None:
                self._pairs.pop(other, None)
            self._silent -= {one} | ({other} if other else set())
        for end in (one, other):
            if end is not None:
                with suppress(KeyError, ValueError):
                    self._selector.unregister(end)
                with suppress(OSError):
                    end.close()
