"""Oban for Python, the open-source edition, on PostgreSQL: uvloop, 500 slots, finished rows kept as it always does."""

import asyncio
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import oban
import psycopg
import uvloop

from bench.peers.adapter import Adapter, chunks, record, run_program, url

SLOTS = 500


@oban.worker(queue="bench")
class Noop:
    async def process(self, job: Any) -> None:
        record(job.args["number"])


class Queue(Adapter):
    package, settings = "oban", f"open-source edition, uvloop, limit {SLOTS}, finished rows kept"

    async def open(self) -> None:
        command = str(Path(sys.executable).with_name("oban"))
        await asyncio.to_thread(run_program, "install", "--dsn", url(), program=command)
        self.client = oban.Oban(pool=await oban.Oban.create_pool(dsn=url()))
        await self.client.start()
        self.connection = await psycopg.AsyncConnection.connect(url(), autocommit=True)

    async def enqueue(self, number: float) -> None:
        await Noop.enqueue({"number": number})  # type: ignore[attr-defined]  # its decorator adds these

    async def enqueue_many(self, numbers: Sequence[float]) -> None:
        for chunk in chunks(numbers):
            await self.client.enqueue_many([Noop.new({"number": number}) for number in chunk])  # type: ignore[attr-defined]

    async def unfinished(self) -> int:
        waiting = "SELECT count(*) FROM oban_jobs WHERE state IN ('available', 'scheduled', 'executing', 'retryable')"
        row = await (await self.connection.execute(waiting)).fetchone()
        return int(row[0]) if row else 0


async def run() -> None:
    pool = await oban.Oban.create_pool(dsn=url(), max_size=10)
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    async with oban.Oban(pool=pool, queues={"bench": SLOTS}):
        await stopped.wait()
    await pool.close()


def work() -> None:
    uvloop.run(run())


QUEUE = Queue
