"""Durations, sizes and rates: read as people write them, refused with what to write instead."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duly.core.durations import (
    compact_duration,
    format_duration,
    format_size,
    parse_duration,
    parse_rate,
    parse_size,
)
from duly.core.errors import UsageError
from tests.core.handlers import FEW

UP_TO_A_CENTURY = st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=36_525))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30s", 30),
        ("15m", 900),
        ("2d", 172_800),
        ("1w", 604_800),
        ("1h30m", 5_400),
        ("1h 30m", 5_400),
        (" 250ms ", 0.25),
        ("1.5h", 5_400),
        ("1m30.5s", 90.5),
        ("0s", 0),
        ("0.001ms", 0.000001),
    ],
)
def test_a_duration_is_read(text: str, seconds: float) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


def test_a_timedelta_is_taken_as_it_is() -> None:
    assert parse_duration(timedelta(seconds=5)) == timedelta(seconds=5)


@pytest.mark.parametrize(
    ("value", "advice"),
    [
        (30, "write '30s'"),
        (1.5, "write '1.5s'"),
        (-1, "write '30s'"),
        (float("nan"), "write '30s'"),
        (True, "not True"),
        (None, "not None"),
        ("30", "write '30s'"),
        ("", "is no duration"),
        ("-30s", "is negative"),
        (timedelta(seconds=-90), "'-1m30s' is negative"),
        ("30m1h", "from large to small"),
        ("1s1s", "from large to small"),
        ("1 fortnight", "such as '30s'"),
        ("1minute", "such as '30s'"),
        ("1.0000001ms", "finer than a microsecond"),
        ("36526d", "longer than 100 years"),
        ("9" * 18 + "w", "longer than 100 years"),
        ("9" * 500 + "s", "is no duration"),
        (timedelta(days=40_000), "longer than 100 years"),
    ],
)
def test_a_wrong_duration_says_what_to_write(value: Any, advice: str) -> None:
    with pytest.raises(UsageError, match=r"^timeout\b") as caught:
        parse_duration(value, "timeout")

    assert advice in str(caught.value)
    assert len(str(caught.value)) < 250


def test_zero_is_refused_where_it_makes_no_sense() -> None:
    with pytest.raises(UsageError, match="lease='0s' must be longer than zero"):
        parse_duration("0s", "lease", positive=True)

    assert parse_duration("1ms", "lease", positive=True) == timedelta(milliseconds=1)


@FEW
@given(UP_TO_A_CENTURY)
def test_the_compact_form_reads_back_exactly(duration: timedelta) -> None:
    assert parse_duration(compact_duration(duration)) == duration


@FEW
@given(UP_TO_A_CENTURY)
def test_the_form_for_people_can_be_read_and_is_near(duration: timedelta) -> None:
    shown = parse_duration(format_duration(duration))

    assert len(format_duration(duration).split()) <= 2
    assert abs(shown - duration) <= max(timedelta(milliseconds=0.5), duration * 0.05)


@pytest.mark.parametrize(
    ("duration", "shown", "compact"),
    [
        (timedelta(0), "0s", "0s"),
        (timedelta(seconds=90), "1m 30s", "1m30s"),
        (timedelta(days=9, hours=3, minutes=5), "9d 3h", "9d3h5m"),
        (timedelta(milliseconds=250), "250ms", "250ms"),
        (timedelta(microseconds=500), "0.5ms", "0.5ms"),
        (timedelta(seconds=59.9999), "1m", "59s999.9ms"),
        (timedelta(seconds=-90), "-1m 30s", "-1m30s"),
    ],
)
def test_a_duration_is_written(duration: timedelta, shown: str, compact: str) -> None:
    assert format_duration(duration) == shown
    assert compact_duration(duration) == compact


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("256KiB", 262_144),
        ("1GiB", 2**30),
        ("10MB", 10_000_000),
        ("1.5 kb", 1_500),
        ("512B", 512),
        ("2TiB", 2**41),
    ],
)
def test_a_size_is_read(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    ("value", "advice"),
    [
        (262_144, "write '262144B' or '256KiB'"),
        (True, "not True"),
        (None, "not None"),
        ("262144", "'262144B' or '256KiB'"),
        ("lots", "such as '256KiB'"),
        ("0KiB", "positive number of bytes"),
        ("0.3B", "whole"),
        ("999999999999TiB", "whole, positive"),
    ],
)
def test_a_wrong_size_says_what_to_write(value: Any, advice: str) -> None:
    with pytest.raises(UsageError, match=r"^max_payload\b") as caught:
        parse_size(value, "max_payload")

    assert advice in str(caught.value)


@pytest.mark.parametrize(
    ("size", "shown"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1 KiB"), (262_144, "256 KiB"), (1_572_864, "1.5 MiB"),
     (2**20 - 1, "1 MiB"), (2**50, "1024 TiB")],
)  # fmt: skip
def test_a_size_is_written(size: int, shown: str) -> None:
    assert format_size(size) == shown


@pytest.mark.parametrize(
    ("text", "per_second"),
    [("20/s", 20.0), ("600/min", 10.0), ("90 / h", 0.025), ("1/d", 1 / 86_400), ("max", None)],
)
def test_a_rate_is_read(text: str, per_second: float | None) -> None:
    assert parse_rate(text) == per_second


@pytest.mark.parametrize(
    ("value", "advice"),
    [(20, "such as '20/s'"), ("20", "such as '20/s'"), ("0/s", "pause it instead"), ("-1/s", "'max'")],
)
def test_a_wrong_rate_says_what_to_write(value: Any, advice: str) -> None:
    with pytest.raises(UsageError, match=r"^rate=") as caught:
        parse_rate(value)

    assert advice in str(caught.value)
