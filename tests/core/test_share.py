"""What the queue's share of a database is said to be, and when it is said to be too much."""

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from duly.core.share import DatabaseLoad, LoadReading, advice, load_between, share, shares

START = datetime(2026, 1, 1, tzinfo=UTC)
FIRST = LoadReading(START, 1_000, 500, 10_000_000, 100, 1_000_000, 50)
KNOWN = DatabaseLoad(
    connections=12,
    own_connections=6,
    most_connections=97,
    span=timedelta(minutes=5),
    commits_per_s=340.0,
    own_commits_per_s=34.0,
    wal_per_s=1_048_576.0,
    own_wal_per_s=262_144.0,
    written_per_s=2_000.0,
    own_written_per_s=1_000.0,
)


def later(seconds: int, **more: int | None) -> LoadReading:
    at = START + timedelta(seconds=seconds)
    return replace(FIRST, at=at, **more)


def test_rates_are_between_the_first_and_the_last_reading() -> None:
    readings = [FIRST, later(30, commits=1_500), later(60, commits=4_000, wal=16_000_000, own_wal=2_200_000)]

    found = load_between(readings, 12, 6, 97)

    assert found.span == timedelta(seconds=60)
    assert found.commits_per_s == 50
    assert found.wal_per_s == 100_000
    assert found.own_wal_per_s == 20_000
    assert found.own_written_per_s == 0


@pytest.mark.parametrize("readings", [[], [FIRST], [FIRST, later(10, commits=2_000)]])
def test_too_few_readings_leave_all_rates_unknown(readings: list[LoadReading]) -> None:
    found = load_between(readings, 12, 6, 97)

    assert found == DatabaseLoad(12, 6, 97)
    assert shares(found) == (
        "the queue's share: 6 of 97 connections (12 in use); commits and WAL are known once a worker has run for a "
        "minute"
    )
    assert advice(found, None) == []


@pytest.mark.parametrize(
    "reset",
    [
        {"commits": 10},
        {"written": 10},
        {"wal": 10},
        {"own_statements": 10},
        {"own_wal": 10},
        {"own_written": 10},
        {"own_statements": None, "own_wal": None},
    ],
)
def test_what_was_read_before_a_reset_does_not_count(reset: dict[str, int | None]) -> None:
    since = later(300, **reset)

    assert load_between([FIRST, since], 12, 6, 97).span is None
    assert load_between(
        [FIRST, since, replace(since, at=START + timedelta(seconds=360))], 12, 6, 97
    ).span == (timedelta(seconds=60))


def test_a_share_is_at_most_all_and_unknown_of_nothing() -> None:
    assert share(20.0, 10.0) == 1.0
    assert share(None, 10.0) is None
    assert share(1.0, 0.0) is None


def test_shares_of_a_small_queue() -> None:
    assert shares(KNOWN) == (
        "the queue's share: 10% of 340 commits/s, 25% of 1,024 KiB/s of WAL, 6 of 97 connections (12 in use)"
    )
    assert advice(KNOWN, 20.0) == ["it needs neither a broker nor a database of its own"]


def test_without_pg_stat_statements_rows_tell() -> None:
    blind = replace(KNOWN, own_commits_per_s=None, own_wal_per_s=None)

    assert shares(blind) == (
        "the queue's share: unknown of 340 commits/s, unknown of 1,024 KiB/s of WAL, 50% of 2,000 rows/s written, "
        "6 of 97 connections (12 in use); the unknown ones need pg_stat_statements, and pg_read_all_stats for the "
        "schema's owner"
    )
    assert advice(blind, 20.0) == ["it needs neither a broker nor a database of its own, as far as rows tell"]
    assert advice(replace(blind, own_written_per_s=12_000.0, written_per_s=13_000.0), 20.0) == [
        (
            "92% of the rows written are the queue's: time for a database of its own, so that backups, replicas and "
            "vacuum carry your data only"
        )
    ]


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"own_wal_per_s": 5e6, "wal_per_s": 6e6}, "83% of the WAL are the queue's"),
        ({"own_commits_per_s": 1_500.0, "commits_per_s": 2_000.0}, "75% of the commits are the queue's"),
    ],
)
def test_a_queue_that_is_most_of_a_busy_database_should_have_its_own(
    more: dict[str, float], told: str
) -> None:
    (found,) = advice(replace(KNOWN, **more), 20.0)

    assert found.startswith(f"{told}: time for a database of its own")


@pytest.mark.parametrize(
    "more", [{"own_wal_per_s": 5e6, "wal_per_s": 20e6}, {"own_wal_per_s": 9e5, "wal_per_s": 1e6}]
)
def test_neither_a_small_share_nor_a_small_database_is_a_reason(more: dict[str, float]) -> None:
    assert advice(replace(KNOWN, **more), 20.0) == ["it needs neither a broker nor a database of its own"]


def test_a_crowded_server_and_a_flood_are_each_told_with_what_to_do() -> None:
    crowded, flood = advice(replace(KNOWN, connections=80), 12_000.0)

    assert crowded.startswith(
        "80 of 97 connections are in use, 6 by duly: put PgBouncer before the application"
    )
    assert flood.startswith("at 12,000 jobs/s one database comes to its end: time for a broker")
