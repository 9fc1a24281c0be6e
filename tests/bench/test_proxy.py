"""The delaying proxy of bench/remote.py: late by no less than was asked, in order, whole, and without losing an end."""

from __future__ import annotations

import asyncio
import time

import pytest

from bench.distance.proxy import UNDER_WAY, Proxy, precise_loop

MS = 20.0


async def _echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.write(b"end")
    writer.close()


async def _through(ms: float, data: bytes) -> tuple[bytes, float]:
    """What comes back of it through the proxy and an echo, and after how long the first byte does."""
    echo = await asyncio.start_server(_echo, "127.0.0.1", 0)
    server = await Proxy("127.0.0.1", echo.sockets[0].getsockname()[1], ms / 1000).start()
    reader, writer = await asyncio.open_connection("127.0.0.1", server.sockets[0].getsockname()[1])
    began = time.monotonic()

    async def send() -> None:
        writer.write(data)
        await writer.drain()
        writer.write_eof()

    sending = asyncio.create_task(send())
    first = await reader.read(1)
    late = time.monotonic() - began
    answer = first + await reader.read(-1)
    await sending
    writer.close()
    for one in (server, echo):
        one.close()
        await one.wait_closed()
    return answer, late


def run(ms: float, data: bytes) -> tuple[bytes, float]:
    with asyncio.Runner(loop_factory=precise_loop) as runner:
        return runner.run(_through(ms, data))


def test_each_way_is_late_by_what_was_asked() -> None:
    answer, late = run(MS, b"ping")

    assert answer == b"pingend"
    assert late >= 2 * MS / 1000


def test_a_hangup_arrives_after_the_bytes_before_it() -> None:
    answer, _ = run(MS, b"x" * 1000)

    assert answer == b"x" * 1000 + b"end"


@pytest.mark.parametrize("size", [1_000_000, UNDER_WAY + 1_000_000])
def test_much_arrives_whole_and_in_order(size: int) -> None:
    data = b"".join(number.to_bytes(4, "big") for number in range(size // 4))

    answer, _ = run(1.0, data)

    assert len(answer) == len(data) + 3
    assert answer == data + b"end"


def test_a_server_that_is_not_there_ends_the_connection() -> None:
    async def ask() -> bytes:
        server = await Proxy("127.0.0.1", 1, 0.001).start()
        reader, writer = await asyncio.open_connection("127.0.0.1", server.sockets[0].getsockname()[1])
        answer = await reader.read(-1)
        writer.close()
        server.close()
        return answer

    with asyncio.Runner(loop_factory=precise_loop) as runner:
        assert runner.run(ask()) == b""
