"""One hunt, in a process of its own whose `duly` is the mutant: run cases until one of them fails.

    python -m tests.mutants.hunt sqlite AREA,AREA | postgres AREA,AREA URL | simulation SEED,SEED

Exit 0: everything passed, the mutant lives. 1: a case failed; its name is printed. Anything else: it does not even run.
"""

import sys

from duly.testing import conformance
from duly.testing.conformance import Case
from tests.conformance.places import Place, postgres_place, sqlite_place
from tests.folders import fast_folder
from tests.simulation.test_simulation import simulate

SEEDS = 200
# A mutant breaks one promise: with everything broken, any test would do.
SIGNS_OF_LIFE = ("an_enqueued_job_is_ready", "a_claim_from_an_empty_queue_is_empty")


def hunt(place: Place, areas: list[str]) -> int:
    cases = conformance.cases()
    for case in cases:
        if case.name in SIGNS_OF_LIFE and (error := _failure(case, place)):
            print(f"{case.name}: {error}")
            return 3
    near = [case for case in cases if case.area in areas]
    far = [case for case in cases if case.area not in areas]
    for case in (*near, *far):
        if _failure(case, place):
            print(case.name)
            return 1
    return 0


def hunt_in_simulation(first: list[int]) -> int:
    for seed in [*first, *range(SEEDS)]:
        try:
            simulate(seed, "model")
        except AssertionError as error:
            print(str(error).partition("\n")[0])
            return 1
    return 0


def _failure(case: Case, place: Place) -> str:
    try:
        with place() as database:
            conformance.check(case, database)
    except Exception as error:  # whatever it is that a broken store raises
        return f"{type(error).__name__}: {error}"[:200] or "failed"
    return ""


def main(arguments: list[str]) -> int:
    if arguments[0] == "simulation":
        return hunt_in_simulation([int(seed) for seed in arguments[1].split(",")])
    store, areas = arguments[0], arguments[1].split(",")
    if store == "postgres":
        return hunt(postgres_place(arguments[2]), areas)
    with fast_folder() as folder:
        return hunt(sqlite_place(folder, "truncate"), areas)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
