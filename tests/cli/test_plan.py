"""`duly plan`, and what `status` and `inspect.scale` say of a queue that grows."""

from __future__ import annotations

from datetime import timedelta

import pytest

from duly.app import App
from duly.core.job import Incarnation
from duly.core.lifecycle import Event
from duly.core.registration import QueuePolicy
from duly.testing.conformance.bench import Bench, ended
from tests.cli.conftest import Terminal

QUEUES = ("mail",)


@pytest.mark.parametrize(
    ("flags", "lines"),
    [
        (("--backlog", "1e6", "--rate", "500/s"), ["2,000 s (33 min)"]),
        (("--backlog", "1e6", "--rate", "500/s", "--arrivals", "250/s"), ["4,000 s (67 min)"]),
        (
            ("--backlog", "1e6", "--rate", "500/s", "--arrivals", "600/s"),
            ["never: it grows by 100/s, needs 2 workers"],
        ),
        (
            ("--backlog", "40,000", "--rate", "90/s", "--workers", "3", "--within", "5m"),
            ["444 s (7 min)", "in 5 min: 5 workers"],
        ),
        (("--backlog", "30", "--rate", "1/s", "--arrivals", "0/s"), ["30 s"]),
    ],
)
def test_plan_prints_how_long_or_how_many(flags: tuple[str, ...], lines: list[str], duly: Terminal) -> None:
    assert duly("plan", *flags).lines == lines


@pytest.mark.parametrize(
    ("flags", "error"),
    [
        (("--backlog", "many", "--rate", "5/s"), "is no number of jobs; write 40000, 40,000 or 1e6"),
        (("--backlog", "1e6", "--rate", "500"), "write one such as '20/s'"),
        (("--backlog", "1e6", "--rate", "max"), "is no speed"),
        (("--backlog", "1e6"), "give --backlog and --rate"),
        (("--from-live", "--rate", "5/s"), "leave those out"),
        (("--backlog", "1e6", "--rate", "5/s", "--queue", "mail"), "add --from-live"),
    ],
)
def test_plan_says_what_to_write(flags: tuple[str, ...], error: str, duly: Terminal) -> None:
    answer = duly("plan", *flags)

    assert answer.code == 2
    assert error in answer.err


@pytest.fixture
def growing(bench: Bench) -> Incarnation:
    """A queue of 100 to which 4/s come while one process does 2/s, as samples tell."""
    bench.declare(queues=[QueuePolicy("mail", max_depth=1_000, wait_target=timedelta(seconds=30))])
    worker = bench.worker("ok", queues=QUEUES)
    bench.put(queue="mail")
    sweep(bench)
    for _ in range(6):
        bench.clock.advance(timedelta(seconds=10))
        bench.put_many(40, queue="mail")
        jobs = bench.claim(worker, 20, queues=QUEUES)
        bench.end(worker, *(ended(job, Event.complete) for job in jobs))
        sweep(bench)
    return worker


def sweep(bench: Bench) -> None:
    """Keep a sample, as workers do."""
    bench.store.upkeep.sweep(timedelta(hours=1), 3, timedelta(minutes=1))


def test_plan_reads_the_queues_as_they_are(bench: Bench, growing: Incarnation, duly: Terminal) -> None:
    answer = duly("plan", "--from-live", "--queue", "mail", "--within", "5m")

    assert answer.lines == [
        "mail: 121 jobs, 4/s in, 2/s out, 1 worker: never: it grows by 2/s, needs 3 workers",
        "  in 5 min: 3 workers",
    ]


def test_status_says_when_a_growing_queue_is_full_and_what_would_help(
    bench: Bench, growing: Incarnation, duly: Terminal
) -> None:
    lines = duly("status").lines

    (sentence,) = [line for line in lines if line.startswith("mail: 121")]
    assert sentence.endswith(
        "; never empty at 2/s out and 4/s in; at this slope full in 7 min 20 s, then new work is rejected; "
        "2 more processes would hold 30 s again in 10 min"
    )


def test_a_scaler_reads_the_same_numbers_flat(bench: Bench, growing: Incarnation, sqlite_url: str) -> None:
    app = App(sqlite_url)
    app.client.clock = bench.clock

    found = app.inspect.scale("mail")
    app.close()

    assert (found.ready, found.workers, found.in_per_s, found.out_per_s) == (121, 1, 4.0, 2.0)
    assert found.workers_needed == 5  # 4/s, and 121 within 30 s, at 2/s each
    assert found.full_in == timedelta(minutes=7, seconds=19.5)
    assert "at this slope full in 7 min 20 s" in found.sentence
