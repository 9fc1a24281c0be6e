"""The record of an error: what is kept, what is grouped, and that nothing an error does can prevent it."""

import threading
import traceback
from collections.abc import Callable
from types import FunctionType
from typing import Any, NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duly.core.fingerprint import ErrorRecord, describe, leaves, normalise
from tests.core.handlers import FEW


def caught(action: Callable[[], object]) -> BaseException:
    try:
        action()
    except BaseException as error:
        # Without the frame of this function, as if the action had been the first thing on the stack.
        return error.with_traceback(error.__traceback__ and error.__traceback__.tb_next)
    raise AssertionError("nothing was raised")


def charge(account: object) -> NoReturn:
    raise LookupError(f"account {account} not found")


def refund(account: object) -> NoReturn:
    raise LookupError(f"account {account} not found")


def in_module(module: str, action: Callable[[], object]) -> Callable[[], object]:
    """A real frame that belongs to another module."""

    def call() -> object:
        return action()

    return FunctionType(call.__code__, {"__name__": module}, "call", None, call.__closure__)


class Awkward(Exception):
    def __init__(self, first: int, second: int) -> None:
        super().__init__(first)


class Mute(Exception):
    def __str__(self) -> str:
        raise SystemExit(3)


class Lying(Exception):
    def __str__(self) -> str:
        number: Any = 7
        return number  # type: ignore[no-any-return]


class Holding(Exception):
    def __init__(self) -> None:
        super().__init__(threading.Lock(), lambda: None)


class Nameless(type):
    def __getattribute__(cls, name: str) -> Any:
        if name == "__module__":
            raise RuntimeError("no module")
        return super().__getattribute__(name)


class Anonymous(Exception, metaclass=Nameless):
    pass


def test_type_message_and_lines_are_kept_as_text() -> None:
    record = describe(caught(lambda: charge(7)))

    assert record.type == "LookupError"
    assert record.message == "account 7 not found"
    assert record.traceback.startswith("Traceback (most recent call last):\n")
    assert "in charge\n" in record.traceback
    assert 'raise LookupError(f"account' in record.traceback
    assert record.traceback.endswith("LookupError: account 7 not found\n")
    assert len(record.fingerprint) == 8
    assert int(record.fingerprint, 16) >= 0


def test_a_class_of_ones_own_is_named_with_its_module() -> None:
    assert describe(Awkward(1, 2)).type == f"{__name__}.Awkward"


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (Awkward(1, 2), "1"),
        (Mute(), "(its text cannot be read: str() raised SystemExit)"),
        (Lying(), "(its text cannot be read: str() raised TypeError)"),
        (SystemExit(0), "0"),
        (KeyboardInterrupt(), ""),
        (ValueError("a\x00b\ud83d"), r"a\u0000b\ud83d"),
    ],
)
def test_no_error_is_too_odd_to_be_described(error: BaseException, message: str) -> None:
    record = describe(caught(lambda: (_ for _ in ()).throw(error)))

    assert record.message == message
    assert record.traceback != ""


def test_an_error_that_no_pickle_takes_is_described() -> None:
    record = describe(Holding())

    assert record.type == f"{__name__}.Holding"
    assert "lock object" in record.message


def test_a_class_without_a_module_is_described() -> None:
    record = describe(Anonymous("x"))

    assert record.type == "unnamed error"
    assert record.message == "x"
    assert record.traceback != ""


def test_the_cause_is_in_the_traceback() -> None:
    def action() -> None:
        try:
            charge(7)
        except LookupError as error:
            raise Awkward(1, 2) from error

    record = describe(caught(action))

    assert "account 7 not found" in record.traceback
    assert "direct cause" in record.traceback


def test_an_endless_recursion_is_short() -> None:
    def deeper(depth: int) -> int:
        return deeper(depth + 1) + 1

    record = describe(caught(lambda: deeper(0)))

    assert record.type == "RecursionError"
    assert len(record.traceback) < 4_000


def test_a_ring_of_causes_ends() -> None:
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__cause__ = second, first

    assert describe(first).message == "first"


def test_a_traceback_that_cannot_be_formatted_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: object, **options: object) -> NoReturn:
        raise MemoryError

    monkeypatch.setattr(traceback, "TracebackException", broken)

    assert describe(caught(lambda: charge(7))).traceback == "(no traceback: formatting it raised MemoryError)"


def test_a_group_that_misbehaves_is_described() -> None:
    class Odd(ExceptionGroup[Exception]):
        @property
        def exceptions(self) -> NoReturn:
            raise RuntimeError("none of your business")

    record = describe(Odd("odd", [ValueError("x")]))

    assert record.type.endswith("Odd")
    assert len(record.fingerprint) == 8


