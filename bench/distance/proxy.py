"""A TCP proxy that delays what it passes on: so many milliseconds each way, in order, at whatever bandwidth there is.

Any number of pieces is under way at once, as on a long line; only what is read but not yet due waits here, in bounded
memory. It prints its port as its first line, and ends with whoever started it.
"""

import argparse
import asyncio
import os
import selectors
import socket
import time
from collections import deque
from contextlib import suppress

PIECE = 64 * 1024
UNDER_WAY = 8 * 1024 * 1024
"""Bytes of one direction of one connection; above, the sender waits."""


class Direction:
    """One direction of one connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seconds: float) -> None:
        self._reader, self._writer, self._seconds = reader, writer, seconds
        self._under_way: deque[tuple[float, bytes]] = deque()
        self._size = 0
        self._more = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()

    async def carry(self) -> None:
        """Until one end hangs up; then the other end is told, as late as the bytes before it."""
        receiving = asyncio.create_task(self._receive())
        try:
            await self._send()
        finally:
            receiving.cancel()
            with suppress(asyncio.CancelledError, OSError):
                await receiving

    async def _receive(self) -> None:
        data = b"?"
        while data:
            try:
                data = await self._reader.read(PIECE)
            except OSError:
                data = b""
            self._under_way.append((time.monotonic() + self._seconds, data))
            self._size += len(data)
            self._more.set()
            if self._size > UNDER_WAY:
                self._room.clear()
                await self._room.wait()

    async def _send(self) -> None:
        while True:
            while not self._under_way:
                self._more.clear()
                await self._more.wait()
            due, data = self._under_way.popleft()
            if (left := due - time.monotonic()) > 0:
                await asyncio.sleep(left)
            if not data:
                with suppress(OSError):
                    self._writer.write_eof()
                return
            self._size -= len(data)
            self._room.set()
            try:
                self._writer.write(data)
                await self._writer.drain()
            except OSError:
                return


class Proxy:
    """Listens on a port of its own and passes on to one server."""

    def __init__(self, host: str, port: int, seconds: float) -> None:
        self._host, self._port, self._seconds = host, port, seconds

    async def start(self) -> asyncio.Server:
        return await asyncio.start_server(self._connected, "127.0.0.1", 0, limit=PIECE)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, thither = await asyncio.open_connection(self._host, self._port, limit=PIECE)
        except OSError:
            writer.close()
            return
        for one in (writer, thither):
            _at_once(one)
        try:
            await asyncio.gather(
                Direction(reader, thither, self._seconds).carry(),
                Direction(there, writer, self._seconds).carry(),
            )
        finally:
            for one in (writer, thither):
                one.close()


def _at_once(writer: asyncio.StreamWriter) -> None:
    """Small pieces are not held back to be sent with others: the delay is ours alone."""
    writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def precise_loop() -> asyncio.AbstractEventLoop:
    """A loop whose timers are not rounded up to whole milliseconds, as those of epoll are."""
    return asyncio.SelectorEventLoop(selectors.SelectSelector())


async def _serve(proxy: Proxy) -> None:
    server = await proxy.start()
    print(server.sockets[0].getsockname()[1], flush=True)
    owner = os.getppid()
    async with server:
        while os.getppid() == owner:  # noqa: ASYNC110  # nothing tells of it
            await asyncio.sleep(0.5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--to", required=True, help="HOST:PORT")
    parser.add_argument("--ms", type=float, required=True, help="each way")
    options = parser.parse_args()
    host, _, port = options.to.rpartition(":")
    with asyncio.Runner(loop_factory=precise_loop) as runner:
        runner.run(_serve(Proxy(host, int(port), options.ms / 1000)))


if __name__ == "__main__":
    main()
