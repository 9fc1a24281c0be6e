"""Tables, relative times and the JSON form of values."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import click
import msgspec
import pytest

from duly.cli.output import (
    Column,
    Form,
    Out,
    age,
    clock,
    counted,
    cut,
    elapsed,
    plain,
    printable,
    rate,
    relative,
    table,
    width_of,
)
from duly.core.job import Counters

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


class Row(msgspec.Struct):
    id: int
    at: datetime
    oldest: timedelta | None
    drain: timedelta | None
    args: bytes
    counters: Counters


def lines(*args: object, **kwargs: object) -> list[str]:
    return [click.unstyle(line) for line in table(*args, **kwargs)]  # type: ignore[arg-type]


def test_numbers_stand_right_and_words_left() -> None:
    columns = (Column("QUEUE"), Column("READY", "right"), Column("NOTE"))

    drawn = lines(columns, [["mail", "182,440", "paused"], ["reports", "3", ""]])

    assert drawn == [
        "QUEUE      READY  NOTE",
        "mail     182,440  paused",
        "reports        3  -",
    ]


def test_a_table_without_heading_is_only_its_rows() -> None:
    assert lines((Column("A"), Column("B")), [["1", "2"]], heading=False) == ["1  2"]


def test_only_the_wide_column_is_cut_at_the_edge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")

    drawn = lines((Column("ID"), Column("ERROR", wide=True)), [["1234567890", "x" * 60]])

    assert drawn[1] == "1234567890  " + "x" * 17 + "…"
    assert len(drawn[1]) == 30


def test_wide_characters_take_two_columns() -> None:
    assert width_of("日本") == 4
    assert lines((Column("N"), Column("X")), [["日本", "a"], ["b", "c"]])[1:] == ["日本  a", "b     c"]


def test_a_cell_is_one_line() -> None:
    assert cut("two\nlines  here", 40) == "two lines here"
    assert cut("abcdef", 4) == "abc…"


def test_control_characters_are_shown_and_not_obeyed() -> None:
    assert printable("a\x1b[2Jb\tc") == "a\\x1b[2Jb\tc"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (59, "59s"), (62, "1m 02s"), (2460, "41m"), (7200, "2h"), (172_800, "2d"), (-3, "0s")],
)
def test_an_age_is_said_in_its_largest_unit(seconds: int, text: str) -> None:
    assert age(timedelta(seconds=seconds)) == text


def test_moments_are_told_from_now() -> None:
    assert relative(NOW - timedelta(seconds=3), NOW) == "3s ago"
    assert relative(NOW + timedelta(minutes=15), NOW) == "in 15m"
    assert relative(NOW, NOW) == "now"
    assert relative(None, NOW) == "-"


def test_a_clock_time_is_utc_and_has_its_date_unless_it_is_today() -> None:
    berlin = timezone(timedelta(hours=2))

    assert clock(datetime(2026, 3, 1, 13, 30, tzinfo=berlin), NOW) == "11:30:00"
    assert clock(datetime(2026, 2, 28, 13, 30, tzinfo=UTC), NOW) == "2026-02-28 13:30:00"


def test_rates_spans_and_counts_read_as_words() -> None:
    assert [rate(None), rate(0.44), rate(4.0), rate(1234.5)] == ["-", "0.4", "4", "1,234"]
    assert [elapsed(timedelta(seconds=s)) for s in (0.4, 12.3, 200)] == ["0.40 s", "12 s", "3m 20s"]
    assert [counted(1, "job"), counted(2000, "job")] == ["1 job", "2,000 jobs"]


def test_values_become_json_with_utc_times_and_spans_in_seconds() -> None:
    row = Row(7, NOW, timedelta(minutes=1), None, b'{"a":[1,2.50]}', Counters(failed=1))

    encoded = msgspec.json.encode(plain(row)).decode()

    assert encoded == (
        '{"id":7,"at":"2026-03-01T12:00:00Z","oldest_s":60.0,"drain_s":null,"args":{"a":[1,2.50]},'
        '"counters":{"failed":1,"lost":0,"interrupted":0,"snoozed":0}}'
    )


def test_stored_bytes_that_are_no_json_are_shown_as_text() -> None:
    assert plain(b"\xff{not json") == "\\xff{not json"


def test_an_answer_has_three_forms(capsys: pytest.CaptureFixture[str]) -> None:
    document = {"jobs": [{"id": 1}, {"id": 2}], "next": None}
    items = [{"id": 1}, {"id": 2}]

    for form in Form:
        Out(form).answer(document, lambda: ["two jobs"], iter(items))  # type: ignore[arg-type]

    assert capsys.readouterr().out.splitlines() == [
        "two jobs",
        "{",
        '  "jobs": [',
        "    {",
        '      "id": 1',
        "    },",
        "    {",
        '      "id": 2',
        "    }",
        "  ],",
        '  "next": null',
        "}",
        '{"id":1}',
        '{"id":2}',
    ]


def test_hints_are_for_people_who_want_them(capsys: pytest.CaptureFixture[str]) -> None:
    Out(Form.table).hint("said")
    Out(Form.table, quiet=True).hint("not said")
    Out(Form.json).hint("not said")

    assert capsys.readouterr().out == "said\n"
