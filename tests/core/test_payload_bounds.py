"""The bounds of a payload, and what decoding says of what others wrote."""

from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from duly.core.errors import PayloadError
from duly.core.payload import Arguments, Bounds
from tests.core.handlers import FEW, Colour, Job, Level, Line, Order, Size, plain, refused, taking


def test_a_payload_is_bounded_in_bytes_to_the_last_one() -> None:
    arguments = taking(str)
    around = len('{"x":""}')

    assert len(arguments.encode(("a" * (256 * 1024 - around),), {})) == 256 * 1024
    error = refused(arguments, "a" * (256 * 1024 - around + 1))
    assert error.path == "x"
    assert "at most 256 KiB are stored: pass a path or Blob.of(path), or an id" in str(error)
    assert "293 KiB" in str(refused(arguments, "x" * 300_000))
    assert "at most 10 B" in str(refused(taking(list[str]), ["aaaaa"], Bounds(max_bytes=10)))


def test_the_largest_argument_is_named() -> None:
    def handler(order_id: int, photo: bytes) -> None: ...

    with pytest.raises(PayloadError, match=r"most of it 'photo' \(390.6 KiB\)") as caught:
        Arguments(handler, job_type=Job).encode((7, b"x" * 300_000), {})

    assert caught.value.path == "photo"


def nested(depth: int) -> Any:
    value: Any = 0
    for level in range(depth):
        value = [value] if level % 2 else {"k": value}
    return value


def test_a_payload_is_bounded_in_depth() -> None:
    arguments = Arguments(plain, job_type=Job)

    assert arguments.decode(arguments.encode((nested(64),), {}))["x"] == nested(64)
    for depth in (65, 66, 900, 5_000):
        error = refused(arguments, nested(depth))
        assert "is nested more than 64 deep" in str(error)
        assert len(str(error)) < 300
    assert "more than 2 deep" in str(refused(arguments, [[[]]], Bounds(max_nesting=2)))


def test_brackets_in_text_and_side_by_side_are_no_depth() -> None:
    arguments = Arguments(plain, job_type=Job)

    values: list[Any] = [
        "[" * 1_000,
        "\\" * 99 + '"[' * 200,
        [[] for _ in range(1_000)],
        {str(n): {} for n in range(100)},
    ]

    for value in values:
        assert arguments.decode(arguments.encode((value,), {}))["x"] == value


def test_a_value_that_contains_itself_is_refused() -> None:
    ring: dict[str, Any] = {"list": []}
    ring["list"].append(ring)

    error = refused(Arguments(plain, job_type=Job), ring)

    assert error.path == "x.list[0]"
    assert "contains itself; pass an id" in str(error)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=15,
)
ANYTHING = st.recursive(
    JSON
    | st.floats()
    | st.text(st.characters(exclude_categories=()))
    | st.binary()
    | st.decimals()
    | st.datetimes()
    | st.datetimes(timezones=st.timezones())
    | st.uuids()
    | st.sampled_from([Colour.RED, Size.BIG, Level.HIGH, Line("a", Decimal(1)), Path("a"), object(), int]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text() | st.integers() | st.booleans() | st.none(), inner, max_size=3)
        | st.builds(Order, st.integers(), st.just([]), st.dictionaries(st.text(), inner, max_size=2))
    ),
    max_leaves=8,
)


@FEW
@given(JSON)
def test_plain_json_survives_whatever_it_holds(value: Any) -> None:
    arguments = Arguments(plain, job_type=Job)

    assert arguments.decode(arguments.encode((value,), {}))["x"] == value


@FEW
@given(ANYTHING)
def test_anything_survives_unchanged_or_is_refused_at_once(value: Any) -> None:
    arguments = taking(Any)

    try:
        data = arguments.encode((value,), {})
    except PayloadError:
        return

    arrived = arguments.decode(data)["x"]
    assert arrived == value
    assert repr(arrived) == repr(value)


@FEW
@given(st.datetimes(timezones=st.timezones()))
def test_an_aware_moment_arrives_as_the_same_instant(moment: datetime) -> None:
    arguments = taking(datetime)

    offset = moment.utcoffset()
    assume(offset is not None and not offset % timedelta(minutes=1))

    data = arguments.encode((moment,), {})

    assert arguments.decode(data)["x"] - moment == timedelta(0)


@FEW
@given(st.binary(max_size=200) | JSON.map(msgspec.json.encode) | st.just(b'{"x":' + b"[" * 100_000))
def test_whatever_a_store_holds_decoding_answers_with_a_value_or_a_payload_error(data: bytes) -> None:
    arguments = taking(Order)

    with pytest.raises(PayloadError):
        arguments.decode(data)


@pytest.mark.parametrize(
    ("data", "advice", "path"),
    [
        (
            b'{"x":{"id":1,"lines":[{"sku":"a","price":"x"}]}}',
            "does not fit its annotation",
            "x.lines[0].price",
        ),
        (b'{"x":null,"y":1}', "argument 'x' does not fit its annotation: expected `object`, got `null`", "x"),
        (b'{"y":1}', "'y' is not among what handler() takes (x): another release enqueued this job", "y"),
        (b"{}", "'x', which handler() requires, is not among those stored: another release", "x"),
        (b'{"x":', "the payload cannot be read", ""),
        (b'{"x":{"lines":[{"sku":"\xff"}]}}', "the payload cannot be read", ""),
        (b'{"x":{"notes":{"a":' + b"[" * 100_000, "the payload is nested too deep to be read", ""),
    ],
)
def test_what_another_release_or_program_wrote_is_explained(data: bytes, advice: str, path: str) -> None:
    with pytest.raises(PayloadError) as caught:
        taking(Order).decode(data)

    assert advice in str(caught.value)
    assert caught.value.path == path


def test_a_key_among_very_many_is_left_unnamed() -> None:
    value: dict[str, Any] = {str(n): n for n in range(200)}
    value["150"] = "x"

    assert refused(taking(dict[str, int]), value).path == "x[...]"
