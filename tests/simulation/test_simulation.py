"""Four hundred seeds of the simulation, a quarter of them on SQLite; a thousand on each when there is time.

A failing one names itself and how to replay it.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from duly.stores.open import open_store as open_on
from duly.stores.protocol import Clock, Store
from duly.testing.conformance.model_store import ModelStore
from tests.conformance.places import postgres_place
from tests.folders import fast_folder
from tests.services import PostgresServer
from tests.simulation.world import World

SEEDS = 1_000
IN_EVERY_RUN = 200
ON_SQLITE = 50
PER_TEST = 25


def simulate(
    seed: int, store: str, folder: Path | None = None, url: str = "", *, trace: bool = False
) -> World:
    """Run one seed on an empty store; AssertionError, with the way to replay it, when a promise broke."""

    def open_store(clock: Clock) -> Store:
        if store == "model" or (folder is None and not url):
            return ModelStore(clock)
        return open_on(url or f"sqlite:///{folder}/simulation-{seed}.db", clock=clock)

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
@pytest.mark.parametrize("first", range(0, IN_EVERY_RUN, PER_TEST))
def test_no_interleaving_loses_doubles_or_miscounts_a_job(first: int) -> None:
    _on_file(range(first, first + PER_TEST), "sqlite" if first < ON_SQLITE else "model")


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("first", "store"),
    [(first, "sqlite") for first in range(ON_SQLITE, SEEDS, PER_TEST)]
    + [(first, "model") for first in range(IN_EVERY_RUN, SEEDS, PER_TEST)],
)
def test_no_interleaving_loses_doubles_or_miscounts_a_job_at_length(first: int, store: str) -> None:
    _on_file(range(first, first + PER_TEST), store)


@pytest.mark.timeout(300)
def test_late_commits_change_nothing_about_that(postgres: PostgresServer) -> None:
    _on_postgres(postgres, (0, 1, 2, 3, 4, 5))


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("first", range(0, 200, 10))
def test_late_commits_change_nothing_about_that_at_length(first: int, postgres: PostgresServer) -> None:
    _on_postgres(postgres, range(first, first + 10))


def _on_file(seeds: Sequence[int], store: str) -> None:
    with fast_folder() as folder:
        for seed in seeds:
            simulate(seed, store, folder)


def _on_postgres(server: PostgresServer, seeds: Sequence[int]) -> None:
    url = server.url(server.create_database())
    place = postgres_place(url)
    for seed in seeds:
        with place():
            simulate(seed, "postgres", url=url)


def test_the_same_seed_tells_the_same_story(tmp_path: Path) -> None:
    stories: list[Any] = []
    for name in ("once", "twice"):
        folder = tmp_path / name
        folder.mkdir()
        stories.append(simulate(7, "sqlite", folder).timeline.log)

    assert stories[0] == stories[1]
    assert len(stories[0]) > 200


def test_the_simulation_meets_what_it_is_for(tmp_path: Path) -> None:
    # Ends that come after the lease was lost are few.
    worlds = [simulate(seed, "model", tmp_path) for seed in (*range(80), 97, 120, 122, 145)]

    assert sum(world.kills for world in worlds) > 80
    assert sum(world.books.replies_lost for world in worlds) > 200
    assert sum(world.books.stale for world in worlds) > 3
    assert sum(world.overlaps for world in worlds) > 0


def test_the_simulation_meets_keys_follow_ups_and_schedules(tmp_path: Path) -> None:
    worlds = [simulate(seed, "model", tmp_path) for seed in range(1, 60, 3)]

    met = [world.rich.met for world in worlds if world.rich is not None]
    assert len(met) == 20
    assert sum(world.books.duplicates for world in worlds) > 20
    assert sum(len(world.books.fired) for world in worlds) > 100
    for what, least in {"replaced": 10, "stale": 0, "followed": 40, "died": 5, "nested": 1}.items():
        assert sum(one[what] for one in met) > least, what


def test_the_simulation_meets_keys_that_order_jobs_and_limits_that_are_full(tmp_path: Path) -> None:
    worlds = [simulate(seed, "model", tmp_path) for seed in range(2, 60, 3)]

    met = [world.bounded.met for world in worlds if world.bounded is not None]
    assert len(met) == 20
    assert sum(one["at the limit"] for one in met) > 20
    assert sum(one["keyed"] for one in met) > 100
    assert sum(one["shed"] for one in met) > 10
    assert sum(one["shed with a key"] for one in met) > 2


def test_the_simulation_meets_batches_that_end_in_each_way(tmp_path: Path) -> None:
    worlds = [simulate(seed, "model", tmp_path) for seed in range(5, 90, 6)]

    met = [world.batched.met for world in worlds if world.batched is not None]
    assert len(met) == 15
    for what, least in {"completed": 20, "dead": 5, "mourned": 10, "nested": 5}.items():
        assert sum(one[what] for one in met) > least, what
