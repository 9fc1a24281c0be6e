"""A handler's signature: where its job stands, what its annotations mean, and how a call fits it."""

import functools
import sys
import types
import typing
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
import pytest

from duly.core.errors import PayloadError, UsageError
from duly.core.payload import Arguments
from tests.core.handlers import Job, taking


class SpecialJob(Job):
    pass


def arguments_of(fn: Callable[..., object]) -> Arguments:
    return Arguments(fn, job_type=Job)


def written(text: str, **names: object) -> Callable[..., object]:
    """A handler from source text, in a module of its own, so that its annotations are read as text."""
    module = types.ModuleType("shop_tasks")
    module.__dict__.update(names)
    exec("from __future__ import annotations\n" + text, module.__dict__)
    handler: Callable[..., object] = module.__dict__["handler"]
    return handler


def send(order_id: int, name: str = "x", *, urgent: bool = False) -> None: ...


def with_job(job: Job, order_id: int) -> None: ...


def test_a_call_becomes_an_object_by_parameter() -> None:
    arguments = arguments_of(send)

    assert arguments.encode((7,), {}) == b'{"order_id":7}'
    assert arguments.encode((7, "y"), {"urgent": True}) == b'{"order_id":7,"name":"y","urgent":true}'
    assert arguments.decode(b'{"name":"y","order_id":7}') == {"order_id": 7, "name": "y"}
    assert arguments.names == ("order_id", "name", "urgent")
    assert arguments.required == {"order_id"}
    assert not arguments.takes_job


def test_equal_calls_have_equal_bytes() -> None:
    arguments = arguments_of(send)

    assert arguments.encode((), {"name": "y", "order_id": 7}) == arguments.encode((7, "y"), {})


@pytest.mark.parametrize(
    ("annotation", "first", "second"),
    [
        (set[int], {0, 8}, {8, 0}),
        (frozenset[int], frozenset([0, 8]), frozenset([8, 0])),
        (dict[str, list[set[int]]], {"b": [{0, 8}], "a": []}, {"b": [{8, 0}], "a": []}),
        (set[int | None], {0, 8, None}, {None, 8, 0}),
        (tuple[set[int], int], ({0, 8}, 1), ({8, 0}, 1)),
    ],
)
def test_equal_sets_have_equal_bytes_whatever_order_they_iterate_in(
    annotation: Any, first: Any, second: Any
) -> None:
    arguments = taking(annotation)

    data = arguments.encode((first,), {})

    assert data == arguments.encode((second,), {})
    assert arguments.decode(data) == {"x": first}


def test_a_default_is_left_to_the_handler_that_will_run() -> None:
    assert arguments_of(send).decode(b'{"order_id":7}') == {"order_id": 7}


@pytest.mark.parametrize(
    ("args", "kwargs", "complaint"),
    [
        ((), {}, "send() missing a required argument: 'order_id'"),
        ((1, "x", True), {}, "send() too many positional arguments"),
        ((1,), {"order_id": 2}, "send() multiple values for argument 'order_id'"),
        ((1,), {"nam": "x"}, "send() got an unexpected keyword argument 'nam'"),
    ],
)
def test_a_call_that_does_not_fit_is_refused_in_pythons_words(
    args: tuple[object, ...], kwargs: dict[str, object], complaint: str
) -> None:
    with pytest.raises(UsageError) as caught:
        arguments_of(send).encode(args, kwargs)

    assert (
        str(caught.value) == f"{complaint}; it takes (order_id: int, name: str = 'x', urgent: bool = False)"
    )


def test_a_call_of_a_handler_with_a_job_does_not_mention_it() -> None:
    with pytest.raises(
        UsageError, match=r"missing a required argument: 'order_id'; it takes \(order_id: int\)"
    ):
        arguments_of(with_job).encode((), {})


def test_a_job_without_its_annotation_is_told_how_to_write_it() -> None:
    def handler(job, order_id: int) -> None: ...  # type: ignore[no-untyped-def]

    with pytest.raises(
        UsageError, match=r"it takes \(job, order_id: int\); to be given its Job, annotate it"
    ):
        arguments_of(handler).encode((7,), {})


