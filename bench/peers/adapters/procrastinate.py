"""Procrastinate on PostgreSQL: 50 jobs at once, successful ones deleted, notified by the database."""

import asyncio
from collections.abc import Sequence

import procrastinate
import psycopg

from bench.peers.adapter import Adapter, chunks, record, url

SLOTS = 50
app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=url(), min_size=2, max_size=20))


@app.task(name="noop", queue="bench")
async def noop(number: float) -> None:
    record(number)


class Queue(Adapter):
    package, settings = "procrastinate", f"concurrency {SLOTS}, delete_jobs=successful, LISTEN/NOTIFY"

    async def open(self) -> None:
        await app.open_async()
        await app.schema_manager.apply_schema_async()
        self.connection = await psycopg.AsyncConnection.connect(url(), autocommit=True)

    async def enqueue(self, number: float) -> None:
        await noop.defer_async(number=number)

    async def enqueue_many(self, numbers: Sequence[float]) -> None:
        for chunk in chunks(numbers):
            await noop.batch_defer_async(*({"number": number} for number in chunk))

    async def unfinished(self) -> int:
        waiting = "SELECT count(*) FROM procrastinate_jobs WHERE status IN ('todo', 'doing')"
        row = await (await self.connection.execute(waiting)).fetchone()
        return int(row[0]) if row else 0


async def run() -> None:
    async with app.open_async():
        await app.run_worker_async(queues=["bench"], concurrency=SLOTS, delete_jobs="successful")


def work() -> None:
    asyncio.run(run())


QUEUE = Queue
