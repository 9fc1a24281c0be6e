"""Every case of the suite on every store, and the same number of them on each."""

import pytest

from duly.core.lifecycle import TRANSITIONS, Event, State
from duly.testing import conformance
from duly.testing.conformance import Case
from duly.testing.conformance.model_store import ModelPlace
from duly.testing.conformance.transitions import STATES
from tests.conformance.places import STORES, Place, has_control

CASES = conformance.cases()


# What bounds jobs. A store that has no control at all yet is not asked for it.
CONTROL = {
    "ordering",
    "leaving",
    "chaining",
    "limiting",
    "releasing",
    "pacing",
    "permitting",
    "fairness",
    "changing",
}


@pytest.mark.parametrize("case", CASES, ids=[f"{case.area}-{case.name}" for case in CASES])
def test_store(case: Case, place: Place) -> None:
    with place() as database:
        if case.area in CONTROL and not has_control(database):
            pytest.skip("this store has no control yet")
        conformance.check(case, database)


def test_each_case_has_a_name_of_its_own_and_a_body() -> None:
    names = [case.name for case in CASES]

    assert len(set(names)) == len(names) >= 600
    assert len({id(case.run) for case in CASES}) == len(CASES)


def test_the_walk_covers_every_pair_and_every_way_of_the_table() -> None:
    walked = [case.name for case in CASES if case.area == "transitions"]
    legal = sum(len(after) for after in TRANSITIONS.values())
    illegal = len(STATES) * len(Event) - len(TRANSITIONS)

    assert set(STATES) == {None, *State}
    assert len([name for name in walked if "_leads_to_" in name]) == legal
    assert len([name for name in walked if name.endswith("_changes_nothing")]) == illegal


def test_every_store_runs_the_same_number_of_cases(request: pytest.FixtureRequest) -> None:
    collected = [item.name for item in request.session.items if item.name.startswith("test_store[")]
    if request.config.getoption("keyword") or len(collected) < len(CASES):
        pytest.skip("only a selection of the suite was asked for")

    counts = {store: sum(f"[{store}-" in name for name in collected) for store in STORES}

    print(f"\nconformance cases per store: {counts}")
    assert set(counts.values()) == {len(CASES)}


@pytest.mark.parametrize("case", CASES, ids=[f"{case.area}-{case.name}" for case in CASES])
def test_the_model_keeps_what_it_is_compared_for(case: Case) -> None:
    conformance.check(case, ModelPlace())
