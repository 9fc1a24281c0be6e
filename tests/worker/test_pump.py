"""The pump over a real store: ends, claims, bad rows, lost replies, wishes; one round at a time, without its thread."""

from collections.abc import Iterator, Sequence

import pytest

from duly.core.errors import LeaseLost
from duly.core.job import ClaimRequest, Ended, Exchange, Incarnation, QueueClaim
from duly.core.lifecycle import Event, State
from duly.telemetry.events import LeaseWasLost
from duly.worker.attempt import Attempt
from duly.worker.board import ENDED
from duly.worker.reports import NEVER_HEARD
from duly.worker.run import handed_back, returned
from tests.worker.doubles import ids
from tests.worker.pump_bench import Bench, Line


@pytest.fixture
def bench(sqlite_url: str) -> Iterator[Bench]:
    made = Bench(sqlite_url)
    yield made
    made.close()


def test_what_ended_meanwhile_forms_one_round_trip_with_the_next_claim(bench: Bench) -> None:
    attempts = bench.claim(5)
    for attempt in attempts:
        bench.run(attempt, 1)
    bench.line.jobs.calls.clear()

    bench.pump.round()

    ((ended, request),) = bench.line.jobs.calls
    assert ended == 5
    assert request is not None
    assert {bench.job(attempt.job.id).state for attempt in attempts} == {State.completed}
    assert len(bench.pump.held) == 0


def test_an_idle_pump_makes_no_round_trip_before_the_poll(bench: Bench) -> None:
    bench.rounds()
    bench.line.jobs.calls.clear()

    pause = bench.pump.round()

    assert bench.line.jobs.calls == []
    assert 0.5 < pause <= 1.2


def test_the_listener_hears_of_each_claim_that_brings_jobs(bench: Bench) -> None:
    found: list[int] = []
    bench.pump.on_found = lambda: found.append(len(bench.delivered))

    bench.pump.ring()
    bench.rounds()
    assert found == []
    bench.claim(2)
    bench.claim(1)

    assert len(found) == 2


def test_an_end_whose_reply_was_lost_is_not_a_lost_lease(bench: Bench) -> None:
    (attempt,) = bench.claim()
    bench.run(attempt, 7)
    bench.line.jobs.cut_after = 1

    bench.rounds(1)
    bench.pass_time(1)
    bench.rounds()

    assert bench.job(attempt.job.id).result == b"7"
    assert not [event for event in bench.heard if isinstance(event, LeaseWasLost)]
    assert len(bench.pump.held) == 0


def test_a_claim_whose_reply_was_lost_comes_back_after_two_looks(bench: Bench) -> None:
    (id,) = bench.enqueue()
    bench.line.jobs.cut_after = 1
    bench.pump.ring()

    bench.rounds(1)
    held = bench.job(id)
    for _ in range(4):
        bench.pass_time(1.1)
        bench.rounds()

    assert (held.state, held.incarnation) == (State.running, bench.incarnation)
    assert [attempt.job.id for attempt in bench.delivered] == [id]
    first = bench.store.inspection.attempts(id)[0]
    assert (first.event, first.reason, first.started_at) == (Event.interrupt, NEVER_HEARD, None)


def test_after_an_unknown_outcome_nothing_is_claimed_before_a_report(bench: Bench) -> None:
    bench.enqueue()
    bench.line.jobs.cut_after = 1
    bench.pump.ring()
    bench.rounds(1)
    bench.line.jobs.calls.clear()
    asked = bench.reports.must_report

    bench.pass_time(1)
    bench.pump.round()

    assert asked
    assert not bench.reports.must_report


def test_ends_are_kept_while_the_store_is_away_and_written_when_it_is_back(bench: Bench) -> None:
    attempts = bench.claim(3)
    for attempt in attempts:
        bench.run(attempt)
    bench.line.jobs.cut_before = 4

    for _ in range(8):
        bench.pass_time(6)
        bench.rounds(1)

    assert {bench.job(attempt.job.id).state for attempt in attempts} == {State.completed}


