"""Results as JSON: bounded like arguments, refused with their path, typed again by whoever knows the type."""

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from duly.core.errors import PayloadError
from duly.core.payload import Bounds, decode_result, encode_result
from tests.core.handlers import NOON, Box, Colour, Line, Point


@pytest.mark.parametrize(
    ("result", "kind"),
    [
        (None, None),
        (None, Any),
        (7, int),
        ("sent", str),
        ([1, {"a": None}], Any),
        ((1, "a"), tuple[int, str]),
        ({1: "a"}, dict[int, str]),
        ({1, 2}, set[int]),
        (Line("a", Decimal("1.10")), Line),
        ([Line("a", Decimal(1))], list[Line]),
        (Box((1,)), Box),
        (Point(1, 2), Point),
        (NOON, datetime),
        (date(2026, 1, 1), date),
        (Path("/srv/a.jpg"), Path),
        (Colour.RED, Colour),
        (b"\x00", bytes),
        ("a\x00b", str),
        (10**600, int),
    ],
)
def test_a_result_comes_back_as_the_type_its_handler_declared(result: object, kind: Any) -> None:
    assert decode_result(encode_result(result), kind) == result


def test_a_result_without_a_type_is_plain_json() -> None:
    assert decode_result(encode_result(Line("a", Decimal("1.10")))) == {"sku": "a", "price": "1.10"}
    assert decode_result(encode_result((1, {2: "x"}))) == [1, {"2": "x"}]


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (float("-inf"), "the result is -inf, which JSON cannot hold; pass None or leave it out"),
        ({"y": float("nan")}, "'result.y' is nan, which JSON cannot hold; pass None or leave it out"),
        (
            [Line("a", Decimal("NaN"))],
            "'result[0].price' is NaN, which is no number; pass None or leave it out",
        ),
        (datetime(2026, 1, 1), "the result is a datetime without a time zone"),  # noqa: DTZ001
        ({"s": "\ud800"}, "'result.s' holds a lone surrogate (U+D800, half a character) at position 0"),
        ({"k": {None: 1}}, "is a key that JSON cannot hold"),
        ({"k": {"\ud800": 1}}, "holds a lone surrogate"),
        ({date(2026, 1, 1): float("nan")}, "'result[datetime.date(2026, 1, 1)]' is nan"),
        (10**700, "the result is an integer of more than 640 digits"),
        (object(), "the result is an object, which has no form in JSON"),
        ("x" * 300_000, "the result takes 293 KiB, at most 256 KiB are kept; write it to a file or a table"),
    ],
)
def test_a_result_that_cannot_be_stored_is_refused(result: object, message: str) -> None:
    with pytest.raises(PayloadError) as caught:
        encode_result(result)

    assert message in str(caught.value)
    assert caught.value.path.startswith("result")


def test_an_open_file_is_no_result(tmp_path: Path) -> None:
    with (tmp_path / "a").open("w") as file, pytest.raises(PayloadError, match="the result is an open file"):
        encode_result(file)


def test_the_bounds_of_a_result_can_be_set() -> None:
    assert encode_result("aaaa", Bounds(max_bytes=6)) == b'"aaaa"'
    with pytest.raises(PayloadError, match="at most 6 B are kept"):
        encode_result("aaaaa", Bounds(max_bytes=6))
    with pytest.raises(PayloadError, match="nested more than 2 deep"):
        encode_result([[[1]]], Bounds(max_nesting=2))


@pytest.mark.parametrize(
    ("data", "kind", "message", "path"),
    [
        (b'{"sku":"a"}', Line, "the result does not fit its annotation", "result"),
        (
            b'[{"sku":"a","price":"x"}]',
            list[Line],
            "'result[0].price' does not fit its annotation",
            "result[0].price",
        ),
        (b'{"a":{"sku":1}}', dict[str, Line], "'result.a.sku' does not fit its annotation", "result.a.sku"),
        (b"{", Any, "the result cannot be read", "result"),
        (b"1", complex, "the result does not fit its annotation", "result"),
    ],
)
def test_a_result_that_does_not_fit_is_explained(data: bytes, kind: Any, message: str, path: str) -> None:
    with pytest.raises(PayloadError) as caught:
        decode_result(data, kind)

    assert message in str(caught.value)
    assert caught.value.path == path


def test_an_offset_survives_as_the_same_instant() -> None:
    assert decode_result(encode_result(NOON.astimezone()), datetime) == datetime(2026, 11, 29, 12, tzinfo=UTC)
