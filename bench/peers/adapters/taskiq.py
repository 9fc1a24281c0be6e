"""taskiq on Redis streams, which is its broker with acknowledgements: one worker process, 100 tasks at once."""

import sys
from collections.abc import Mapping
from typing import Any

from redis.asyncio import Redis
from taskiq_redis import RedisStreamBroker

from bench.peers.adapter import Adapter, record, url

broker = RedisStreamBroker(url(), consumer_id="0")


@broker.task(task_name="noop")
async def noop(number: float) -> None:
    record(number)


class Queue(Adapter):
    package, bulk = "taskiq", False
    settings = "RedisStreamBroker, 1 process, 100 async tasks, prefetch 100, ack when executed, no parsing"

    async def open(self) -> None:
        self.redis = Redis.from_url(url())
        await self.redis.flushdb()
        # It makes the group that `unfinished` asks for.
        await broker.startup()

    async def enqueue(self, number: float) -> None:
        await noop.kiq(number)

    async def unfinished(self) -> int:
        group: Mapping[str, Any] = (await self.redis.xinfo_groups("taskiq"))[0]
        return int(group["lag"] or 0) + int(group["pending"])

    def worker(self) -> list[str]:
        limits = ["--workers", "1", "--max-async-tasks", "100", "--max-prefetch", "100"]
        quiet = ["--ack-type", "when_executed", "--no-parse", "--log-level", "WARNING"]
        return [sys.executable, "-m", "taskiq", "worker", f"{__name__}:broker", *limits, *quiet]


QUEUE = Queue