def test_ends_that_outlive_the_lease_are_given_up_and_named(bench: Bench) -> None:
    (attempt,) = bench.claim()
    bench.run(attempt)
    bench.line.jobs.cut_before = 1000

    for _ in range(4):
        bench.clock.advance(10)
        bench.rounds(1)

    assert bench.pump.unwritten() == []
    assert str(attempt.job.id) in bench.heard[-1].sentence()
    assert bench.job(attempt.job.id).state is State.running


def test_one_bad_result_in_a_batch_is_stored_without_it_and_stops_nobody(bench: Bench) -> None:
    attempts = bench.claim(8)
    bad = attempts[5].job.id
    bench.line.jobs.refuses = frozenset({bad})
    for attempt in attempts:
        bench.run(attempt, 1)

    bench.rounds(4)

    records = [bench.job(attempt.job.id) for attempt in attempts]
    assert {record.state for record in records} == {State.completed}
    assert [record.id for record in records if record.result is None] == [bad]
    assert bench.job(bad).note == "result not storable: a value is out of range"


def test_an_end_with_a_dead_token_is_dropped_and_reported(bench: Bench) -> None:
    (attempt,) = bench.claim()
    bench.store.leases.retire(bench.incarnation)
    bench.run(attempt, 1)

    bench.rounds()

    assert [event.id for event in bench.heard if isinstance(event, LeaseWasLost)] == [attempt.job.id]
    assert bench.job(attempt.job.id).state is State.ready
    assert len(bench.pump.held) == 0


def test_a_handler_whose_row_was_taken_is_told_to_stop(bench: Bench) -> None:
    """LS-09."""
    (attempt,) = bench.claim()
    assert bench.floor.begin(attempt, bench.slot)
    bench.store.leases.retire(bench.incarnation)

    bench.pass_time(6)
    bench.rounds()

    assert bench.stopped == [(attempt.job.id, "lease")]
    assert attempt.should_stop()


def test_a_wish_to_cancel_reaches_the_running_handler(bench: Bench) -> None:
    (attempt,) = bench.claim()
    assert bench.floor.begin(attempt, bench.slot)
    bench.store.operator.cancel([attempt.job.id], "ada", "not needed")

    bench.pass_time(6)
    bench.rounds()

    assert set(bench.stopped) == {(attempt.job.id, "cancel")}


def test_progress_is_written_at_most_once_a_second_and_only_the_latest(bench: Bench) -> None:
    (attempt,) = bench.claim()
    assert bench.floor.begin(attempt, bench.slot)

    for done in range(10):
        attempt.progress(done, 10, None)
    bench.pass_time(1)
    bench.rounds(1)
    first = bench.job(attempt.job.id).progress
    attempt.progress(10, 10, "done")
    bench.rounds(1)
    same = bench.job(attempt.job.id).progress
    bench.pass_time(1)
    bench.rounds(1)

    last = bench.job(attempt.job.id).progress
    assert first is not None
    assert (first.done, first.of) == (9, 10)
    assert same == first
    assert last is not None
    assert (last.done, last.note) == (10, "done")


def test_the_board_shows_an_attempt_until_its_end_is_stored(bench: Bench) -> None:
    (attempt,) = bench.claim()
    assert bench.floor.begin(attempt, bench.slot)
    running = bench.board.started()
    bench.floor.finish(attempt, returned(attempt, None, bench.clock.now), bench.slot)
    ended = bench.board.started()

    bench.rounds(1)

    assert [(line.id, line.running) for line in running] == [(attempt.job.id, True)]
    assert [(line.id, line.running) for line in ended] == [(attempt.job.id, False)]
    assert bench.board.started() == []
    assert ENDED == 2


def test_a_job_that_still_runs_here_is_not_started_a_second_time(bench: Bench) -> None:
    (attempt,) = bench.claim()
    assert bench.floor.begin(attempt, bench.slot)
    # As a sweep does with an attempt past its deadline.
    answer = bench.store.jobs.exchange(
        bench.incarnation, [lost_in_the_books(attempt)], ClaimRequest((QueueClaim("default", 1),), 1)
    )
    assert attempt.key in answer.acked

    bench.pump.ring()
    bench.rounds()

    assert ids(bench.delivered) == []


