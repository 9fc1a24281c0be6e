"""Replays one seed: python -m tests.simulation SEED [sqlite|model]."""

import sys

from tests.folders import fast_folder
from tests.simulation.test_simulation import simulate


def main(arguments: list[str]) -> None:
    seed, store = int(arguments[0]), arguments[1] if len(arguments) > 1 else "sqlite"
    with fast_folder() as folder:
        simulate(seed, store, folder, trace=True)
    print(f"seed {seed} holds on {store}")


if __name__ == "__main__":
    main(sys.argv[1:])
