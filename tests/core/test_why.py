"""The sentences of `why`, from facts alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from duly.core.control import LimitRecord, Rate
from duly.core.job import Counters, JobId, JobRecord
from duly.core.lifecycle import State
from duly.core.pace import pace_text, parse_pace
from duly.core.why import JobFacts, Situation, limit_reasons, limit_target, moment, quoted, why_job

NOON = datetime(2030, 5, 1, 12, tzinfo=UTC)


def record(state: State = State.ready, **more: object) -> JobRecord:
    known: dict[str, object] = {
        "id": JobId(7), "state": state, "queue": "mail", "task": "send", "tenant": "", "priority": 100, "tags": (),
        "correlation_id": "7", "args": b"{}", "counters": Counters(), "run": 0, "attempts": None, "timeout": None,
        "enqueued_at": NOON,
    }  # fmt: skip
    return JobRecord(**(known | more))  # type: ignore[arg-type]


def texts(facts: JobFacts, **more: object) -> list[str]:
    return [reason.text for reason in why_job(Situation(NOON, facts, **more)).reasons]  # type: ignore[arg-type]


def test_the_start_is_estimated_from_the_measured_rate() -> None:
    facts = JobFacts(record(), ahead=300, serving=1, knowing=1)

    assert texts(facts, out_per_s=10.0) == ["300 jobs are ahead of it; at 10/s it starts in about 30s"]
    assert texts(facts, out_per_s=0.0)[0].endswith("nobody can say when it starts")


def test_what_was_counted_to_its_end_says_so() -> None:
    facts = JobFacts(record(), ahead=10_000, serving=1, knowing=1)

    assert texts(facts)[0].startswith("10,000 or more jobs are ahead of it")


def test_a_place_is_not_told_while_something_bars_the_way() -> None:
    facts = JobFacts(record(), ahead=300, serving=0)

    assert texts(facts) == ["no worker serves the queue mail"]


def test_a_paused_key_says_how_to_go_on() -> None:
    job = record(State.blocked, ordering_key="it's 7", tenant="acme", waits_for="key")
    facts = JobFacts(
        job, serving=1, knowing=1, head=JobId(3), head_state=State.dead, key_paused=True, before=1
    )

    reasons = why_job(Situation(NOON, facts)).reasons

    assert [reason.kind for reason in reasons] == ["key paused", "key"]
    assert reasons[0].change == "duly resume 'key:mail/it'\"'\"'s 7' --tenant acme"


def test_a_blocked_job_that_nothing_holds_back_is_met_by_the_next_claim() -> None:
    facts = JobFacts(record(State.blocked, waits_for="task:send"), serving=1, knowing=1)

    assert texts(facts) == [
        "it waited behind task:send, which lets it go on by now: the next claim looks at it"
    ]


@pytest.mark.parametrize(
    ("limit", "kinds"),
    [
        (LimitRecord("task:send", 5, None, 4, 0), []),
        (LimitRecord("task:send", 5, None, 5, 0), ["limit"]),
        (LimitRecord("task:send", None, Rate(1.0), 0, 0, next_at=NOON), []),
        (LimitRecord("task:send", None, Rate(1.0), 0, 0, next_at=NOON + timedelta(seconds=1)), ["rate"]),
        (LimitRecord("resource:a", 5, None, 5, 0, held_until=NOON + timedelta(seconds=9)), ["held", "limit"]),
        (LimitRecord("resource:a", None, None, 0, 0, breaker="open"), ["breaker"]),
        (LimitRecord("resource:a", None, None, 1, 0, breaker="half-open"), ["breaker"]),
        (LimitRecord("resource:a", None, None, 0, 0, breaker="half-open"), []),
        (LimitRecord("resource:a", None, None, 0, 0, breaker="closed"), []),
    ],
)
def test_a_limit_is_a_reason_only_while_it_refuses(limit: LimitRecord, kinds: list[str]) -> None:
    assert [reason.kind for reason in limit_reasons(limit, NOON)] == kinds


def test_a_breaker_set_by_hand_is_given_back_to_its_counts() -> None:
    by_hand = LimitRecord("resource:a", None, None, 0, 0, breaker="open")
    counted = LimitRecord(
        "resource:a", None, None, 0, 0, breaker="open", breaker_until=NOON + timedelta(seconds=9)
    )

    changes = [reason.change for limit in (by_hand, counted) for reason in limit_reasons(limit, NOON)]

    assert changes == ["duly limit resource:a --breaker auto", "duly limit resource:a --breaker closed"]


@pytest.mark.parametrize(
    ("name", "flags"),
    [
        ("queue:mail", "mail"),
        ("tenant:mail=acme", "mail --tenant acme"),
        ("tenant:=acme", "--tenant acme"),
        ("task:send", "task:send"),
        ("task:send#id=4 2", "'task:send#id=4 2'"),
    ],
)
def test_a_limit_is_named_as_the_command_takes_it(name: str, flags: str) -> None:
    assert limit_target(name) == flags


def test_moments_of_another_day_carry_their_date() -> None:
    assert moment(NOON + timedelta(seconds=1.5), NOON) == "12:00:01 UTC (in 1.5s)"
    assert moment(NOON + timedelta(days=1), NOON) == "2030-05-02 12:00:00 UTC (in 1d)"


def test_an_empty_word_is_quoted() -> None:
    assert (quoted(""), quoted("a b"), quoted("a-b")) == ("''", "'a b'", "a-b")


@pytest.mark.parametrize("text", ["10/s", "600/h burst 20", "2/min", "2.5/s burst 3", "1/h", "3/d"])
def test_a_pace_is_written_as_it_is_read(text: str) -> None:
    pace = parse_pace(text)

    again = parse_pace(pace_text(pace.interval, pace.burst))

    assert again.burst == pace.burst
    assert again.interval == pytest.approx(pace.interval, rel=0.01)
