"""Arguments as JSON: every value survives unchanged, or is refused at enqueue with its path and a way out."""

import collections
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path, PurePath
from typing import Any, Literal
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest

from duly.core.errors import UsageError
from duly.core.payload import Arguments
from tests.core.handlers import (
    A_UUID,
    NOON,
    Box,
    Colour,
    Count,
    CustomerId,
    Grams,
    Job,
    Level,
    Line,
    Node,
    Odd,
    Order,
    Point,
    Size,
    Urgent,
    Wanted,
    Words,
    plain,
    refused,
    taking,
)


@pytest.mark.parametrize(
    ("annotation", "value", "json"),
    [
        (int, 7, "7"),
        (int, 2**63, "9223372036854775808"),
        (int, -(10**300), "-1" + "0" * 300),
        (str, "naïve ☃", '"naïve ☃"'),
        (str, "a\x00b", '"a\\u0000b"'),
        (bool, True, "true"),
        (float, 1.5, "1.5"),
        (float, 1e300, "1e300"),
        (int | None, None, "null"),
        (int | str, "7", '"7"'),
        (Any, [1, {"a": None}, "x", 1.5, False], '[1,{"a":null},"x",1.5,false]'),
        (object, {"a": 1}, '{"a":1}'),
        (list[int], [1, 2], "[1,2]"),
        (tuple[int, str], (1, "a"), '[1,"a"]'),
        (tuple[int, ...], (1, 2), "[1,2]"),
        (set[int], {1}, "[1]"),
        (frozenset[str], frozenset({"a"}), '["a"]'),
        (dict[int, str], {1: "a"}, '{"1":"a"}'),
        (dict[Size, int], {Size.BIG: 1}, '{"big":1}'),
        (dict[str, object], {"k\x00": 1}, '{"k\\u0000":1}'),
        (datetime, NOON, '"2026-11-29T12:00:00Z"'),
        (date, date(2026, 11, 29), '"2026-11-29"'),
        (time, time(12, 30), '"12:30:00"'),
        (timedelta, timedelta(seconds=90), '"PT90S"'),
        (UUID, A_UUID, '"6ba7b810-9dad-11d1-80b4-00c04fd430c8"'),
        (Decimal, Decimal("1.10"), '"1.10"'),
        (bytes, b"\x00\xff", '"AP8="'),
        (bytearray, bytearray(b"a"), '"YQ=="'),
        (Colour, Colour.RED, '"red"'),
        (Size, Size.BIG, '"big"'),
        (Level, Level.HIGH, "3"),
        (Path, Path("/srv/photos"), '"/srv/photos"'),
        (PurePath, PurePath("a/b"), '"a/b"'),
        (Literal["a", "b"], "a", '"a"'),
        (CustomerId, 7, "7"),
        (Point, Point(1, 2), "[1,2]"),
        (Wanted, {"sku": "a"}, '{"sku":"a"}'),
        (Words, Words("a"), '"a"'),
        (Count, Count(3), "3"),
        (Grams, Grams(1.5), "1.5"),
        (
            Order,
            Order(1, [Line("a", Decimal("2.50"))]),
            '{"id":1,"lines":[{"sku":"a","price":"2.50"}],"notes":{}}',
        ),
        (Node, Node("a", [Node("b", [])]), '{"name":"a","children":[{"name":"b","children":[]}]}'),
        (Box, Box((1, 2), frozenset({"a"})), '{"sizes":[1,2],"marks":["a"]}'),
        (Urgent | None, Urgent(1, [], {}, 2), '{"id":1,"lines":[],"notes":{},"level":2}'),
    ],
)
def test_a_value_comes_back_as_it_was_sent(annotation: Any, value: object, json: str) -> None:
    arguments = taking(annotation)

    data = arguments.encode((value,), {})
    arrived = arguments.decode(data)["x"]

    assert data.decode() == f'{{"x":{json}}}'
    assert type(arrived) is type(value)
    assert arrived == value


