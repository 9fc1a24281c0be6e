"""The one table of transitions, held against the words of the design."""

import pytest

from duly.core.lifecycle import FINAL, LIVE, TRANSITIONS, WAITING, Event, Outcome, State, followers

PAIRS = [(state, event) for state in (None, *State) for event in Event]

# Written out by hand from the table of the design: who may leave each state, and how.
LEAVES = {
    None: {"enqueue"},
    "ready": {"claim", "park", "skip", "cancel", "shed", "run_now", "run_at", "reprioritise"},
    "scheduled": {"promote", "skip", "cancel", "run_now", "run_at", "reprioritise"},
    "blocked": {"unblock", "skip", "cancel", "abandon", "reprioritise"},
    "running": {"complete", "fail", "snooze", "skip", "bury", "interrupt", "lose", "cancel"},
    "completed": set(),
    "skipped": {"redrive"},
    "dead": {"redrive"},
    "cancelled": {"redrive"},
    "shed": set(),
}


@pytest.mark.parametrize(("state", "event"), PAIRS, ids=[f"{state}-{event}" for state, event in PAIRS])
def test_a_pair_is_legal_exactly_where_the_design_says_so(state: State | None, event: Event) -> None:
    assert bool(followers(state, event)) == (str(event) in LEAVES[state])


def test_an_illegal_pair_is_absent_rather_than_empty() -> None:
    assert all(TRANSITIONS.values())


def test_every_state_is_either_live_or_final_and_waiting_is_live() -> None:
    assert set(State) == LIVE | FINAL
    assert not LIVE & FINAL
    assert {State.ready, State.scheduled, State.blocked} == WAITING == LIVE - {State.running}


def test_only_a_redrive_brings_a_final_job_back_and_never_a_completed_one() -> None:
    for state in FINAL:
        ways = {event for event in Event if followers(state, event)}

        assert ways <= {Event.redrive}
    assert not followers(State.completed, Event.redrive)


def test_running_is_entered_only_by_a_claim_or_from_parking() -> None:
    entries = {
        (state, event)
        for (state, event), after in TRANSITIONS.items()
        if State.running in after and state is not State.running
    }

    assert entries == {(State.ready, Event.claim), (State.blocked, Event.unblock)}


def test_a_wished_cancel_may_replace_every_return_to_waiting_and_nothing_else() -> None:
    back = {State.ready, State.scheduled}
    for (state, event), after in TRANSITIONS.items():
        if state is State.running:
            assert (State.cancelled in after) == (bool(back & after) or event is Event.cancel), event


def test_the_words_are_the_same_in_text() -> None:
    assert [str(state) for state in State] == [state.name for state in State]
    assert [str(event) for event in Event] == [event.name for event in Event]
    assert str(Outcome.created) == "created"


def test_an_unknown_pair_has_no_followers() -> None:
    assert followers(State.shed, Event.claim) == frozenset()
    assert followers(None, Event.enqueue) == {State.ready, State.scheduled}
