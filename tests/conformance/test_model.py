"""Each store beside the model: some fixed examples in every run, 100,000 steps with `make test-long`."""

import os
from typing import Final

import pytest
from hypothesis import HealthCheck, Phase, Verbosity, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from tests.conformance.control_machine import ControlledStoreAgainstModel
from tests.conformance.keyed_machine import KeyedStoreAgainstModel
from tests.conformance.places import Place

STEPS_PER_RUN: Final = 50
STEPS: Final = int(os.environ.get("DULY_MODEL_STEPS", "100_000"))


def _walk(
    place: Place, examples: int, *, fixed: bool, kind: type[RuleBasedStateMachine] = KeyedStoreAgainstModel
) -> None:
    machine = type("StoreBesideModel", (kind,), {"place": staticmethod(place)})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=STEPS_PER_RUN,
            derandomize=fixed,
            deadline=None,
            database=None,
            print_blob=True,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate, Phase.shrink],
            verbosity=Verbosity.normal,
        ),
    )


@pytest.mark.timeout(600)  # a failure is shrunk first
def test_a_store_and_the_model_tell_the_same_after_every_step(place: Place) -> None:
    _walk(place, 15, fixed=True)


@pytest.mark.timeout(600)
def test_a_store_bounds_jobs_as_the_model_allows(place: Place) -> None:
    _walk(place, 20, fixed=True, kind=ControlledStoreAgainstModel)


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_a_store_bounds_jobs_as_the_model_allows_for_a_hundred_thousand_steps(place: Place) -> None:
    _walk(place, max(1, STEPS // STEPS_PER_RUN), fixed=False, kind=ControlledStoreAgainstModel)


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_a_store_and_the_model_tell_the_same_after_a_hundred_thousand_steps(place: Place) -> None:
    _walk(place, max(1, STEPS // STEPS_PER_RUN), fixed=False)
