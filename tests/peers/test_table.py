"""The arithmetic of the benchmark's table: medians, ratios, which targets are met, and the block of the page."""

import pytest

from bench.peers.results import BEST_PEER, Figure, Result, Results, Target, judge
from bench.peers.rows import ROWS, WORKLOADS
from bench.peers.table import BEGIN, END, noise, number, peers, replaced, report, targets


def runs(row: str, workload: str, *values: float, **figures: float) -> list[Result]:
    return [
        Result(row, workload, {"value": value, **figures}, version="1.2", settings="as shipped")
        for value in values
    ]


FASTER = Target(Figure("duly postgres", "drain"), 2.5, Figure("pgqueuer", "drain"))
QUICK = Target(Figure("duly postgres", "latency", "p99"), 8.0, at_most=True)


def test_a_ratio_is_that_of_the_medians() -> None:
    results = Results(runs("duly postgres", "drain", 500, 100, 300) + runs("pgqueuer", "drain", 1, 100, 1000))

    verdict = judge(FASTER, results)

    assert (verdict.value, verdict.base, verdict.ratio, verdict.met) == (300, 100, 3.0, True)


def test_a_ratio_below_its_bound_is_a_miss() -> None:
    results = Results(runs("duly postgres", "drain", 249) + runs("pgqueuer", "drain", 100))

    verdict = judge(FASTER, results)

    assert verdict.met is False


@pytest.mark.parametrize(("slowest", "met"), [(8.0, True), (8.1, False)])
def test_a_latency_is_met_at_its_bound_and_below(slowest: float, met: bool) -> None:
    results = Results(runs("duly postgres", "latency", 1.0, p99=slowest))

    verdict = judge(QUICK, results)

    assert (verdict.value, verdict.met) == (slowest, met)


def test_what_was_not_measured_is_neither_met_nor_missed() -> None:
    alone = Results(runs("duly postgres", "drain", 300))

    verdicts = [judge(FASTER, alone), judge(FASTER, Results([])), judge(QUICK, alone)]

    assert [verdict.met for verdict in verdicts] == [None, None, None]


def test_the_best_peer_is_no_row_of_ours_and_no_limit() -> None:
    results = Results(
        runs("limit postgres", "bulk", 9000)
        + runs("duly postgres", "bulk", 8000)
        + runs("pgqueuer", "bulk", 3000)
        + runs("awa", "bulk", 4000)
    )

    verdict = judge(Target(Figure("duly postgres", "bulk"), 2.0, Figure(BEST_PEER, "bulk")), results)

    assert (verdict.against, verdict.ratio, verdict.met) == ("awa", 2.0, True)


def test_the_best_latency_is_the_lowest() -> None:
    results = Results(runs("pgqueuer", "latency", 3.0) + runs("beanstalkd", "latency", 0.4))

    best = results.best_peer("latency")

    assert best == "beanstalkd"


def test_a_failed_run_counts_in_no_median_and_is_said() -> None:
    results = Results(
        [*runs("pgqueuer", "drain", 100), Result("pgqueuer", "drain", error="the worker ended with 1")]
    )

    text = report(results, ["machine: a small one"])

    assert results.median("pgqueuer", "drain") == 100
    assert "pgqueuer, drain, one process: FAILED: ...the worker ended with 1" in text


def test_the_table_of_targets_shows_both_medians_the_ratio_and_the_bound() -> None:
    results = Results(runs("duly postgres", "drain", 30_000) + runs("pgqueuer", "drain", 15_000))

    line = next(line for line in targets(results).splitlines() if "pgqueuer 15,000/s" in line)

    assert line == (
        "| drain, one process | duly postgres | 30,000/s | pgqueuer 15,000/s | 2.00 | ≥ 2.50 | **missed** |"
    )


def test_a_share_of_the_ideal_is_a_ratio_to_it() -> None:
    results = Results(runs("duly sqlite", "short", 40_000))

    line = next(line for line in targets(results).splitlines() if "1 ms handlers" in line)

    assert "| 40,000/s | ideal 50,000/s | 0.80 | ≥ 0.60 | met |" in line


def test_a_row_shows_its_median_its_spread_and_that_it_has_no_bulk_interface() -> None:
    results = Results(runs("huey redis", "one", 8000, 9000, 7000))

    line = peers(results).splitlines()[-1]

    assert line.startswith("| huey redis | 1.2 | 8,000 (7,000-9,000) | none | - |")
    assert line.endswith("| 3 |")


def test_jobs_that_ran_twice_are_said() -> None:
    results = Results(runs("duly sqlite", "drain", 100, 100, again=2.0, left=0.0))

    text = report(results, [])

    assert "- duly sqlite: 4 jobs ran twice" in text
    assert "were left" not in text


def test_noise_counts_the_disturbed_runs() -> None:
    results = Results(
        [Result("duly sqlite", "one", {"value": 1.0}, others=cores) for cores in (0.0, 0.1, 1.5)]
    )

    words = noise(results)

    assert words == (
        "others used 0.10 cores during the median run, 1.50 at most; 1 of 3 runs had more than 0.25"
    )


def test_only_the_marked_block_of_a_page_is_replaced() -> None:
    page = f"# Speed\n\n{BEGIN}\n\nold\n\n{END}\n\nwords\n"

    once = replaced(page, "new")

    assert once == f"# Speed\n\n{BEGIN}\n\nnew\n\n{END}\n\nwords\n"
    assert replaced(once, "new") == once


def test_a_page_without_a_place_for_the_tables_is_refused() -> None:
    with pytest.raises(ValueError, match="has no place for it"):
        replaced("# Speed\n", "new")


@pytest.mark.parametrize(
    ("value", "shown"), [(1234.4, "1,234"), (99.94, "99.9"), (9.996, "10.00"), (0.4, "0.40")]
)
def test_numbers_have_about_three_digits(value: float, shown: str) -> None:
    assert number(value) == shown


def test_every_row_has_workloads_that_there_are_and_only_its_own_packages_make_it_a_peer() -> None:
    unknown = {row.name: set(row.workloads) - set(WORKLOADS) for row in ROWS.values()}

    assert not any(unknown.values())
    assert {row.name for row in ROWS.values() if not row.is_peer} == {
        "limit postgres",
        "limit sqlite",
        "duly postgres",
        "duly sqlite",
    }
