"""Tickets: what is written reads the same, and nothing else reads at all."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from duly.core.errors import UsageError
from duly.core.job import JobId
from duly.core.signing import KeyRing
from duly.core.ticket import (
    PURPOSE,
    Ticket,
    TicketError,
    Words,
    check_words,
    is_link,
    read_ticket,
    write_ticket,
)

NOW = datetime(2030, 5, 1, 9, tzinfo=UTC)
RING = KeyRing([b"a secret of this site"], PURPOSE)
TICKET = Ticket(
    JobId(7), NOW, NOW + timedelta(days=7), timedelta(hours=24), Words("Your receipt", "/orders/7")
)
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

words = st.builds(
    Words,
    st.text(st.characters(codec="utf-8"), max_size=300),
    st.text(st.characters(codec="utf-8"), max_size=300),
    st.text(st.characters(codec="utf-8"), max_size=300),
)
tickets = st.builds(
    lambda job, issued, life, kept, said: Ticket(
        JobId(job),
        issued,
        issued + timedelta(seconds=life),
        timedelta(seconds=kept),
        said,
    ),
    st.integers(0, 2**63 - 1),
    st.integers(0, 10**17).map(
        lambda micros: datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
    ),
    st.integers(1, 100 * 365 * 86_400),
    st.integers(0, 2**32 - 1),
    words,
)


@given(tickets)
def test_a_ticket_reads_as_it_was_written(ticket: Ticket) -> None:
    assume(len(ticket.words.title + ticket.words.link + ticket.words.failed) < 400)

    assert read_ticket(RING, write_ticket(RING, ticket)) == ticket


@given(st.text())
def test_no_text_from_outside_is_a_ticket(text: str) -> None:
    with pytest.raises(TicketError):
        read_ticket(RING, text)


@given(st.text(ALPHABET, max_size=200))
def test_no_text_of_the_right_letters_is_a_ticket(text: str) -> None:
    with pytest.raises(TicketError):
        read_ticket(RING, text)


@given(st.data())
def test_one_other_letter_anywhere_makes_it_no_ticket(data: st.DataObject) -> None:
    text = write_ticket(RING, TICKET)
    position = data.draw(st.integers(0, len(text) - 1))
    letter = data.draw(st.sampled_from(ALPHABET))
    assume(letter != text[position])

    with pytest.raises(TicketError):
        read_ticket(RING, text[:position] + letter + text[position + 1 :])


@given(st.integers(0, 200), st.text(ALPHABET, min_size=1, max_size=5))
def test_a_cut_or_lengthened_ticket_is_none(length: int, tail: str) -> None:
    text = write_ticket(RING, TICKET)
    assume(length < len(text))

    for forged in (text[:length], text + tail, text + "=", " " + text, text + "\n"):
        with pytest.raises(TicketError):
            read_ticket(RING, forged)


def test_a_ticket_far_too_long_is_not_even_decoded() -> None:
    with pytest.raises(TicketError):
        read_ticket(RING, "A" * 1_000_000)


def test_a_new_key_signs_and_the_old_one_still_verifies() -> None:
    old = write_ticket(RING, TICKET)
    rotated = KeyRing([b"the new secret of this site", b"a secret of this site"], PURPOSE)

    assert read_ticket(rotated, old) == TICKET
    with pytest.raises(TicketError) as caught:
        read_ticket(RING, write_ticket(rotated, TICKET))
    assert caught.value.unknown_key


def test_a_key_that_left_the_ring_verifies_nothing() -> None:
    with pytest.raises(TicketError):
        read_ticket(KeyRing([b"the new secret of this site"], PURPOSE), write_ticket(RING, TICKET))


def test_a_signature_for_another_purpose_opens_no_ticket() -> None:
    session = KeyRing([b"a secret of this site"], "session")

    with pytest.raises(TicketError):
        read_ticket(RING, write_ticket(session, TICKET))


def test_a_plain_ticket_is_short_enough_for_a_mail() -> None:
    plain = Ticket(JobId(2**40), NOW, NOW + timedelta(days=7), timedelta(hours=24))

    assert len(write_ticket(RING, plain)) == 60


def test_before_its_record_can_be_gone_a_missing_one_is_not_visible_yet() -> None:
    assert not TICKET.may_be_gone(NOW + timedelta(hours=24) - timedelta(seconds=1))
    assert TICKET.may_be_gone(NOW + timedelta(hours=24))
    assert not TICKET.expired(TICKET.expires - timedelta(seconds=1))
    assert TICKET.expired(TICKET.expires)


@pytest.mark.parametrize(
    "link",
    [
        "/orders/7",
        "/",
        "https://shop.example/orders/7?x=1#y",
        "http://127.0.0.1:8000/",
        "HTTPS://shop.example",
    ],
)
def test_a_link_leads_to_a_page(link: str) -> None:
    assert is_link(link)


@pytest.mark.parametrize(
    "link",
    [
        "",
        "orders/7",
        "//evil.example/",
        "/\\evil.example",
        "\\\\evil.example",
        "javascript:alert(1)",
        "JavaScript:alert(1)",
        " javascript:alert(1)",
        "java\nscript:alert(1)",
        "data:text/html,x",
        "https://shop.example@evil.example/",
        "https:///evil.example",
        "https://shop.example/\u202egpj.exe",
        "/a b",
        "/" + "x" * 2_000,
    ],
)
def test_nothing_else_is_a_link(link: str) -> None:
    assert not is_link(link)
    if link:
        with pytest.raises(UsageError):
            check_words(None, link, None)


def test_words_are_bounded_and_visible() -> None:
    with pytest.raises(UsageError, match="at most 300"):
        check_words("x" * 301, None, None)
    with pytest.raises(UsageError, match="do not show"):
        check_words("a\x00b", None, None)
    assert check_words("Your receipt", "/orders/7", None) == Words("Your receipt", "/orders/7", "")
