"""A thousand seeds of the simulation. A failing one names itself and how to replay it."""

from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from duly.stores.protocol import Clock, Store
from duly.stores.sqlite.store import SQLiteStore
from duly.testing.conformance.model_store import ModelStore
from tests.folders import fast_folder
from tests.simulation.world import World

SEEDS = 1_000
PER_TEST = 25


def simulate(seed: int, store: str, folder: Path, *, trace: bool = False) -> World:
    """Run one seed on a store of its own; AssertionError, with the way to replay it, when a promise broke."""

    def open_store(clock: Clock) -> Store:
        if store == "model":
            return ModelStore(clock)
        return SQLiteStore(folder / f"simulation-{seed}.db", clock=clock)

    world = World(seed, open_store)
    try:
        with patch("duly.worker.rescue.boottime", world.timeline.clock):
            world.run()
    except Exception as error:
        told = "\n".join(world.timeline.log if trace else world.timeline.log[-12:])
        raise AssertionError(
            f"seed {seed} on {store}: {error}\n{told}\nreplay: python -m tests.simulation {seed} {store}"
        ) from error
    finally:
        world.store.close()
    if trace:
        print("\n".join(world.timeline.log))
    return world


@pytest.mark.timeout(300)
@pytest.mark.parametrize("first", range(0, SEEDS, PER_TEST))
def test_no_interleaving_loses_doubles_or_miscounts_a_job(first: int) -> None:
    with fast_folder() as folder:
        for seed in range(first, first + PER_TEST):
            simulate(seed, "sqlite", folder)


def test_the_same_seed_tells_the_same_story(tmp_path: Path) -> None:
    stories: list[Any] = []
    for name in ("once", "twice"):
        folder = tmp_path / name
        folder.mkdir()
        stories.append(simulate(7, "sqlite", folder).timeline.log)

    assert stories[0] == stories[1]
    assert len(stories[0]) > 200


def test_the_simulation_meets_what_it_is_for(tmp_path: Path) -> None:
    worlds = [simulate(seed, "model", tmp_path) for seed in range(80)]

    assert sum(world.kills for world in worlds) > 80
    assert sum(world.books.replies_lost for world in worlds) > 200
    assert sum(world.books.stale for world in worlds) > 3
    assert sum(world.overlaps for world in worlds) > 0
