"""Chancy on PostgreSQL: async executor. A worker fetches once a polling interval, so that its slots bound its rate."""

import asyncio
from collections.abc import Sequence

import chancy
import psycopg

from bench.peers.adapter import Adapter, chunks, record, url

SLOTS = 5_000


@chancy.job(queue="bench")
async def noop(*, number: float) -> None:
    record(number)


class Queue(Adapter):
    package, settings = "chancy", f"AsyncExecutor, concurrency {SLOTS}, polling each 1 s, notified on push"

    async def open(self) -> None:
        self.client = await chancy.Chancy(url()).__aenter__()
        await self.client.migrate()
        executor = chancy.Chancy.Executor.Async
        queue = chancy.Queue("bench", concurrency=SLOTS, executor=executor, polling_interval=1)
        await self.client.declare(queue, upsert=True)
        self.connection = await psycopg.AsyncConnection.connect(url(), autocommit=True)

    async def enqueue(self, number: float) -> None:
        await self.client.push(noop.job.with_kwargs(number=number))

    async def enqueue_many(self, numbers: Sequence[float]) -> None:
        for chunk in chunks(numbers):
            async for _ in self.client.push_many([noop.job.with_kwargs(number=number) for number in chunk]):
                pass

    async def unfinished(self) -> int:
        waiting = "SELECT count(*) FROM chancy_jobs WHERE state IN ('pending', 'running', 'retrying')"
        row = await (await self.connection.execute(waiting)).fetchone()
        return int(row[0]) if row else 0


async def run() -> None:
    async with chancy.Chancy(url()) as client, chancy.Worker(client) as worker:
        await worker.wait_for_shutdown()


def work() -> None:
    asyncio.run(run())


QUEUE = Queue
