"""What `duly runs` prints. Exact lines."""

from __future__ import annotations

from datetime import timedelta

from duly.core.lifecycle import Event
from duly.testing.conformance.bench import Bench, ended
from tests.cli.conftest import Terminal

SECOND = timedelta(seconds=1)
QUEUES = ("mail",)


def fold(bench: Bench) -> None:
    bench.clock.advance(timedelta(minutes=2))
    while bench.store.tallies.fold():
        pass


def test_runs_shows_each_task_and_all_together(bench: Bench, duly: Terminal) -> None:
    worker = bench.worker("send", "resize", queues=QUEUES)
    fold(bench)
    for task in ("send", "send", "resize"):
        bench.put(task, queue="mail")
    for _ in range(3):
        bench.end(worker, ended(bench.claim_one(worker, queues=QUEUES), Event.complete, elapsed=SECOND))
    bench.put("send", queue="mail")
    job = bench.claim_one(worker, queues=QUEUES)
    bench.end(worker, ended(job, Event.interrupt, elapsed=SECOND, reason="SIGTERM"))
    job = bench.claim_one(worker, queues=QUEUES)
    bench.end(worker, ended(job, Event.complete, elapsed=SECOND))
    fold(bench)

    answer = duly("runs")

    assert answer.lines == [
        "TASK    COMPLETED  RUNS EACH  FAILED  LOST  TIMEOUT  REDELIVERED  REDRIVEN  SUPPRESSED  SECOND RUNS",
        "send            3     1.3333       0     0        0            1         0           0  33 % = 24 a day",
        "resize          1          1       0     0        0            0         0           0  none",
        "all             4       1.25       0     0        0            1         0           0  25 % = 24 a day",
        "from 2030-05-01 11:03:00 to 12:03:00 UTC",
    ]


def test_runs_says_that_nothing_is_counted_yet(duly: Terminal) -> None:
    assert duly("runs").lines == [
        "nothing is counted yet: a worker counts what has ended, a minute or two behind"
    ]
