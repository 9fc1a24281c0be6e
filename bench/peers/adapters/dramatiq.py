"""Dramatiq on Redis: one process with its default eight threads and middleware."""

import sys

import dramatiq
from dramatiq.brokers.redis import RedisBroker

from bench.peers.adapter import Adapter, record, url

broker = RedisBroker(url=url() or "redis://")
dramatiq.set_broker(broker)


@dramatiq.actor
def noop(number: float) -> None:
    record(number)


class Queue(Adapter):
    package, bulk = "dramatiq", False
    settings = "1 process, 8 threads, default middleware"

    def open(self) -> None:
        broker.client.flushdb()

    def enqueue(self, number: float) -> None:
        noop.send(number)

    def unfinished(self) -> int:
        redis = broker.client
        held = sum(redis.scard(key) for key in redis.keys("dramatiq:__acks__*default"))
        return int(redis.llen("dramatiq:default")) + int(held)

    def worker(self) -> list[str]:
        command = [sys.executable, "-m", "dramatiq", __name__]
        return [*command, "--processes", "1", "--threads", "8", "--skip-logging"]


QUEUE = Queue
