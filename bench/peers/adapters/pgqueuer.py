"""pgqueuer on PostgreSQL: asyncpg, uvloop, batches of 500, durable tables; the settings that were best for it."""

import asyncio
import os
import signal
import struct
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import uvloop
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.queries import Queries

from bench.peers.adapter import Adapter, chunks, record, run_program, url

NUMBER = struct.Struct("d")


class Queue(Adapter):
    package, settings = "pgqueuer", "asyncpg, uvloop, batch_size 500, durable tables"

    async def open(self) -> None:
        place = urlsplit(url())
        os.environ.update(
            PGHOST=place.hostname or "",
            PGPORT=str(place.port),
            PGUSER=place.username or "",
            PGDATABASE=place.path.lstrip("/"),
        )
        await asyncio.to_thread(run_program, "-m", "pgqueuer", "install")
        self.connection = await asyncpg.connect(url())
        self.queries = Queries(AsyncpgDriver(self.connection))

    async def enqueue(self, number: float) -> None:
        await self.queries.enqueue("noop", NUMBER.pack(number))

    async def enqueue_many(self, numbers: Sequence[float]) -> None:
        for chunk in chunks(numbers):
            payloads: list[bytes | None] = [NUMBER.pack(number) for number in chunk]
            await self.queries.enqueue(["noop"] * len(chunk), payloads, [0] * len(chunk))

    async def unfinished(self) -> int:
        return int(await self.connection.fetchval("SELECT count(*) FROM pgqueuer"))


async def run() -> None:
    queue = PgQueuer(AsyncpgDriver(await asyncpg.connect(url())))

    @queue.entrypoint("noop")
    async def noop(job: Any) -> None:
        record(NUMBER.unpack(job.payload)[0])

    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, queue.shutdown.set)
    await queue.run(batch_size=500)


def work() -> None:
    uvloop.run(run())


QUEUE = Queue
