"""The filter of jobs: read from people's hands, matched against records, kept with an operation."""

import time
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duly.core.errors import UsageError
from duly.core.filters import Condition, Filter, parse_moment, parse_where
from duly.core.lifecycle import State
from tests.core.handlers import FEW

NOW = datetime(2026, 11, 29, 18, 0, tzinfo=UTC)

RECORD = {
    "queue": "mail",
    "task": "send",
    "tenant": "acme",
    "state": State.dead,
    "tags": ("night", "eu"),
    "correlation_id": "c-7",
    "enqueued_at": NOW,
    "args": b'{"customer_id": 7, "name": "anna", "lines": [{"sku": "x", "n": 2}], "ok": true, "none": null}',
    "error": SimpleNamespace(fingerprint="a91f03c2"),
}


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("args.customer_id = 7", Condition(("customer_id",), "=", 7)),
        ("args.a.b.c!=x", Condition(("a", "b", "c"), "!=", "x")),
        ('args.lines[0].sku = "7"', Condition(("lines", "0", "sku"), "=", "7")),
        ('args["odd key"] >= 2.5', Condition(("odd key",), ">=", 2.5)),
        ('args["a=b"] < two words', Condition(("a=b",), "<", "two words")),
        ("args.a <= 2026-01-01", Condition(("a",), "<=", "2026-01-01")),
        ("args.a > 'it'", Condition(("a",), ">", "it")),
        ("args.a = true", Condition(("a",), "=", True)),
        ("args.a = null", Condition(("a",), "=", None)),
        ("args.a = [1, 2]", Condition(("a",), "=", [1, 2])),
        ("args.a = -", Condition(("a",), "=", "-")),
        ("args.a = 1e999", Condition(("a",), "=", "1e999")),
        ("args.a = \ud800", Condition(("a",), "=", "\ud800")),
    ],
)
def test_a_comparison_is_read(text: str, condition: Condition) -> None:
    assert parse_where(text) == condition


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("args.a == 7", "write = instead of =="),
        ("args.a <> 7", "write != instead of <>"),
        ("args.a ~ 7", "use one of = != < <= > >="),
        ("args.a", "write it like args.customer_id = 7"),
        ("", "write it like args.customer_id = 7"),
        ("args.a =", "compares with nothing"),
        ("customer_id = 7", "write args.customer_id"),
        ("queue = mail", "looks at arguments only"),
        ("args..a = 7", "is no path"),
        ("args.a[x] = 7", "is no path"),
        ("args.a = True", "write true, or quote it"),
        ("args.a = None", "write null, or quote it"),
        ('args.a = "x', "close it"),
        ("args.a = [1", "close it"),
        ("args.a = '", "close it"),
    ],
)
def test_a_wrong_comparison_says_what_to_write(text: str, advice: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_where(text)

    assert advice in str(caught.value)


@pytest.mark.parametrize("part", ['["a"]', '[""', ".a", "=", " ", "[", '"', "\\"])
def test_no_text_makes_the_reader_slow(part: str) -> None:
    started = time.process_time()

    for text in (part * 5_000, "args" + part * 5_000, "args.a = " + part * 5_000):
        try:
            parse_where(text)
        except UsageError:
            continue

    assert time.process_time() - started < 1


@pytest.mark.parametrize(
    ("where", "holds"),
    [
        ("args.customer_id = 7", True),
        ("args.customer_id = 7.0", True),
        ("args.customer_id = 8", False),
        ('args.customer_id = "7"', False),
        ("args.customer_id != 8", True),
        ("args.customer_id != 7", False),
        ("args.customer_id < 8", True),
        ("args.customer_id < 7", False),
        ("args.customer_id <= 7", True),
        ("args.customer_id > 6", True),
        ("args.customer_id > 7", False),
        ("args.customer_id >= 7", True),
        ("args.customer_id >= x", False),
        ("args.name >= anna", True),
        ("args.name < b", True),
        ("args.name = anna", True),
        ("args.lines[0].n = 2", True),
        ("args.lines.0.sku = x", True),
        ("args.lines[1].n = 2", False),
        ("args.lines.sku = x", False),
        ("args.name[0] = a", False),
        ("args.ok = true", True),
        ("args.ok = 1", False),
        ("args.ok > 0", False),
        ("args.customer_id > false", False),
        ("args.none = null", True),
        ("args.absent = null", False),
        ("args.absent != 7", False),
        ("args.none < 3", False),
    ],
)
def test_a_comparison_holds_or_not(where: str, holds: bool) -> None:
    assert Filter(where=where).matches(RECORD) is holds


@pytest.mark.parametrize("args", [b"not json", b'"\xff"', b"[" * 100_000, None, b"[]"])
def test_arguments_that_cannot_be_read_match_no_comparison(args: bytes | None) -> None:
    assert not Filter(where="args.a = 1").matches({**RECORD, "args": args})
    assert not Filter(where="args.a != 1").matches({**RECORD, "args": args})


def test_decoded_arguments_are_taken_as_they_are() -> None:
    assert Filter(where="args.a = 1").matches({"args": {"a": 1}})
    assert Filter(where="args.a = 1").matches({"args": '{"a": 1}'})


@pytest.mark.parametrize(
    ("parts", "fits"),
    [
        ({}, True),
        ({"queue": "mail"}, True),
        ({"queue": "sms"}, False),
        ({"task": "send", "tenant": "acme", "correlation": "c-7"}, True),
        ({"task": "send", "tenant": "other"}, False),
        ({"correlation": "c-8"}, False),
        ({"state": State.dead}, True),
        ({"state": State.ready}, False),
        ({"tag": "eu"}, True),
        ({"tag": "us"}, False),
        ({"fingerprint": "a91f"}, True),
        ({"fingerprint": "a91f03c2"}, True),
        ({"fingerprint": "ffff"}, False),
        ({"since": NOW}, True),
        ({"since": NOW + timedelta(seconds=1)}, False),
        ({"until": NOW}, False),
        ({"until": NOW + timedelta(seconds=1)}, True),
        ({"since": NOW - timedelta(hours=1), "until": NOW + timedelta(hours=1)}, True),
    ],
)
def test_a_job_fits_when_every_part_does(parts: dict[str, Any], fits: bool) -> None:
    assert Filter(**parts).matches(RECORD) is fits
    assert Filter(**parts).matches(SimpleNamespace(**RECORD)) is fits


def test_what_a_record_does_not_say_does_not_fit() -> None:
    assert not Filter(tag="eu").matches({})
    assert not Filter(fingerprint="a91f").matches({})
    assert not Filter(since=NOW).matches({})
    assert Filter(fingerprint="a91f").matches({"fingerprint": "a91f03c2"})


@pytest.mark.parametrize(
    ("parts", "advice"),
    [
        ({"queue": "a b"}, "holds ' '"),
        ({"tenant": ""}, "must not be empty"),
        ({"tag": "\x00"}, "a NUL character"),
        ({"fingerprint": "A91F"}, "4 to 8 digits"),
        ({"fingerprint": "a9"}, "4 to 8 digits"),
        ({"since": datetime(2026, 1, 1)}, "since has no time zone"),  # noqa: DTZ001
        ({"since": NOW, "until": NOW}, "swap them"),
        ({"where": "a == 1"}, "write = instead"),
    ],
)
def test_a_wrong_filter_says_what_is_wrong(parts: dict[str, Any], advice: str) -> None:
    with pytest.raises(UsageError) as caught:
        Filter(**parts)

    assert advice in str(caught.value)


def test_a_filter_reads_as_the_flags_it_came_from() -> None:
    chosen = Filter(queue="mail", state=State.dead, since=NOW, where="args.a = 1")

    assert str(chosen) == "queue=mail state=dead since=2026-11-29T18:00:00+00:00 where=args.a = 1"
    assert not chosen.everything
    assert str(Filter()) == "all jobs"
    assert Filter().everything


NAMES = st.none() | st.text("abcdef-_.", min_size=1, max_size=20)


@FEW
@given(
    st.builds(
        Filter,
        queue=NAMES,
        task=NAMES,
        tenant=NAMES,
        tag=NAMES,
        correlation=NAMES,
        state=st.none() | st.sampled_from(State),
        fingerprint=st.none() | st.text("0123456789abcdef", min_size=4, max_size=8),
        since=st.none() | st.datetimes(timezones=st.just(UTC)),
        where=st.none() | st.just('args.x = "é"'),
    )
)
def test_a_stored_filter_means_the_same_when_it_is_read(chosen: Filter) -> None:
    assert Filter.from_json(chosen.to_json()) == chosen


@pytest.mark.parametrize(
    "data", [b"[]", b"{", b'{"colour": "red"}', b'{"queue": 7}', b'{"queue": "a b"}', b'"\xff"']
)
def test_what_is_no_stored_filter_is_refused(data: bytes) -> None:
    with pytest.raises(UsageError):
        Filter.from_json(data)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2h", NOW - timedelta(hours=2)),
        (" 1h30m ", NOW - timedelta(minutes=90)),
        ("2026-11-29T17:00:00Z", NOW - timedelta(hours=1)),
        ("2026-11-29T19:00:00+01:00", NOW),
    ],
)
def test_a_moment_is_a_span_or_a_date(text: str, moment: datetime) -> None:
    assert parse_moment(text, NOW) == moment


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("2026-11-29", "write 2026-11-29T00:00:00Z, or a span such as 2h"),
        ("yesterday", "since='yesterday' is no dur"),
    ],
)
def test_a_wrong_moment_says_what_to_write(text: str, advice: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_moment(text, NOW)

    assert advice in str(caught.value)
