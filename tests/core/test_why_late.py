"""The sentences on a queue whose jobs wait long: its cap, slow tasks, a tenant's flood, its dead letters."""

from datetime import UTC, datetime, timedelta

import pytest

from duly.core.operating import Tally
from duly.core.why_late import Group, cap_reason, dead_reasons, slow_reasons, tenant_reason

NOW = datetime(2030, 5, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def tally(task: str, completed: int, each: float) -> Tally:
    return Tally("mail", task, NOW, completed=completed, ran=timedelta(seconds=each * completed))


def test_a_cap_is_told_when_it_is_reached() -> None:
    assert cap_reason("mail", 19, 20, []) is None
    assert cap_reason("mail", 20, None, []) is None

    found = cap_reason("mail", 20, 20, ["send"] * 3 + ["digest"])

    assert found is not None
    assert found.text == "its cap is reached: 20 of 20 run, 3 of 4 of them send"
    assert found.change == "duly limit mail --max-running 60 --for 2h --reason WHY"


def test_only_tasks_that_have_become_slower_are_told_the_costliest_first() -> None:
    lately = [tally("send", 10, 4.0), tally("send", 10, 14.0), tally("digest", 90, 3.0), tally("new", 5, 9.0)]
    before = [tally("send", 100, 0.3), tally("digest", 100, 1.0), tally("gone", 5, 1.0)]

    told = [reason.text for reason in slow_reasons(lately, before)]

    assert told == [
        "digest takes 3s on average, 1s a day ago",
        "send takes 9s on average, 0.3s a day ago",
    ]
    assert list(slow_reasons([tally("send", 5, 0.4)], before)) == []
    assert list(slow_reasons([tally("send", 0, 0.4)], before)) == []


@pytest.mark.parametrize(
    ("seen", "ready"),
    [
        (["a"] * 30, 49),
        ([""] * 400, 400),
        (["a"] * 100 + ["b"] * 101 + ["c"] * 99, 300),
        (["a"] * 60, 60),
    ],
)
def test_no_tenant_is_told_of_who_is_alone_small_or_one_of_many(seen: list[str], ready: int) -> None:
    assert tenant_reason("mail", seen, ready, fair=True) is None


def test_a_flood_is_told_with_what_would_hold_it() -> None:
    all_seen = tenant_reason("mail", ["big co"] * 90 + ["b"] * 10, 100, fair=True)
    some = tenant_reason("mail", ["bigco"] * 480 + ["b"] * 20, 180_000, fair=False)

    assert all_seen is not None
    assert some is not None
    assert all_seen.text == "tenant big co has 90 of the 100 jobs that wait; each tenant has its turn"
    assert all_seen.change == "duly limit mail --tenant 'big co' --max-running 5 --for 2h --reason WHY"
    assert some.text == (
        "tenant bigco has about 96 % of the 180,000 jobs that wait (480 of the 500 looked at); fair is off, so that "
        "others wait behind them"
    )
    # A limit of a tenant would hold nothing back there.
    assert some.change == "duly block --queue mail --tenant bigco --for 30m --reason WHY"


def test_the_dead_are_told_by_error_with_what_people_said() -> None:
    groups = [
        Group(
            "a91f03c2", 40_098, NOW - 47 * MINUTE, "SMTPServerDisconnected: closed", "acknowledged, said ada"
        ),
        Group("", 3, NOW - MINUTE, ""),
        Group("77c077c0", 2, NOW - MINUTE, "E" * 200),
        Group("feedface", 1, NOW, "KeyError"),
    ]

    told = [(reason.text, reason.change) for reason in dead_reasons("mail", groups, NOW)]

    assert told == [
        (
            "40,098 dead, the first 47m ago: SMTPServerDisconnected: closed (a91f03c2, acknowledged, said ada)",
            "duly dead show a91f03c2",
        ),
        ("3 dead, the first 1m ago: no error told", "duly dead list --queue mail"),
        (f"2 dead, the first 1m ago: {'E' * 79}… (77c077c0)", "duly dead show 77c077c0"),
        ("1 more dead of 1 other error", "duly dead groups --queue mail"),
    ]
