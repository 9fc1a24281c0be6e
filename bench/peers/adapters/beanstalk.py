"""beanstalkd through greenstalk: one connection; the worker is the bare loop of reserve, run, delete."""

import json
from collections.abc import Callable
from urllib.parse import urlsplit

import greenstalk

from bench.peers.adapter import Adapter, record, url

TUBE = "bench"
HANDLERS: dict[str, Callable[[float], None]] = {"noop": record}


def connect() -> greenstalk.Client:
    place = urlsplit(url())
    return greenstalk.Client((place.hostname, place.port), use=TUBE, watch=TUBE)


class Queue(Adapter):
    package, bulk = "greenstalk", False
    settings = "one connection, loop of reserve, run, delete; binlog synced each 50 ms"

    def open(self) -> None:
        self.client = connect()
        while True:
            try:
                self.client.delete(self.client.reserve(timeout=0))
            except greenstalk.TimedOutError:
                return

    def enqueue(self, number: float) -> None:
        self.client.put(json.dumps(["noop", number]), ttr=60)

    def unfinished(self) -> int:
        tube = self.client.stats_tube(TUBE)
        return int(tube["current-jobs-ready"]) + int(tube["current-jobs-reserved"])


def work() -> None:
    client = connect()
    while True:
        job = client.reserve()
        name, number = json.loads(job.body)
        HANDLERS[name](number)
        client.delete(job)


QUEUE = Queue
