"""Scopes: how they are written, and what they allow."""

import pytest

from duly.core.bearer import digest_of, is_text, make_text
from duly.core.errors import UsageError
from duly.core.scopes import VERBS, Scopes


def test_a_scope_of_one_queue_holds_there_and_nowhere_else() -> None:
    scopes = Scopes.parse(["enqueue:mail", "read"])

    assert scopes.allows("enqueue", "mail")
    assert not scopes.allows("enqueue", "reports")
    assert not scopes.allows("enqueue")
    assert scopes.allows("read", "reports")
    assert (scopes.queues("enqueue"), scopes.queues("read"), scopes.queues("work")) == (
        frozenset({"mail"}),
        None,
        frozenset(),
    )


def test_admin_is_all_of_it_and_nothing_else_is() -> None:
    everything = Scopes.parse(["admin"])
    most = Scopes.parse([verb for verb in VERBS if verb != "admin"])

    assert all(everything.allows(verb) and everything.allows(verb, "mail") for verb in VERBS)
    assert not most.allows("admin")
    assert not Scopes().allows("read", "mail")


def test_scopes_are_written_as_they_are_read() -> None:
    texts = ["dead:mail", "enqueue", "read:reports"]

    assert list(Scopes.parse(texts).texts()) == texts


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("enque:mail", "did you mean 'enqueue:mail'?"),
        ("nonsense", "verbs are enqueue"),
        ("", "verbs are enqueue"),
        ("read:", "must not be empty"),
        ("read:a b", "separates names"),
        ("admin:mail", "in every queue"),
    ],
)
def test_what_is_no_scope_says_what_to_write(text: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        Scopes.parse([text])

    assert hint in str(caught.value)


def test_tokens_are_told_from_other_texts_and_known_by_a_digest() -> None:
    one, other = make_text(bytes(32)), make_text(bytes(31) + b"\1")

    assert is_text(one)
    assert not any(
        map(is_text, ["", "duly_", one + "x", one[:-1], one.replace("duly_", "DULY_"), one[:-1] + "é"])
    )
    assert digest_of(one) != digest_of(other)
    assert len(digest_of(one)) == 32
