"""The catalogue fits the code it breaks. Whether each mutant is caught is `make mutants`."""

from pathlib import Path

import pytest

from tests.mutants.catalogue import MUTANTS
from tests.mutants.mutant import Mutant

SOURCE = Path(__file__).parents[2] / "src/duly"


@pytest.mark.parametrize("mutant", MUTANTS, ids=[f"{mutant.file}: {mutant.breaks}" for mutant in MUTANTS])
def test_a_mutant_changes_exactly_one_place(mutant: Mutant) -> None:
    text = (SOURCE / mutant.file).read_text()

    assert text.count(mutant.old) == 1
    assert mutant.old != mutant.new


def test_there_are_many_and_no_two_are_the_same() -> None:
    assert len({mutant[:3] for mutant in MUTANTS}) == len(MUTANTS) >= 150


def test_all_kinds_of_code_are_broken() -> None:
    assert {mutant.hunt for mutant in MUTANTS} == {"core", "sqlite", "postgres", "simulation"}
    assert all(mutant.breaks for mutant in MUTANTS)