@pytest.mark.parametrize(
    ("annotation", "value", "arrives"),
    [
        (float, 3, 3.0),
        (str, Size.BIG, "big"),
        (int, Level.HIGH, 3),
        (str, Words("a"), "a"),
        (list[float], [Grams(1.5)], [1.5]),
        (PurePath, Path("a"), PurePath("a")),
        (datetime, datetime(2026, 7, 1, 12, tzinfo=ZoneInfo("Europe/Berlin")), datetime(2026, 7, 1, 10, tzinfo=UTC)),
    ],
)  # fmt: skip
def test_a_narrower_value_arrives_as_what_was_declared(
    annotation: Any, value: object, arrives: object
) -> None:
    arguments = taking(annotation)

    assert arguments.decode(arguments.encode((value,), {}))["x"] == arrives


@pytest.mark.parametrize(
    ("value", "advice"),
    [
        ((1, 2), "is a tuple and would arrive as a list; annotate it tuple[...]"),
        ({1: "a"}, "has the key 1 (int), which would arrive as text; annotate the keys dict[int, ...]"),
        ({1.5: "a"}, "has the key 1.5 (float)"),
        ({Size.BIG: 1}, "has the key <Size.BIG: 'big'> (Size)"),
        ({A_UUID: 1}, "(UUID)"),
        ({(1, 2): 3}, "is a key that JSON cannot hold"),
        ({None: 3}, "is a key that JSON cannot hold"),
        (datetime(2026, 1, 1), "would arrive as a str; annotate it datetime"),  # noqa: DTZ001
        (NOON, "would arrive as a str; annotate it datetime"),
        (date(2026, 1, 1), "annotate it date"),
        (Decimal(1), "is a Decimal and would arrive as a str; annotate it Decimal"),
        (A_UUID, "is a UUID and would arrive as a str; annotate it UUID"),
        (b"a", "annotate it bytes"),
        ({1}, "annotate it set[...], or pass sorted(...)"),
        (frozenset({1}), "annotate it frozenset[...]"),
        (Line("a", Decimal(1)), "is a Line and would arrive as a dict; annotate it Line"),
        (Order(1, []), "is an Order and would arrive as a dict"),
        (Colour.RED, "annotate it Colour, or pass its .value"),
        (Size.BIG, "is a Size and would arrive as a str; annotate it Size, or pass its .value"),
        (Words("a"), "write str(...) around it"),
        (Path("a"), "annotate it Path"),
        (collections.Counter(a=1), "write dict(...) around it"),
    ],
)
def test_what_an_open_type_would_change_is_refused(value: object, advice: str) -> None:
    error = refused(Arguments(plain, job_type=Job), {"inside": [value]})

    assert error.path.startswith("x.inside[0]")
    assert advice in str(error)


