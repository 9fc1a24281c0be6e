"""Celery on RabbitMQ: durable queue, persistent messages, late acknowledgement, eight threads, prefetch 64 each."""

import sys

from celery import Celery

from bench.peers.adapter import Adapter, record, url

NAME = "bench"
app = Celery("bench", broker=url())
app.conf.update(
    task_default_queue=NAME,
    task_ignore_result=True,
    task_acks_late=True,
    worker_prefetch_multiplier=64,
    worker_hijack_root_logger=False,
    broker_connection_retry_on_startup=True,
)


@app.task(name="noop")
def noop(number: float) -> None:
    record(number)


class Queue(Adapter):
    package, bulk = "celery", False
    settings = (
        "threads:8, acks_late, prefetch 64, no results, gossip, mingle or heartbeat; no publisher confirms"
    )

    def open(self) -> None:
        with app.connection_for_write() as connection:
            app.amqp.queues[NAME](connection.default_channel).declare()
        app.control.purge()

    def enqueue(self, number: float) -> None:
        noop.delay(number)

    def unfinished(self) -> int:
        """Without those on their way to the worker: RabbitMQ counts only what waits."""
        with app.connection_for_read() as connection:
            return int(connection.default_channel.queue_declare(NAME, passive=True).message_count)

    def worker(self) -> list[str]:
        quiet = ["-l", "WARNING", "--without-gossip", "--without-mingle", "--without-heartbeat"]
        command = [sys.executable, "-m", "celery", "-A", __name__, "worker", "-Q", NAME]
        return [*command, "-P", "threads", "-c", "8", *quiet]


QUEUE = Queue
