"""The ledger of the soak finds what is lost, doubled or strange, and its targets look at the right minutes."""

from __future__ import annotations

import argparse
from array import array
from pathlib import Path

import pytest

from bench.flatness.report import Report
from bench.soak import EDGE, Minute, Soak
from bench.soaking.ledger import Ledger, quantile
from bench.soaking.sizes import Sizes
from bench.soaking.tasks import RECORD, Kind, Run, kind_of

BEGAN = 1_000.0
PRODUCERS = 2


def write(folder: Path, *runs: tuple[int, Run, float, float]) -> None:
    with (folder / "1.records").open("ab") as file:
        for run in runs:
            file.write(RECORD.pack(*run))


def all_runs(many: int) -> list[tuple[int, Run, float, float]]:
    """Every job of both producers as it should have run."""
    found = []
    for place in range(PRODUCERS):
        for k in range(many):
            number, due = k * PRODUCERS + place, BEGAN + k / 100
            if kind_of(k) is Kind.flaky:
                found.append((number, Run.refused, due, due + 0.01))
            if kind_of(k) is not Kind.repeat:
                found.append((number, Run.done, due, due + 0.02))
    return found


def test_kinds_have_the_shares_that_are_claimed() -> None:
    kinds = [kind_of(k) for k in range(100_000)]

    assert kinds.count(Kind.flaky) == 2_000
    assert kinds.count(Kind.unique) == 10_000
    assert kinds.count(Kind.once) == 1_000
    assert kinds.count(Kind.repeat) == 99
    assert all(kinds[k - 1] is Kind.once for k in range(100_000) if kinds[k] is Kind.repeat)


def test_a_ledger_without_faults(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path, BEGAN)
    write(tmp_path, *all_runs(2_000))
    ledger.read()

    account = ledger.account([2_000] * PRODUCERS)

    assert account.created == 2 * 1_999
    assert account.repeats == 2
    assert ledger.done == account.created
    assert account.lost == []
    assert (account.again, account.refused_wrongly, account.strangers) == (0, 0, 0)


def test_a_job_that_never_ran_is_lost_and_one_that_only_failed_is_too(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path, BEGAN)
    flaky = 50 * PRODUCERS
    write(tmp_path, *(run for run in all_runs(100) if run[0] != 7 and (run[0], run[1]) != (flaky, Run.done)))
    ledger.read()

    assert sorted(ledger.account([100] * PRODUCERS).lost) == [7, flaky]


def test_second_runs_strangers_and_wrong_failures_are_counted(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path, BEGAN)
    write(tmp_path, *all_runs(100))
    write(tmp_path, (7, Run.done, BEGAN, BEGAN + 1), (11, Run.refused, BEGAN, BEGAN + 1))
    write(tmp_path, (5_000, Run.done, BEGAN, BEGAN + 1))
    ledger.read()

    account = ledger.account([100] * PRODUCERS)

    assert account.lost == []
    assert (account.again, account.refused_wrongly, account.strangers) == (1, 1, 1)


def test_latencies_are_of_first_runs_in_the_minute_in_which_they_began(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path, BEGAN)
    write(tmp_path, (0, Run.refused, BEGAN, BEGAN + 0.5), (0, Run.done, BEGAN, BEGAN + 1.5))
    ledger.read()
    write(tmp_path, (2, Run.done, BEGAN + 59.9, BEGAN + 60.1))
    ledger.read()

    assert [list(minute) for minute in ledger.minutes] == [[0.5], [pytest.approx(0.2)]]
    assert quantile(ledger.minutes[0], 0.99) == 500


def test_half_a_record_is_read_when_its_rest_is_there(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path, BEGAN)
    data = RECORD.pack(0, Run.done, BEGAN, BEGAN + 1)
    path = tmp_path / "1.records"
    path.write_bytes(data[:10])
    ledger.read()
    assert ledger.done == 0

    path.write_bytes(data)
    ledger.read()

    assert ledger.done == 1


class NoScales:
    def weigh(self) -> Sizes:
        raise AssertionError("the targets weigh nothing")

    def dearest(self, jobs: int) -> list[str]:
        return []


def soak(minutes: list[Minute], report: Report) -> Soak:
    options = argparse.Namespace(rate=100.0, short=False)
    made = Soak("postgres", "postgresql:///", NoScales(), options, report)
    made.rows = minutes
    return made


def level(place: int, *, grow: float = 0.0, resident: float = 90.0) -> Minute:
    sizes = Sizes(100 + grow * place, 0, 60.0 * place, 1_000, 0, 0, 0, 0)
    return Minute(60.0 * (place + 1), 6_000 * (place + 1), sizes, [resident, 40.0], 0.1)


def ledger_of(tmp_path: Path, latencies: list[float]) -> Ledger:
    ledger = Ledger(tmp_path, BEGAN)
    ledger.minutes = [array("f", [seconds] * 100) for seconds in latencies]
    return ledger


def missed(tmp_path: Path, latencies: list[float], minutes: list[Minute]) -> list[str]:
    report = Report()
    soak(minutes, report)._targets(ledger_of(tmp_path, latencies))
    return report.missed


def test_a_level_soak_misses_nothing(tmp_path: Path) -> None:
    assert missed(tmp_path, [0.05] * 15, [level(place) for place in range(15)]) == []


def test_latency_at_the_end_is_compared_with_its_bound_and_with_the_start(tmp_path: Path) -> None:
    minutes = [level(place) for place in range(15)]

    assert missed(tmp_path, [0.05] * 10 + [0.3] * 5, minutes) == [
        f"postgres: pickup p99, last {EDGE} min",
        f"postgres: pickup p99, last / first {EDGE} min",
    ]
    # Both are so short that the difference says nothing.
    assert missed(tmp_path, [0.005] * 10 + [0.02] * 5, minutes) == []


def test_growth_of_tables_and_of_memory_is_missed(tmp_path: Path) -> None:
    growing = [level(place, grow=20.0, resident=90.0 + 10 * place) for place in range(15)]

    assert missed(tmp_path, [0.05] * 15, growing) == [
        f"postgres: tables, last / second {EDGE} min",
        f"postgres: resident memory of the largest worker, last / second {EDGE} min",
    ]


def test_a_short_soak_judges_nothing(tmp_path: Path) -> None:
    assert missed(tmp_path, [9.0] * 4, [level(place, grow=500.0) for place in range(4)]) == []
