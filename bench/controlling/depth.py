"""A queue with a bound on its depth: what does an enqueue into it cost beside one into a queue without?

Both are queues of one App on one database, and take turns.
"""

import statistics
from collections.abc import Callable
from typing import Any

from bench.controlling import tasks
from bench.controlling.place import Make, Place
from bench.controlling.report import Report, number
from duly import App, Task
from tests.services import PostgresServer

MOST = 1.05
_MANY = 1_000
_SLICES = 20


def run(
    store: str, make: Make, server: PostgresServer | None, report: Report, scale: float, turns: int
) -> None:
    with make() as place:
        app = tasks.jobs.at(place.url)
        last = tasks.noop.using(queue=tasks.beyond)
        app.enqueue_many(last.draft(number) for number in range(_MANY))
        # A turn lasts as long as a producer trusts what it knows: a shorter one would begin with a look each time.
        one, many = max(10, int(4_000 * scale)), max(1, int(40 * scale))
        for what, calls, size in (("one job a call", one, 1), ("1,000 jobs a call", many, _MANY)):
            watched = report.watch(server)
            pairs = [_turn(place, app, calls, size, deep_first=bool(turn % 2)) for turn in range(turns + 1)]
            report.saw(watched)
            # The first still connects.
            told = pairs[1:]
            without, with_it = (statistics.median(pair[side] for pair in told) for side in (0, 1))
            report.row(
                store,
                f"enqueue of {what} into a queue with max_depth",
                (f"{number(without)} µs", f"{number(with_it)} µs"),
                statistics.median(deep / free for free, deep in told),
                MOST,
            )
        app.close()


def _turn(place: Place, app: App, calls: int, size: int, *, deep_first: bool) -> tuple[float, float]:
    """Processor microseconds a job, without and with the bound, in slices by turns: what a row costs a server changes
    from one second to the next."""
    spent = {False: 0.0, True: 0.0}
    each = max(1, calls // _SLICES)
    for _ in range(calls // each):
        for bounded in (True, False) if deep_first else (False, True):
            spent[bounded] += place.cost(_enqueue(app, tasks.deep if bounded else tasks.free, each, size)).cpu
    jobs = calls // each * each * size
    return spent[False] / jobs * 1e6, spent[True] / jobs * 1e6


def _enqueue(app: App, task: Task[[int], Any], calls: int, size: int) -> Callable[[], None]:
    one = task.using(app=app)

    def enqueue() -> None:
        for call in range(calls):
            if size == 1:
                one.enqueue(call)
            else:
                app.enqueue_many(task.draft(number) for number in range(size))

    return enqueue