def test_the_newest_lines_are_kept_when_there_is_too_much() -> None:
    def ping(depth: int) -> None:
        if depth:
            pong(depth - 1)
        raise ValueError("é" * 5_000)

    def pong(depth: int) -> None:
        ping(depth)

    record = describe(caught(lambda: ping(8)), max_bytes=512)

    assert record.traceback.startswith("…\n")
    assert "ValueError: é" in record.traceback
    assert sum(len(part.encode()) for part in (record.type, record.message, record.traceback)) <= 512


@FEW
@given(st.text(st.characters(exclude_categories=())), st.integers(min_value=200, max_value=5_000))
def test_any_message_fits_its_bound_and_can_be_stored(text: str, most: int) -> None:
    record = describe(caught(lambda: (_ for _ in ()).throw(ValueError(text * 20))), max_bytes=most)

    whole = record.type + record.message + record.traceback
    assert len(whole.encode()) <= most
    assert "\x00" not in whole


def test_the_frames_that_called_the_handler_are_not_shown() -> None:
    record = describe(caught(in_module("duly.worker.run", lambda: charge(7))))

    assert "in call\n" not in record.traceback
    assert "in charge\n" in record.traceback


def test_an_error_of_our_own_frames_alone_shows_them() -> None:
    record = describe(caught(in_module("duly.worker.run", in_module("duly.core.payload", {}.popitem))))

    assert record.type == "KeyError"
    assert record.traceback.count("in call\n") == 2


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("order 7 not found", "order 12345 not found"),
        ("user 'anna' is locked", "user 'bob' is locked"),
        ('key "a b" exists', 'key "c" exists'),
        (
            "job 6ba7b810-9dad-11d1-80b4-00c04fd430c8 failed",
            "job 0e2ef1a6-3b11-4f9e-8a44-2f3f6f1f0b1c failed",
        ),
        ("at 0x7f1cdd0af4c0", "at 0x7f1cdd0af4d8"),
        ("digest deadbeefcafe", "digest abcdefabcdef"),
        ("mail to anna@example.com bounced", "mail to b@example.org bounced"),
        ("2026-11-29T18:15:58 took 1.5s", "2025-01-01T00:00:00 took 12s"),
        ("rows [1, 2, 3]", "rows [4, 5]"),
        ("two  blanks", "two\nblanks"),
    ],
)
def test_messages_that_differ_in_their_ids_group_together(one: str, other: str) -> None:
    assert normalise(one) == normalise(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("order 7 not found", "customer 7 not found"),
        ("can't open", "can't close"),
        ("connection refused", "connection reset"),
    ],
)
def test_different_messages_stay_apart(one: str, other: str) -> None:
    assert normalise(one) != normalise(other)


def test_the_same_failure_has_one_fingerprint_and_another_place_another() -> None:
    one = describe(caught(lambda: charge(1))).fingerprint
    two = describe(caught(lambda: charge(22))).fingerprint
    elsewhere = describe(caught(lambda: refund(1))).fingerprint

    assert one == two
    assert one != elsewhere


def test_the_frames_of_the_worker_do_not_change_the_fingerprint() -> None:
    def handler() -> None:
        charge(1)

    plain = describe(caught(handler))
    under_a_worker = describe(caught(in_module("duly.worker.run", in_module("asyncio.runners", handler))))

    assert plain.fingerprint == under_a_worker.fingerprint


def test_the_depth_of_a_recursion_does_not_change_the_fingerprint() -> None:
    def down(depth: int) -> None:
        if not depth:
            raise ValueError("bottom")
        down(depth - 1)

    def at(depth: int) -> ErrorRecord:
        return describe(caught(lambda: down(depth)))

    assert at(3).fingerprint == at(30).fingerprint


def test_groups_are_told_apart_by_what_they_hold() -> None:
    def grouped(*errors: Exception) -> str:
        return describe(ExceptionGroup("unhandled errors in a TaskGroup", list(errors))).fingerprint

    assert grouped(ValueError("id 1")) == grouped(ValueError("id 2"))
    assert grouped(ValueError("id 1")) != grouped(KeyError("id 1"))
    assert grouped(ValueError("a"), KeyError("b")) == grouped(KeyError("b"), ValueError("a"))


def test_the_leaves_of_a_nested_group_are_its_errors() -> None:
    one, two = ValueError("1"), ValueError("2")

    assert set(leaves(ExceptionGroup("a", [ExceptionGroup("b", [one]), two]))) == {one, two}
    assert list(leaves(one)) == [one]
