"""RQ on Redis: its worker without a fork per job, results not kept."""

import sys
from collections.abc import Sequence

from redis import Redis
from rq import Queue as RedisQueue

from bench.peers.adapter import Adapter, chunks, record, url

NAME = "bench"


def noop(number: float) -> None:
    record(number)


class Queue(Adapter):
    package, settings = "rq", "SimpleWorker (no fork per job), result_ttl=0"

    def open(self) -> None:
        self.redis = Redis.from_url(url())
        self.redis.flushdb()
        self.queue = RedisQueue(NAME, connection=self.redis)

    def enqueue(self, number: float) -> None:
        self.queue.enqueue(noop, number, result_ttl=0)

    def enqueue_many(self, numbers: Sequence[float]) -> None:
        for chunk in chunks(numbers):
            self.queue.enqueue_many(
                [RedisQueue.prepare_data(noop, (number,), result_ttl=0) for number in chunk]
            )

    def unfinished(self) -> int:
        return int(self.queue.count) + int(self.redis.zcard(f"rq:wip:{NAME}"))

    def worker(self) -> list[str]:
        command = [sys.executable, "-m", "rq.cli", "worker", "--url", url(), "--quiet"]
        return [*command, "-w", "rq.worker.SimpleWorker", NAME]


QUEUE = Queue