@pytest.mark.parametrize(
    ("annotation", "value", "advice"),
    [
        (list[int], (1,), "is a tuple and would arrive as a list; annotate it tuple[...]"),
        (tuple[int, ...], [1], "pass a tuple"),
        (set[int], [1], "pass a set"),
        (frozenset[int], [1], "is a list and would arrive as a frozenset; pass a frozenset"),
        (bytes, "aGVsbG8=", "pass bytes"),
        (bytes, bytearray(b"a"), "write bytes(...) around it"),
        (bytes, memoryview(b"a"), "write bytes(...) around it"),
        (datetime, "2026-01-01T00:00:00Z", "is a str and would arrive as a datetime; pass a datetime"),
        (datetime, datetime(2026, 1, 1), "without a time zone; write datetime.now(UTC)"),  # noqa: DTZ001
        (datetime, datetime(1890, 1, 1, tzinfo=timezone(timedelta(seconds=1_172))), "offset has seconds"),
        (Order, {"id": 1, "lines": []}, "is a dict and would arrive as an Order; pass an Order"),
        (Order, Urgent(1, []), "is a Urgent and would arrive as an Order; pass an Order"),
        (Size, "big", "is a str and would arrive as a Size"),
        (dict[str, int], collections.OrderedDict(a=1), "write dict(...) around it"),
        (str, Colour.RED, "annotate it Colour, or pass its .value"),
        (str, A_UUID, "annotate it UUID"),
        (dict[int, float], {1: 2**53 + 1}, "is an integer that a float cannot hold exactly; annotate it int"),
        (Decimal, Decimal("NaN"), "is NaN, which is no number"),
        (Decimal, Decimal("sNaN"), "is sNaN, which is no number"),
        (Decimal, Decimal("-Infinity"), "is -Infinity, which is no number"),
        (float | None, float("nan"), "is nan, which JSON cannot hold; pass None"),
        (float, float("inf"), "is inf, which JSON cannot hold"),
        (int, 10**640, "more than 640 digits; pass it as a str"),
        (int, True, "does not fit its annotation: expected `int`, got `bool`"),
        (int, 1.5, "does not fit its annotation: expected `int`, got `float`"),
        (str, None, "does not fit its annotation: expected `str`, got `null`"),
        (tuple[int, int], (1,), "expected `array` of length 2"),
        (Words, 7, "expected `words`, got `int`"),
        (Path, 7, "got `int`"),
        (dict[int, int], {"a": 1}, "has a key that does not fit its annotation"),
    ],
)
def test_what_does_not_fit_its_annotation_is_refused(annotation: Any, value: object, advice: str) -> None:
    error = refused(taking(annotation), value)

    assert error.path.startswith("x")
    assert advice.lower() in str(error).lower()


def test_a_number_too_long_for_any_reader_is_refused() -> None:
    assert "more than 640 digits" in str(refused(taking(int), 10**5000))


def test_an_enum_whose_value_json_cannot_hold_is_refused() -> None:
    error = refused(Arguments(plain, job_type=Job), [Odd.HALF])

    assert error.path == "x[0]"
    assert "is Odd.HALF, whose value is of type tuple; only text and integers can be stored" in str(error)
    with pytest.raises(UsageError, match=r"parameter 'x' of .* cannot be read from JSON"):
        taking(Odd).encode((Odd.HALF,), {})


@pytest.mark.parametrize(
    ("annotation", "value", "path"),
    [
        (Order, Order(1, [Line("a", Decimal(1)), Line("b", float("nan"))]), "x.lines[1].price"),  # type: ignore[arg-type]
        (Order, Order(1, [Line("a", Decimal(1)), Line(7, Decimal(1))]), "x.lines[1].sku"),  # type: ignore[arg-type]
        (Order, Order(1, [], {"a b": (1,)}), "x.notes['a b']"),
        (dict[str, Line], {"p": Line("a", Decimal(1)), "q": Line("a", "x")}, "x.q.price"),  # type: ignore[arg-type]
        (dict[str, dict[str, list[int]]], {"p": {}, "q": {"r": [1], "s t": [1, "x"]}}, "x.q['s t'][1]"),
        (list[dict[str, int]], [{"a": 1}, {"b": 1, "c": None}], "x[1].c"),
        (dict[str, set[int]], {"a": {1}, "b": {"z"}}, "x.b[0]"),
        (str, "\ud800", "x"),
        (Any, {"a": ["ok", "\ud800"]}, "x.a[1]"),
        (Any, {"\ud800": 1}, "x['\\ud800']"),
        (Any, [[{"k": object()}]], "x[0][0].k"),
        (Node, Node("a", [Node("b", [Node("\udfff", [])])]), "x.children[0].children[0].name"),
    ],
)
def test_the_path_leads_to_the_value_meant(annotation: Any, value: object, path: str) -> None:
    error = refused(taking(annotation), value)

    assert error.path == path
    assert f"argument '{path}' " in str(error)
