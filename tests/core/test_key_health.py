"""Which ordering keys need a person, from records alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from duly.core.control import KeyRecord
from duly.core.key_health import HOT, key_trouble

NOON = datetime(2030, 5, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def key(
    state: str | None, waiting: int, since: timedelta = MINUTE, *, paused: bool = False, tenant: str = ""
) -> KeyRecord:
    return KeyRecord("mail", tenant, "order 7", 41, state, waiting, NOON - since, paused)


@pytest.mark.parametrize(
    ("record", "wrong", "remedy"),
    [
        (
            key("dead", 3),
            "ordering key order 7 of mail is stuck: 3 jobs wait behind job 41, which is dead.",
            "duly dead redrive 41, or on without it: duly resume 'key:mail/order 7'",
        ),
        (
            key("ready", 1, paused=True, tenant="acme"),
            (
                "ordering key order 7 of mail (tenant acme) is stuck: "
                "it is paused since a job of it died, and 1 job waits."
            ),
            "duly resume 'key:mail/order 7' --tenant acme",
        ),
        (
            key("scheduled", 2, 60 * MINUTE),
            "ordering key order 7 of mail is stuck: job 41 (scheduled) has owned it for 1h, and 2 jobs wait behind it.",
            "duly why 41",
        ),
        (
            key("running", HOT),
            "ordering key order 7 of mail is hot: 1,000 jobs wait, and they run one at a time.",
            "Split it, as by a part of the key",
        ),
    ],
)
def test_a_key_says_what_is_wrong_with_it_and_what_to_do(record: KeyRecord, wrong: str, remedy: str) -> None:
    assert key_trouble(record, NOON) == f"{wrong} {remedy}"


@pytest.mark.parametrize("record", [key("running", HOT - 1), key("dead", 0), key("running", 5, 59 * MINUTE)])
def test_a_key_that_goes_on_says_nothing(record: KeyRecord) -> None:
    assert key_trouble(record, NOON) is None
