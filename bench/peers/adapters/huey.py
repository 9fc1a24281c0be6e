"""Huey on SQLite (fsync on, WAL) or Redis, one thread. It takes a task off the queue before it runs it."""

import sys

from huey import RedisHuey, SqliteHuey

from bench.peers.adapter import Adapter, record, server, url

ON_SQLITE = server() == "sqlite"
if ON_SQLITE:
    huey = SqliteHuey("bench", filename=url().removeprefix("sqlite:///"), fsync=True, results=False)
else:
    huey = RedisHuey("bench", url=url(), results=False)


@huey.task()
def noop(number: float) -> None:
    record(number)


class Queue(Adapter):
    package, bulk, acknowledges = "huey", False, False
    settings = "1 thread, results off" + (", WAL, fsync=True, polls each 10 ms" if ON_SQLITE else "")

    def open(self) -> None:
        huey.flush()

    def enqueue(self, number: float) -> None:
        noop(number)

    def unfinished(self) -> int:
        return int(huey.pending_count())

    def worker(self) -> list[str]:
        polling = ["-d", "0.01", "-m", "0.01"] if ON_SQLITE else []
        consumer = [sys.executable, "-m", "huey.bin.huey_consumer", f"{__name__}.huey"]
        return [*consumer, "-w", "1", "-k", "thread", "-n", "-q", *polling]


QUEUE = Queue
