"""What the bench says: the sentence names what really bounds, the rates are of what was timed."""

from __future__ import annotations

import click
import pytest
from msgspec.structs import replace

from duly.bench.report import Drain, Latency, Limits, Report, bounds, doubts
from duly.bench.run import drained
from duly.bench.timing import at_most, beside, quantile
from duly.cli.bench import lines

LOCAL = Report(
    store={"where": "sqlite:////data/jobs.db"},
    limits=Limits(
        round_trips_per_s=20_000, commits_per_s=1_000, unsynced_commits_per_s=10_000, bulk_rows_per_s=400_000
    ),
    single_per_s=800,
    bulk_per_s=100_000,
    drain=Drain(jobs=20_000, per_s=25_000, worker_cpu=0.97),
    latency=Latency(samples=100, p50_ms=1.2, p99_ms=6.0),
    seconds=58.0,
    cores=2,
    load=1.1,
    spread=0.04,
)


def test_a_slow_disk_is_named_with_what_a_commit_waits_for_it() -> None:
    assert bounds(LOCAL) == (
        "Single enqueues are bound by your disk's fsync: 0.90 ms of 1.25 ms a call; draining by Python: the worker "
        "process used 97% of a core for 25,000 jobs/s, and a second process helps where a core is free; a job starts "
        "1.2 ms after its enqueue (p50)."
    )


def test_a_far_database_is_bound_by_its_network() -> None:
    limits = Limits(
        round_trips_per_s=450, commits_per_s=400, unsynced_commits_per_s=440, bulk_rows_per_s=50_000
    )

    told = bounds(replace(LOCAL, limits=limits, single_per_s=390, drain=Drain(9_000, 9_000, 0.4)))

    assert "the network: 2.22 ms a round trip of 2.56 ms a call; so is draining, at 9,000 jobs/s" in told


def test_a_fast_disk_leaves_python() -> None:
    limits = replace(LOCAL.limits, commits_per_s=9_000)

    told = bounds(replace(LOCAL, limits=limits, single_per_s=3_000))

    assert told.startswith(
        "Single enqueues are bound by Python and duly's statement: 0.22 ms of 0.33 ms a call"
    )


def test_a_busy_server_is_named_where_neither_disk_nor_network_nor_python_explains_it() -> None:
    limits = Limits(
        round_trips_per_s=20_000, commits_per_s=500, unsynced_commits_per_s=510, bulk_rows_per_s=9_000
    )

    told = bounds(replace(LOCAL, limits=limits, single_per_s=480, drain=Drain(9_000, 2_000, 0.2)))

    assert "bound by the database's own work on a commit: 1.91 ms of 2.08 ms a call; so is draining" in told


def test_a_drain_that_waits_for_the_disk_says_so() -> None:
    told = bounds(replace(LOCAL, drain=Drain(9_000, 2_000, 0.2), single_per_s=300))

    assert "draining by your disk's fsync: its worker waited 80% of the time at 2,000 jobs/s" in told


def test_a_busy_or_noisy_machine_is_doubted() -> None:
    assert doubts(LOCAL) == []
    assert len(doubts(replace(LOCAL, load=7.5, spread=0.4))) == 2


def test_people_get_a_table_with_the_limit_beside_each_rate() -> None:
    head, *rows = [click.unstyle(line) for line in lines(LOCAL, quiet=False) if line]

    assert head.split() == ["WHAT", "DULY", "THE", "BARE", "LIMIT", "SHARE"]
    assert [cell.strip() for cell in rows[0].split("  ") if cell] == [
        "enqueue, one job a call",
        "800 jobs/s",
        "1,000 commits/s (1.00 ms)",
        "80%",
    ]
    assert rows[-1] == bounds(LOCAL)
    assert len(lines(LOCAL, quiet=True)) == 4


def test_what_check_would_say_of_the_database_is_said_here_too() -> None:
    told = lines(replace(LOCAL, warnings=("autovacuum is off",)), quiet=False)

    assert click.unstyle(told[-1]) == "warning: autovacuum is off"


def test_a_drain_counts_between_its_warm_up_and_its_last_job() -> None:
    slow_start = [(0.0, number * 0.5, 0.0) for number in range(10)]
    steady = [(0.0, 5.0 + number * 0.01, number * 0.005) for number in range(90)]

    found = drained(slow_start + steady)

    assert found.jobs == 100
    assert found.per_s == pytest.approx(101, rel=0.02)
    assert found.worker_cpu == pytest.approx(0.5, rel=0.02)


def test_acts_take_turns_and_one_that_has_had_enough_keeps_its_rate() -> None:
    order: list[str] = []

    def act(name: str, times: int) -> int:
        order.append(name)
        return times

    paces = beside(
        {"single": lambda: act("single", 1), "bulk": at_most(1000, lambda: act("bulk", 1000))},
        turns=3,
        seconds=0.0,
    )

    assert order == ["single", "bulk", "single", "single"]
    assert paces["bulk"].per_s > 0
    assert paces["single"].ms > 0


def test_quantiles_of_few_values_are_among_them() -> None:
    assert quantile([3.0, 1.0, 2.0], 0.5) == 2.0
    assert quantile([3.0, 1.0, 2.0], 0.99) == 3.0
    assert quantile([], 0.5) == 0.0