def test_a_suspect_is_handed_back_and_reported_where_others_run(bench: Bench) -> None:
    (attempt,) = bench.claim()
    bench.store.jobs.exchange(bench.incarnation, [lost_in_the_books(attempt)], None)
    bench.pump.held.drop(attempt)
    bench.suspects.look()

    bench.rounds()

    assert bench.found == 1
    assert bench.delivered == []
    assert bench.job(attempt.job.id).state is State.ready


def test_a_suspect_runs_alone_in_an_empty_process(sqlite_url: str) -> None:
    bench = Bench(sqlite_url, "alone")
    (suspect,) = bench.claim()
    bench.store.jobs.exchange(bench.incarnation, [lost_in_the_books(suspect)], None)
    bench.pump.held.drop(suspect)
    bench.pump.fetch.released(suspect, 0.0)
    bench.enqueue(3)
    bench.suspects.look()

    bench.pump.ring()
    bench.rounds()
    alone = ids(bench.delivered)
    bench.run(bench.delivered.pop())
    bench.pump.ring()
    bench.rounds()

    assert alone == [suspect.job.id]
    assert len(bench.delivered) == 3
    bench.close()


def test_what_arrives_after_the_stop_goes_back_unstarted(bench: Bench) -> None:
    """SH-02."""
    (id,) = bench.enqueue()
    real = bench.line.jobs.real

    class Late(Line):
        def exchange(
            self, incarnation: Incarnation, ended: Sequence[Ended], request: ClaimRequest | None
        ) -> Exchange:
            answer = real.exchange(incarnation, ended, request)
            bench.pump.claiming = False
            return answer

    bench.line.jobs = Late(real)
    bench.pump.ring()

    bench.rounds()

    record = bench.job(id)
    assert bench.delivered == []
    assert (record.state, record.counters.failed, record.counters.lost) == (State.ready, 0, 0)


def lost_in_the_books(attempt: Attempt) -> Ended:
    """The end that a sweep would write."""
    from duly.core.decide import lost

    return lost(attempt.job, "its deadline is over", 3, None, alone=False)


def test_positions_of_loops_are_reported_once_a_second_at_most(bench: Bench) -> None:
    (attempt,) = bench.claim()
    assert bench.floor.begin(attempt, bench.slot)
    bench.pass_time(1)
    kept = bench.store.steps.steps

    attempt.cursor("photos", 1)
    bench.rounds()
    attempt.cursor("photos", 2)
    attempt.cursor("pages", 5)
    bench.rounds()
    at_once = kept(attempt.job.id).cursors
    bench.pass_time(1)
    bench.rounds()

    assert at_once == {"photos": 1}
    assert kept(attempt.job.id).cursors == {"photos": 2, "pages": 5}


def test_a_position_whose_report_was_cut_is_reported_with_the_next(bench: Bench) -> None:
    (attempt,) = bench.claim()
    assert bench.floor.begin(attempt, bench.slot)
    bench.pass_time(1)
    bench.line.jobs.cut_report = 1

    attempt.cursor("photos", 1)
    bench.rounds()
    cut = bench.store.steps.steps(attempt.job.id).cursors
    bench.pass_time(1)
    bench.rounds()

    assert (cut, bench.store.steps.steps(attempt.job.id).cursors) == ({}, {"photos": 1})


def test_the_last_position_rides_on_the_end_and_the_next_claim_says_so(bench: Bench) -> None:
    (attempt,) = bench.claim()
    assert bench.floor.begin(attempt, bench.slot)
    attempt.cursor("photos", 1)
    attempt.cursor("photos", 2)
    bench.floor.finish(attempt, handed_back(attempt, "shutdown"), bench.slot)

    bench.rounds()
    bench.pump.ring()
    bench.rounds()

    assert not attempt.job.has_steps
    (again,) = bench.delivered
    assert (again.job.run, again.job.has_steps) == (2, True)
    assert bench.store.steps.steps(again.job.id).cursors == {"photos": 2}


def test_a_step_of_a_lost_job_is_not_written(bench: Bench) -> None:
    (attempt,) = bench.claim()
    assert bench.floor.begin(attempt, bench.slot)
    bench.store.leases.retire(bench.incarnation)

    with pytest.raises(LeaseLost):
        attempt.keep_step("pay", b"1")

    assert bench.store.steps.steps(attempt.job.id).finished == {}