def test_a_handler_may_take_nothing() -> None:
    def handler() -> None: ...

    assert arguments_of(handler).encode((), {}) == b"{}"
    assert arguments_of(handler).decode(b"{}") == {}


def test_the_job_is_the_first_parameter_whatever_its_name() -> None:
    def handler(it: Job, x: int) -> None: ...

    def narrower(job: SpecialJob, x: int) -> None: ...

    def first_by_position(job: Job, /, x: int) -> None: ...

    def unannotated(job, x):  # type: ignore[no-untyped-def]
        """The annotation counts, not the name."""

    for each in (handler, narrower, first_by_position):
        assert arguments_of(each).takes_job
        assert arguments_of(each).encode((7,), {}) == b'{"x":7}'
    assert not arguments_of(unannotated).takes_job


@pytest.mark.parametrize(
    ("names", "source"),
    [
        ({"Job": Job}, "def handler(job: Job, x: int): ..."),
        ({}, "def handler(job: Job, x: int): ..."),
        ({}, "def handler(job: duly.Job, x: int): ..."),
        ({"Handle": Job}, "def handler(job: Handle, x: int): ..."),
    ],
)
def test_the_job_is_recognised_in_text_even_if_only_type_checkers_import_it(
    names: dict[str, object], source: str
) -> None:
    arguments = arguments_of(written(source, **names))

    assert arguments.takes_job
    assert arguments.encode((7,), {}) == b'{"x":7}'


def test_a_class_of_the_users_that_is_called_job_is_an_argument() -> None:
    job = msgspec.defstruct("Job", [("title", str)])

    arguments = arguments_of(written("def handler(job: Job): ...", Job=job))

    assert not arguments.takes_job
    assert arguments.encode((job("cook"),), {}) == b'{"job":{"title":"cook"}}'


def test_a_class_that_is_defined_after_the_handler_is_found_at_the_first_use() -> None:
    handler = written("def handler(x: Later, job: Job = None): ...")
    arguments = arguments_of(handler)

    handler.__globals__["Later"] = int
    handler.__globals__["Job"] = str

    assert arguments.encode((7, "cook"), {}) == b'{"x":7,"job":"cook"}'


@pytest.mark.parametrize(
    ("source", "corrected"),
    [
        ("def handler(x: int, job: Job) -> str: ...", "def handler(job: Job, x: int) -> str:"),
        ("async def handler(x: int, *, job: Job): ...", "async def handler(job: Job, x: int):"),
        ("def handler(x, y: str = 'a', job: Job = None): ...", "def handler(job: Job, x, y: str = 'a'):"),
        ("def handler(job: Job = None): ...", "def handler(job: Job):"),
        ("def handler(job: Job | None): ...", "def handler(job: Job):"),
        ("def handler(*, job: Job, x=1): ...", "def handler(job: Job, *, x=1):"),
        ("def handler(x: list[Job]): ...", "def handler(x: Job):"),
        ("def handler(job: Job, other: Job): ...", "def handler(other: Job, job: Job):"),
    ],
)
def test_a_job_anywhere_else_is_refused_with_the_line_to_write(source: str, corrected: str) -> None:
    with pytest.raises(UsageError) as caught:
        arguments_of(written(source, Job=Job))

    assert f"it comes first, without a default: write `{corrected}`" in str(caught.value)


@pytest.mark.parametrize("annotation", [Job | None, Annotated[Job, "x"], list[Job]])
def test_a_job_that_is_wrapped_is_refused_at_declaration(annotation: Any) -> None:
    def handler(job: Any) -> None: ...

    handler.__annotations__["job"] = annotation

    with pytest.raises(UsageError, match=r"write `def handler\(job: Job\) -> None:`"):
        arguments_of(handler)


def test_a_job_that_only_type_checkers_import_is_refused_at_the_first_use() -> None:
    arguments = arguments_of(written("def handler(x: int, job: Job): ..."))

    with pytest.raises(UsageError, match=r"write `def handler\(job: Job, x: int\):`"):
        arguments.encode((7,), {})


