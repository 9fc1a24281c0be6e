"""RESULT in the arguments of a follow-up: written as a mark anywhere, proved around it, refused everywhere else."""

import copy
import pickle
from typing import Any

import pytest

from duly.core.errors import PayloadError, UsageError
from duly.core.job import RESULT_MARK
from duly.core.payload import Arguments, Bounds, encode_result
from duly.core.placeholder import RESULT
from tests.core.handlers import Job, Line, Order, taking

MARK = RESULT_MARK.decode()


def marked(arguments: Arguments, *args: object, **kwargs: object) -> str:
    return arguments.encode_marked(args, kwargs).decode()


@pytest.mark.parametrize(
    ("value", "json"),
    [
        (RESULT, MARK),
        ([1, RESULT, 3], f"[1,{MARK},3]"),
        ({"a": {"b": [RESULT]}, "c": RESULT}, f'{{"a":{{"b":[{MARK}]}},"c":{MARK}}}'),
        (Order(1, [Line("a", RESULT)]), f'{{"id":1,"lines":[{{"sku":"a","price":{MARK}}}],"notes":{{}}}}'),
    ],
    ids=["itself", "in a list", "deep in objects", "in a dataclass"],
)
def test_the_result_may_stand_anywhere_in_an_argument(value: object, json: str) -> None:
    assert marked(taking(Any), value) == f'{{"x":{json}}}'


def test_what_a_store_makes_of_the_mark_is_read_as_the_handlers_type() -> None:
    arguments = taking(Order)
    data = marked(arguments, Order(1, [Line("a", RESULT)]))

    found = arguments.decode(data.replace(MARK, '"9.90"'))

    assert found["x"].lines[0].price == Line("a", found["x"].lines[0].price).price
    with pytest.raises(PayloadError, match="does not fit its annotation"):
        arguments.decode(data.replace(MARK, "null"))


def test_the_arguments_beside_the_result_are_proved_as_ever() -> None:
    def handler(x: int, day: str, size: tuple[int, int]) -> None: ...

    arguments = Arguments(handler, job_type=Job)

    assert marked(arguments, RESULT, "monday", (1, 2)) == f'{{"x":{MARK},"day":"monday","size":[1,2]}}'
    with pytest.raises(PayloadError, match="'day'"):
        marked(arguments, RESULT, 7, (1, 2))
    with pytest.raises(PayloadError, match="'size'"):
        marked(arguments, RESULT, "monday", [1, 2])
    with pytest.raises(UsageError, match="missing a required argument"):
        marked(arguments, RESULT)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ([RESULT, "x" * 300_000], "256 KiB"),
        ([RESULT, object()], r"x\[1\]"),
        ({RESULT: 1}, "key"),
    ],
    ids=["too large", "an object beside it", "as a key"],
)
def test_what_cannot_be_stored_beside_the_result_is_refused(value: object, told: str) -> None:
    with pytest.raises(PayloadError, match=told):
        marked(taking(Any), value)


def test_a_call_without_the_result_is_encoded_as_any_other() -> None:
    arguments = taking(list[int])

    assert arguments.encode_marked(([1, 2],), {}) == arguments.encode(([1, 2],), {})
    with pytest.raises(PayloadError):
        arguments.encode_marked(([float("nan")],), {})


@pytest.mark.parametrize("value", [RESULT, [RESULT], {"a": RESULT}])
def test_the_result_outside_of_then_is_a_mistake_that_says_where_it_belongs(value: object) -> None:
    with pytest.raises(UsageError, match=r"in a draft of then="):
        taking(Any).encode((value,), {}, Bounds())
    with pytest.raises(UsageError, match=r"in a draft of then="):
        encode_result(value)


def test_text_that_looks_like_the_mark_is_text() -> None:
    arguments = taking(str)

    data = arguments.encode_marked((MARK,), {})

    assert RESULT_MARK not in data
    assert arguments.decode(data) == {"x": MARK}


def test_there_is_one_result() -> None:
    assert copy.deepcopy([RESULT])[0] is RESULT
    assert pickle.loads(pickle.dumps(RESULT)) is RESULT
    assert repr(RESULT) == "RESULT"
