"""Names and their keys: refused at once where a store, a screen or the command line would stumble."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duly.core.errors import UsageError
from duly.core.names import LENGTHS, Kind, check_name, key_of, suspect_key
from tests.core.handlers import FEW


@pytest.mark.parametrize("kind", LENGTHS)
@pytest.mark.parametrize("name", ["mail", "Ünïcode-☃", "a.b_c/d", "x" * 100])
def test_a_name_is_taken_as_it_is(kind: Kind, name: str) -> None:
    assert check_name(kind, name) == name


@pytest.mark.parametrize(
    ("kind", "name", "advice"),
    [
        ("queue", "", "must not be empty"),
        ("tag", " \t", "must not be empty"),
        ("queue", "a\x00b", "a NUL character at position 1"),
        ("tenant", "a\nb", "the control character U+000A at position 1"),
        ("tenant", "ab\x85", "the control character U+0085"),
        ("actor", "a\u2028b", "U+2028"),
        ("tag", "\ud83d", "a lone surrogate U+D83D"),
        ("tenant", " acme", "write 'acme'"),
        ("queue", "x" * 101, "has 101 characters; at most 100 fit"),
        ("correlation id", "x" * 10_000, "at most 200 fit"),
        ("queue", "mail:8", "holds ':'"),
        ("queue", "a,b", "holds ','"),
        ("task", "send mail", "holds ' '"),
        ("queue", 7, "is text, not int"),
    ],
)
def test_a_wrong_name_says_which_part_is_wrong(kind: Kind, name: str, advice: str) -> None:
    with pytest.raises(UsageError, match=kind) as caught:
        check_name(kind, name)

    assert advice in str(caught.value)
    assert len(str(caught.value)) < 200


def test_a_tenant_may_hold_what_separates_queues() -> None:
    assert check_name("tenant", "Smith, Jones: lawyers") == "Smith, Jones: lawyers"


def test_keys_never_change_from_one_release_to_the_next() -> None:
    assert key_of("mail") == 61031627399746291
    assert key_of("default") == 4010717984327297149
    assert suspect_key("mail") == 2350448283937401695


def test_composed_and_decomposed_letters_are_different_names() -> None:
    assert key_of("\u00e9") != key_of("e\u0301")


@FEW
@given(st.text(st.characters(exclude_categories=())))
def test_any_text_has_a_key_of_64_signed_bits_that_is_not_zero(name: str) -> None:
    key = key_of(name)

    assert -(2**63) <= key < 2**63
    assert key != 0
    assert suspect_key(name) != key


@FEW
@given(st.text(max_size=50), st.text(max_size=50))
def test_a_checked_name_never_has_the_key_of_a_lane_of_suspects(queue: str, other: str) -> None:
    try:
        check_name("queue", other)
    except UsageError:
        return

    assert key_of(other) != suspect_key(queue)
