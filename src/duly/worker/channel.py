"""A two-way channel between a process and its parent: typed messages over a socket pair, length first.

Apart from stdin and stdout, which belong to handlers. Knows no message.
"""

import select
import socket
import struct
import threading
from typing import Any, Final, Generic, TypeVar

import msgspec

M = TypeVar("M")

_LENGTH: Final = struct.Struct("=I")
_CHUNK: Final = 65536


class Channel(Generic[M]):
    """Sends anything msgspec can encode; receives messages of one union of types. Any thread may call `send`."""

    def __init__(self, ends: socket.socket, receives: Any) -> None:
        self._socket = ends
        self._decoder: msgspec.msgpack.Decoder[M] = msgspec.msgpack.Decoder(receives)
        self._encoder = msgspec.msgpack.Encoder()
        self._lock = threading.Lock()
        self._buffer = bytearray()
        self.closed = False
        """The other side is gone."""

    @classmethod
    def inherited(cls, descriptor: int, receives: Any) -> "Channel[M]":
        """The end that this process was started with."""
        return cls(socket.socket(fileno=descriptor), receives)

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, message: msgspec.Struct) -> bool:
        """Blocks until it is handed to the kernel. False when the other side is gone."""
        data = self._encoder.encode(message)
        try:
            with self._lock:
                self._socket.sendall(_LENGTH.pack(len(data)) + data)
        except OSError:
            self.closed = True
            return False
        return True

    def receive(self, timeout: float | None) -> M | None:
        """The next message; None after `timeout` seconds, or at once when the other side is gone (see `closed`)."""
        message = self._take()
        if message is not None or self.closed:
            return message
        if not self.readable(timeout):
            return None
        self._fill()
        return self._take()

    def pending(self) -> list[M]:
        """What is there by now, without waiting."""
        while not self.closed and self.readable(0):
            self._fill()
        messages = []
        while (message := self._take()) is not None:
            messages.append(message)
        return messages

    def close(self) -> None:
        self._socket.close()

    def readable(self, timeout: float | None = 0) -> bool:
        """Whether something was sent, or the other side left."""
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return bool(poll.poll(None if timeout is None else max(0, timeout) * 1000))

    def _fill(self) -> None:
        try:
            data = self._socket.recv(_CHUNK)
        except OSError:
            data = b""
        if data:
            self._buffer += data
        else:
            self.closed = True

    def _take(self) -> M | None:
        if len(self._buffer) < _LENGTH.size:
            return None
        (length,) = _LENGTH.unpack_from(self._buffer)
        end = _LENGTH.size + length
        if len(self._buffer) < end:
            return None if self.closed or not self._more(end) else self._take()
        message = self._decoder.decode(bytes(self._buffer[_LENGTH.size : end]))
        del self._buffer[:end]
        return message

    def _more(self, end: int) -> bool:
        """The rest of a message whose beginning is here; its sender is in the middle of sendall."""
        while len(self._buffer) < end and not self.closed:
            self._fill()
        return len(self._buffer) >= end
