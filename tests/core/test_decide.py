"""What follows from the end of a handler, case by case."""

from datetime import UTC, datetime, timedelta

import pytest

from duly.core import decide
from duly.core.backoff import Backoff
from duly.core.classify import Verdict
from duly.core.decide import Policy
from duly.core.endings import Dead, Ending, Retry, Skip, Snooze
from duly.core.fingerprint import ErrorRecord
from duly.core.job import ClaimedJob, Counters, Ended, JobId
from duly.core.lifecycle import Event, State, followers

NOW = datetime(2030, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
ERROR = ErrorRecord("ValueError", "no route", "Traceback", "0badcafe")
POLICY = Policy(attempts=4, backoff=Backoff("1s", factor=4, jitter=False), max_interrupts=3)


def claimed(counters: Counters = Counters(), attempts: int | None = None) -> ClaimedJob:  # noqa: B008
    return ClaimedJob(
        id=JobId(7),
        run=5,
        queue="default",
        task="ok",
        args=b"{}",
        priority=100,
        tenant="",
        tags=(),
        correlation_id="7",
        counters=counters,
        attempts=attempts,
        timeout=None,
        enqueued_at=NOW,
        claimed_at=NOW,
    )


BUSY = Counters(failed=1, lost=1, interrupted=2, snoozed=3)


def raised(ending: Ending, job: ClaimedJob | None = None, random: float = 0.5) -> Ended:
    return decide.raised(job or claimed(BUSY), ending, POLICY, random, ERROR, SECOND)


def failed(verdict: Verdict, job: ClaimedJob, reason: str | None = None) -> Ended:
    return decide.failed(job, verdict, POLICY, 0.5, ERROR, SECOND, reason)


TRANSIENT = Verdict("transient", None)
PERMANENT = Verdict("permanent", None)


def test_failures_and_losses_raise_the_attempt_that_a_handler_sees() -> None:
    assert claimed().attempt == 1
    assert claimed(Counters(failed=2, lost=1, interrupted=5, snoozed=7)).attempt == 4


def test_a_return_completes_and_ends_a_row_of_interrupts() -> None:
    end = decide.completed(claimed(BUSY), b"1", SECOND, "a note")

    assert (end.id, end.run, end.event, end.to) == (7, 5, Event.complete, State.completed)
    assert end.counters == Counters(failed=1, lost=1, interrupted=0, snoozed=3)
    assert (end.result, end.note, end.elapsed, end.reason) == (b"1", "a note", SECOND, None)


def test_a_snooze_waits_and_costs_no_attempt() -> None:
    end = raised(Snooze("10m", "closed"))

    assert (end.event, end.to, end.delay, end.reason) == (
        Event.snooze,
        State.scheduled,
        timedelta(minutes=10),
        "closed",
    )
    assert end.counters == Counters(failed=1, lost=1, interrupted=0, snoozed=4)


def test_a_snooze_without_a_reason_has_none() -> None:
    assert raised(Snooze("10m")).reason is None


def test_a_skip_ends_the_job_with_its_reason() -> None:
    end = raised(Skip("refunded"))

    assert (end.event, end.to, end.reason, end.delay) == (Event.skip, State.skipped, "refunded", None)
    assert end.counters == Counters(failed=1, lost=1, interrupted=0, snoozed=3)


def test_dead_ends_the_job_whatever_attempts_are_left() -> None:
    end = raised(Dead("unknown account"), claimed())

    assert (end.event, end.to, end.reason, end.error) == (Event.bury, State.dead, "unknown account", ERROR)
    assert end.counters == Counters()


def test_a_retry_with_a_wait_waits_exactly_so_long_and_costs_an_attempt() -> None:
    end = raised(Retry("7s", "busy"), claimed())

    assert (end.event, end.to, end.delay, end.reason) == (Event.fail, State.scheduled, 7 * SECOND, "busy")
    assert end.counters == Counters(failed=1)


def test_a_retry_with_a_wait_of_nothing_is_due_at_once() -> None:
    assert raised(Retry("0s"), claimed()).delay == timedelta(0)


def test_a_retry_without_a_wait_follows_the_backoff() -> None:
    end = raised(Retry(), claimed(Counters(failed=1)))

    assert (end.delay, end.reason) == (4 * SECOND, "asked to be retried")


def test_a_retry_at_the_last_attempt_is_dead() -> None:
    end = raised(Retry("7s", "busy"), claimed(Counters(failed=3)))

    assert (end.event, end.to, end.reason, end.delay) == (
        Event.fail,
        State.dead,
        "gave up after 4: busy",
        None,
    )
    assert end.error == ERROR


def test_an_ending_of_a_later_release_is_a_failure_like_any_other() -> None:
    class Later(Ending):
        reason = "unheard of"

    end = raised(Later(), claimed())

    assert (end.event, end.to, end.reason) == (Event.fail, State.scheduled, "no route")


@pytest.mark.parametrize(("failures", "wait"), [(0, 1), (1, 4), (2, 16)])
def test_a_transient_error_waits_for_its_backoff(failures: int, wait: int) -> None:
    end = failed(TRANSIENT, claimed(Counters(failed=failures)))

    assert (end.event, end.to, end.delay) == (Event.fail, State.scheduled, wait * SECOND)
    assert (end.reason, end.error, end.elapsed) == ("no route", ERROR, SECOND)
    assert end.counters == Counters(failed=failures + 1)


def test_a_transient_error_at_the_tasks_limit_is_dead() -> None:
    end = failed(TRANSIENT, claimed(Counters(failed=3)))

    assert (end.to, end.reason, end.counters) == (
        State.dead,
        "gave up after 4: no route",
        Counters(failed=4),
    )


def test_the_jobs_own_limit_goes_before_the_tasks() -> None:
    assert failed(TRANSIENT, claimed(attempts=1)).to is State.dead
    assert failed(TRANSIENT, claimed(Counters(failed=3), attempts=9)).to is State.scheduled


def test_losses_interrupts_and_snoozes_do_not_count_as_failures() -> None:
    busy = Counters(failed=2, lost=9, interrupted=9, snoozed=99)

    end = failed(TRANSIENT, claimed(busy))

    assert (end.to, end.counters) == (State.scheduled, Counters(failed=3, lost=9, interrupted=0, snoozed=99))


def test_the_server_may_ask_for_more_time_than_the_backoff_but_not_for_less() -> None:
    assert failed(Verdict("transient", 60 * SECOND), claimed()).delay == 60 * SECOND
    assert failed(Verdict("transient", timedelta(0)), claimed()).delay == SECOND


def test_a_permanent_error_is_dead_at_once_and_counts() -> None:
    end = failed(PERMANENT, claimed())

    assert (end.event, end.to, end.reason) == (Event.fail, State.dead, "no route")
    assert (end.counters, end.error, end.elapsed) == (Counters(failed=1), ERROR, SECOND)


def test_a_reason_given_goes_before_the_errors_text() -> None:
    assert failed(PERMANENT, claimed(), "timeout").reason == "timeout"
    assert failed(TRANSIENT, claimed(), "timeout").reason == "timeout"


def test_an_error_without_a_text_is_told_by_its_type() -> None:
    silent = ErrorRecord("KeyError", "", "Traceback", "0badcafe")

    end = decide.failed(claimed(), PERMANENT, POLICY, 0.5, silent, SECOND)

    assert end.reason == "KeyError"


def test_jitter_spreads_the_wait() -> None:
    policy = Policy(attempts=10, backoff=Backoff("10s", factor=2), max_interrupts=3)

    waits = [
        decide.failed(claimed(), TRANSIENT, policy, random, ERROR, SECOND).delay for random in (0, 0.5, 1)
    ]

    assert waits == [timedelta(0), 5 * SECOND, 10 * SECOND]


def test_an_interrupt_hands_the_job_back_at_no_cost() -> None:
    end = decide.interrupted(claimed(Counters(failed=1, interrupted=1)), POLICY, "shutdown", SECOND, ERROR)

    assert (end.event, end.to, end.reason, end.delay) == (Event.interrupt, State.ready, "shutdown", None)
    assert end.counters == Counters(failed=1, interrupted=2)


def test_one_interrupt_too_many_in_a_row_is_dead() -> None:
    at_the_limit = claimed(Counters(interrupted=2))
    over = claimed(Counters(failed=1, interrupted=3))

    assert decide.interrupted(at_the_limit, POLICY, "shutdown", SECOND).to is State.ready
    end = decide.interrupted(over, POLICY, "shutdown", SECOND, ERROR)

    assert (end.event, end.to, end.reason) == (Event.fail, State.dead, "interrupted 4 times in a row")
    assert (end.counters, end.error) == (Counters(failed=2), ERROR)


def test_handing_back_what_never_started_is_never_too_often() -> None:
    end = decide.interrupted(claimed(Counters(interrupted=99)), POLICY, "shutdown", None)

    assert (end.event, end.to, end.elapsed) == (Event.interrupt, State.ready, None)


def test_a_cancelled_attempt_says_why() -> None:
    end = decide.cancelled(claimed(BUSY), "not needed", SECOND)

    assert (end.event, end.to, end.reason) == (Event.cancel, State.cancelled, "not needed")
    assert end.counters == Counters(failed=1, lost=1, interrupted=0, snoozed=3)


def test_arguments_that_cannot_be_read_end_the_job_at_once() -> None:
    end = decide.undecodable(claimed(), ERROR)

    assert (end.event, end.to, end.elapsed) == (Event.fail, State.dead, None)
    assert end.reason == "arguments cannot be read: no route"
    assert (end.counters, end.error) == (Counters(failed=1), ERROR)


def test_an_attempt_given_up_is_lost_and_tried_again() -> None:
    end = decide.lost(claimed(Counters(failed=2, interrupted=3)), "overran", 3, SECOND, alone=False)

    assert (end.event, end.to, end.reason) == (Event.lose, State.ready, "overran")
    assert end.counters == Counters(failed=2, lost=1, interrupted=0)


def test_an_attempt_given_up_alone_at_the_limit_is_poison() -> None:
    job = claimed(Counters(lost=2))

    end = decide.lost(job, "overran", 3, SECOND, alone=True)

    assert (end.to, end.reason) == (State.dead, "poison: its worker was lost 3 times")
    assert decide.lost(job, "overran", 3, SECOND, alone=False).to is State.ready
    assert decide.lost(job, "overran", 4, SECOND, alone=True).to is State.ready


def test_every_decision_is_a_transition_of_the_table() -> None:
    jobs = [claimed(), claimed(Counters(failed=3, lost=2, interrupted=3)), claimed(attempts=1)]
    ends = [
        end
        for job in jobs
        for end in (
            decide.completed(job, None, SECOND),
            *(raised(ending, job) for ending in (Snooze("1s"), Skip("x"), Dead("x"), Retry(), Retry("1s"))),
            failed(TRANSIENT, job),
            failed(PERMANENT, job),
            decide.interrupted(job, POLICY, "x", SECOND),
            decide.interrupted(job, POLICY, "x", None),
            decide.cancelled(job, "x", SECOND),
            decide.undecodable(job, ERROR),
            *(decide.lost(job, "x", 3, SECOND, alone=alone) for alone in (True, False)),
        )
    ]

    assert all(end.to in followers(State.running, end.event) for end in ends)
    assert all((end.delay is not None) == (end.to is State.scheduled) for end in ends)


def test_a_reason_is_cut_to_what_every_store_can_hold() -> None:
    long = "x" * 5000 + "\0"

    ended = decide.raised(claimed(), Skip(long), POLICY, 0.5, ERROR, SECOND)

    assert ended.reason is not None
    assert len(ended.reason.encode()) <= 2048
