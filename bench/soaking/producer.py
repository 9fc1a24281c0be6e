"""One producer in a process of its own: jobs are due at fixed times whatever the database does (an open loop).

Every tick it enqueues what is due in one call; after a stall that is more. A repeated request is a call of its own.
Its last line is what it did, as JSON.
"""

import argparse
import json
import time

from bench.soaking.tasks import Kind, draft, jobs, kind_of
from duly import Draft, Outcome

MOST = 1_000
"""Jobs of one call, however late they are."""


class Producer:
    """Jobs number place, place + of, place + 2 * of, …"""

    def __init__(self, rate: float, place: int, of: int) -> None:
        self.rate, self.place, self.of = rate, place, of
        self.k = 0
        self.created = 0
        self.duplicates = 0
        self.calls = 0
        self.latest = 0.0
        self.cpu = 0.0
        self._before: Draft[object] | None = None

    def run(self, began: float, seconds: float, tick: float) -> None:
        while True:
            now = time.monotonic()
            due = min(int((min(now, began + seconds) - began) * self.rate) + 1, self.k + MOST)
            if due > self.k:
                self._enqueue(began, due, now)
            elif now >= began + seconds:
                return
            wait = max(began + self.k / self.rate, now + tick) - time.monotonic()
            if wait > 0:
                time.sleep(wait)

    def _enqueue(self, began: float, upto: int, now: float) -> None:
        self.latest = max(self.latest, now - began - self.k / self.rate)
        drafts: list[Draft[object]] = []
        repeats: list[Draft[object]] = []
        for k in range(self.k, upto):
            if kind_of(k) is Kind.repeat:
                assert self._before is not None
                repeats.append(self._before)
            else:
                self._before = draft(k, k * self.of + self.place, began + k / self.rate)
                drafts.append(self._before)
        for some in (drafts, repeats):
            if some:
                self.calls += 1
                for stored in jobs.enqueue_many(some):
                    self.created += stored.outcome is Outcome.created
                    self.duplicates += stored.outcome is Outcome.duplicate
        self.k = upto


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=float, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--place", type=int, required=True)
    parser.add_argument("--of", type=int, required=True)
    parser.add_argument("--began", type=float, required=True, help="on the machine's monotonic clock")
    parser.add_argument("--tick", type=float, default=0.005)
    options = parser.parse_args()
    producer = Producer(options.rate, options.place, options.of)
    try:
        producer.run(options.began, options.seconds, options.tick)
    finally:
        producer.cpu = time.process_time()
        told = {name: value for name, value in vars(producer).items() if not name.startswith("_")}
        print(json.dumps(told), flush=True)
        jobs.close()


if __name__ == "__main__":
    main()
