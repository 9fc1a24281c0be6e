"""What the holder of a ticket is told, for every state of the job and of its record."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from duly.core.job import Counters, JobId, JobRecord, KeptAnswer, Progress
from duly.core.lifecycle import State
from duly.core.ticket import Ticket, Words
from duly.core.ticket_status import ENDED, TicketProgress, TicketState, TicketStatus, result_link, status
from duly.core.why import MOST_AHEAD, JobFacts

NOW = datetime(2030, 5, 1, 9, tzinfo=UTC)
WORDS = Words("Your receipt", failed="Please write to help@shop.example.")
TICKET = Ticket(JobId(7), NOW - timedelta(minutes=1), NOW + timedelta(days=7), timedelta(hours=24), WORDS)
JOB = JobRecord(
    JobId(7),
    State.ready,
    "mail",
    "send_receipt",
    "",
    100,
    (),
    "7",
    b"{}",
    Counters(),
    0,
    10,
    None,
    NOW - timedelta(minutes=1),
)


def told(state: State = State.ready, *, around: dict[str, Any] | None = None, **job: Any) -> TicketStatus:
    seen = {"serving": 1, "knowing": 1, **(around or {})}
    options = {name: seen.pop(name) for name in ("out_per_s", "paused", "spoken") if name in seen}
    return status(TICKET, NOW, JobFacts(replace(JOB, state=state, **job), **seen), **options)


def test_a_waiting_job_has_a_place_and_an_estimated_start() -> None:
    one = told(around={"ahead": 12, "out_per_s": 0.1})

    assert (one.state, one.position, one.position_at_least) == (TicketState.queued, 13, False)
    assert one.starts_at == NOW + timedelta(minutes=2)
    assert (one.title, one.reference, one.ended) == ("Your receipt", "7", False)


def test_nobody_says_when_a_job_starts_while_nothing_moves() -> None:
    assert told(around={"ahead": 12, "out_per_s": None}).starts_at is None
    assert told(around={"ahead": 12, "out_per_s": 0.0}).starts_at is None
    assert told(around={"ahead": 12, "out_per_s": 1e-12}).starts_at is None


def test_a_place_too_far_back_to_count_is_a_least_one() -> None:
    one = told(around={"ahead": MOST_AHEAD, "out_per_s": 1.0})

    assert (one.position, one.position_at_least) == (MOST_AHEAD + 1, True)


def test_the_next_in_line_starts_at_any_moment() -> None:
    one = told()

    assert (one.position, one.starts_at, one.message) == (1, NOW, "It is next in line.")


@pytest.mark.parametrize(
    ("around", "job", "words"),
    [
        ({"serving": 0}, {}, "Nobody works on this"),
        ({"knowing": 0}, {}, "Nobody works on this"),
        ({"paused": True}, {}, "paused"),
        ({}, {"cancel_wished": True}, "being cancelled"),
    ],
)
def test_what_holds_a_job_up_is_told_without_a_promise(
    around: dict[str, Any], job: dict[str, Any], words: str
) -> None:
    one = told(around={"ahead": 3, "out_per_s": 1.0, **around}, **job)

    assert words in one.message
    assert (one.position, one.starts_at) == (None, None)


def test_a_blocked_job_says_what_it_waits_behind() -> None:
    assert "earlier request" in told(State.blocked, waits_for="key").message
    assert "at once" in told(State.blocked, waits_for="queue:mail").message


def test_a_running_job_shows_its_progress() -> None:
    one = told(State.running, started_at=NOW, progress=Progress(JobId(7), 1, 2, 5, "page 2"))

    assert (one.state, one.progress) == (TicketState.running, TicketProgress(2, 5, "page 2"))
    assert one.started_at == NOW
    assert told(State.running, cancel_wished=True).message == "It is being stopped."


def test_a_failed_attempt_is_told_with_the_next_try() -> None:
    one = told(State.scheduled, run_at=NOW + timedelta(seconds=30), counters=Counters(failed=2))

    assert (one.state, one.attempt, one.attempts) == (TicketState.retrying, 3, 10)
    assert one.retry_at == NOW + timedelta(seconds=30)


def test_a_planned_job_and_a_snoozed_one_say_when_they_go_on() -> None:
    later = NOW + timedelta(hours=1)

    for counters in (Counters(), Counters(snoozed=3)):
        one = told(State.scheduled, run_at=later, counters=counters)
        assert (one.state, one.starts_at, one.retry_at) == (TicketState.planned, later, None)


@pytest.mark.parametrize(
    ("result", "link"),
    [
        (b'"/orders/7"', "/orders/7"),
        (b'{"url":"https://shop.example/7","secret":1}', "https://shop.example/7"),
        (b'"sent"', None),
        (b'"javascript:alert(1)"', None),
        (b'"//evil.example"', None),
        (b'{"url":["x"]}', None),
        (b"[1]", None),
        (b"null", None),
        (None, None),
        (b'"/' + b"x" * 5_000 + b'"', None),
    ],
)
def test_a_result_is_offered_only_where_it_is_a_link(result: bytes | None, link: str | None) -> None:
    assert result_link(result) == link
    one = told(State.completed, result=result, finished_at=NOW)
    assert (one.state, one.link, one.ended) == (TicketState.done, link, True)


def test_the_link_of_the_ticket_goes_before_the_result_and_only_with_success() -> None:
    ticket = replace(TICKET, words=Words(link="/mine"))
    done = status(ticket, NOW, JobFacts(replace(JOB, state=State.completed, result=b'"/orders/7"')))
    dead = status(ticket, NOW, JobFacts(replace(JOB, state=State.dead)))

    assert (done.link, dead.link) == ("/mine", None)


def test_a_failure_is_told_in_the_words_of_the_app_and_never_in_those_of_an_error() -> None:
    one = told(State.dead, reason="ValueError: /srv/secret is missing")
    plain = status(
        replace(TICKET, words=Words()), NOW, JobFacts(replace(JOB, state=State.dead, reason="/srv/secret"))
    )

    assert (one.state, one.message) == (TicketState.failed, "Please write to help@shop.example.")
    assert "secret" not in plain.message


def test_a_reason_that_the_app_has_raised_for_people_is_shown() -> None:
    assert told(State.dead, reason="The card was refused.", around={"spoken": True}).message == (
        "The card was refused."
    )
    assert told(
        State.skipped, reason="guard not_refunded: It was refunded.", around={"spoken": True}
    ).message == ("It was refunded.")
    assert "in time" in told(State.skipped, reason="expired", around={"spoken": True}).message


@pytest.mark.parametrize(
    ("state", "seen"),
    [
        (State.cancelled, TicketState.cancelled),
        (State.shed, TicketState.refused),
        (State.skipped, TicketState.skipped),
    ],
)
def test_other_ends_have_words_of_their_own_and_hide_the_operators(state: State, seen: TicketState) -> None:
    one = told(state, reason="INC-311: spam of acme")

    assert one.state is seen
    assert "INC-311" not in one.message
    assert one.ended


def test_a_job_that_is_not_visible_yet_is_pending_until_its_record_can_be_gone() -> None:
    fresh = status(TICKET, NOW, None)
    slow = status(TICKET, NOW + timedelta(hours=1), None)
    gone = status(TICKET, TICKET.issued + timedelta(hours=24), None)

    assert (fresh.state, fresh.message) == (TicketState.pending, "It is on its way in.")
    assert slow.state is TicketState.pending
    assert "probably not saved" in slow.message
    assert gone.state is TicketState.gone


def test_a_job_without_a_record_whose_end_is_still_known_is_told_with_its_time() -> None:
    answer = KeptAnswer(JobId(7), State.completed, NOW - timedelta(days=2), b'"x"')

    one = status(TICKET, NOW, None, answer=answer)

    assert (one.state, one.finished_at) == (TicketState.gone, NOW - timedelta(days=2))
    assert one.message == "It is done. The details are no longer kept."


def test_a_ticket_that_is_over_tells_nothing_of_the_job() -> None:
    one = status(TICKET, TICKET.expires, JobFacts(replace(JOB, state=State.running)))

    assert (one.state, one.progress, one.started_at) == (TicketState.expired, None, None)


def test_every_final_state_of_a_job_ends_the_ticket() -> None:
    for state in State:
        final = state in {State.completed, State.dead, State.skipped, State.cancelled, State.shed}
        one = told(state)
        assert one.ended is final
        assert (one.state in ENDED) is final