def test_an_annotation_that_cannot_be_read_names_parameter_module_and_remedy() -> None:
    arguments = arguments_of(written("def handler(order: Order): ..."))

    with pytest.raises(UsageError) as caught:
        arguments.encode((7,), {})

    text = str(caught.value)
    assert (
        "parameter 'order' of handler() is annotated Order, which shop_tasks does not hold at run time"
        in text
    )
    assert "TYPE_CHECKING" in text
    assert "runtime-evaluated-decorators" in text


def test_a_class_of_the_enclosing_function_is_found_if_the_handler_uses_it() -> None:
    def declare() -> Callable[..., object]:
        @dataclass
        class Local:
            x: int

        unset: int
        if sys.argv is None:
            unset = 1

        def handler(it: "Local", also: "Local | None" = None) -> object:
            return Local, unset

        return handler

    arguments = arguments_of(declare())

    assert arguments.decode(b'{"it":{"x":1}}')["it"].x == 1


def test_a_wrapper_that_tells_what_it_wraps_is_read_through() -> None:
    @functools.wraps(send)
    def wrapper(*args: Any, **kwargs: Any) -> None: ...

    assert arguments_of(wrapper).names == ("order_id", "name", "urgent")
    assert arguments_of(functools.partial(send, 7)).encode((), {"name": "y"}) == b'{"name":"y"}'


def test_a_callable_object_can_be_a_handler() -> None:
    class Handler:
        def __call__(self, x: int) -> None: ...

    assert arguments_of(Handler()).encode((7,), {}) == b'{"x":7}'
    with pytest.raises(UsageError, match=r"object at 0x[0-9a-f]+>\(\) missing a required argument: 'x'"):
        arguments_of(Handler()).encode((), {})


@pytest.mark.parametrize(
    ("source", "advice"),
    [
        (
            "def handler(*ids): ...",
            "takes *ids, but arguments are stored by name; take one 'ids: list[...]' instead",
        ),
        (
            "def handler(**more): ...",
            "takes **more, but arguments are stored by name; take one 'more: dict[...]'",
        ),
    ],
)
def test_open_ends_are_refused_at_declaration(source: str, advice: str) -> None:
    with pytest.raises(UsageError) as caught:
        arguments_of(written(source))

    assert advice in str(caught.value)
    assert "functools.wraps" in str(caught.value)


def test_a_parameter_by_position_only_is_refused() -> None:
    def handler(order_id: int, /) -> None: ...

    with pytest.raises(UsageError, match=r"takes 'order_id' by position only; remove the '/'"):
        arguments_of(handler).encode((7,), {})


def test_what_has_no_signature_is_refused() -> None:
    with pytest.raises(UsageError, match="has no signature that can be read; wrap it"):
        arguments_of(type)
    with pytest.raises(UsageError, match="has no signature"):
        arguments_of(typing.cast(Any, 7))


class Unreadable:
    pass


@pytest.mark.parametrize(
    ("annotation", "advice"),
    [
        (Unreadable, "is annotated Unreadable, which has no form in JSON; pass its id, or a dataclass"),
        (dict[str, list[Unreadable]], "is annotated Unreadable"),
        (Callable[[int], int], "has no form in JSON"),
        (Iterator[int], "has no form in JSON"),
        (complex, "is annotated complex, which has no form in JSON"),
        (str | bytes, "is annotated str | bytes, which cannot be read from JSON"),
        (set[list[dict[int, "Nowhere"]]], "cannot be read from JSON"),  # type: ignore[name-defined]  # noqa: F821
    ],
)
def test_a_type_without_a_form_in_json_is_refused_at_the_first_use(annotation: Any, advice: str) -> None:
    def handler(x: Any) -> None: ...

    handler.__annotations__["x"] = annotation
    arguments = arguments_of(handler)

    with pytest.raises(UsageError, match=r"parameter 'x' of handler\(\)") as caught:
        arguments.encode((1,), {})
    assert advice in str(caught.value) or "does not hold at run time" in str(caught.value)


def test_a_default_need_not_fit_and_an_explicit_none_must() -> None:
    def handler(x: int = None) -> None: ...  # type: ignore[assignment]  # noqa: RUF013

    assert arguments_of(handler).encode((), {}) == b"{}"
    with pytest.raises(PayloadError, match="expected `int`, got `null`"):
        arguments_of(handler).encode((None,), {})
