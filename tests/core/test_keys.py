"""What stays of a key in a store: 16 bytes that no other kind, task, tenant or key shares, the same in SQL."""

from hashlib import sha256

import pytest

from duly.core.errors import UsageError
from duly.core.keys import (
    Unique,
    arguments_digest,
    idempotency_digest,
    once_digest,
    takes_place,
    unique_digest,
)


def test_digests_of_other_kinds_tasks_tenants_and_keys_all_differ() -> None:
    digests = [
        digest(task, tenant, key)
        for digest in (unique_digest, idempotency_digest)
        for task in ("send", "resize")
        for tenant in ("", "acme")
        for key in ("7", "8")
    ]
    digests += [once_digest("7"), once_digest("8")]

    assert len(set(digests)) == len(digests)
    assert {len(digest) for digest in digests} == {16}


def test_no_two_sets_of_names_run_into_one_text() -> None:
    assert unique_digest("a", "b", "c") != unique_digest("ab", "", "c")
    assert unique_digest("a", "", "bc") != unique_digest("a", "b", "c")
    assert idempotency_digest("a", "bc", "d") != idempotency_digest("a", "b", "cd")


def test_a_digest_is_one_that_sql_can_make() -> None:
    expected = sha256(b"unique\x1fsend\x1facme\x1forder:7").digest()[:16]

    assert unique_digest("send", "acme", "order:7") == expected
    assert once_digest("Zoë") == sha256("once\x1fZoë".encode()).digest()[:16]


def test_the_digest_of_arguments_tells_any_two_byte_strings_apart() -> None:
    long = b'{"a":"' + b"x" * 10_000
    texts = [b"{}", b'{"a":1}', b'{"a":2}', b'{"a":1} ', long + b'1"}', long + b'2"}']

    assert len({arguments_digest(text) for text in texts}) == len(texts)
    assert arguments_digest(b'{"a":1}') == sha256(b'{"a":1}').digest()[:16]


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (Unique(""), "key"),
        (Unique("a\x1fb"), "key"),
        (Unique("k", scope="done"), 'write "queued" or "live"'),  # type: ignore[arg-type]
        (Unique("k", on_conflict="skip"), 'write "return" or "replace"'),  # type: ignore[arg-type]
    ],
)
def test_a_key_that_may_not_be_stored_says_what_to_write(wrong: Unique, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        wrong.checked()


def test_a_unique_key_is_freed_by_its_claim_and_answers_the_first_job_unless_told_otherwise() -> None:
    assert Unique("k").checked() == Unique("k", scope="queued", on_conflict="return")


def test_the_newer_of_two_versions_stays_whatever_else_is_said() -> None:
    for said in (True, False):
        assert takes_place(6, 5, said)
        assert not takes_place(5, 6, said)
        assert takes_place(5, 5, said) is said
        assert takes_place(None, 5, said) is said
        assert takes_place(5, None, said) is said
