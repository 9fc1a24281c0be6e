"""awa on PostgreSQL: its vacuum-aware storage, one client, 400 workers on one queue, bulk by COPY of 10,000.

It is not asked what is left while it works: its count took minutes of the server's time. Its drain ends with the last
handler's start.
"""

import asyncio
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import awa

from bench.peers.adapter import Adapter, chunks, record, url

WORKERS = 400


@dataclass
class Noop:
    number: float


class Queue(Adapter):
    package, settings = "awa-pg", f"AsyncClient, {WORKERS} workers on one queue, queue storage, bulk by COPY"
    countable = False

    async def open(self) -> None:
        self.client = awa.AsyncClient(url())
        await self.client.migrate()
        # What it ships for high rates; migrating alone leaves the older storage in use.
        await self.client.install_queue_storage()

    async def enqueue(self, number: float) -> None:
        await self.client.insert(Noop(number), queue="bench")

    async def enqueue_many(self, numbers: Sequence[float]) -> None:
        for chunk in chunks(numbers, 10_000):
            await self.client.enqueue_many_copy([Noop(number) for number in chunk], queue="bench")


async def run() -> None:
    client = awa.AsyncClient(url(), max_connections=20)

    @client.task(Noop, queue="bench")
    async def noop(job: Any) -> None:
        record(job.args.number)

    await client.start([("bench", WORKERS)])
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    await stopped.wait()
    await client.shutdown()


def work() -> None:
    asyncio.run(run())


QUEUE = Queue
